"""Runs an agent on stdin and stdout, or on any other transport."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import signal
import stat
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from functools import partial
from itertools import combinations
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, TypeVar

from .connection import Connection
from .dispatch import Peer
from .negotiation import Candidates, VersionPeer, by_version, check_factory, make_handler, version_of
from .options import ConnectionOptions
from .transport import LineBuffer, StreamTransport, Transport
from .versions import PROTOCOLS, AgentFactory, remote_client

T = TypeVar("T")

_CHUNK: Final = 2**16
_STDIN, _STDOUT, _STDERR = 0, 1, 2

AnyFactory: TypeAlias = "AgentFactory | Mapping[int, AgentFactory]"
"""A factory, or one for each version of the protocol: the client chooses."""


def run_agent(factory: AnyFactory, *, options: ConnectionOptions | None = None) -> None:
    """Run an agent on stdin and stdout until the client closes them, or until SIGINT or SIGTERM.

    A mapping of factories by version of the protocol serves several versions: the first request that negotiates the
    version decides which of them is called.

    While it runs, `print` and the processes that the agent starts write to stderr, and stdin is empty: only messages
    are written to the client. Raises `SystemExit` with a message if stdin cannot be read or stdout cannot be written,
    as on a full disk, but not if the client has gone.
    """
    check_factory(factory, "Agent", None)
    failure: str | None = None
    _open_closed()
    with _private_wire() as (stdin, stdout):
        # without signal handlers (Windows), Ctrl-C is raised here, after the clean-up
        with contextlib.suppress(KeyboardInterrupt):
            failure = asyncio.run(_run(factory, stdin, stdout, options or ConnectionOptions()))
    if failure is not None:
        sys.exit(failure)


async def serve_agent(factory: AnyFactory, transport: Transport, *, options: ConnectionOptions | None = None) -> None:
    """Run an agent on `transport` until the connection is closed. Cancelling the task closes it.

    A mapping of factories serves several versions, as for `run_agent`.
    """
    check_factory(factory, "Agent", transport)
    connection = await _started(factory, transport, options or ConnectionOptions())
    try:
        await connection.wait_closed()
    finally:
        await connection.close()


async def _started(factory: AnyFactory, transport: Transport, options: ConnectionOptions) -> Connection:
    connection = Connection(transport, options)

    def stub(version: int, peer: Peer) -> Any:
        return remote_client(version)(peer, on_drop=options.on_drop)

    try:
        if (factories := by_version(factory)) is not None:
            connection.start(
                Candidates(PROTOCOLS, factories, lambda version: stub(version, VersionPeer(connection, version)))
            )
        else:
            one: Any = factory
            connection.start(make_handler(one, stub(version_of(one, PROTOCOLS), connection)))
    except BaseException:
        await connection.close()
        raise
    return connection


async def _run(factory: AnyFactory, stdin: int, stdout: int, options: ConnectionOptions) -> str | None:
    """Run an agent until the connection is closed; returns what failed, if anything."""
    transport = await _open(stdin, stdout, options)
    connection = await _started(factory, transport, options)
    with _signals_for(connection.stop):
        try:
            await connection.wait_closed()
        finally:
            await connection.close()
    return transport.failure if isinstance(transport, ThreadTransport) else None


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


async def _open(stdin: int, stdout: int, options: ConnectionOptions) -> Transport:
    """Make a transport for two file descriptors, which it owns."""
    if sys.platform == "win32" or not _suits_asyncio(stdin, stdout):
        return ThreadTransport(stdin, stdout, max_message_bytes=options.max_message_bytes)
    loop = asyncio.get_running_loop()
    os.set_blocking(stdin, False)
    with contextlib.ExitStack() as opened:
        reader = asyncio.StreamReader()
        reading = await _open_reading(stdin, asyncio.StreamReaderProtocol(reader))
        opened.callback(reading.close)
        writing, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), open(stdout, "wb", buffering=0)
        )
        opened.callback(writing.close)
        transport = StreamTransport(
            reader,
            asyncio.StreamWriter(writing, protocol, None, loop),
            reading=reading,
            max_message_bytes=options.max_message_bytes,
            max_write_buffer_bytes=options.max_write_buffer_bytes,
        )
        opened.pop_all()
    return transport


async def _open_reading(descriptor: int, protocol: asyncio.StreamReaderProtocol) -> asyncio.ReadTransport:
    loop = asyncio.get_running_loop()
    if isinstance(loop, asyncio.SelectorEventLoop):
        return _ReadPipe(descriptor, protocol)
    # other event loops may report the failure of a pipe only once
    reading, _ = await loop.connect_read_pipe(lambda: protocol, open(descriptor, "rb", buffering=0))
    return reading


def _suits_asyncio(stdin: int, stdout: int) -> bool:
    """True if both are pipes or sockets, and neither is stderr, which must stay blocking."""
    found = [os.fstat(stdin), os.fstat(stdout), os.fstat(_STDERR)]
    pipes = all(stat.S_ISFIFO(each.st_mode) or stat.S_ISSOCK(each.st_mode) for each in found[:2])
    return pipes and not any(os.path.samestat(*pair) for pair in combinations(found, 2))


class _ReadPipe(asyncio.ReadTransport):
    """Reads a non-blocking pipe, as asyncio's own transport does, but in smaller chunks.

    For chunks of 256 KiB, memory is mapped and unmapped each time, which takes longer than reading.
    """

    def __init__(self, descriptor: int, protocol: asyncio.StreamReaderProtocol) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._is_reading = False
        self._is_closing = False
        protocol.connection_made(self)
        self.resume_reading()

    def _read(self) -> None:
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return  # another process has read it
        except OSError as error:
            self._end(error)
            return
        if chunk:
            self._protocol.data_received(chunk)
        else:
            self._end(None)

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        if self._is_reading:
            self._is_reading = False
            self._loop.remove_reader(self._descriptor)

    def resume_reading(self) -> None:
        if not (self._is_reading or self._is_closing):
            self._is_reading = True
            self._loop.add_reader(self._descriptor, self._read)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._end(None)

    def _end(self, error: OSError | None) -> None:
        self.pause_reading()
        self._is_closing = True
        try:
            self._protocol.connection_lost(error)
        finally:
            os.close(self._descriptor)


class ThreadTransport:
    """Lines over file descriptors that asyncio does not support: files, terminals, and all of them on Windows.

    `failure` says why one of them failed, unless the peer has gone.
    """

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
        """Close stdout. stdin stays open: a thread may be reading it."""
        await self._writes.do(lambda: os.close(self._stdout))

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
        except BlockingIOError:  # set by another process that shares it: wait, and leave it so
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
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._work.get()()

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
