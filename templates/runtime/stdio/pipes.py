"""Serves stdin and stdout: the transport, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias, cast

from .dispatch import PeerKind
from .log import log_program_end
from .options import ConnectionOptions
from .standard_streams import STDERR, private_wire
from .stream_transport import LineBuffer, LineWriter
from .tasks import running_loop
from .transport import PEER_KIND, ByteTransport

_CHUNK: Final = 2**16


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


Start: TypeAlias = Callable[[ByteTransport], Awaitable[Running]]


def run(start: Start, options: ConnectionOptions, *, name: str) -> None:
    """Serve stdin and stdout with the object that `start` returns, until it ends, or until SIGINT or SIGTERM.

    Meanwhile `print` and child processes write to stderr, and stdin is empty. Raises `SystemExit` with a message if
    stdin cannot be read or stdout cannot be written, as on a full disk, but not if the peer has gone; and
    `RuntimeError` where an event loop runs. `name` is that of the caller, for errors.
    """
    if running_loop() is not None:
        raise RuntimeError(_WAY_IN.format(name))
    failure: str | None = None
    with private_wire(name) as wire:
        try:
            # without signal handlers (Windows), Ctrl-C is raised here, after the clean-up
            with contextlib.suppress(KeyboardInterrupt):
                failure = asyncio.run(_run(start, wire, options, owns_process=True))
        except SystemExit as error:
            log_program_end("a task", error)
            raise
    if failure is not None:
        sys.exit(failure)


async def serve(start: Start, options: ConnectionOptions) -> None:
    """Do what `run` does, in the event loop that runs, and leave all as it was. Raises `OSError` instead."""
    with private_wire("serve_stdio") as wire:
        failure = await _run(start, wire, options, owns_process=False)
    if failure is not None:
        raise OSError(failure)


_WAY_IN: Final = (
    "{0} starts an event loop of its own: where one runs, write `await serve_stdio(...)` in place of {0}(...)"
)


def no_coroutine(name: str) -> None:
    """What `name`, a function that is not `async`, returns: 0 for `sys.exit`, and for `asyncio.run` an error."""
    return cast("None", _NoCoroutine(name))


class _NoCoroutine(int):
    """An integer that a task takes for a coroutine.

    `asyncio.run(run_agent(...))` is how programs of the official SDK begin. With None it would say that it expects a
    coroutine, after a conversation that went well, and not what to write instead.
    """

    def __new__(cls, name: str) -> _NoCoroutine:
        """`name` is that of the function that returns it."""
        made = super().__new__(cls)
        made.name = name
        return made

    name: str

    def send(self, *_: object) -> Any:
        """Called by the task."""
        raise RuntimeError(_WAY_IN.format(self.name))

    throw = close = __await__ = send


async def _run(start: Start, wire: tuple[int, int], options: ConnectionOptions, *, owns_process: bool) -> str | None:
    """Serve until the end; returns what failed, if anything."""
    transport: Any = _open(*wire, options)
    if os.environ.get(PEER_KIND) == "network":
        transport.peer_kind = "network"
    running = await start(transport)
    with _signals_for(running.stop, owns_process=owns_process):
        try:
            await running.wait_closed()
        finally:
            await running.close()
    failure: str | None = getattr(transport, "failure", None)  # a `ThreadTransport` has it
    return failure


@contextlib.contextmanager
def _signals_for(stop: Callable[[], None], *, owns_process: bool) -> Generator[None, None, None]:
    """Call `stop` on the first SIGINT or SIGTERM; a second one does what it did before, or ends the process at once.

    It does not raise `KeyboardInterrupt`: within the event loop that can lose the next step of a task, and closing the
    loop would wait for this task forever. What a program handles that has an event loop of its own is left to it.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    taken = [number for number, handler in before.items() if owns_process or _is_default(handler)]

    def set_handlers(handlers: Mapping[signal.Signals, Any]) -> None:
        with contextlib.suppress(ValueError):  # threads other than the main one have no handlers
            for number in taken:
                signal.signal(number, handlers[number] or signal.SIG_DFL)

    def stop_once(*_: object) -> None:
        set_handlers(dict.fromkeys(taken, signal.SIG_DFL) if owns_process else before)
        loop.call_soon_threadsafe(stop)

    if sys.platform != "win32":
        set_handlers(dict.fromkeys(taken, stop_once))
    try:
        yield
    finally:
        set_handlers(before)


def _is_default(handler: Any) -> bool:
    """True if nobody but Python has set this handler of a signal, or `asyncio.run`, which cancels the main task."""
    runner = getattr(asyncio, "Runner", ())  # Python 3.11 and later
    owner = getattr(getattr(handler, "func", None), "__self__", None)
    return handler in (signal.SIG_DFL, signal.default_int_handler) or isinstance(owner, runner)


def _open(stdin: int, stdout: int, options: ConnectionOptions) -> ByteTransport:
    """Make a transport for two file descriptors, which it owns."""
    if sys.platform != "win32" and _suits_asyncio(stdin, stdout):
        limits = options.max_message_bytes, options.max_write_buffer_bytes
        return PipeTransport(stdin, stdout, max_message_bytes=limits[0], max_write_buffer_bytes=limits[1])
    from .threads import ThreadTransport

    return ThreadTransport(stdin, stdout, max_message_bytes=options.max_message_bytes)


def _suits_asyncio(stdin: int, stdout: int) -> bool:
    """True if both are pipes or sockets, and neither is stderr, which must stay blocking."""
    found = [os.fstat(stdin), os.fstat(stdout), os.fstat(STDERR)]
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
