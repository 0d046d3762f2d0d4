"""Takes stdin and stdout for messages: whatever else uses them meanwhile finds stdin empty, and writes to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Generator
from typing import Final

from .log import logger, one_line

_CHUNK: Final = 2**16
_STDIN, _STDOUT, STDERR = 0, 1, 2


def _open_closed() -> None:
    """Open stdin, stdout and stderr if they are closed: otherwise the next open files would take their numbers.

    stdin is empty then; writing to stdout fails.
    """
    for descriptor, mode in ((_STDIN, os.O_RDONLY), (_STDOUT, os.O_RDONLY), (STDERR, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number, which is `descriptor`


@contextlib.contextmanager
def private_wire(name: str) -> Generator[tuple[int, int], None, None]:
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
            os.write(STDERR, printed if printed.endswith(b"\n") else printed + b"\n")
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
        os.dup2(STDERR, _STDOUT)
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
