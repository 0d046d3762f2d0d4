"""Lay out what does not fit into a line, as black does: black has nothing to change then, and looks at it once."""

from __future__ import annotations

from collections.abc import Iterable

from acpgen.emit.literals import LINE_LENGTH, Code


def call(function: str, arguments: Iterable[Code], *, indent: int, beside: int) -> Code:
    """A call in a line that is indented by `indent`, and has `beside` characters besides."""
    found = list(arguments)
    joined = ", ".join(found)
    if indent + beside + len(f"{function}({joined})") <= LINE_LENGTH:
        return Code(f"{function}({joined})")
    margin = " " * (indent + 4)
    fits = len(margin) + len(joined) <= LINE_LENGTH
    body = margin + joined if fits else "".join(f"{margin}{each},\n" for each in found)[:-1]
    return Code(f"{function}(\n{body}\n{' ' * indent})")
