"""Conflicts of a merge in generated files: all in them can be made again, so a build does that."""

from __future__ import annotations

import re

from acpgen.text import MARKER

_LINE = re.compile(rb"^<{7}(?: |\r?$)", re.MULTILINE)
_HEAD = 4096
"""The bytes in which the marker of acpgen must be if a conflict begins with the first line."""


def has_conflict(data: bytes) -> bool:
    """Whether git has left the two sides of a conflict in a file."""
    return _LINE.search(data) is not None


def is_generated_in_conflict(data: bytes) -> bool:
    """Whether a file begins with a conflict of two generated files: then its first line is not that of acpgen."""
    return _LINE.match(data) is not None and MARKER.encode() in data[:_HEAD]
