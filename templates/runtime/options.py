"""What can be set for a connection: limits, hooks, and how JSON is read and written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from .dispatch import OnDrop, OnInvalid


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# made once, and not for each message, as `json.loads` and `json.dumps` do where they get any argument;
# a value that contains itself is an error without `check_circular`, too: it is nested too deep
_READ: Final = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
_WRITE: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


def _loads(message: bytes) -> Any:
    # `json.loads` would take bytes for UTF-16, too, and NaN for JSON
    text = message.decode().strip(" \t\r\n")
    value, end = _READ(text)
    if end != len(text):
        raise ValueError(f"there is more after the end of the JSON, at character {end}")
    return value


def _dumps(message: Any) -> bytes:
    # all ASCII: no peer can take a character for the end of the line, and lone surrogates survive
    return _WRITE(message).encode("ascii")


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """The limits and hooks of a connection.

    `loads` and `dumps` read and write JSON; those of faster libraries fit (`orjson.loads`, `orjson.dumps`).
    """

    max_message_bytes: int = 32 * 2**20
    """The largest message that is read or sent; a larger one that comes in is skipped, and answered with an error."""
    max_in_flight_bytes: int = 128 * 2**20
    """How much memory requests of the peer may take together, as measured once they are read. A message whose estimate
    is more by itself is not read, like one that is too large; others above the limit are answered with an error."""
    max_write_buffer_bytes: int = 2**18
    """How much may wait to be read by the peer before senders have to wait, too."""
    max_requests: int = 1024
    """How many requests of the peer run at the same time; those above it are answered with an error."""
    finish_seconds: float = 0.5
    """How long running handlers may go on after the peer has closed the connection, before they are cancelled."""
    cleanup_seconds: float = 2.0
    """How long cancelled handlers may take to clean up before they are abandoned."""
    check_capabilities: bool = True
    """Whether the handshake comes first, and stubs refuse to call what the peer has not advertised."""
    on_message: Callable[[Literal["in", "out"], bytes], object] | None = None
    """Sees every message, as it is on the wire."""
    on_drop: OnDrop | None = None
    """Sees what was left out of messages by the leniency of the schema."""
    on_invalid: OnInvalid | None = None
    """Sees params that do not fit their type, with the method and the `DecodeError`: those of a notification, which has
    no other effect then, and of a request, which is answered with "invalid params"."""
    loads: Callable[[bytes], Any] = _loads
    dumps: Callable[[Any], bytes] = _dumps
