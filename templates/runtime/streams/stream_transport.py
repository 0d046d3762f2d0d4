"""Lines over streams of bytes: of pipes, sockets and processes."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

from .message import MAX_START, MessageTooLarge
from .peer_kind import PeerKind
from .transport import MAX_BURST

__all__ = ["StreamTransport"]

_CHUNK: Final = 2**16


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
        return asyncio.sleep(0) if self._burst >= MAX_BURST else None

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
