"""What both chats use: lines of the user, Ctrl-C, and the lines that differ between two texts."""

import asyncio
import difflib
import signal
import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any


async def ask(question: str) -> str | None:
    """The line that the user types; None at the end of the input."""
    print(question, end="", flush=True)
    return (await asyncio.to_thread(sys.stdin.readline)).rstrip("\n") or None


async def choose(title: str, names: Sequence[str]) -> int | None:
    """The index of the name that the user chooses."""
    print(f"\n{title}", *(f"{number} {name}" for number, name in enumerate(names)), sep="\n")
    line = await ask("number> ")
    return int(line) if line and line.isdecimal() and int(line) < len(names) else None


@contextmanager
def on_interrupt(cancel: Callable[[], Awaitable[Any]]) -> Generator[None, None, None]:
    """Cancel at the first Ctrl-C of the block, and end the task at the second."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    pending: list[Any] = []

    def act() -> None:
        if pending and task is not None:
            task.cancel()
        else:
            pending.append(asyncio.ensure_future(cancel()))

    before = signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)


def diff(path: str, old: str, new: str) -> str:
    """The lines that differ."""
    return "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm=""))
