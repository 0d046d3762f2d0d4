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


def memory_of(value: object) -> int:
    """The memory of a value that was decoded, in bytes. What occurs in it more than once counts each time."""
    total, rest = 0, [value]
    while rest:
        each: Any = rest.pop()
        total += getsizeof(each)
        if isinstance(each, dict):
            rest += each  # the keys
            rest += each.values()
        elif isinstance(each, (list, tuple)):
            rest += each
        elif is_dataclass(each):
            rest += [getattr(each, part.name) for part in fields(each)]
    return total


def shortened(text: str) -> str:
    """The start of a text of the peer, for an error that goes back to it."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
