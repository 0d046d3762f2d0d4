"""JSON as text: parsed and written strictly, and its depth and the memory that it takes, estimated before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from sys import getsizeof
from typing import Any, Final


def refuse_constant(name: str) -> Any:
    """The hook of a JSON parser that makes `NaN` and infinities errors."""
    raise ValueError(f"{name} is not JSON")


# `json.loads` and `json.dumps` make these for each message if they get any argument. Without `check_circular`, a value
# that contains itself is still an error: it is nested too deep.
READ: Final = json.JSONDecoder(parse_constant=refuse_constant).raw_decode
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def _make_write() -> Callable[[Any, int], Iterable[str]]:
    """The encoder in C, made once: `JSONEncoder.encode` makes one for each value. It is private, and may be missing."""
    names: Any = json.encoder
    try:
        make, text = names.c_make_encoder, names.c_encode_basestring_ascii
        write: Callable[[Any, int], Iterable[str]] = make(
            None, _ENCODER.default, text, None, ":", ",", False, False, False
        )
        if "".join(write({"a": [1, "\u00e9"]}, 0)) == '{"a":[1,"\\u00e9"]}':
            return write
    except (AttributeError, TypeError):
        pass
    return lambda value, _: _ENCODER.encode(value)


WRITE: Final = _make_write()


def loads_json(message: bytes) -> Any:
    """Parse JSON in UTF-8. `json.loads` would accept UTF-16 and NaN. Raises `ValueError`."""
    text = message.decode().strip(" \t\r\n")
    value, end = READ(text)
    if end != len(text):
        raise ValueError(f"unexpected text after the JSON, at character {end}")
    return value


def dumps_json(message: Any) -> bytes:
    """Write JSON as ASCII: no character can be mistaken for the end of a line, and lone surrogates survive."""
    return "".join(WRITE(message, 0)).encode("ascii")


# --- Depth and memory ------------------------------------------------------------------------------------------------

MAX_DEPTH: Final = 200
"""The deepest nesting of arrays and objects in a message. Python parses more, and then fails or takes seconds where a
value is compared, printed or written: how much more depends on its version."""

MAX_EXPANSION: Final = 64
"""The most bytes of memory for a byte of JSON: for `{"":{"":…` on Python 3.10."""
_COST: Final = {b"{": 232, b"{}": -168, b"[": 96, b":": 100, b",": 64}
"""The bytes of an object, an array, a property and an item: measured, and rounded up. An empty object takes less."""
_WIDER: Final = {**_COST, b":": 128, b",": 80}
"""The same if strings may not be ASCII: each of these takes at least 24 bytes more."""

_NO_SIGN: Final = bytes(byte for byte in range(256) if byte not in b'{}[]:,"')
_NO_NESTING: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""As signed bytes, 1 for an opening bracket and -1 for a closing one."""
_WIDE: Final = (b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""First bytes of characters that make a string take four bytes for each of its characters."""
_CHUNK: Final = 2**16
_PASSES: Final = 8


def measure(value: Any) -> int:
    """The memory of a JSON value, in bytes."""
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


def weigh(line: bytes) -> int:
    """An upper bound of the memory for parsing `line`, in bytes; a close one for all but short lines."""
    width = _width(line)
    costs = _COST if width == 1 else _WIDER
    signs = _outside_strings(line, _NO_SIGN)
    return len(line) * width + sum(part.count(sign) * cost for part in signs for sign, cost in costs.items())


def _width(line: bytes) -> int:
    """The bytes for each character of the strings in `line`: one wide character makes a whole string wide."""
    escaped, is_ascii = b"\\u" in line, line.isascii()
    is_wide = escaped and (b"\\ud" in line or b"\\uD" in line)
    if is_wide or not (is_ascii or all(lead not in line for lead in _WIDE)):
        return 4
    return 1 if is_ascii and not escaped else 2


def is_too_deep(line: bytes) -> bool:
    """True if `line` is nested more than `MAX_DEPTH` deep."""
    if _has_few_brackets(line):
        return False
    signs = left = b"".join(_outside_strings(line, _NO_NESTING))
    for removed in range(0, 2 * _PASSES, 2):
        if left.count(b"[") + left.count(b"{") <= MAX_DEPTH - removed:
            return False
        left = left.replace(b"{}", b"").replace(b"[]", b"")  # of all that is closed, one or two levels
    levels = accumulate(memoryview(signs.translate(_STEPS, _NO_BRACKET)).cast("b"))
    return max(levels, default=0) > MAX_DEPTH


def _has_few_brackets(line: bytes) -> bool:
    """True if at most `MAX_DEPTH` brackets open; False may also mean that finding out would take longer than the rest.

    `count` takes as long for each byte, `find` for each bracket.
    """
    if len(line) <= 2**12:
        return line.count(b"{") + line.count(b"[") <= MAX_DEPTH
    if len(line) <= _CHUNK:
        return False
    left = MAX_DEPTH
    for bracket in (b"[", b"{"):
        at = line.find(bracket)
        while at >= 0:
            if not left:
                return False
            left -= 1
            at = line.find(bracket, at + 1)
    return True


def _outside_strings(line: bytes, dropped: bytes) -> Iterator[bytes]:
    """The text outside of strings, without the bytes `dropped`. Without escapes, a quote begins or ends a string."""
    if b"\\" in line:
        line = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = line.translate(None, dropped).replace(b'""', b"")
    inside = 0
    for start in range(0, len(signs), _CHUNK):  # splitting it as a whole would take more memory than is estimated
        pieces = signs[start : start + _CHUNK].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2
