"""Random conversations through proxies, in which requests are cancelled, and either side ends when it likes."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref
from collections import Counter
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import End, forwarding, prompt, proxy_of, unchanged
from tests.runtime_support import acp_log, items_in, run, texts

pytestmark = pytest.mark.every_python

METHODS = ("session/prompt", "_x", "session/set_mode")
CALLS = 12


def restless(acp: ModuleType) -> type[Any]:
    """A proxy that makes calls of its own, takes its time, and fails now and then."""

    async def session_prompt(self: Any, params: Any) -> Any:
        count = getattr(self, "count", 0)
        self.count = count + 1
        if count % 3 == 0:
            await asyncio.gather(self.agent.ext_method("_a", {}), self.client.ext_method("_b", {}))
        if count % 5 == 4:
            raise ValueError("of the user")
        result = await self.agent.session_prompt(params)
        for _ in range(count % 4):
            await asyncio.sleep(0)
        return result

    async def session_update(self: Any, params: Any) -> None:
        if params.session_id == "ask":
            await self.client.ext_method("_ask", {})
        await self.client.session_update(params)

    return proxy_of(acp, session_prompt=session_prompt, session_update=session_update)


class Neighbour:
    """A side that asks, answers, cancels, and ends."""

    def __init__(self, end: End, name: str, random: Random) -> None:
        self.end, self.name, self.random = end, name, random
        self.answers = Counter[Any]()
        self.asked: list[Any] = []
        self.held: list[Any] = []
        self.seen: list[Any] = []
        """The ids, where they came from, of the requests that have arrived."""
        self.is_open = True

    async def talk(self, dies: bool) -> None:
        random = self.random
        for _ in range(CALLS):
            match random.randrange(6):
                case 0 | 1 | 2:
                    await self.ask()
                case 3:
                    params = {"sessionId": random.choice(("s", "ask")), "update": {"sessionUpdate": "x"}}
                    await self._send(self.end.notify("session/update", params))
                case 4 if self.asked:
                    await self._send(self.end.cancel(random.choice(self.asked)))
                case _:
                    for _ in range(random.randrange(5)):
                        await asyncio.sleep(0)
        if dies:
            self.is_open = False
            await self.end.close()

    async def ask(self) -> None:
        number = self.random.choice((len(self.asked), f"{self.name}{len(self.asked)}"))
        self.asked.append(number)
        await self._send(self.end.request(self.random.choice(METHODS), prompt(json.dumps(number)), number))

    async def listen(self) -> None:
        """Answer, late and out of order, until the other side has ended."""
        while (message := await self.end.receive()) is not None:
            if "method" not in message:
                self.answers[message["id"]] += 1
            elif "id" in message:
                self.held.append(message)
                if message.get("params"):
                    self.seen.append(json.loads(message["params"]["prompt"][0]["text"]))
            if self.held and self.random.random() < 0.8:
                await self.answer_one()
        self.is_open = False

    async def answer_one(self) -> None:
        request = self.held.pop(self.random.randrange(len(self.held)))
        outcome = self.random.choice(
            ({"result": {"stopReason": "end_turn"}}, {"error": {"code": -32000, "message": "no"}})
        )
        await self._send(self.end.answer(request, **outcome))

    async def _send(self, sending: Any) -> None:
        try:
            await sending
        except OSError:
            self.is_open = False


async def converse(acp: ModuleType, seed: int, records: list[logging.LogRecord]) -> None:
    """One conversation; fails if a call of a side that lives is answered twice, or never, or if something is left."""
    random = Random(seed)
    made: list[Any] = []
    kinds = [
        random.choice((acp.Proxy, unchanged(acp), forwarding(acp), restless(acp)))
        for _ in range(random.choice((1, 1, 2, 3)))
    ]

    def kept(kind: Any) -> Any:
        def make(client: Any, agent: Any) -> Any:
            made.extend((client, agent))
            return kind(client, agent)

        return make

    (client, near), (far, agent) = acp.memory_transports(256), acp.memory_transports(256)
    task = asyncio.ensure_future(acp.serve_proxy([kept(kind) for kind in kinds], near, far))
    sides = [Neighbour(End(client), "c", random), Neighbour(End(agent), "a", random)]
    dead = random.choice((None, 0, 1))
    listening = [asyncio.ensure_future(side.listen()) for side in sides]
    await sides[0].ask()
    await settled(sides)
    idle = await left_in(made)
    await asyncio.gather(*(side.talk(number == dead) for number, side in enumerate(sides)))
    if dead is None:
        await settled(sides)
        for side in sides:
            assert side.answers == Counter(dict.fromkeys(side.asked, 1)), side.name
        assert await left_in(made) == idle
        await sides[random.choice((0, 1))].end.close()
    await task
    for side in sides:
        await side.end.close()
    await asyncio.gather(*listening)
    for number, side in enumerate(sides):
        assert max(side.answers.values(), default=1) == 1
        if number == 0:  # also if the agent has ended; an agent without a client has nobody to be answered by
            assert set(side.answers) >= set(sides[1].seen) or dead == 0
    given = [weakref.ref(stub) for stub in made]
    made.clear()
    del near, far, client, agent, task, listening, side
    for record in records:
        record.exc_info = None  # has the frames of handlers
    await asyncio.sleep(0)
    gc.collect()
    assert [each() for each in given if each() is not None] == []


async def left_in(stubs: list[Any]) -> list[Counter[str]]:
    """What the proxies of these stubs hold once nothing happens any more."""
    for _ in range(100):
        await asyncio.sleep(0)
    return [items_in(stub) for stub in stubs]


async def settled(sides: list[Neighbour]) -> None:
    """Answer all that is asked, until each call has its response."""
    for _ in range(20_000):
        for side in sides:
            while side.held:
                await side.answer_one()
        if all(set(side.answers) == set(side.asked) for side in sides):
            return
        await asyncio.sleep(0)
    raise AssertionError([(side.name, set(side.asked) - set(side.answers)) for side in sides])


def play(acp: ModuleType, seeds: range) -> None:
    async def main() -> None:
        for seed in seeds:
            try:
                await asyncio.wait_for(converse(acp, seed, records), 60)
            except BaseException as error:
                raise AssertionError(f"in conversation {seed}: {json.dumps(str(error))}") from error

    with acp_log() as records:
        run(main(), seconds=1200)
    found = texts(records)
    assert "still runs" not in found
    assert "abandoned" not in found
    assert "the transport failed" not in found


def test_some_conversations(acp: ModuleType) -> None:
    play(acp, range(60))


@pytest.mark.deep
@pytest.mark.parametrize("start", range(1000, 2000, 250))
def test_a_thousand_conversations(acp: ModuleType, start: int) -> None:
    play(acp, range(start, start + 250))
