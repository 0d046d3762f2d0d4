"""Run a command between a client and its agent: pass on all bytes unchanged, and hand them to a recorder."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from functools import partial
from io import FileIO
from typing import IO, Any

from acpgen.roles import Side
from acpgen.trace.recorder import Recorder

_CHUNK = 2**16
_LAST_CHUNKS = 2**20 // _CHUNK + 1  # what a pipe holds at most, as systems are set up
_LAST_SECONDS = 10.0  # that a client has to read what is left when the command has ended
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1


def run_recorded(command: tuple[str, ...], recorder: Recorder) -> int:
    """Run `command` on stdin and stdout, and record what passes; returns its exit code, 128 + n after a signal n.

    Raises `OSError` if it cannot be started.
    """
    process = _start(command)
    assert process.stdout is not None
    ended, end = os.pipe()
    _start_thread(recorder, Side.CLIENT, _arriving(FileIO(0), ended), process.stdin)
    back = _start_thread(recorder, Side.AGENT, _arriving(process.stdout, ended), FileIO(1, "w"))
    code = process.wait()
    os.close(end)
    back.join(_LAST_SECONDS)
    code = code if code >= 0 else 128 - code
    recorder.end(code)
    return code


def _start_thread(*arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=_pass_on, args=arguments, daemon=True)
    thread.start()
    return thread


def _pass_on(recorder: Recorder, side: Side, chunks: Generator[bytes], target: IO[bytes]) -> None:
    """Pass on the bytes of a side, then let each side see the end of the other one."""
    with contextlib.suppress(OSError), contextlib.closing(chunks), target:  # an error: one of the two has gone
        for data in chunks:
            recorder.note(side, data)
            left = memoryview(data)
            while left:
                left = left[os.write(target.fileno(), left) :]
            recorder.write()


def _arriving(source: IO[bytes], ended: int) -> Generator[bytes]:
    """What arrives. When the command has ended, and with it `ended`, only what is there: others may write on."""
    ready, left = select.poll(), _LAST_CHUNKS
    with source:
        ready.register(source, select.POLLIN)
        ready.register(ended, select.POLLIN)
        while left:
            found = dict(ready.poll())
            left -= ended in found
            if source.fileno() not in found or not (data := os.read(source.fileno(), _CHUNK)):
                return
            yield data


def _start(command: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start the command, and pass signals on. It has a session of its own: else one for the group reaches it twice."""
    process = subprocess.Popen(  # noqa: S603 - the user gives the command to run it
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        close_fds=False,  # those that the client has opened for it
        start_new_session=True,
        preexec_fn=partial(_end_with, os.getpid()),  # noqa: PLW1509 - there are no threads yet
    )
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: process.send_signal(number))
    return process


def _end_with(parent: int) -> None:
    """Let this process be killed when its parent is: on Linux. Elsewhere, only its stdin ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != parent:  # it was before
            os.kill(os.getpid(), signal.SIGKILL)
