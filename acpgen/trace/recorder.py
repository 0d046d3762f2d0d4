"""Record what a client and an agent send: a line of a file for each message, in the order in which they arrived."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acpgen.roles import Side
from acpgen.trace.writing import make_mask, trace_file


@dataclass(slots=True)
class _Line:
    """A line as far as it has arrived. Of one that is longer than what is recorded, the start is kept."""

    start: bytearray = field(default_factory=bytearray)
    size: int = 0

    def add(self, part: bytes) -> None:
        """Add its next bytes."""
        self.size += len(part)
        self.start += part[: trace_file().MAX_LINE + 1 - len(self.start)]


class Recorder:
    """A file with what two sides send, each in a thread.

    Bytes are noted before they are passed on, for the answer may come right after that. They are written afterwards,
    and before more is read from that side: no more than a chunk of each waits.
    """

    def __init__(self, path: Path, command: tuple[str, ...], *, max_bytes: int, shows_secrets: bool) -> None:
        """Open the file, and write a first line about the command. Raises `OSError`."""
        mask, shown = (None, command) if shows_secrets else (make_mask(), command[:1])  # arguments may be secrets
        about = {"command": shown, "cwd": str(Path.cwd())}
        self._file: Any = trace_file().TraceFile(path, max_bytes=max_bytes, mask=mask, **about)
        self._start = time.monotonic()
        self._noted: deque[tuple[float, Side, bytes]] = deque()
        self._noting, self._writing = threading.Lock(), threading.Lock()
        self._lines = {side: _Line() for side in Side}

    def note(self, side: Side, data: bytes) -> None:
        """Note bytes that have arrived from a side."""
        with self._noting:
            if self._file is not None:
                self._noted.append((time.monotonic() - self._start, side, data))

    def write(self) -> None:
        """Write the lines that end in what was noted. A failure ends the recording, and is said on stderr."""
        self._try(self._write_noted)

    def end(self, code: int) -> None:
        """Write what is left, and the exit code of the command."""
        self._try(lambda: self._write_end(code))

    def _try(self, write: Callable[[], None]) -> None:
        with self._writing:
            if self._file is None:
                return
            try:
                write()
            except Exception as error:  # noqa: BLE001 - whatever it is, the conversation goes on
                self._file = None
                with contextlib.suppress(OSError):  # stdout belongs to the conversation
                    print(f"acpgen trace: recording has ended: {error}", file=sys.stderr, flush=True)

    def _write_noted(self) -> None:
        while self._noted:
            at, side, data = self._noted.popleft()
            *ends, rest = data.split(b"\n")
            for part in ends:
                self._lines[side].add(part)
                self._write_line(side, at)
            self._lines[side].add(rest)

    def _write_end(self, code: int) -> None:
        self._write_noted()
        at = time.monotonic() - self._start
        for side in Side:
            self._write_line(side, at)
        self._file.event(at, end=code)
        self._file = None

    def _write_line(self, side: Side, at: float) -> None:
        line, self._lines[side] = self._lines[side], _Line()
        if line.start.strip():
            self._file.message(bytes(line.start), sender=side.value, to=side.peer.value, at=at, size=line.size)
