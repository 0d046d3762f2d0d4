"""Lines over file descriptors that asyncio does not support: files, terminals, and on Windows any."""

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

from .dispatch import PeerKind
from .stream_transport import LineBuffer

T = TypeVar("T")

_CHUNK: Final = 2**16


class ThreadTransport:
    """Lines over stdin and stdout. Threads read and write them.

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
