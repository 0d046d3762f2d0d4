"""Compile the Agent Client Protocol's JSON Schema into a small, typed, dependency-free Python package."""

import sys

if sys.version_info < (3, 10):
    raise ImportError(f"acpgen needs Python 3.10 or later, and this is {sys.version.split()[0]}")

__version__ = "0.3.0"
