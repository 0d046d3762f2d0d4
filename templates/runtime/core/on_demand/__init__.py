"""Modules that are imported only when they are needed, so that starting does not pay for them."""
