"""Cut generated source into pieces of whole statements, so that what looks into a long file needs little memory."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

PIECE = 200_000
"""Characters, at least, but for the last piece; the syntax tree of a piece takes some 150 times as many bytes."""

_APART = re.compile(r"\n\n\n(?=[^\s)\]}])")
"""Two empty lines before a line that is not indented: between two statements, as docstrings have no two empty lines."""


def pieces(source: str, size: int = PIECE) -> Iterator[str]:
    """`source` in pieces of at least `size` characters, each of which is Python on its own."""
    start = 0
    while (cut := _APART.search(source, start + size)) is not None:
        yield source[start : cut.start()] + "\n"
        start = cut.end()
    yield source[start:]


def names_in(source: str, wanted: Collection[str]) -> set[str]:
    """Which of the names `wanted` the code of `source` mentions, strings and comments aside."""
    missing = set(wanted)
    for piece in pieces(source, PIECE // 10):
        sought = {name for name in missing if name in piece}
        if sought:  # most names are in the first piece, and parsing is what takes long
            tree = ast.parse(piece)
            missing -= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in sought}
    return set(wanted) - missing
