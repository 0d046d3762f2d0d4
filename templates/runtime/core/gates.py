"""Which JSON opens a gate: what counts as a capability that a peer has advertised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._base import Gate


def is_open(gate: Gate, raw: Any) -> bool:
    """True if the raw JSON of a message opens `gate`."""
    return any(opens(value_at(raw, path), gate.but) for path in gate.paths)


def value_at(raw: Any, path: Sequence[str]) -> Any:
    """The value at a path of property names in raw JSON; None if there is none."""
    value: Any = raw
    for name in path:
        inner: Any = value
        if not isinstance(value, dict):
            return None
        value = inner.get(name)
    return value


def opens(value: Any, but: tuple[str, Sequence[str]] | None = None) -> bool:
    """True for `true`, an object, and an array with an item whose property `but[0]` is none of `but[1]`."""
    found: Any = value
    if isinstance(value, list):
        return any(but is None or value_at(item, but[:1]) not in but[1] for item in found)
    return value is True or isinstance(value, dict)
