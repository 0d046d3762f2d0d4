"""Emit the files of a package from the IR, as text."""
