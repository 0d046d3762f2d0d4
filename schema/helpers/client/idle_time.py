"""How long the agent has been idle in a session, for turns that must not stall."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

__all__: list[str] = []


class TurnStalledError(Exception):
    """The agent has reported nothing for `idle_seconds`, and no request of it was open; the turn was cancelled."""


class IdleTime:
    """The time since the agent has last been heard in a session. While one of its requests is open, it is not idle.

    The clock is only read while there is a limit. What is heard moves no timer: that of a limit looks when it was, and
    waits for the rest.
    """

    def __init__(self) -> None:
        self._heard_at = 0.0
        self._limits = 0
        self._requests = 0

    def heard(self) -> None:
        """Note that the agent has sent something."""
        if self._limits:
            self._heard_at = asyncio.get_running_loop().time()

    @contextmanager
    def request(self) -> Generator[None, None, None]:
        """A request of the agent is open during the block: the user may take any time, and so may a command."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self.heard()

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
            rest = seconds if self._requests else self._heard_at + seconds - loop.time()
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
