"""Peers for tests: they follow a script, and keep what they get. With `store`, the check of a store, too."""
