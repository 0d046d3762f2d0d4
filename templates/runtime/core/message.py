"""Messages, their text, and their memory: the one place where JSON is parsed, written and held to limits."""

from __future__ import annotations

import json
import re
from math import inf
from sys import getsizeof
from typing import Any, Final, Literal, TypeAlias
from weakref import WeakSet

from ..errors import InternalError, InvalidRequestError, ParseError, RequestError
from .json_text import MAX_DEPTH, MAX_EXPANSION, READ, WRITE, dumps_json, is_too_deep, loads_json, measure, weigh
from .log import PROGRAM_ENDS, one_line
from .options import ConnectionOptions, call_hook

Kind: TypeAlias = Literal["request", "notification", "result", "error"]

MAX_ID_BYTES: Final = 256
"""The longest id of a request or a session that is kept, in UTF-8."""
_INTEGERS: Final = range(-(2**63), 2**64)
"""The integers that JSON libraries agree about."""

MAX_START: Final = 512
"""The bytes that are kept of a message that is not parsed: enough to find its id."""
_ENVELOPE: Final = 512
"""The most memory of a message beside its value."""
_SMALL: Final = 2**10
"""Messages up to this size are not measured: the bound is close enough, even for 1024 of them in flight."""


# --- Messages --------------------------------------------------------------------------------------------------------


class Message:
    """A request, a notification, or the result or error that answers a request.

    `value` is its params, result or error: JSON as `json.loads` makes it, None for params that are absent. `id` is that
    of the request, None for null and for a notification. `size` is that of the text that was received, in bytes; 0 if
    it is not known.
    """

    __slots__ = ("__weakref__", "id", "kind", "measured", "method", "size", "value")

    def __init__(  # noqa: PLR0917 - names take longer to pass, and one is made for each message
        self,
        kind: Kind,
        value: Any,
        method: str = "",
        id: int | str | None = None,  # noqa: A002 - the name on the wire
        size: int = 0,
    ) -> None:
        self.kind: Kind = kind
        self.value = value
        self.method = method
        self.id = id
        self.size = size
        self.measured = 0  # its memory, once that is measured

    def __repr__(self) -> str:
        return f"Message({self.kind!r}, method={self.method[:80]!r}, id={self.id!r})"

    @property
    def weight(self) -> int:
        """The memory that it takes, in bytes: measured when it is asked for first, which visits all of the value."""
        if not self.measured:
            is_small = 0 < self.size <= _SMALL
            self.measured = (
                self.size * MAX_EXPANSION if is_small else _ENVELOPE + getsizeof(self.method) + measure(self.value)
            )
        return self.measured

    @property
    def bound(self) -> int:
        """The most memory that a text of this size can take, in bytes; its weight if that, or no size, is known."""
        return self.measured or self.size * MAX_EXPANSION or self.weight

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
        id: int | str | None = None,  # noqa: A002 - the name on the wire
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


# --- Text ------------------------------------------------------------------------------------------------------------


class Wire:
    """Reads and writes the text of messages, as the options of a connection say."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._loads = options.loads
        self._reads = options.loads is loads_json and type(self).parse is Wire.parse
        self._most_unweighed = options.max_in_flight_bytes // MAX_EXPANSION
        self._joins = options.dumps is dumps_json  # what another `dumps` returns cannot be joined

    def read(self, line: bytes) -> Message | Unreadable:
        """Parse the text of a message, and check its limits. Raises only `KeyboardInterrupt` and `SystemExit`."""
        size = len(line)
        if self._options.on_message is not None:
            call_hook("on_message", self._options.on_message, "in", line)
        limit = self._options.max_in_flight_bytes
        if size > self._most_unweighed and (weight := weigh(line)) > limit:
            return too_large(f"estimated at {weight} bytes of memory; the limit is {limit} (max_in_flight_bytes)", line)
        if size > MAX_DEPTH and is_too_deep(line):
            return too_large(f"nested more than {MAX_DEPTH} deep", line)
        try:
            if not self._reads:
                return self.parse(line)
            text = line.decode().strip(" \t\r\n")  # `loads_json`, inlined: each message comes here
            value, end = READ(text)
            return message_of(value if end == len(text) else loads_json(line), size=size)
        except PROGRAM_ENDS:
            raise
        except ValueError as error:
            return Unreadable(ParseError(one_line(error)), start=line[:MAX_START])
        except BaseException:  # `loads` may be from elsewhere
            return Unreadable(ParseError(), start=line[:MAX_START])

    def parse(self, line: bytes) -> Message | Unreadable:
        """Parse a text that is within the limits. Raises what `loads` raises."""
        return message_of(self._loads(line), size=len(line))

    def write(self, message: Message) -> bytes:
        """The text of a message. Raises `Unsendable`, and `MessageTooLarge` for one above the limit of this side."""
        try:
            if not self._joins:
                line = self._options.dumps(message.to_json())
            elif message.kind == "notification" and message.value is not None:
                start = _starts.get(message.method) or _start_of(message.method)
                line = b"%b%b}" % (start, "".join(WRITE(message.value, 0)).encode("ascii"))  # `dumps_json`, inlined
            elif message.kind == "result" and type(message.id) is int:
                text = "".join(WRITE(message.value, 0))
                line = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (message.id, text.encode("ascii"))
            else:
                line = dumps_json(message.to_json())
        except PROGRAM_ENDS:
            raise
        except BaseException as error:
            raise Unsendable(one_line(error)) from error
        limit = self._options.max_message_bytes
        if len(line) > limit and message.value != _FAILURE:  # each request gets a response
            line = self._without_escapes(message, line)
            if len(line) > limit:
                raise MessageTooLarge(f"a message of {len(line)} bytes; the limit is {limit} (max_message_bytes)")
        if self._options.on_message is not None:
            call_hook("on_message", self._options.on_message, "out", line)
        return line

    def _without_escapes(self, message: Message, line: bytes) -> bytes:
        """The text in UTF-8, which is what came in: ASCII takes two or three times as much of it."""
        if not self._joins:
            return line
        try:
            return json.dumps(message.to_json(), separators=(",", ":"), ensure_ascii=False).encode()
        except UnicodeEncodeError:  # half a surrogate pair
            return line


_FAILURE: Final = InternalError().to_json()


def wire_for(options: ConnectionOptions) -> Wire:
    """The `Wire` of a connection, or what its option `wire` makes in place of one."""
    if options.wire is None:
        return Wire(options)
    found: Wire = options.wire(options)
    return found


_starts: Final[dict[str, bytes]] = {}
"""The texts of notifications up to their params, by method: a few short ones, as a method may be the text of a peer."""


def _start_of(method: str) -> bytes:
    start = dumps_json({"jsonrpc": "2.0", "method": method})[:-1] + b',"params":'
    if len(_starts) < 100 and len(method) <= MAX_ID_BYTES:
        _starts[method] = start
    return start


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


# --- Memory in use ---


class Budget:
    """The memory that several connections hold for a peer, in bytes, and its limit."""

    def __init__(self, limit: float = inf) -> None:
        self.limit = limit
        self.bytes = 0
        self.parts: WeakSet[Held] = WeakSet()

    @property
    def text(self) -> str:
        """The limit, for errors."""
        return f"too much for the connections of one client; the limit is {self.limit} bytes (max_bytes_per_identity)"

    def lacks(self, size: int = 0) -> bool:
        """True if so many more bytes would exceed the limit."""
        if self.bytes + size <= self.limit:
            return False
        for part in self.parts:
            part.measure()
        return self.bytes + size > self.limit


class Held:
    """Messages that are held, and their memory, in bytes.

    Each counts with its bound, which costs nothing. Only if that exceeds a limit, messages are measured, once each.
    `overhead` is what a message takes in the budget beside its own memory.
    """

    def __init__(self, budget: Budget, *, overhead: int = 0) -> None:
        self.bytes = 0
        self.budget = budget
        self._overhead = overhead
        self._counted: dict[Message, int] = {}
        self._bounds: set[Message] = set()  # those among them that are counted with their bound
        budget.parts.add(self)

    def __len__(self) -> int:
        return len(self._counted)

    def add(self, message: Message) -> None:
        """Hold a message."""
        size = self._counted[message] = message.measured or message.size * MAX_EXPANSION or message.bound
        self._bounds.add(message)
        self.bytes += size
        self.budget.bytes += size + self._overhead

    def remove(self, message: Message) -> None:
        """Hold a message no longer."""
        size = self._counted.pop(message)
        self._bounds.discard(message)
        self.bytes -= size
        self.budget.bytes -= size + self._overhead

    def measure(self) -> None:
        """Count each message with its memory in place of its bound."""
        for message in self._bounds:
            less = self._counted[message] - message.weight
            self._counted[message] = message.weight
            self.bytes -= less
            self.budget.bytes -= less
        self._bounds.clear()

    def fits(self, message: Message, limit: int) -> bool:
        """True if one more message exceeds neither `limit` nor the budget, counted with its bound: the quick answer."""
        size = message.measured or message.size * MAX_EXPANSION or message.bound
        return self.bytes + size <= limit and self.budget.bytes + size + self._overhead <= self.budget.limit

    def exceeds(self, limit: int, message: Message) -> bool:
        """True if these and one more message would exceed `limit`."""
        if self.bytes + message.bound <= limit:
            return False
        self.measure()
        return self.bytes + message.weight > limit

    def exceeds_budget(self, message: Message) -> bool:
        """True if one more message would exceed the budget."""
        if not self.budget.lacks(message.bound + self._overhead):
            return False
        return self.budget.lacks(message.weight + self._overhead)
