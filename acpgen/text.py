"""Text: escaped and cut for people, near misses suggested, hashed without regard to line endings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from difflib import get_close_matches

_CUT = 80


def printable(text: str) -> str:
    """`text` without characters that a terminal would act upon; input is untrusted, messages quote it."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def cut(text: str, length: int = _CUT) -> str:
    """`text`, or its start where it is long."""
    return text if len(text) <= length else text[: length - 1] + "…"


MOST_HINTS = 20
"""How many findings of a kind get such a hint: as many as are printed, and the search takes long."""

_LONGEST = 100
"""Characters of a name that is looked at: to compare two takes the product of their lengths."""


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """The hint that names the one of `known` that is most like `name`, after `prefix`; None where none is like it."""
    if len(name) > _LONGEST:
        return None
    near = get_close_matches(name, sorted(each for each in known if len(each) <= _LONGEST), n=1)
    return f"did you mean {prefix + near[0]!r}?" if near else None


def digest(data: bytes) -> str:
    """The SHA-256 of a text file, in hexadecimal. Line ends do not count: git changes them in checkouts on Windows."""
    return hashlib.sha256(with_plain_ends(data)).hexdigest()


def with_plain_ends(data: bytes) -> bytes:
    """Text with the line ends that acpgen writes."""
    return data.replace(b"\r\n", b"\n")
