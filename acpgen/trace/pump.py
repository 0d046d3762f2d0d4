"""Run a command between a client and its agent: pass on all bytes unchanged, and hand a copy to a recorder."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from acpgen.roles import Side
from acpgen.trace.recorder import ENDED, HEADER, LOST, SENT, SIDES, STARTED, Recording, fork_recorder, open_file

_CHUNK = 2**16
_MAX_WAITING = 2**24
"""The most bytes that wait for the recorder. More are not recorded, for a full disk must not stop the conversation."""
_FRAME_BYTES = 2**8
"""The memory of a frame beside its bytes, roughly: a side may write one byte at a time."""
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_STUCK_SECONDS = 5.0
"""How long a client may take no bytes after the end of the command, until the rest is dropped."""
_FLUSH_SECONDS = 5.0
"""How long the exit code may wait for the recorder to take what is queued, and then for its end. It goes on afterwards,
if it has to."""
_PIPE_BYTES = 2**20
"""The most bytes that a pipe holds, as systems are set up."""


@dataclass(slots=True)
class _Frame:
    """A frame that waits, or its rest. With it, `weight` bytes of a side would be lost."""

    rest: bytes
    side: Side
    weight: int
    is_begun: bool = False

    @property
    def size(self) -> int:
        """The memory that it takes."""
        return len(self.rest) + _FRAME_BYTES


class _Feed:
    """Frames on their way to the recorder, in a pipe. Adding one never waits: what the pipe does not take is queued."""

    def __init__(self, sink: int) -> None:
        os.set_blocking(sink, False)
        self._sink = sink
        self._start = time.monotonic()
        self._queue: deque[_Frame] = deque()
        self._bytes = 0
        self._lost = dict.fromkeys(Side, 0)
        self._is_ending = False
        self._is_broken = False  # the recorder is gone
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def tee(self, side: Side, data: bytes) -> None:
        """Hand over bytes of a side, or count them as lost."""
        with self._changed:
            if self._bytes > _MAX_WAITING:
                self._lost[side] += len(data)
            else:
                self._tell_lost(side)
                self._put(SENT, data, side=side, weight=len(data))

    def begin(self, process: int) -> None:
        """Hand over the id of the process."""
        with self._changed:
            self._put(STARTED, b"%d" % process)

    def end(self, code: int) -> None:
        """Hand over what is left and the exit code. What the recorder does not take in time is lost, and counted."""
        with self._changed:
            self._finish(code)
        self._thread.join(_FLUSH_SECONDS)
        if self._thread.is_alive():
            with self._changed:
                self._drop()
                self._finish(code)
            self._thread.join(_FLUSH_SECONDS)

    def _finish(self, code: int) -> None:
        for side in Side:
            self._tell_lost(side)
        self._put(ENDED, b"%d" % code)
        self._is_ending = True
        self._changed.notify()

    def _drop(self) -> None:
        """Forget the queue, but for the rest of a frame of which the recorder has the start."""
        kept = deque(frame for frame in self._queue if frame.is_begun)
        for frame in self._queue:
            if not frame.is_begun:
                self._lost[frame.side] += frame.weight
        self._queue, self._bytes = kept, sum(frame.size for frame in kept)

    def _tell_lost(self, side: Side) -> None:
        if lost := self._lost[side]:
            self._lost[side] = 0
            self._put(LOST, b"%d" % lost, side=side, weight=lost)

    def _put(self, kind: int, data: bytes, *, side: Side = Side.CLIENT, weight: int = 0) -> None:
        if self._is_broken:
            return
        head = HEADER.pack(kind, SIDES.index(side), time.monotonic() - self._start, len(data))
        frame = _Frame(head + data, side, weight)
        if not self._queue:  # at once, so that nothing waits here if this process is killed
            self._send(frame)
        if frame.rest:
            self._queue.append(frame)
            self._bytes += frame.size
            self._changed.notify()

    def _send(self, frame: _Frame) -> None:
        """Send what the pipe takes of a frame."""
        try:
            frame.rest = frame.rest[os.write(self._sink, frame.rest) :]
            frame.is_begun = True
        except BlockingIOError:
            pass
        except OSError:
            self._is_broken = True
            frame.rest = b""

    def _run(self) -> None:
        """Send the queue."""
        ready = select.poll()
        ready.register(self._sink, select.POLLOUT)
        while self._has_more():
            ready.poll()
            with self._changed:
                self._send_first()
        os.close(self._sink)

    def _send_first(self) -> None:
        if not self._queue:  # it was dropped meanwhile
            return
        frame = self._queue.popleft()
        self._bytes -= frame.size
        self._send(frame)
        if frame.rest:
            self._queue.appendleft(frame)
            self._bytes += frame.size

    def _has_more(self) -> bool:
        with self._changed:
            while not self._queue and not self._is_ending:
                self._changed.wait()
            return bool(self._queue)


class _Direction(threading.Thread):
    """Passes on the bytes of one side until its end, or until `finish`."""

    def __init__(self, side: Side, source: int, target: int, feed: _Feed) -> None:
        super().__init__(daemon=True)
        self._side = side
        self._source = source
        self._target = target
        self._feed = feed
        self._finish, self._wake = os.pipe()
        self._left: int | None = None  # the bytes that may still pass, once the command has ended
        self.moved = 0
        """How many times bytes were written."""

    def run(self) -> None:
        """Pass on bytes, then let each side see the end of the other one."""
        with contextlib.suppress(OSError):  # one of the two has gone
            while data := self._read():
                self._feed.tee(self._side, data)  # first, so that no answer is recorded before its request
                self._write(data)
        for descriptor in (self._source, self._target):
            _let_go(descriptor)

    def finish(self) -> None:
        """Pass on what has arrived, and end: processes that the command has left may keep the pipe open, and write."""
        self._left = _PIPE_BYTES
        os.close(self._wake)

    def _read(self) -> bytes:
        ready = select.poll()
        ready.register(self._source, select.POLLIN)
        ready.register(self._finish, select.POLLIN)
        found = {descriptor for descriptor, _ in ready.poll()}
        if self._source not in found or self._left == 0:
            return b""
        data = os.read(self._source, _CHUNK if self._left is None else min(_CHUNK, self._left))
        if self._left is not None:
            self._left -= min(self._left, len(data))
        return data

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._target, left) :]
            self.moved += 1


def _let_go(descriptor: int) -> None:
    """Close a descriptor, and keep its number: a file that is opened later must not get it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def run_recorded(command: tuple[str, ...], recording: Recording) -> int:
    """Run `command` on stdin and stdout, and record what passes; returns its exit code, 128 + n after a signal n.

    Raises `OSError` if the file cannot be written, or the command not be started; its `filename` says which.
    """
    shown = command if recording.shows_secrets else command[:1]
    recorder, sink = fork_recorder(open_file(recording, command=shown, cwd=str(Path.cwd())))
    with _signals() as forward:
        try:
            process = _start(command)
        except BaseException:
            os.close(sink)
            raise
        forward(process)
        feed = _Feed(sink)
        feed.begin(process.pid)
        code = _serve(process, feed)
    feed.end(code)
    _wait_for(recorder)
    return code


def _start(command: tuple[str, ...]) -> subprocess.Popen[bytes]:
    # In a session of its own, so that a signal for the group reaches it once, passed on. Descriptors that the client
    # has opened for it stay open.
    return subprocess.Popen(  # noqa: S603 - the user gives the command to run it
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, close_fds=False, start_new_session=True
    )


def _serve(process: subprocess.Popen[bytes], feed: _Feed) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    there = _Direction(Side.CLIENT, 0, process.stdin.fileno(), feed)
    back = _Direction(Side.AGENT, process.stdout.fileno(), 1, feed)
    there.start()
    back.start()
    code = process.wait()
    back.finish()
    moved = -1
    while back.is_alive() and moved != back.moved:
        moved = back.moved
        back.join(_STUCK_SECONDS)
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _signals() -> Iterator[Any]:
    """Pass signals on to the process that the block gets to know; those that came before it, too."""
    early: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    def handle(number: int, _: FrameType | None) -> None:
        if started:
            started[0].send_signal(number)
        else:
            early.append(number)

    def forward(process: subprocess.Popen[bytes]) -> None:
        started.append(process)
        for number in early:
            process.send_signal(number)

    forwarded = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    kept = {number: signal.signal(number, handle) for number in forwarded}
    try:
        yield forward
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _wait_for(recorder: int) -> None:
    deadline = time.monotonic() + _FLUSH_SECONDS
    while os.waitpid(recorder, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
        time.sleep(0.002)
