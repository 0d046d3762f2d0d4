"""A keeper of sessions, and agents by hand at the other ends of its connections: what the tests of recovery share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from tests.client_sessions import HELLO, HandAgent, helpers_of, until

QUICK = {"first_seconds": 0.0, "crashes": 1000, "attempts": 3, "young_seconds": 0.0}
"""A policy that does not wait."""


class Play:
    """A keeper, and the agents of its connections, one after the other."""

    def __init__(self, acp: ModuleType, version: int, attributes: dict[str, Any]) -> None:
        self.acp, self.version, self.helpers = acp, version, helpers_of(acp)
        self.between: list[tuple[Any, Any]] = []
        """The sessions and changes that came while no turn was running."""
        self.agents: list[HandAgent] = []
        self.failures: list[Exception] = []
        """What the next attempts to connect raise."""
        self.keeper: Any = None
        self._made = asyncio.Event()

        def session_changed(_: Any, session: Any, change: Any) -> None:
            self.between.append((session, change))

        quick = {"session_changed": session_changed, "quiet_seconds": 0.0}
        self._kind = type("Kept", (self.helpers.KeptClient,), {**quick, **attributes})

    def connect(self) -> Any:
        """A way to connect, for the keeper."""
        if self.failures:
            raise self.failures.pop(0)
        near, far = self.acp.memory_transports(100_000)
        self.agents.append(HandAgent(far, self.version))
        self._made.set()
        return self.acp.connect(self._kind, near)

    async def start(self, client: Any) -> None:
        """The start of each client."""
        await client.start("tests", "1")

    async def agent(self, number: int, hello: Any = None) -> HandAgent:
        """The agent of a connection, counted from 0, which answers `initialize`."""
        await until(lambda: len(self.agents) > number)
        found = self.agents[number]
        capabilities = HELLO[self.version] if hello is None else hello
        await found.answer(await found.receive("initialize"), {"protocolVersion": self.version, **capabilities})
        return found

    async def opened(self, session: str = "s", **result: Any) -> Any:
        """A new session with this id, which is kept."""
        opening = asyncio.ensure_future(self.keeper.open("/work", directories=["/more"]))
        request = await self.agents[-1].receive("session/new")
        await self.agents[-1].answer(request, {"sessionId": session, **result})
        found = await opening
        self.between.clear()
        return found

    async def reopening(self, agent: HandAgent, by: str) -> Any:
        """The request that opens a session again by `resume` or `load`."""
        request = await agent.receive("session/load" if by == "load" and self.version == 1 else "session/resume")
        assert ("replayFrom" in request["params"]) == (by == "load" and self.version == 2)
        return request

    async def settled(self, agent: HandAgent) -> None:
        """Wait until the client has handled all that was sent before, and what follows from it."""
        await agent.send(id="barrier", method="_barrier", params={})
        while (message := await agent.receive()).get("id") != "barrier":
            agent.read.append(message)

    def names(self, changes: list[Any]) -> list[str]:
        """The changes of the connection, by their classes."""
        return [type(each).__name__ for each in changes if isinstance(each, self.helpers.ConnectionChange)]


@asynccontextmanager
async def playing(
    acp: ModuleType, version: int, *, policy: Any = None, hello: Any = None, **attributes: Any
) -> AsyncGenerator[Play, None]:
    """A keeper with its first connection; afterwards nothing is left. `attributes` are those of its clients' class."""
    before = asyncio.all_tasks()
    play = Play(acp, version, attributes)
    made = play.helpers.RecoveryPolicy(**(QUICK if policy is None else {**QUICK, **policy}))
    play.keeper = keeper = play.helpers.SessionKeeper(play.connect, play.start, policy=made)
    answering = asyncio.ensure_future(play.agent(0, hello))
    async with keeper:
        await answering
        yield play
    for agent in play.agents:
        await agent.transport.close()
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before, asyncio.all_tasks() - before


async def answered(play: Play, agent: Any, session: Any) -> None:
    """A turn that ends as usual."""
    turn = asyncio.ensure_future(session.ask("hello"))
    await agent.end(await agent.prompted())
    await turn


async def read(turn: Any) -> tuple[list[Any], Any]:
    """The changes of a turn, and the error that has ended it; None if it has a result."""
    changes: list[Any] = []
    try:
        async for change in turn:
            changes.append(change)  # noqa: PERF401  those before an error count, too
    except Exception as error:  # noqa: BLE001  the tests look at it
        return changes, error
    return changes, None


def shown(state: Any) -> list[tuple[str, str]]:
    """The transcript: classes and texts, or titles and statuses."""
    return [
        (type(each).__name__, each.text if hasattr(each, "text") else f"{each.title} {each.status}")
        for each in state.entries
    ]
