"""What the clients of remote agents share: they send prompts, count updates, and print JSON.

Usage of a worker: python WORKER.py URL UPDATES ROUND-TRIPS WARM-UP [FOLDER OF THE PACKAGE]
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable

SECONDS = 300
"""A contender that takes longer for all of it has lost a message."""


class Counter:
    """The updates that the handler of the client has seen."""

    def __init__(self) -> None:
        self.seen = 0
        self._wanted = 0
        self._reached = asyncio.Event()

    def count(self) -> None:
        """An update has reached the handler."""
        self.seen += 1
        if self.seen == self._wanted:
            self._reached.set()

    async def until(self, more: int, prompt: Awaitable[object]) -> None:
        """Wait for the response to a prompt, and for its updates. Raises `RuntimeError` if there are more of them."""
        self._reached.clear()
        self._wanted = self.seen + more
        await prompt
        if more:
            await self._reached.wait()
        if self.seen != self._wanted:
            raise RuntimeError(f"{self.seen} updates instead of {self._wanted}")


def arguments() -> tuple[str, int, int, int]:
    """The URL, and how much to do: updates, round trips, and both before they count."""
    url, *numbers = sys.argv[1:5]
    updates, round_trips, warm_up = map(int, numbers)
    return url, updates, round_trips, warm_up


async def talk(prompt: Callable[[str], Awaitable[object]], counter: Counter) -> None:
    """Measure, and print what was measured. `prompt` sends a text that says how many updates it wants."""
    print(json.dumps(await asyncio.wait_for(_measured(prompt, counter), SECONDS)))


async def _measured(prompt: Callable[[str], Awaitable[object]], counter: Counter) -> dict[str, float]:
    _, updates, round_trips, warm_up = arguments()
    for _ in range(warm_up):
        await counter.until(0, prompt("warm 0"))
    await counter.until(warm_up, prompt(f"warm {warm_up}"))
    start = time.perf_counter()
    for _ in range(round_trips):
        await counter.until(0, prompt("trip 0"))
    trips = time.perf_counter() - start
    start = time.perf_counter()
    await counter.until(updates, prompt(f"flood {updates}"))
    flood = time.perf_counter() - start
    return {"updates": updates / flood, "trip": trips / round_trips * 1e6}
