"""What the tests of the ready parts for clients share: an agent by hand."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.runtime_support import RawPeer, raw_peer


class HandAgent:
    """An agent by hand: it asks, and takes the answers in any order."""

    def __init__(self, peer: RawPeer) -> None:
        self.peer = peer
        self.client = peer.handler
        self._ids = itertools.count()
        self._answers: dict[int, Any] = {}

    async def ask(self, method: str, **params: Any) -> int:
        """Send a request of the session "s"; returns its id."""
        number = next(self._ids)
        await self.peer.request(number, method, {"sessionId": "s", **params})
        return number

    async def answer(self, number: int) -> Any:
        """The result of a request, or the code of its error."""
        while number not in self._answers:
            message = await self.peer.receive()
            assert message is not None, "the connection has ended"
            if "id" in message:
                error = message.get("error")
                self._answers[message["id"]] = message.get("result") if error is None else error["code"]
        return self._answers.pop(number)

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request, and wait for its result, or for the code of its error."""
        return await self.answer(await self.ask(method, **params))

    def has_answer(self, number: int) -> bool:
        """True if the answer has been seen."""
        return number in self._answers


@asynccontextmanager
async def hand_agent(acp: Any, kind: type[Any]) -> AsyncGenerator[HandAgent, None]:
    """An agent by hand, of a client of the class `kind`."""
    async with raw_peer(acp, kind, max_messages=1000) as peer:
        yield HandAgent(peer)


def helpers_of(acp: Any) -> Any:
    """The helpers of a package."""
    return importlib.import_module(f"{acp.__name__}.helpers")
