"""The process that records: it splits what a pump hands over into lines, and writes them to a file.

It is a process of its own, so that reading a large message never delays the bytes that the pump passes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acpgen.roles import Side
from acpgen.trace.writing import make_mask, trace_file

HEADER = struct.Struct("!BBdI")
"""Of a frame: its kind, the number of a side, the seconds since the start, and the bytes that follow."""
SENT, LOST, STARTED, ENDED = range(4)
"""The kinds of frames: with bytes of a side, or the number of those that were not handed over; for the start of the
command, with its process id, and for its end, with the exit code."""
SIDES = tuple(Side)
"""The sides by their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Where and how a conversation is recorded."""

    path: Path
    shows_secrets: bool
    max_bytes: int


def open_file(recording: Recording, **about: object) -> Any:
    """The file, with a first line that has `about`. Raises `OSError`."""
    mask = None if recording.shows_secrets else make_mask()
    return trace_file().TraceFile(recording.path, max_bytes=recording.max_bytes, mask=mask, **about)


def max_line() -> int:
    """The most bytes of a message that is recorded as a whole."""
    return int(trace_file().MAX_LINE)


def say(text: str) -> None:
    """Tell the user: stdout belongs to the conversation."""
    print(f"acpgen trace: {text}", file=sys.stderr, flush=True)


class _Lines:
    """The lines of one side. Of a line that is too long, the start is kept."""

    def __init__(self) -> None:
        self._limit = max_line()
        self._kept = bytearray()
        self._size = 0
        self._is_skipping = False  # the start of the line was lost

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, int]]:
        """Add bytes; the lines that end in them, each with its size."""
        *ends, rest = chunk.split(b"\n")
        for part in ends:
            self._keep(part)
            yield from self.end()
        self._keep(rest)

    def end(self) -> Iterator[tuple[bytes, int]]:
        """The line, unless it is blank. Another one begins."""
        if not self._is_skipping and self._kept.strip():
            yield bytes(self._kept), self._size
        self.lose(is_skipping=False)

    def lose(self, *, is_skipping: bool = True) -> None:
        """Forget the line: some of it was lost."""
        self._kept.clear()
        self._size = 0
        self._is_skipping = is_skipping

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        self._kept += part[: max(0, self._limit + 1 - len(self._kept))]


class _Recorder:
    """Writes what comes in frames. After a failure to write it goes on reading, so that the pump never waits."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lines = {side: _Lines() for side in Side}
        self._command: int | None = None

    def run(self, frames: int) -> None:
        """Read frames to their end. If that comes before the end of the command, the pump was killed."""
        with open(frames, "rb", buffering=2**16) as stream:
            while len(head := stream.read(HEADER.size)) == HEADER.size:
                kind, side, at, size = HEADER.unpack(head)
                self._take(kind, SIDES[side], at, data=stream.read(size))
        if self._command is not None:
            _kill(self._command)

    def _take(self, kind: int, side: Side, at: float, *, data: bytes) -> None:
        if kind == SENT:
            self._add(side, self._lines[side].feed(data), at)
        elif kind == LOST:
            self._lines[side].lose()
            self._write("event", at, **{"from": side.value, "lost": int(data)})
        elif kind == STARTED:
            self._command = int(data)
        else:
            self._command = None
            for each, lines in self._lines.items():
                self._add(each, lines.end(), at)
            self._write("event", at, end=int(data))

    def _add(self, side: Side, lines: Iterable[tuple[bytes, int]], at: float) -> None:
        for line, size in lines:
            self._write("message", line, sender=side.value, to=side.peer.value, at=at, size=size)

    def _write(self, method: str, *values: Any, **named: Any) -> None:
        if self._file is None:
            return
        try:
            getattr(self._file, method)(*values, **named)
        except OSError as error:
            say(f"recording has ended: {error}")
            self._file = None


def _kill(command: int) -> None:
    """End the command of a pump that was killed: its client meant to kill the command."""
    with contextlib.suppress(OSError):
        os.kill(command, 0)  # fails if it has ended before: what it has left behind is not ours to end
        os.killpg(command, signal.SIGKILL)


def fork_recorder(file: Any) -> tuple[int, int]:
    """Start the process; returns its id, and the descriptor for frames. No thread may run yet."""
    frames, sink = os.pipe()
    if (process := os.fork()) != 0:
        os.close(frames)
        file.close()
        return process, sink
    try:
        os.close(sink)
        os.setsid()  # signals are for the command, and the end of the pump is the end of the frames
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):  # else the client would not see the end of the command
            os.dup2(nothing, descriptor)
        _Recorder(file).run(frames)
    except BaseException:  # noqa: BLE001 - this process has nothing above it that would print it
        traceback.print_exc()
    finally:
        os._exit(0)
