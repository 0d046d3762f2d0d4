"""The memory of what helpers keep of a peer.

A peer may send a text of 32 MiB in any place. So what a helper keeps is counted in bytes, and never in items alone.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from sys import getsizeof
from typing import Any, Final

MAX_ID: Final = 1024
"""The longest id that is kept, in characters."""
_MAX_SHOWN: Final = 200
_parts: Final[dict[type, tuple[str, ...]]] = {}


def memory_of(value: object) -> int:
    """The memory of a value that was decoded, in bytes. What occurs in it more than once counts once."""
    total, rest, seen = 0, [value], set[int]()
    while rest:
        each: Any = rest.pop()
        inner: Any = each
        if id(each) in seen:
            continue
        seen.add(id(each))
        total += getsizeof(each)
        if isinstance(each, dict):
            rest += inner  # the keys
            rest += inner.values()
        elif isinstance(each, (list, tuple)):
            rest += inner
        else:
            rest += [getattr(inner, name) for name in _parts_of(inner.__class__)]
    return total


def _parts_of(kind: type) -> tuple[str, ...]:
    """The names of the fields of a class, which are found once."""
    if (found := _parts.get(kind)) is None:
        found = _parts[kind] = tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()
    return found


def shortened(text: str) -> str:
    """The start of a text of the peer, for an error that goes back to it."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
