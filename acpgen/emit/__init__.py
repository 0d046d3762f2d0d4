"""From the IR to the text of the files of a package."""
