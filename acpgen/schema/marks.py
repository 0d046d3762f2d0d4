"""Marks: what a draft of a fragment cannot say stands in it as a text such as `<fill in: agent or client>`.

`acpgen rfd extract` writes them, the loader of fragments refuses them, and the author of the fragment replaces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acpgen.schema.pointer import join

_START = "<fill in: "


def mark(wanted: str) -> str:
    """The text that stands for what is `wanted`."""
    return f"{_START}{wanted}>"


def read_mark(value: Any) -> str | None:
    """What the mark `value` wants; None for everything that is no mark."""
    if isinstance(value, str) and value.startswith(_START) and value.endswith(">"):
        return value[len(_START) : -1]
    return None


def find_marks(node: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The pointers of all marks in a JSON value, names of members among them, and what each wants."""
    if (wanted := read_mark(node)) is not None:
        yield pointer, wanted
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        if (wanted := read_mark(key)) is not None:
            yield join(pointer, key), wanted
        yield from find_marks(child, join(pointer, key))
