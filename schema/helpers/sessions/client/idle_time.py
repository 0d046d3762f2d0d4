"""How long the agent has been idle in a session, for turns that must not stall."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__: list[str] = []


class TurnStalledError(Exception):
    """The agent has reported nothing for `idle_seconds`, and no request of it was open; the turn was cancelled."""


class OpenRequests:
    """The requests of the agent that are open, by their session; one that names none may be about any of them."""

    def __init__(self) -> None:
        self._open = Counter[str | None]()

    def is_about(self, session_id: str) -> bool:
        """True if one is about the session, or may be: the user may take any time, and so may a command."""
        return session_id in self._open or None in self._open

    @contextmanager
    def opened(self, session_id: str | None) -> Generator[None, None, None]:
        """A request is open during the block."""
        self._open[session_id] += 1
        try:
            yield
        finally:
            self._open[session_id] -= 1
            if not self._open[session_id]:
                del self._open[session_id]


class IdleTime:
    """The time since the agent has last been heard in a session. While it `is_asking`, it is not idle.

    The clock is only read while there is a limit. What is heard moves no timer: that of a limit looks when it was, and
    waits for the rest.
    """

    def __init__(self, is_asking: Callable[[], bool]) -> None:
        self._heard_at = 0.0
        self._limits = 0
        self._is_asking = is_asking

    def heard(self) -> None:
        """Note that the agent has sent something."""
        if self._limits:
            self._heard_at = asyncio.get_running_loop().time()

    @contextmanager
    def limited(self, seconds: float | None, reached: Callable[[], None]) -> Generator[None, None, None]:
        """Call `reached`, once, if the agent is idle for so long during the block, which counts from its start."""
        if seconds is None:
            yield
            return
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            rest = seconds if self._is_asking() else self._heard_at + seconds - loop.time()
            if rest > 0:
                timer = loop.call_later(rest, look)
            else:
                reached()

        self._limits += 1
        self.heard()
        timer = loop.call_later(seconds, look)
        try:
            yield
        finally:
            self._limits -= 1
            timer.cancel()
