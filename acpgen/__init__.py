"""Compile the Agent Client Protocol's JSON Schema into a small, typed, dependency-free Python package."""

__version__ = "0.2.0"
