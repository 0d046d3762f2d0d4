"""Do something in a second process while this one goes on, where the system has it cheap; else do it here, later."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, TypeVar

T = TypeVar("T")
Result = Mapping[str, str]
HandOver = Callable[[T], Callable[[], Result]]
"""Takes what there is to work on, and gives what waits for the result."""


@contextmanager
def here(_: Callable[[], object], work: Callable[[T], Result]) -> Iterator[HandOver[T]]:
    """As `beside`, in this process: the work is done when its result is asked for."""
    yield lambda value: partial(work, value)


@contextmanager
def beside(prepare: Callable[[], object], work: Callable[[T], Result]) -> Iterator[HandOver[T]]:
    """Start a process that does `prepare`, and then `work` on what the block hands over.

    The same comes out without a second process, and where that one fails: `work` is done again in this one, so that it
    raises here what there is to raise. What is handed over is pickled.
    """
    started = _start(prepare, work) if _can_fork() else None
    if started is None:
        with here(prepare, work) as hand_over:
            yield hand_over
        return
    with started.handed_over, os.fdopen(started.go, "wb", 0) as go, os.fdopen(started.answer, "rb") as answer:

        def hand_over_to_it(value: T) -> Callable[[], Result]:
            with suppress(OSError):  # it is not there any more, or there is no room
                pickle.dump(value, started.handed_over)
                started.handed_over.flush()
                go.write(b"!")
            return lambda: _result(answer.read()) or work(value)

        try:
            yield hand_over_to_it
        finally:
            os.kill(started.process, signal.SIGKILL)  # where the block failed, nobody waits for the result
            os.waitpid(started.process, 0)


def _can_fork() -> bool:
    """Whether a process can be copied without harm: nothing else is going on in it, and there is a processor to spare.

    Apart from Linux, systems either cannot, or have libraries that do not bear it.
    """
    return sys.platform == "linux" and _threads() == 1 and len(os.sched_getaffinity(0)) > 1


def _threads() -> int:
    """How many threads this process has, those among them that Python knows nothing of."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are enough
    return threading.active_count()


@dataclass(frozen=True, slots=True)
class _Started:
    """A process; the file for what it is to work on, the pipe that says that it is there, and that of its answer."""

    process: int
    handed_over: IO[bytes]
    go: int
    answer: int


def _start(prepare: Callable[[], object], work: Callable[[T], Result]) -> _Started | None:
    """The process; None where the system refuses."""
    with ExitStack() as opened:
        try:
            handed_over = opened.enter_context(tempfile.TemporaryFile())  # a pipe would keep who writes waiting
            (wait, go), (answer, writing) = os.pipe(), os.pipe()
            for descriptor in (wait, go, answer, writing):
                opened.callback(os.close, descriptor)
            process = os.fork()
        except OSError:
            return None
        if process:
            os.close(wait)
            os.close(writing)
            opened.pop_all()
            return _Started(process, handed_over, go, answer)
        with suppress(BaseException):
            os.close(go)
            prepare()
            if os.read(wait, 1):
                handed_over.seek(0)
                with os.fdopen(writing, "wb") as stream:
                    value = pickle.load(handed_over)  # noqa: S301 - this program has written it, a moment ago
                    stream.write(json.dumps(work(value)).encode())
        os._exit(0)  # what was to happen at the end of this process happens in the first one


def _result(data: bytes) -> Mapping[str, str]:
    """What was written to the end; nothing where the process did not get there."""
    try:
        result = json.loads(data)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
