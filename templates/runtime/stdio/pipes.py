"""Lines over file descriptors: of pipes and sockets by the event loop, of all others by threads."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Generator
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from .peer_kind import PeerKind
from .stream_transport import LineBuffer, LineWriter

T = TypeVar("T")

_CHUNK: Final = 2**16


class PipeTransport:
    """Lines over two non-blocking descriptors, of pipes or sockets, without the layers of asyncio's streams."""

    peer_kind: PeerKind = "process"

    def __init__(self, stdin: int, stdout: int, *, max_message_bytes: int, max_write_buffer_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._stdin, self._stdout = stdin, stdout
        self._lines = LineBuffer(max_message_bytes)
        self._is_reading = False
        self._ahead = 0  # the bytes that were read since all lines were taken
        self._at_end = False
        self._failure: OSError | None = None
        self._arrived: Callable[[bool], None] | None = None
        self._waiter: asyncio.Future[None] | None = None  # of `read`
        self._limit = max_write_buffer_bytes
        self._unsent = bytearray()
        self._room = asyncio.Event()
        self._has_gone = False
        self._out = LineWriter(self._put, self._drained, limit=max_write_buffer_bytes)
        self.send, self.flush = self._out.send, self._out.flush
        if sys.platform != "win32":
            os.set_blocking(stdin, False)
            os.set_blocking(stdout, False)
        self._resume()

    # --- In ------------------------------------------------------------------------------------------------------

    def attach(self, arrived: Callable[[bool], None]) -> None:
        """Call `arrived` when lines have arrived, and at the end, with True."""
        self._arrived = arrived
        if self._at_end:
            arrived(True)

    def ready(self) -> bytes | None:
        """The next line that is not blank, if it has arrived. Raises `MessageTooLarge`."""
        try:
            return self._lines.next_line()
        finally:
            if not (self._lines or self._at_end):
                self._ahead = 0
                self._resume()

    async def read(self) -> bytes | None:
        """The next line that is not blank; None at the end. Raises `MessageTooLarge` and `OSError`."""
        while (line := self.ready()) is None:
            if self._at_end:
                if self._failure is not None:
                    raise self._failure
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        return line

    def _resume(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._loop.add_reader(self._stdin, self._on_readable)

    def _pause(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._stdin)

    def _on_readable(self) -> None:
        try:
            # for larger chunks, memory is mapped and unmapped each time, which takes longer than reading
            chunk = os.read(self._stdin, _CHUNK)
        except BlockingIOError:
            return  # another process has read it
        except OSError as error:
            self._failure, chunk = error, b""
        if chunk:
            self._lines.feed(chunk)
            self._ahead += len(chunk)
        else:
            self._end()
        if self._lines or self._at_end:
            self._wake()
            # not for less: only while it reads, it notices the end, also that of a peer whose lines nobody takes
            if self._lines and self._ahead >= _CHUNK:
                self._pause()

    def _wake(self) -> None:
        if self._arrived is not None:
            self._arrived(self._at_end)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _end(self) -> None:
        self._pause()
        self._lines.end()
        self._at_end = True

    # --- Out -----------------------------------------------------------------------------------------------------

    async def write(self, message: bytes) -> None:
        """Send a line; wait if the peer reads too slowly. `LineWriter` says when it is sent. Raises `OSError`."""
        if (rest := self.send(message)) is not None:
            await rest

    def _put(self, lines: bytes) -> bool:
        if not (self._unsent or self._has_gone):
            lines = lines[self._sent(lines) :]
        if lines and not self._has_gone:
            if not self._unsent:
                self._room.clear()
                self._loop.add_writer(self._stdout, self._on_writable)
            self._unsent += lines
        return len(self._unsent) > self._limit or self._has_gone

    def _sent(self, data: bytes | bytearray) -> int:
        """Write what the pipe takes now; returns how much that was."""
        try:
            return os.write(self._stdout, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            self._lose(error)
            return len(data)

    def _lose(self, error: OSError) -> None:
        """End both directions: `send` may have returned already, so `read` raises it."""
        self._has_gone = True
        self._failure = self._failure or error
        self._pause()
        self._at_end = True
        self._wake()

    def _on_writable(self) -> None:
        del self._unsent[: self._sent(self._unsent)]
        if len(self._unsent) <= self._limit // 4 or self._has_gone:
            self._room.set()
        if not self._unsent or self._has_gone:
            self._loop.remove_writer(self._stdout)

    async def _drained(self) -> None:
        while len(self._unsent) > self._limit // 4 and not self._has_gone:
            self._room.clear()
            await self._room.wait()
        if self._has_gone:
            raise self._failure or ConnectionResetError("the peer has gone")

    async def close(self) -> None:
        """Close both. Lines that were sent are still delivered, unless the task is cancelled."""
        try:
            self.flush()
            while self._unsent and not self._has_gone:
                self._room.clear()
                self._limit = 0  # `_room` is set only when nothing is left
                await self._room.wait()
        finally:
            self._end()
            self._has_gone = True
            self._room.set()
            self._loop.remove_writer(self._stdout)
            os.close(self._stdin)
            os.close(self._stdout)


# --- Other descriptors ------------------------------------------------------------------------------------------------


class ThreadTransport:
    """Lines over what asyncio does not support: files, terminals, and on Windows any. Threads read and write them.

    `failure` says why one of them failed, unless the peer has gone.
    """

    peer_kind: PeerKind = "process"

    def __init__(self, stdin: int, stdout: int, *, max_message_bytes: int) -> None:
        self.failure: str | None = None
        self._stdin = stdin
        self._stdout = stdout
        self._lines = LineBuffer(max_message_bytes)
        self._at_end = False
        self._reads = _Worker()
        self._writes = _Worker()

    async def read(self) -> bytes | None:
        """The next line that is not blank; None at the end."""
        while (line := self._lines.next_line()) is None and not self._at_end:
            with self._keeping_failure("cannot read from stdin", self._stdin):
                chunk = await self._reads.do(lambda: _read_some(self._stdin))
            if chunk:
                self._lines.feed(chunk)
            else:
                self._at_end = True
                self._lines.end()
        return line

    async def write(self, message: bytes) -> None:
        """Send a line; returns after all of it was written."""
        with self._keeping_failure("cannot write to stdout", self._stdout):
            await self._writes.do(lambda: _write_all(self._stdout, message + b"\n"))

    async def close(self) -> None:
        """Close stdout, and stdin when a thread that is reading it has read something: it may never do."""
        self._reads.end(partial(os.close, self._stdin))
        await self._writes.do(lambda: os.close(self._stdout))
        self._writes.end()

    @contextlib.contextmanager
    def _keeping_failure(self, what: str, descriptor: int) -> Generator[None, None, None]:
        try:
            yield
        except OSError as error:
            if not _is_gone(error, descriptor):
                self.failure = f"{what}: {error.strerror}"
            raise


def _is_gone(error: OSError, descriptor: int) -> bool:
    """True if the other end is closed: EIO for a terminal, EINVAL on Windows."""
    if sys.platform == "win32":
        return isinstance(error, ConnectionError) or error.errno == errno.EINVAL
    is_device = stat.S_ISCHR(os.fstat(descriptor).st_mode)
    return isinstance(error, ConnectionError) or (error.errno == errno.EIO and is_device)


def _read_some(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _CHUNK)
        except BlockingIOError:  # another process that shares the file has made it non-blocking: leave that, and wait
            select.select([descriptor], [], [])


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class _Worker:
    """A daemon thread that runs functions one after the other."""

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def end(self, *last: Callable[[], None]) -> None:
        """End the thread, after what it has to do and these functions."""
        for work in (*last, None):
            self._work.put(work)

    async def do(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread; returns what it returns, and raises what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:
                resolve = partial(_resolve, future.set_exception, error)
            else:
                resolve = partial(_resolve, future.set_result, result)
            with contextlib.suppress(RuntimeError):  # the loop may be closed
                loop.call_soon_threadsafe(resolve, future)

        self._work.put(run)
        return await future


def _resolve(set_it: Callable[[Any], None], value: Any, future: asyncio.Future[Any]) -> None:
    if not future.done():
        set_it(value)
