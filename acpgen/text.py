"""Helpers for text: escaping, cutting, suggestions, and content hashes that ignore line endings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from difflib import get_close_matches
from textwrap import wrap

_CUT = 80

WIDTH = 80
"""The most columns of a line on the terminal, but for words and JSON that are longer."""


def printable(text: str) -> str:
    """Escape the characters that a terminal acts on. Messages quote input, which is untrusted."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def cut(text: str, length: int = _CUT) -> str:
    """Shorten `text` to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def folded(line: str, *, indent: int | None = None) -> list[str]:
    """A line, and if it is too long, further lines that continue it, `indent` columns deep: by default 4 more."""
    if len(line) <= WIDTH:
        return [line.rstrip()]
    deeper = len(line) - len(line.lstrip()) + 4 if indent is None else indent
    return wrap(line, WIDTH, subsequent_indent=" " * deeper, break_long_words=False, break_on_hyphens=False)


MOST_HINTS = 20
"""The most diagnostics of one kind that get a suggestion: more are not printed, and the search is slow."""

_LONGEST = 100
"""The longest name that is compared: the time is the product of the two lengths."""


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """Suggest the most similar of the names `known`, with `prefix` before it; None if none is similar."""
    if len(name) > _LONGEST:
        return None
    near = get_close_matches(name, sorted(each for each in known if len(each) <= _LONGEST), n=1)
    return f"did you mean {prefix + near[0]!r}?" if near else None


def digest(data: bytes) -> str:
    """The SHA-256 of a text, in hexadecimal. Line ends are ignored: git changes them in checkouts on Windows."""
    return hashlib.sha256(with_plain_ends(data)).hexdigest()


def with_plain_ends(data: bytes) -> bytes:
    """Convert line ends to those that acpgen writes."""
    return data.replace(b"\r\n", b"\n")
