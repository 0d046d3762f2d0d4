"""Text from the input, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` without characters that a terminal would act upon; input is untrusted, messages quote it."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
