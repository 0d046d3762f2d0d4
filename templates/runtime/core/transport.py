"""Transports of messages and of bytes: streams of lines, and a pair of ends within one process."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, Token
from typing import Any, Final, Protocol

from ..errors import ParseError
from .decision import explains
from .dispatch import PeerKind
from .message import MAX_START, Message, MessageTooLarge, Unreadable, too_large, wire_for
from .options import ConnectionOptions

_CHUNK: Final = 2**16
_MAX_BURST: Final = 32
"""After this many messages in one turn of the event loop, the task that sends them yields."""

# --- Who the peer is --------------------------------------------------------------------------------------------------

PEER_KIND: Final = "ACP_PEER_KIND"
"""The environment variable of an agent that a proxy has started: "network" if it serves a client there."""


class CurrentPeerKind:
    """A context variable: the `PeerKind` of the connection whose message is being handled.

    Where that is not known, as in a thread without the context of a handler, the message may be one of any connection
    that this process has had: it is "network" if there was such a peer, and otherwise "process".
    """

    def __init__(self) -> None:
        self._known = ContextVar[PeerKind]("current_peer_kind")
        self._default: PeerKind = "process"

    def get(self) -> PeerKind:
        """What the peer is."""
        return self._known.get(self._default)

    def set(self, kind: PeerKind) -> Token[PeerKind]:
        """Handle messages of such a peer in this context, and in the tasks that it starts."""
        if kind == "network":
            self._default = kind
        return self._known.set(kind)

    def reset(self, token: Token[PeerKind]) -> None:
        """Undo `set`."""
        self._known.reset(token)


current_peer_kind: Final = CurrentPeerKind()


def peer_kind_of(transport: object) -> PeerKind:
    """What the peer at the other end of a transport is."""
    found: PeerKind = getattr(transport, "peer_kind", "network")
    return found


# --- Transports -------------------------------------------------------------------------------------------------------


class Transport(Protocol):
    """Carries messages. It decides how they are written, and which are too large; `Wire` does both for JSON.

    A transport that buffers messages also has a method `flush()`, which sends them without waiting. One that knows what
    has arrived has `ready()`: the next message, or None if `read` would wait or has reached the end; it raises nothing.
    It may have `attach(arrived)`, too: `arrived(False)` is called when messages have arrived, and `arrived(True)` at
    the end, also if that comes before `attach`. The attribute `peer_kind` says what the peer is; by default "network".
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
        if line is None:
            return None
        found = self._wire.read(line)
        return found if isinstance(found, Message) else self._mended(found, line)

    def _next(self) -> Message | Unreadable | None:
        """The next message if it has arrived."""
        try:
            line = self._ready()
        except MessageTooLarge as error:
            return too_large(str(error), error.start)
        if line is None:
            return None
        found = self._wire.read(line)
        return found if isinstance(found, Message) else self._mended(found, line)

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


def carrying_messages(transport: Transport | ByteTransport, options: ConnectionOptions) -> Transport:
    """The transport itself, or a `LineTransport` for a transport of bytes, which is one that has `write`."""
    found: Any = transport
    is_of_bytes = hasattr(transport, "write")
    if not hasattr(transport, "read") or not (is_of_bytes or hasattr(transport, "send")):
        from .mistakes import hint_for, shown
        from .places import caller

        hint = hint_for(transport) or ", which has `read`, `write` and `close`"
        raise TypeError(f"the transport{caller()} is {shown(transport)}; expected a ByteTransport{hint}")
    return LineTransport(found, options) if is_of_bytes else found


class LineBuffer:
    """Splits a stream of bytes into lines, and skips lines of more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lines: deque[bytes | MessageTooLarge] = deque()
        self._start = bytearray()
        self._size = 0

    def __len__(self) -> int:
        return len(self._lines)

    def feed(self, chunk: bytes) -> None:
        """Add bytes of the stream."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._size:
            self._add(lines.pop(0))
            self.end()
        for line in lines:
            self._lines.append(line if len(line) <= self._limit else self._skipped(line))
        if rest:
            self._add(rest)

    def end(self) -> None:
        """End the line without a line feed: the stream has ended."""
        line = bytes(self._start)
        self._lines.append(line if self._size <= self._limit else self._skipped(line))
        self._start.clear()
        self._size = 0

    def next_line(self) -> bytes | None:
        """The next complete line that is not blank, or None. Raises `MessageTooLarge` for a line that was skipped."""
        while self._lines:
            line = self._lines.popleft()
            if isinstance(line, MessageTooLarge):
                raise line
            if line.strip():
                return line
        return None

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._limit:
            self._start += part
        else:
            self._start += part[:MAX_START]
            del self._start[MAX_START:]

    def _skipped(self, line: bytes) -> MessageTooLarge:
        return MessageTooLarge(f"more than {self._limit} bytes (max_message_bytes)", start=line)


class LineWriter:
    """Sends lines: the first one in a turn of the event loop at once, later ones at the end of the turn.

    So if the process is killed, a line that was accepted may be lost. After 32 lines the caller yields, so that
    messages of the peer are read while a handler sends. `put` sends bytes, unless the peer has gone, and returns true
    if it has, or if too many are not sent yet; `room` waits until fewer are left, or raises `OSError`.
    """

    def __init__(
        self,
        put: Callable[[bytes], bool],
        room: Callable[[], Awaitable[None]],
        *,
        limit: int,
    ) -> None:
        self._put_now = put
        self._room = room
        self._most_buffered = limit // 8
        self._buffered: list[bytes] | None = None  # lines of this turn of the event loop; None before the first one
        self._buffered_bytes = 0
        self._burst = 0  # how many lines were sent in this turn
        self._is_full = False
        self._waiting = 0  # how many calls of `_when_possible` wait
        self._lock = asyncio.Lock()
        self._call_soon = asyncio.get_running_loop().call_soon

    def send(self, message: bytes) -> Awaitable[None] | None:
        """Send a line; returns what is left to await, or None."""
        if self._waiting:
            return self._when_possible(message)
        self._put(message + b"\n")
        if self._is_full:
            return self._when_possible(None)
        return asyncio.sleep(0) if self._burst >= _MAX_BURST else None

    async def _when_possible(self, message: bytes | None) -> None:
        self._waiting += 1
        try:
            async with self._lock:  # messages wait here, not in the buffer of the stream
                if message is not None:
                    self._put(message + b"\n")
                self.flush()
                await self._room()
                self._is_full = False
        finally:
            self._waiting -= 1

    def _put(self, line: bytes) -> None:
        self._burst += 1
        if self._buffered is None:
            self._buffered = []
            self._call_soon(self._end_turn)
            self._is_full = self._put_now(line)
        else:
            self._buffered.append(line)
            self._buffered_bytes += len(line)
            if self._buffered_bytes > self._most_buffered:
                self.flush()

    def _end_turn(self) -> None:
        try:
            self.flush()
        finally:
            self._buffered = None
            self._burst = 0

    def flush(self) -> None:
        """Send the lines that were buffered in this turn."""
        if self._buffered:
            buffered, self._buffered = self._buffered, []
            self._buffered_bytes = 0
            self._is_full = self._put_now(b"".join(buffered))


class StreamTransport:
    """Lines over a pair of asyncio streams: of a socket, of pipes, of a process.

    `reading` is the asyncio transport of `reader`, if `writer` has another one. `write` waits if more than
    `max_write_buffer_bytes` are buffered for the peer. `peer_kind` is "process" for pipes and Unix sockets; set it if
    you know more of the peer.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        reading: asyncio.BaseTransport | None = None,
        max_message_bytes: int = 32 * 2**20,
        max_write_buffer_bytes: int = 2**18,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._reading = reading
        self.peer_kind: PeerKind = "process" if _is_local(writer) else "network"
        self._lines = LineBuffer(max_message_bytes)
        self._at_end = False
        self._limit = max_write_buffer_bytes
        self._out = LineWriter(self._put, self._room, limit=max_write_buffer_bytes)
        self.flush = self._out.flush
        if type(self).write is StreamTransport.write:  # else what a subclass has in its place is called
            self.send = self._out.send
        if type(self).read is StreamTransport.read:
            self.ready = self._lines.next_line
        writer.transport.set_write_buffer_limits(high=max_write_buffer_bytes)

    async def read(self) -> bytes | None:
        """The next line that is not blank; None at the end. Raises `MessageTooLarge`."""
        while (line := self._lines.next_line()) is None and not self._at_end:
            chunk = await self._reader.read(_CHUNK)
            if chunk:
                self._lines.feed(chunk)
            else:
                self._at_end = True
                self._lines.end()
        return line

    async def write(self, message: bytes) -> None:
        """Send a line; wait if the peer reads too slowly. `LineWriter` says when it is sent. Raises `OSError`."""
        if (rest := self._out.send(message)) is not None:
            await rest

    def _put(self, lines: bytes) -> bool:
        if not self._writer.is_closing():
            self._writer.write(lines)
        if self._writer.is_closing():  # `send` may have returned already: the next `read` raises it
            self._reader.set_exception(ConnectionResetError("the peer has gone"))
            return True
        try:
            return self._writer.transport.get_write_buffer_size() > self._limit
        except AttributeError:  # TLS on Python 3.10, after the peer has gone
            return True

    async def _room(self) -> None:
        if self._writer.is_closing():
            raise self._reader.exception() or ConnectionResetError("the peer has gone")
        await self._writer.drain()

    async def close(self) -> None:
        """Close both streams. Written lines are still delivered, unless the task is cancelled."""
        try:
            self.flush()
        finally:
            if self._reading is not None:
                self._reading.close()
            self._writer.close()
        try:
            await self._writer.wait_closed()
        except OSError:
            pass  # the peer has closed it already
        except asyncio.CancelledError:
            self._writer.transport.abort()
            raise


def _is_local(writer: asyncio.StreamWriter) -> bool:
    """True for a pipe and for a Unix socket, whose other end is on this machine."""
    if writer.get_extra_info("pipe") is not None:
        return True
    found: Any = writer.get_extra_info("socket")
    return found is not None and found.family == getattr(socket, "AF_UNIX", None)


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
        if self._burst >= _MAX_BURST:
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
