"""How much memory messages take, and what the start of one says that is too large to be read."""

from __future__ import annotations

import json
import re
from sys import getsizeof
from typing import Any, Final, Literal, NamedTuple

_MOST: Final = 64
"""A byte of JSON takes at most so many bytes: those of `{"":{"":…` on Python 3.10."""
_SMALL: Final = 2**10
"""The values of lines up to this size are not measured: with 1024 of them in flight, the bound is good enough."""

_COST: Final = {b"{": 232, b"{}": -168, b"[": 96, b":": 100, b",": 64}
"""What an object, an array, a property and an item take: measured, and rounded up. An empty object takes less."""
_WIDER: Final = {**_COST, b":": 128, b",": 80}
"""The same where there may be strings that are not ASCII: the least of them takes 24 bytes more."""

_REST: Final = bytes(byte for byte in range(256) if byte not in b'{}[:,"')
_ESCAPE: Final = re.compile(rb"\\u")
_SURROGATE: Final = re.compile(rb"\\u[dD]")
_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""How characters begin for which a string has four bytes for each of its characters."""

_CHUNK: Final = 2**16


def weigh(line: bytes) -> int:
    """An upper bound for the bytes of memory that reading `line` takes; a close one for all but short lines."""
    width = _width(line)
    return len(line) * width + _structure(line, _COST if width == 1 else _WIDER)


def is_light(line: bytes, limit: int) -> bool:
    """Whether `line` takes no more than `limit`, whatever is in it."""
    return len(line) * _MOST <= limit


def measure(line: bytes, value: Any) -> int:
    """The bytes of memory that `value`, the JSON in `line`, takes; a bound where `line` is short."""
    if len(line) <= _SMALL:
        return len(line) * _MOST
    total, names = 0, set[str]()
    rest: list[Any] = [value]
    while rest:
        each: Any = rest.pop()
        inner: Any = each
        total += getsizeof(each)
        if isinstance(each, dict):
            names.update(inner)  # equal names are one string
            rest.extend(inner.values())
        elif isinstance(each, list):
            rest.extend(inner)
    return total + sum(map(getsizeof, names))


def _width(line: bytes) -> int:
    """How many times the bytes of `line` its strings may take: one wide character makes all of a string wide."""
    escaped, is_ascii = b"\\" in line, line.isascii()
    if (escaped and _SURROGATE.search(line)) or not (is_ascii or all(lead not in line for lead in _WIDE)):
        return 4
    return 2 if not is_ascii or (escaped and _ESCAPE.search(line)) else 1


def _structure(line: bytes, costs: dict[bytes, int]) -> int:
    """What all but the characters takes. Without the escapes, each quote begins or ends a string."""
    signs = line.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST)
    total, inside = 0, 0
    for start in range(0, len(signs), _CHUNK):  # all pieces at once would take more memory than what is estimated
        pieces = signs[start : start + _CHUNK].split(b'"')
        outside = b"".join(pieces[inside::2])
        total += sum(outside.count(sign) * cost for sign, cost in costs.items())
        inside ^= (len(pieces) - 1) % 2
    return total


class Head(NamedTuple):
    """What the start of a message says: whether it is a request or an answer, and its id; None where it does not."""

    kind: Literal["request", "response"] | None = None
    number: int | str | None = None


_FIRST_SCALARS: Final = re.compile(rb"\s*\{([^{}\[\]]*)")
_ID: Final = re.compile(rb'"id"\s*:\s*(-?[0-9]{1,18}|"(?:[^"\\]|\\.)*")\s*,')
_KIND: Final = re.compile(rb'"(method|result|error)"\s*:')


def head(start: bytes) -> Head:
    """Find the id of a message in the first bytes of its line: before any nested value, which may have an id, too."""
    scalars = _FIRST_SCALARS.match(start)
    number, kind = (pattern.search(scalars[1]) if scalars else None for pattern in (_ID, _KIND))
    if number is None or kind is None:
        return Head()
    try:
        return Head("request" if kind[1] == b"method" else "response", json.loads(number[1]))
    except ValueError:
        return Head()
