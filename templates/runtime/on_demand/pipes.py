"""Serves stdin and stdout: the transport, the redirection of everything else that uses them, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Generator
from itertools import combinations
from typing import Any, Final, Protocol

from ..options import ConnectionOptions
from ..transport import PEER_KIND, ByteTransport, LineBuffer, LineWriter, PeerKind

_CHUNK: Final = 2**16
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Running(Protocol):
    """A server of a transport: a connection, or several of them."""

    def stop(self) -> None:
        """Begin to end."""
        ...

    async def wait_closed(self) -> None:
        """Wait for the end."""
        ...

    async def close(self) -> None:
        """Stop, and wait for the end."""
        ...


def run(start: Callable[[ByteTransport], Awaitable[Running]], options: ConnectionOptions) -> None:
    """Serve stdin and stdout with the object that `start` returns, until it ends, or until SIGINT or SIGTERM.

    Meanwhile `print` and child processes write to stderr, and stdin is empty. Raises `SystemExit` with a message if
    stdin cannot be read or stdout cannot be written, as on a full disk, but not if the peer has gone.
    """
    failure: str | None = None
    _open_closed()
    with _private_wire() as (stdin, stdout):
        # without signal handlers (Windows), Ctrl-C is raised here, after the clean-up
        with contextlib.suppress(KeyboardInterrupt):
            failure = asyncio.run(_run(start, stdin, stdout, options))
    if failure is not None:
        sys.exit(failure)


async def _run(
    start: Callable[[ByteTransport], Awaitable[Running]], stdin: int, stdout: int, options: ConnectionOptions
) -> str | None:
    """Serve until the end; returns what failed, if anything."""
    transport: Any = _open(stdin, stdout, options)
    if os.environ.get(PEER_KIND) == "network":
        transport.peer_kind = "network"
    running = await start(transport)
    with _signals_for(running.stop):
        try:
            await running.wait_closed()
        finally:
            await running.close()
    failure: str | None = getattr(transport, "failure", None)  # a `ThreadTransport` has it
    return failure


@contextlib.contextmanager
def _signals_for(stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` on the first SIGINT or SIGTERM; a second one ends the process at once.

    It does not raise `KeyboardInterrupt`: within the event loop that can lose the next step of a task, and closing the
    loop would wait for this task forever.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def set_handlers(interrupt: Any) -> None:
        for number in numbers:
            loop.remove_signal_handler(number)
        signal.signal(signal.SIGINT, interrupt)

    def stop_once() -> None:
        set_handlers(signal.SIG_DFL)
        stop()

    # Windows has no signal handlers, and neither have threads other than the main one
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number in numbers:
            loop.add_signal_handler(number, stop_once)
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            set_handlers(signal.default_int_handler)


def _open_closed() -> None:
    """Open stdin, stdout and stderr if they are closed: otherwise the next open files would take their numbers.

    stdin is empty then; writing to stdout fails.
    """
    for descriptor, mode in ((_STDIN, os.O_RDONLY), (_STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number, which is `descriptor`


@contextlib.contextmanager
def _private_wire() -> Generator[tuple[int, int], None, None]:
    """Private copies of stdin and stdout; meanwhile, stdin is empty, and stdout is stderr."""
    _flush_stdout()
    wire = os.dup(_STDIN), os.dup(_STDOUT)
    kept = os.dup(_STDIN), os.dup(_STDOUT)
    blocking = [_is_blocking(descriptor) for descriptor in kept]
    try:
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), _STDIN)
        os.dup2(_STDERR, _STDOUT)
        with contextlib.redirect_stdout(sys.stderr):
            yield wire
    finally:
        _flush_stdout()  # code may have kept the original object
        for copy, original, was_blocking in zip(kept, (_STDIN, _STDOUT), blocking):
            if sys.platform != "win32":
                os.set_blocking(copy, was_blocking)  # other processes may share the pipe
            os.dup2(copy, original)
            os.close(copy)


def _is_blocking(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True  # unknown before Python 3.12
    return os.get_blocking(descriptor)


def _flush_stdout() -> None:
    if sys.stdout is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()


def _open(stdin: int, stdout: int, options: ConnectionOptions) -> ByteTransport:
    """Make a transport for two file descriptors, which it owns."""
    if sys.platform != "win32" and _suits_asyncio(stdin, stdout):
        limits = options.max_message_bytes, options.max_write_buffer_bytes
        return PipeTransport(stdin, stdout, max_message_bytes=limits[0], max_write_buffer_bytes=limits[1])
    from .threads import ThreadTransport

    return ThreadTransport(stdin, stdout, max_message_bytes=options.max_message_bytes)


def _suits_asyncio(stdin: int, stdout: int) -> bool:
    """True if both are pipes or sockets, and neither is stderr, which must stay blocking."""
    found = [os.fstat(stdin), os.fstat(stdout), os.fstat(_STDERR)]
    pipes = all(stat.S_ISFIFO(each.st_mode) or stat.S_ISSOCK(each.st_mode) for each in found[:2])
    return pipes and not any(os.path.samestat(*pair) for pair in combinations(found, 2))


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
