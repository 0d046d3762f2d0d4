"""The terminal: what the user types, line by line, while the rest goes on."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence


class Keyboard:
    """Asks for lines, one question after the other. A thread reads them, for reading would stop everything else."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._one_at_a_time = asyncio.Lock()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    async def ask(self, question: str) -> str | None:
        """The line that the user answers; None at the end of the input."""
        async with self._one_at_a_time:
            print(question, end="", flush=True)
            line = None if self._ended else await self._lines.get()
            self._ended = line is None
            return line

    async def choose(self, names: Sequence[str]) -> int | None:
        """Ask which of `names` the user wants; returns its index, None at the end of the input."""
        for number, name in enumerate(names, 1):
            print(f"  {number}  {in_one_line(name)}")
        while (line := await self.ask("number> ")) is not None:
            if line.isdecimal() and 1 <= int(line) <= len(names):
                return int(line) - 1
        return None

    def end(self) -> None:
        """Let this be the end of the input."""
        self._lines.put_nowait(None)

    def _read(self) -> None:
        with contextlib.suppress(RuntimeError):  # the chat has ended, and its loop with it
            for line in sys.stdin:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\r\n"))
            self._loop.call_soon_threadsafe(self.end)


@contextlib.contextmanager
def on_interrupt(act: Callable[[], object]) -> Generator[None, None, None]:
    """Let Ctrl-C call `act` until the end of the block, in which no other such block may begin."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except NotImplementedError:  # on Windows, where each signal wakes the loop
        signal.signal(signal.SIGINT, lambda number, frame: loop.call_soon_threadsafe(act))
    try:
        yield
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def shown(text: str) -> str:
    """The text of somebody else, without what would act on the terminal."""
    return "".join(each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)


def in_one_line(text: str) -> str:
    """The text in one line, which cannot look like a line of ours."""
    return shown(" ".join(text.split()))


def diff(path: str, old: str, new: str) -> str:
    """The lines that differ between two texts."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return shown("\n".join(lines))
