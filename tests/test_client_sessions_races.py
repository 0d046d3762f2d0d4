"""Random conversations of a client that talks in sessions: each turn ends, nothing is lost, and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
from collections import defaultdict
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import Stage, stage
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
QUICK = range(40)
MORE = range(40, 120)
ALL = range(40, 2040)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages({1: V1, 2: V2}[version], roles=(Role.CLIENT,))


class _Peer:
    """An agent that reads all that comes, and ends what it is asked to, at times of its own."""

    def __init__(self, play: Stage, chance: random.Random) -> None:
        self._play = play
        self._chance = chance
        self._open = list[Any]()
        self._questions = 0
        self.answers = list[Any]()
        self.said = defaultdict[str, list[str]](list)
        """The text of each message."""

    async def run(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            while (line := await self._play.agent.transport.read()) is not None:
                await self._react(json.loads(line))

    async def _react(self, message: Any) -> None:
        agent = self._play.agent
        match message:
            case {"method": "session/prompt"}:
                if self._chance.random() < 0.05:
                    await agent.answer(message, code=-7, message="no")
                    return
                self._open.append(message)
                if agent.version == 2:
                    await self._insert(message)
                await self._work(self._chance.randrange(12))
            case {"method": "session/cancel"}:
                await self._work(self._chance.randrange(3))
                await self.end("cancelled")
            case {"method": "session/close", "id": _}:
                await self.end("cancelled")
                await agent.answer(message)
            case {"method": _, "id": _}:
                await agent.answer(message, {"sessionId": "s"})
            case {"id": _}:
                self.answers.append(message["id"])

    async def _insert(self, message: Any) -> None:
        agent, name = self._play.agent, f"u{message['id']}"
        steps = [lambda: agent.insert(name), lambda: agent.answer(message, {"messageId": name})]
        self._chance.shuffle(steps)
        for step in steps:
            await step()

    async def _work(self, steps: int) -> None:
        agent = self._play.agent
        for _ in range(steps):
            if self._chance.random() < 0.3:
                await asyncio.sleep(0)
            match self._chance.randrange(8):
                case 0:
                    await agent.tool(self._chance.choice(["pending", "in_progress", "completed"]))
                case 1:
                    self._questions += 1
                    await agent.ask(f"q{self._questions}")
                case 2:
                    await agent.update("session_info_update", title=f"{self._chance.random()}")
                case 3:
                    await self.end("end_turn")
                case _:
                    message, words = f"m{self._chance.randrange(4)}", f"{self._chance.randrange(1000)} "
                    self.said[message].append(words)
                    await agent.say(words, message=message)
        if self._chance.random() < 0.7:
            await self.end("end_turn")

    async def end(self, reason: str) -> None:
        """End what is open."""
        agent, ended = self._play.agent, self._open
        self._open = []
        if agent.version == 2:
            if ended or self._chance.random() < 0.3:
                await agent.state("idle", stopReason=reason)
        else:
            for message in ended:
                await agent.answer(message, {"stopReason": reason})

    @property
    def questions(self) -> set[str]:
        return {f"q{number + 1}" for number in range(self._questions)}


async def _awaited(turn: Any) -> None:
    await turn


async def _use(turn: Any, chance: random.Random) -> None:
    """Use a turn in one of the ways that there are."""
    match chance.randrange(6):
        case 0:
            await turn
        case 1:
            async for _ in turn:
                if chance.random() < 0.3:
                    break
        case 2:
            async with turn:
                async for _ in turn:
                    if chance.random() < 0.3:
                        await turn.cancel()
        case 3:
            async for _ in turn:
                await asyncio.sleep(0)
        case 4:
            task = asyncio.ensure_future(_awaited(turn))
            for _ in range(chance.randint(1, 30)):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
        case _:
            async with turn:
                pass


async def _user(play: Stage, session: Any, chance: random.Random) -> None:
    """Use one turn, and wait for its end."""
    try:
        turn = session.prompt("Hi")
    except play.helpers.SessionClosedError:  # it was closed in the meantime
        return
    with contextlib.suppress(play.acp.RequestError, play.acp.ConnectionClosed, RuntimeError, TimeoutError):
        await _use(turn, chance)
    for _ in range(100_000):
        if turn.has_ended:
            break
        await asyncio.sleep(0)
    assert turn.has_ended


def kept_futures() -> list[asyncio.Future[Any]]:
    """The futures that are over, and are held all the same: nothing waits for them, such as for an open question."""
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is asyncio.Future and each.done()]


async def _play(acp: ModuleType, version: int, seed: int) -> None:
    chance = random.Random(seed)

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        for _ in range(chance.randrange(20)):
            await asyncio.sleep(0)
        return play.helpers.select_permission_option("yes")

    changes = list[Any]()

    def session_changed(self: Any, session: Any, change: Any) -> None:
        changes.append(change)

    attributes = {"answer_permission": answer_permission, "session_changed": session_changed, "cancel_seconds": 60.0}
    async with stage(acp, version, **attributes) as play:
        session = await play.opened()
        peer = _Peer(play, chance)
        reading = asyncio.ensure_future(peer.run())
        users = [asyncio.ensure_future(_user(play, session, chance)) for _ in range(chance.randint(1, 4))]
        end = chance.random()
        if end < 0.15:
            await asyncio.sleep(0)
            await play.agent.transport.close()
        elif end < 0.3:
            await session.close()
        pending = {*users}
        while pending:  # an agent that has left something open ends it, once nobody does anything else
            _, pending = await asyncio.wait(pending, timeout=0.05)
            with contextlib.suppress(BrokenPipeError):
                await peer.end("end_turn")
        for user in users:
            user.result()
        for _ in range(300):
            await asyncio.sleep(0)
        if end >= 0.3:
            assert {*peer.answers} == peer.questions
            texts = {each.id: each.text for each in session.state.entries if each.id in peer.said}
            assert texts == {name: "".join(parts) for name, parts in peer.said.items()}
            assert kept_futures() == []
        assert not session.has_turns
    await asyncio.wait({reading})


@pytest.mark.parametrize(
    "seeds",
    [QUICK, pytest.param(MORE, marks=pytest.mark.full), pytest.param(ALL, marks=pytest.mark.deep)],
    ids=["quick", "more", "all"],
)
def test_random_conversations(acp: ModuleType, version: int, seeds: range) -> None:
    for seed in seeds:
        try:
            run(_play(acp, version, seed), seconds=30)
        except BaseException as error:
            raise AssertionError(f"seed {seed}") from error


def test_changes_are_what_was_said(acp: ModuleType, version: int) -> None:
    """Whatever the reader's speed, the changes of a turn add up to the messages as they were sent."""

    async def main(seed: int) -> None:
        chance = random.Random(seed)
        async with stage(acp, version) as play:
            session = await play.opened()
            said, read = defaultdict[str, str](str), defaultdict[str, str](str)

            async def reader(turn: Any) -> None:
                async for change in turn:
                    if isinstance(change, play.helpers.MessageChange) and change.entry.id.startswith("m"):
                        read[change.entry.id] = change.text if change.is_whole else read[change.entry.id] + change.text
                    for _ in range(chance.randrange(5)):
                        await asyncio.sleep(0)

            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(reader(turn))
            request = await play.agent.prompted()
            for _ in range(chance.randrange(60)):
                message, words = f"m{chance.randrange(3)}", f"{chance.randrange(100)} "
                said[message] += words
                await play.agent.say(words, message=message)
            await play.agent.end(request)
            await reading
            assert read == said
            assert sorted(turn.result.text.split()) == sorted(" ".join(said.values()).split())

    for seed in range(50):
        run(main(seed), seconds=30)
