"""Do something in a second process while this one goes on, where the system has it cheap; else do it here, later."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

Work = Callable[[], Mapping[str, str]]


@contextmanager
def beside(work: Work) -> Iterator[Work]:
    """Start `work`; what the block gets waits for its result. The same comes out with a second process and without.

    Where the second process fails, `work` is done again in this one, so that it raises here what there is to raise.
    """
    started = _start(work) if _can_fork() else None
    if started is None:
        yield work
        return
    process, pipe = started
    with open(pipe, "rb") as stream:  # noqa: PTH123 - it has no path
        try:
            yield lambda: _result(stream.read()) or work()
        finally:
            os.kill(process, signal.SIGKILL)  # where the block failed, nobody waits for the result
            os.waitpid(process, 0)


def _can_fork() -> bool:
    """Whether a process can be copied without harm: nothing else is going on in it, and there is a processor to spare.

    Apart from Linux, systems either cannot, or have libraries that do not bear it.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and len(os.sched_getaffinity(0)) > 1


def _start(work: Work) -> tuple[int, int] | None:
    """The process that does `work`, and where its result is read from; None where the system refuses."""
    try:
        reading, writing = os.pipe()
    except OSError:
        return None
    try:
        process = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if process:
        os.close(writing)
        return process, reading
    os.close(reading)
    with suppress(BaseException), open(writing, "wb") as stream:  # noqa: PTH123 - it has no path
        stream.write(json.dumps(work()).encode())
    os._exit(0)  # what was to happen at the end of this process happens in the first one


def _result(data: bytes) -> Mapping[str, str]:
    """What was written to the end; nothing where the process did not get there."""
    try:
        result = json.loads(data)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
