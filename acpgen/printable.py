"""Text from the input, made fit to be shown."""

from __future__ import annotations

_CUT = 80


def printable(text: str) -> str:
    """`text` without characters that a terminal would act upon; input is untrusted, messages quote it."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def cut(text: str, length: int = _CUT) -> str:
    """`text`, or its start where it is long."""
    return text if len(text) <= length else text[: length - 1] + "…"
