"""How long the agent has been idle in a session, for turns that must not stall."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__: list[str] = []


class TurnStalledError(Exception):
    """The agent has reported nothing for `idle_seconds`, and no request of it was open; the turn was cancelled.

    While a tool call was open, that time was `SessionClient.call_seconds`.
    """


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
    """The time since the agent has last been heard in a session. `limit` says what the limit is now, for a given one.

    The clock is only read while there is a limit. What is heard moves no timer: that of a limit looks when it was, and
    waits for the rest.
    """

    def __init__(self, limit: Callable[[float], float]) -> None:
        self._heard_at = 0.0
        self._limits = 0
        self._limit = limit

    def heard(self) -> None:
        """Note that the agent has sent something."""
        if self._limits:
            self._heard_at = asyncio.get_running_loop().time()

    @contextmanager
    def limited(self, seconds: float | None, reached: Callable[[float], None]) -> Generator[None, None, None]:
        """Call `reached`, once, if the agent is idle for so long during the block, which counts from its start.

        Its argument is the limit. That may change while nothing is heard, so it is asked for every `seconds`.
        """
        if seconds is None:
            yield
            return
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            limit = self._limit(seconds)
            rest = self._heard_at + limit - loop.time()
            if rest > 0:
                timer = loop.call_later(min(rest, seconds), look)
            else:
                reached(limit)

        self._limits += 1
        self.heard()
        timer = loop.call_later(seconds, look)
        try:
            yield
        finally:
            self._limits -= 1
            timer.cancel()
