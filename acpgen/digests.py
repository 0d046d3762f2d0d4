"""How files are known again."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    """The SHA-256 of a text file, in hexadecimal. Line ends do not count: git changes them in checkouts on Windows."""
    return hashlib.sha256(with_plain_ends(data)).hexdigest()


def with_plain_ends(data: bytes) -> bytes:
    """Text with the line ends that acpgen writes."""
    return data.replace(b"\r\n", b"\n")
