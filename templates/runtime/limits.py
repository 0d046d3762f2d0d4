"""Limits on messages: their memory and nesting before they are parsed, and the length of ids, which are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import accumulate
from math import inf
from sys import getsizeof
from typing import Any, Final, Literal, NamedTuple

MAX_DEPTH: Final = 200
"""The deepest nesting of arrays and objects in a message. Python parses more, and then fails or takes seconds where a
value is compared, printed or written: how much more depends on its version."""

MAX_ID_BYTES: Final = 256
"""The longest id of a request or a session that is kept, in UTF-8."""
_INTEGERS: Final = range(-(2**63), 2**64)
"""Those that JSON libraries agree about."""

TASK_BYTES: Final = 2**13
"""The memory of a request in flight beside its message."""

_MOST: Final = 64
"""The most bytes of memory for a byte of JSON: for `{"":{"":…` on Python 3.10."""
_SMALL: Final = 2**10
"""Lines up to this size are not measured: the bound is close enough, even for 1024 of them in flight."""

_COST: Final = {b"{": 232, b"{}": -168, b"[": 96, b":": 100, b",": 64}
"""The bytes of an object, an array, a property and an item: measured, and rounded up. An empty object takes less."""
_WIDER: Final = {**_COST, b":": 128, b",": 80}
"""The same if strings may not be ASCII: each of these takes at least 24 bytes more."""

_REST: Final = bytes(byte for byte in range(256) if byte not in b'{}[]:,"')
_ESCAPE: Final = re.compile(rb"\\u")
_SURROGATE: Final = re.compile(rb"\\u[dD]")
_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""First bytes of characters that make a string take four bytes for each of its characters."""

_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""As signed bytes, 1 for an opening bracket and -1 for a closing one."""

_CHUNK: Final = 2**16


class Budget:
    """The bytes that several connections hold for a peer, and the most that they should."""

    def __init__(self, limit: float = inf) -> None:
        self.limit = limit
        self.held = 0

    def lacks(self, size: int = 0) -> bool:
        """True if so many more bytes would exceed the limit."""
        return self.held + size > self.limit


def is_id(value: Any) -> bool:
    """True if `value` can be the id of a request whose response is awaited: such an id can always be sent back."""
    return value in _INTEGERS if type(value) is int else type(value) is str and is_short(value)


def is_short(text: str) -> bool:
    """True if `text` is valid, and short enough for an id."""
    if len(text) > MAX_ID_BYTES or text.isascii():
        return len(text) <= MAX_ID_BYTES
    try:
        return len(text.encode()) <= MAX_ID_BYTES
    except UnicodeEncodeError:
        return False


def weigh(line: bytes) -> int:
    """An upper bound of the memory for parsing `line`, in bytes; a close one for all but short lines."""
    width = _width(line)
    return len(line) * width + _structure(line, _COST if width == 1 else _WIDER)


def is_light(line: bytes, limit: int) -> bool:
    """True if the value of `line` takes at most `limit` bytes of memory in the worst case."""
    return len(line) * _MOST <= limit


def measure(line: bytes, value: Any) -> int:
    """The memory of `value`, which was parsed from `line`, in bytes; an upper bound if `line` is short."""
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
    """The bytes for each character of the strings in `line`: one wide character makes a whole string wide."""
    escaped, is_ascii = b"\\" in line, line.isascii()
    if (escaped and _SURROGATE.search(line)) or not (is_ascii or all(lead not in line for lead in _WIDE)):
        return 4
    return 2 if not is_ascii or (escaped and _ESCAPE.search(line)) else 1


def is_too_deep(line: bytes) -> bool:
    """True if `line` is nested more than `MAX_DEPTH` deep."""
    if len(line) <= 2 * MAX_DEPTH or not _has_many_brackets(line):
        return False
    level = 0
    for signs in _outside_strings(line):
        levels = [*accumulate(memoryview(signs.translate(_STEPS, _NO_BRACKET)).cast("b"), initial=level)]
        if max(levels) > MAX_DEPTH:
            return True
        level = levels[-1]
    return False


def _has_many_brackets(line: bytes) -> bool:
    """True if more than `MAX_DEPTH` brackets open. Few lines have as many; `find` is faster in texts than `count`."""
    left = MAX_DEPTH
    for bracket in (b"[", b"{"):
        at = line.find(bracket)
        while at >= 0:
            if not left:
                return True
            left -= 1
            at = line.find(bracket, at + 1)
    return False


def _structure(line: bytes, costs: dict[bytes, int]) -> int:
    """The bytes for all but characters."""
    return sum(signs.count(sign) * cost for signs in _outside_strings(line) for sign, cost in costs.items())


def _outside_strings(line: bytes) -> Iterator[bytes]:
    """The brackets, colons and commas outside of strings. Without escapes, each quote begins or ends a string."""
    signs = line.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _REST).replace(b'""', b"")
    inside = 0
    for start in range(0, len(signs), _CHUNK):  # splitting it as a whole would take more memory than is estimated
        pieces = signs[start : start + _CHUNK].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2


class Head(NamedTuple):
    """The kind of a message, request or response, and its id, from its start; None if the start does not show them."""

    kind: Literal["request", "response"] | None = None
    number: int | str | None = None


_FIRST_SCALARS: Final = re.compile(rb"\s*\{([^{}\[\]]*)")
_ID: Final = re.compile(rb'"id"\s*:\s*(-?[0-9]{1,18}|"(?:[^"\\]|\\.)*")\s*,')
_KIND: Final = re.compile(rb'"(method|result|error)"\s*:')


def head(start: bytes) -> Head:
    """Find the id of a message in the first bytes of its line, before any nested value, which may have an `id`, too."""
    scalars = _FIRST_SCALARS.match(start)
    number, kind = (pattern.search(scalars[1]) if scalars else None for pattern in (_ID, _KIND))
    if number is None or kind is None:
        return Head()
    try:
        found = json.loads(number[1])
    except ValueError:
        return Head()
    return Head("request" if kind[1] == b"method" else "response", found) if is_id(found) else Head()
