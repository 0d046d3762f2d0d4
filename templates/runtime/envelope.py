"""The messages of a connection over HTTP or WebSocket, as objects.

Messages of this side are routed by the objects that they were encoded from. Those of the peer are parsed twice: here,
where they are routed, and where they are handled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from .limits import MAX_DEPTH, is_light, is_short, is_too_deep, weigh
from .options import ConnectionOptions
from .sessions import SESSION_RULES
from .transport import MessageTooLarge

CONNECTION_HEADER: Final = "acp-connection-id"
SESSION_HEADER: Final = "acp-session-id"


class Encoded(bytes):
    """A message as it is sent, with the object that it was encoded from."""

    message: Mapping[str, Any]


def keep_objects(options: ConnectionOptions, on_received: Callable[[Any], object] | None = None) -> ConnectionOptions:
    """The same options; `dumps` returns `Encoded`, and `on_received` is called with what `loads` returns."""

    def dumps(message: Any) -> bytes:
        line = Encoded(options.dumps(message))
        line.message = message
        return line

    def loads(line: bytes) -> Any:
        message = options.loads(line)
        if on_received is not None:
            on_received(message)
        return message

    return replace(options, dumps=dumps, loads=options.loads if on_received is None else loads)


def object_of(line: bytes) -> Mapping[str, Any]:
    """The object that a message of this side was encoded from; the message does not keep it after that."""
    return vars(line).pop("message", {}) if isinstance(line, Encoded) else {}


def parse(line: bytes, options: ConnectionOptions) -> Any:
    """Parse a message of the peer, within the limits of the connection.

    Raises `MessageTooLarge`, and what `loads` raises, which may be any exception.
    """
    limit = options.max_in_flight_bytes
    if len(line) > options.max_message_bytes:
        raise MessageTooLarge(f"more than {options.max_message_bytes} bytes (max_message_bytes)")
    if not is_light(line, limit) and weigh(line) > limit:
        raise MessageTooLarge(f"more than {limit} bytes of memory (max_in_flight_bytes)")
    if is_too_deep(line):
        raise MessageTooLarge(f"nested more than {MAX_DEPTH} deep")
    return options.loads(line)


def as_object(value: Any) -> dict[str, Any] | None:
    """The value if it is a JSON object."""
    found: Any = value
    return found if isinstance(value, dict) else None


def method_of(message: Mapping[str, Any]) -> str | None:
    """The method of a message; None for a response, and for what is no method."""
    found = message.get("method")
    return found if isinstance(found, str) else None


def session_in(value: Any) -> str | None:
    """The session that params or a result name: see `session_name`."""
    found = (as_object(value) or {}).get(SESSION_RULES.key)
    return session_name(found) if isinstance(found, str) else None


def session_name(text: str) -> str:
    """The id of a session, as it is kept; instead of a long one, a digest that fits no header."""
    return text if is_short(text) else f"\0{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def fits_header(name: str) -> bool:
    """True if a header can hold this id of a session; the messages of another one have no stream of their own."""
    return name.isascii() and name.isprintable() and name == name.strip()  # blanks around a value are no part of it
