not in the way
