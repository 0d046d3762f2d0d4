"""Compile the Agent Client Protocol's JSON Schema into a small, typed, dependency-free Python package."""

__version__ = "0.1.0"
