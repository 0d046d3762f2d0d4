"""Transports of messages and of bytes; how messages become text and are sent; and a pair of ends within one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from ..errors import InternalError, ParseError
from .decision import explains
from .dispatch import ConnectionClosed
from .log import PROGRAM_ENDS, logger, one_line
from .message import (
    MAX_DEPTH,
    MAX_ID_BYTES,
    MAX_START,
    READ,
    WRITE,
    Message,
    MessageTooLarge,
    Unreadable,
    Unsendable,
    dumps_json,
    is_too_deep,
    loads_json,
    message_of,
    too_large,
)
from .options import ConnectionOptions, call_hook
from .peer_kind import PeerKind, peer_kind_of
from .places import caller
from .state import Lifecycle

__all__ = ["ByteTransport", "MemoryTransport", "Transport", "Wire", "memory_transports"]

MAX_BURST: Final = 32
"""After this many messages in one turn of the event loop, the task that sends them yields."""

# --- Transports -------------------------------------------------------------------------------------------------------


class Transport(Protocol):
    """Carries messages. It decides how they are written, and which are too large; `Wire` does both for JSON.

    A transport that buffers messages also has a method `flush()`, which sends them without waiting. One that knows what
    has arrived has `ready()`: the next message, or None if `read` would wait or has reached the end; it raises nothing.
    It may have `attach(arrived)`, too: `arrived(False)` is called when messages have arrived, and `arrived(True)` at
    the end, also if that comes before `attach`. The attribute `peer_kind` says what the peer is; by default "network".
    One whose clients share their memory has a `budget`, whose `in_flight(limit)` counts in place of `TextInFlight`.
    """

    async def read(self) -> Message | Unreadable | None:
        """Read the next message; None at the end. An `OSError`, such as `ConnectionClosed`, is an end, too."""
        ...

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await, such as a slow peer, or None.

        Raises `OSError`, and for a message that cannot be sent `Unsendable` and `MessageTooLarge`; awaiting the rest
        raises `OSError` alone.
        """
        ...

    async def close(self) -> None:
        """Release all resources; called once."""
        ...


class ByteTransport(Protocol):
    """Carries messages as bytes, each one JSON document in UTF-8; `LineTransport` makes a `Transport` of it.

    It may have what a `Transport` may have; `send(message)`, which is called instead of `write`; and `extract(line)`,
    which returns the message in what is no JSON, or None.
    """

    async def read(self) -> bytes | None:
        """Read the next message; None at the end. Raises `MessageTooLarge` for a message that was skipped.

        An `OSError`, such as `ConnectionClosed`, is an end, too.
        """
        ...

    async def write(self, message: bytes) -> None:
        """Send a message, which has no line breaks; wait if the peer reads too slowly. Raises `OSError`."""
        ...

    async def close(self) -> None:
        """Release all resources; called once."""
        ...


# --- The text of messages -------------------------------------------------------------------------------------------


class Wire:
    """Reads and writes the text of messages, as the options of a connection say."""

    def __init__(self, options: ConnectionOptions) -> None:
        self._options = options
        self._loads = options.loads
        self._reads = options.loads is loads_json and type(self).parse is Wire.parse
        self.check: Callable[[bytes], Unreadable | None] | None = None
        """Returns what takes the place of a text that must not be parsed."""
        self._joins = options.dumps is dumps_json  # what another `dumps` returns cannot be joined

    def read(self, line: bytes) -> Message | Unreadable:
        """Parse the text of a message, and check its limits. Raises only `KeyboardInterrupt` and `SystemExit`."""
        if self._options.on_message is not None:
            call_hook("on_message", self._options.on_message, "in", line)
        if self.check is not None and (refused := self.check(line)) is not None:
            return refused
        if (size := len(line)) > self._options.max_in_flight_bytes:
            limit = self._options.max_in_flight_bytes
            return too_large(f"{size} bytes; the limit is {limit} (max_in_flight_bytes)", line)
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
    found: Wire = (options.wire or Wire)(options)
    return found


_starts: Final[dict[str, bytes]] = {}
"""The texts of notifications up to their params, by method: a few short ones, as a method may be the text of a peer."""


def _start_of(method: str) -> bytes:
    start = dumps_json({"jsonrpc": "2.0", "method": method})[:-1] + b',"params":'
    if len(_starts) < 100 and len(method) <= MAX_ID_BYTES:
        _starts[method] = start
    return start


class LineTransport:
    """Messages over a transport of bytes."""

    def __init__(self, lines: ByteTransport, options: ConnectionOptions) -> None:
        self._lines = lines
        self.peer_kind: PeerKind = peer_kind_of(lines)
        self._wire = wire_for(options)
        self._send: Callable[[bytes], Awaitable[None] | None] = getattr(lines, "send", lines.write)
        if (ready := getattr(lines, "ready", None)) is not None:
            self._ready: Callable[[], bytes | None] = ready
            self.ready = self._next
        if (flush := getattr(lines, "flush", None)) is not None:
            self.flush: Callable[[], object] = flush
        self._extract: Callable[[bytes], bytes | None] | None = getattr(lines, "extract", None)
        attach: Any = getattr(lines, "attach", None)
        if attach is not None:
            self.attach: Callable[[Callable[[bool], None]], None] = attach

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        try:
            line = await self._lines.read()
        except MessageTooLarge as error:
            return too_large(str(error), error.start)
        found = None if line is None else self._wire.read(line)
        return self._mended(found, line) if isinstance(found, Unreadable) and line else found

    def _next(self) -> Message | Unreadable | None:
        """The next message if it has arrived."""
        try:
            line = self._ready()
        except MessageTooLarge as error:
            return too_large(str(error), error.start)
        found = None if line is None else self._wire.read(line)
        return self._mended(found, line) if isinstance(found, Unreadable) and line else found

    def _mended(self, found: Unreadable, line: bytes) -> Message | Unreadable:
        """The message in a line that is no JSON, if the transport can extract one."""
        if self._extract is None or not isinstance(found.error, ParseError):
            return found
        text = self._extract(line)
        return found if text is None else self._wire.read(text)

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await."""
        return self._send(self._wire.write(message))

    async def close(self) -> None:
        """Close the transport of bytes."""
        await self._lines.close()


class Sender:
    """Sends messages over a transport for as long as the connection is open. A failure to write closes it.

    `before_send` may check or replace what is sent; `explain` makes the error for a message that cannot be written.
    """

    def __init__(
        self,
        transport: Transport,
        life: Lifecycle,
        *,
        before_send: Callable[[Message], Message] | None,
        explain: Callable[[Message, Exception], Exception],
    ) -> None:
        self._send = transport.send
        self._life = life
        self._before_send = before_send
        self._explain = explain

    def send(self, message: Message) -> Awaitable[None] | None:
        """Send a message; returns what is left to await, or None.

        Raises `ConnectionClosed`, `MessageTooLarge`, and `TypeError` for values that are no JSON, or do not fit their
        type.
        """
        if self._life.reason is not None and self._life.is_closing:
            raise self._life.reason.again()
        if self._before_send is not None:
            message = self._before_send(message)
        try:
            rest = self._send(message)
        except MessageTooLarge:
            raise
        except Unsendable as error:
            explained, cause = self._explained(message, error), error.__cause__
            raise explained from (None if explained is cause else cause)
        except BaseException as error:
            if (failure := self._failed(error)) is error:
                raise
            raise failure from error
        return None if rest is None else self._finish(rest)

    async def _finish(self, rest: Awaitable[None]) -> None:
        try:
            await rest
        except BaseException as error:
            if (failure := self._failed(error)) is error:
                raise
            raise failure from error

    def _failed(self, error: BaseException) -> BaseException:
        """Close the connection after a failure to write; returns what to raise."""
        if isinstance(error, (asyncio.CancelledError, GeneratorExit, *PROGRAM_ENDS)):
            return error
        failure = error if isinstance(error, ConnectionClosed) else ConnectionClosed(f"cannot write: {error}")
        if not isinstance(error, OSError):
            logger.error("the transport failed", exc_info=error)
        self._life.handle("stop", failure)
        return failure

    def _explained(self, message: Message, error: Unsendable) -> Exception:
        cause = error.__cause__
        if isinstance(cause, (TypeError, ValueError, RecursionError)):
            return self._explain(message, cause)
        return cause if isinstance(cause, Exception) else RuntimeError("dumps failed")


def carrying_messages(transport: Transport | ByteTransport, options: ConnectionOptions) -> Transport:
    """The transport itself, or a `LineTransport` for a transport of bytes, which is one that has `write`."""
    found: Any = transport
    is_of_bytes = hasattr(transport, "write")
    if not hasattr(transport, "read") or not (is_of_bytes or hasattr(transport, "send")):
        from .mistakes import hint_for, shown

        hint = hint_for(transport) or ", which has `read`, `write` and `close`"
        raise TypeError(f"the transport{caller()} is {shown(transport)}; expected a ByteTransport{hint}")
    return LineTransport(found, options) if is_of_bytes else found


# --- Within one process ----------------------------------------------------------------------------------------------


class MemoryTransport:
    """One end of a connection within a process, from `memory_transports`."""

    peer_kind: PeerKind = "process"

    def __init__(self, inbox: _Channel, outbox: _Channel) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._burst = 0

    async def read(self) -> bytes | None:
        """The next message; None once the other end is closed."""
        return await self._inbox.get()

    async def write(self, message: bytes) -> None:
        """Send a message; wait if too many are unread. After 32 messages, other tasks run."""
        await self._outbox.put(message)
        self._burst += 1
        if self._burst >= MAX_BURST:
            self._burst = 0
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Close both directions; the other end may still read what was sent before."""
        self._outbox.close()
        self._inbox.close()


class _Channel:
    """One direction: a queue of limited length, which either end can close."""

    def __init__(self, max_messages: int) -> None:
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(max_messages)
        self._closed = False

    async def put(self, message: bytes) -> None:
        await self._room.acquire()
        if self._closed:
            self._room.release()
            raise BrokenPipeError("the other end is closed")
        self._messages.put_nowait(message)

    async def get(self) -> bytes | None:
        message = await self._messages.get()
        if message is None:
            self._messages.put_nowait(None)
        self._room.release()
        return message

    def close(self) -> None:
        self._closed = True
        self._messages.put_nowait(None)
        self._room.release()


@explains
def memory_transports(max_messages: int = 64) -> tuple[MemoryTransport, MemoryTransport]:
    """The two ends of a connection in memory, for tests and for peers in one process."""
    one, other = _Channel(max_messages), _Channel(max_messages)
    return MemoryTransport(one, other), MemoryTransport(other, one)
