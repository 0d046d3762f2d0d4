"""The options of a connection: limits, hooks, and the JSON library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from .dispatch import OnDrop, OnInvalid
from .errors import RequestError


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# `json.loads` and `json.dumps` make these for each message if they get any argument. Without `check_circular`, a value
# that contains itself is still an error: it is nested too deep.
_READ: Final = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_WRITE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def _loads(message: bytes) -> Any:
    # `json.loads` would accept UTF-16 and NaN
    text = message.decode().strip(" \t\r\n")
    value, end = _READ(text)
    if end != len(text):
        raise ValueError(f"unexpected text after the JSON, at character {end}")
    return value


def _dumps(message: Any) -> bytes:
    # as ASCII: no character can be mistaken for the end of a line, and lone surrogates survive
    return _WRITE(message).encode("ascii")


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """The limits and hooks of a connection.

    `loads` and `dumps` parse and write JSON; those of a faster library may be used (`orjson.loads`, `orjson.dumps`).
    """

    max_message_bytes: int = 32 * 2**20
    """The size of the largest message; a larger one of the peer is skipped, and answered with an error."""
    max_in_flight_bytes: int = 128 * 2**20
    """The memory for all requests of the peer in flight, measured after parsing; a request above it is answered with an
    error. A single message that is estimated at more is not parsed."""
    max_write_buffer_bytes: int = 2**18
    """The bytes that may be buffered for the peer before senders have to wait."""
    max_requests: int = 1024
    """The most requests of the peer in flight; more are answered with an error."""
    finish_seconds: float = 0.5
    """The seconds that handlers may run after the peer has closed the connection, before they are cancelled."""
    cleanup_seconds: float = 2.0
    """The seconds that cancelled handlers may take to clean up before they are abandoned."""
    check_capabilities: bool = True
    """Require the handshake first, and refuse calls that the peer has not advertised. To choose a version, the
    handshake is required in any case."""
    check_sent: bool = sys.flags.dev_mode
    """Decode the params and results of this side before they are sent: a value that does not fit its type raises
    `TypeError` with its place. Extension methods without a type are not checked. On under `python -X dev`."""
    on_message: Callable[[Literal["in", "out"], bytes], object] | None = None
    """Called with every message, as it is on the wire."""
    on_drop: OnDrop | None = None
    """Called for each value of a message that is dropped because the schema is lenient about it."""
    on_invalid: OnInvalid | None = None
    """Called with the method, the params and the `DecodeError` if params do not fit their type. Such a notification is
    ignored, such a request is answered with "invalid params"."""
    on_error: Callable[[str, BaseException], RequestError | None] | None = None
    """Called with the method and the exception if a handler fails with another exception than a `RequestError`. The
    error that it returns is sent to the peer; for None, it is "internal error" without details."""
    loads: Callable[[bytes], Any] = _loads
    dumps: Callable[[Any], bytes] = _dumps
