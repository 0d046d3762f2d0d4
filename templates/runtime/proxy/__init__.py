"""Passes messages on: what a proxy and a conductor consist of."""
