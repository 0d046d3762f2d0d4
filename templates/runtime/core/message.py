"""Messages, and their text: the one place where JSON is parsed and written, strictly and held to limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

from ..errors import InternalError, InvalidRequestError, RequestError

__all__ = ["Message", "MessageTooLarge", "Unreadable", "Unsendable"]

Kind: TypeAlias = Literal["request", "notification", "result", "error"]

MAX_ID_BYTES: Final = 256
"""The longest id of a request or a session that is kept, in UTF-8."""
_INTEGERS: Final = range(-(2**63), 2**64)
"""The integers that JSON libraries agree about."""

MAX_START: Final = 512
"""The bytes that are kept of a message that is not parsed: enough to find its id."""


# --- Messages --------------------------------------------------------------------------------------------------------


class Message:
    """A request, a notification, or the result or error that answers a request.

    `value` is its params, result or error: JSON as `json.loads` makes it, None for params that are absent. `id` is that
    of the request, None for null and for a notification. `size` is that of the text that was received, in bytes; 0 if
    it is not known.
    """

    __slots__ = ("__weakref__", "id", "kind", "method", "size", "value")

    def __init__(  # names take longer to pass, and one is made for each message
        self,
        kind: Kind,
        value: Any,
        method: str = "",
        id: int | str | None = None,
        size: int = 0,
    ) -> None:
        self.kind: Kind = kind
        self.value = value
        self.method = method
        self.id = id
        self.size = size

    def __repr__(self) -> str:
        return f"Message({self.kind!r}, method={self.method[:80]!r}, id={self.id!r})"

    @property
    def is_response(self) -> bool:
        """True for a result and for an error."""
        return self.kind in ("result", "error")

    def to_json(self) -> dict[str, Any]:
        """The message as an object of JSON-RPC."""
        raw: dict[str, Any] = {"jsonrpc": "2.0"}
        if self.kind != "notification":
            raw["id"] = self.id
        if self.is_response:
            raw[self.kind] = self.value
        else:
            raw["method"] = self.method
            if self.value is not None:
                raw["params"] = self.value
        return raw


class Unreadable:
    """Received text that is not a valid message: `error` says why, and `start` has its first bytes.

    `kind` and `id` are known if its start shows them, `value` if it is JSON. If it was meant as a response, the pending
    request is rejected with the error; otherwise the error is sent to the peer.
    """

    __slots__ = ("error", "id", "kind", "start", "value")

    def __init__(
        self,
        error: RequestError,
        *,
        kind: Literal["request", "response"] | None = None,
        id: int | str | None = None,
        start: bytes = b"",
        value: Any = None,
    ) -> None:
        self.error = error
        self.kind = kind
        self.id = id
        self.start = start
        self.value = value


class MessageTooLarge(Exception):
    """A message exceeds a limit. One of the peer was skipped; `start` has its first bytes."""

    def __init__(self, message: str, *, start: bytes = b"") -> None:
        super().__init__(message)
        self.start = start[:MAX_START]


class Unsendable(Exception):
    """A message that cannot be written as JSON; the exception of `dumps` is its cause."""


def too_large(reason: str, start: bytes) -> Unreadable:
    """The `Unreadable` for a message that exceeds a limit and was not parsed."""
    kind, request_id = head(start[:MAX_START])
    is_response = kind == "response"
    error = InternalError(f"the response is too large: {reason}") if is_response else InvalidRequestError(reason)
    return Unreadable(error, kind=kind, id=request_id, start=start[:MAX_START])


def message_of(raw: Any, *, size: int = 0) -> Message | Unreadable:
    """Read a JSON value as a message."""
    found: Any = raw
    if not isinstance(raw, dict):
        return Unreadable(InvalidRequestError("a message must be an object"), value=found)
    method, request_id = found.get("method"), found.get("id")
    if isinstance(method, str) and found.get("jsonrpc") == "2.0":
        if request_id is None:
            kind: Kind = "request" if "id" in found else "notification"
            return Message(kind, found.get("params"), method, None, size)
        if (type(request_id) is int and request_id in _INTEGERS) or is_id(request_id):
            return Message("request", found.get("params"), method, request_id, size)
    elif "method" not in found and ("result" in found or "error" in found):
        return _response(found, request_id, size)
    return _invalid(found, method, request_id)


def _invalid(raw: Any, method: Any, request_id: Any) -> Unreadable:
    """The `Unreadable` for an object that is neither a request or notification nor a response."""
    if request_id is not None and not is_id(request_id):
        kinds = f"a string of up to {MAX_ID_BYTES} bytes or an integer of up to 64 bits"
        return Unreadable(InvalidRequestError(f"`id` must be {kinds}"), value=raw)
    what = '`jsonrpc` must be "2.0"' if isinstance(method, str) else "`method` must be a string"
    error = InvalidRequestError(what)
    return Unreadable(error, kind="request" if "method" in raw else None, id=request_id, value=raw)


def _response(raw: dict[str, Any], request_id: Any, size: int) -> Message | Unreadable:
    request_id = request_id if is_id(request_id) else None
    is_error = raw.get("error") is not None
    if raw.get("jsonrpc") != "2.0" or ("result" in raw) is is_error:
        error = InternalError("the peer sent a malformed response", data=raw)
        return Unreadable(error, kind="response", id=request_id, value=raw)
    kind: Kind = "error" if is_error else "result"
    return Message(kind, raw[kind], "", request_id, size)


def is_id(value: Any) -> bool:
    """True if `value` can be the id of a request whose response is awaited: such an id can always be sent back."""
    return value in _INTEGERS if type(value) is int else type(value) is str and is_short(value)


def is_short(text: str) -> bool:
    """True if `text` can be encoded in UTF-8, and is short enough for an id."""
    if len(text) > MAX_ID_BYTES or text.isascii():
        return len(text) <= MAX_ID_BYTES
    try:
        return len(text.encode()) <= MAX_ID_BYTES
    except UnicodeEncodeError:
        return False


# not compiled on import: only messages that exceed a limit need them
_FIRST_SCALARS: Final = rb"\s*\{([^{}\[\]]*)"
_ID: Final = rb'"id"\s*:\s*(-?[0-9]{1,18}|"(?:[^"\\]|\\.)*")\s*,'
_KIND: Final = rb'"(method|result|error)"\s*:'


def head(start: bytes) -> tuple[Literal["request", "response"] | None, int | str | None]:
    """The kind of a message and its id, from its first bytes, before any nested value; None if these do not tell."""
    scalars = re.match(_FIRST_SCALARS, start)
    id_text, kind = (re.search(pattern, scalars[1]) if scalars else None for pattern in (_ID, _KIND))
    if id_text is None or kind is None:
        return None, None
    try:
        found = loads_json(id_text[1])
    except ValueError:
        return None, None
    return ("request" if kind[1] == b"method" else "response", found) if is_id(found) else (None, None)


# --- JSON ------------------------------------------------------------------------------------------------------------


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


MAX_DEPTH: Final = 200
"""The deepest nesting of arrays and objects in a message. Python parses more, and then fails or takes seconds where a
value is compared, printed or written: how much more depends on its version."""

_NO_NESTING: Final = bytes(byte for byte in range(256) if byte not in b'{}[]"')
_NO_BRACKET: Final = bytes(byte for byte in range(256) if byte not in b"{}[]")
_STEPS: Final = bytes.maketrans(b"{[}]", b"\x01\x01\xff\xff")
"""As signed bytes, 1 for an opening bracket and -1 for a closing one."""
_CHUNK: Final = 2**16
_PASSES: Final = 8


def is_too_deep(line: bytes) -> bool:
    """True if `line` is nested more than `MAX_DEPTH` deep."""
    if _has_few_brackets(line):
        return False
    signs = left = b"".join(outside_strings(line, _NO_NESTING))
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


def outside_strings(line: bytes, dropped: bytes) -> Iterator[bytes]:
    """The text outside of strings, without the bytes `dropped`. Without escapes, a quote begins or ends a string."""
    if b"\\" in line:
        line = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    signs = line.translate(None, dropped).replace(b'""', b"")
    inside = 0
    for start in range(0, len(signs), _CHUNK):  # splitting it as a whole would take more memory than is estimated
        pieces = signs[start : start + _CHUNK].split(b'"')
        yield b"".join(pieces[inside::2])
        inside ^= (len(pieces) - 1) % 2
