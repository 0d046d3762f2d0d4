"""Serves several versions of the protocol."""
