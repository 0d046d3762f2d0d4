"""Serves stdin and stdout: whatever else uses them meanwhile finds stdin empty, and writes to stderr."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from itertools import combinations
from typing import Any, Final, Protocol, TypeAlias, cast

from .log import log_program_end, logger, one_line
from .options import ConnectionOptions
from .peer_kind import PEER_KIND
from .pipes import PipeTransport, ThreadTransport
from .tasks import running_loop
from .transport import ByteTransport

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
    with _private_wire(name) as wire:
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
    with _private_wire("serve_stdio") as wire:
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
        return PipeTransport(
            stdin,
            stdout,
            max_message_bytes=options.max_message_bytes,
            max_write_buffer_bytes=options.max_write_buffer_bytes,
        )
    return ThreadTransport(stdin, stdout, max_message_bytes=options.max_message_bytes)


def _suits_asyncio(stdin: int, stdout: int) -> bool:
    """True if both are pipes or sockets, and neither is stderr, which must stay blocking."""
    found = [os.fstat(stdin), os.fstat(stdout), os.fstat(_STDERR)]
    pipes = all(stat.S_ISFIFO(each.st_mode) or stat.S_ISSOCK(each.st_mode) for each in found[:2])
    return pipes and not any(os.path.samestat(*pair) for pair in combinations(found, 2))


# --- The streams ------------------------------------------------------------------------------------------------------


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
def _private_wire(name: str) -> Generator[tuple[int, int], None, None]:
    """Private copies of stdin and stdout; meanwhile, stdin is empty, and stdout is stderr.

    Raises `RuntimeError` if they are served already. `name` is that of the caller, for the log.
    """
    if not _serving.acquire(blocking=False):
        raise RuntimeError(f"{name}: stdin and stdout are served already, and a second server would read nothing")
    try:
        _open_closed()
        wire = os.dup(_STDIN), os.dup(_STDOUT)
        kept = os.dup(_STDIN), os.dup(_STDOUT)
        blocking = [_is_blocking(descriptor) for descriptor in kept]
        try:
            _pass_on_printed(name)
            with open(os.devnull, "rb") as nothing:
                os.dup2(nothing.fileno(), _STDIN)
            with contextlib.redirect_stdout(sys.stderr):
                yield wire
        finally:
            _flush_stdout()  # code may have kept the original object
            for copy, original, was_blocking in zip(kept, (_STDIN, _STDOUT), blocking):
                if sys.platform != "win32":
                    os.set_blocking(copy, was_blocking)  # other processes may share the pipe
                os.dup2(copy, original)
                os.close(copy)
    finally:
        _serving.release()


_serving: Final = threading.Lock()


def _pass_on_printed(name: str) -> None:
    """Let stdout be stderr. What it has buffered must not get on the wire: it goes there, too, with a warning."""
    if printed := _buffered():
        with contextlib.suppress(OSError):
            os.write(_STDERR, printed if printed.endswith(b"\n") else printed + b"\n")
        text = (
            "text was printed to stdout before %s: it has gone to stderr, as stdout is for messages. Print it there: %s"
        )
        logger.warning(text, name, one_line(printed.strip()))


def _buffered() -> bytes:
    """What was written to stdout and not flushed. Afterwards, stdout is stderr."""
    source, target = os.pipe()
    found = bytearray()
    end = os.urandom(16)  # without it, a process that has inherited `target` would keep this waiting

    def collect() -> None:
        while not found.endswith(end):
            found.extend(os.read(source, _CHUNK))

    reader = threading.Thread(target=collect, daemon=True)  # a buffer may have more than a pipe takes
    try:
        os.dup2(target, _STDOUT)
        reader.start()
        _flush_stdout()
        os.write(target, end)
        reader.join()
    finally:
        os.dup2(_STDERR, _STDOUT)
        os.close(target)
        os.close(source)
    return bytes(found[: -len(end)])


def _is_blocking(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True  # unknown before Python 3.12
    return os.get_blocking(descriptor)


def _flush_stdout() -> None:
    for stream in (sys.stdout, sys.__stdout__):  # a program may have replaced the original one
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
