"""Schemas of the classes for pydantic."""
