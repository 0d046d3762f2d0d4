"""Files that agents may read and write, confined to the folders of a session."""
