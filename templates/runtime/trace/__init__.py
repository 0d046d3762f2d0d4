"""Records the messages of a connection in a file."""
