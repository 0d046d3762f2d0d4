"""JSON text: parsed and written as the standard library does, but strictly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
