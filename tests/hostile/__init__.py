"""Hostile schemas and fragments: each gives a diagnostic, or a package like any other."""
