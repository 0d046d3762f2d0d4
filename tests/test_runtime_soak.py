"""Many sessions at once over one connection, with cancels at random: nothing is lost, doubled or left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import command, environment
from tests.runtime_agents.soaker import soaker
from tests.runtime_support import items_in, pair, run
from tests.support import Packages, without_slowness
from tests.test_dataclasses import SOURCES

pytestmark = pytest.mark.full

SEED = 20261121
SESSIONS = 200
TURNS = 4
MOST_UPDATES = 30
MOST_BLOCKS, MOST_BYTES, MOST_RESIDENT_KIB = 400, 2**17, 2_000
"""By how much more memory may be in use after the second half of the sessions than after the first."""


def recorder(acp: ModuleType) -> type[Any]:
    """A class of clients that record what arrives for each session, and wake up the tasks that wait for it."""

    class Recorder(acp.Client):  # type: ignore[misc, name-defined]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.updates: dict[str, list[tuple[int, int]]] = {}
            self.watches: dict[str, Callable[[], None]] = {}

        async def session_update(self, params: Any) -> None:
            turn, number = map(int, params.update.content.text.split())
            self.updates[params.session_id].append((turn, number))
            self.watches.get(params.session_id, int)()

        async def session_request_permission(self, params: Any) -> Any:
            await asyncio.sleep(0)
            chosen = acp.RequestPermissionOutcomeSelected(option_id=params.options[0].option_id)
            return acp.RequestPermissionResponse(outcome=chosen)

    return Recorder


class Soak:
    """Sessions of one client, and the count of what happened in them."""

    def __init__(self, acp: ModuleType, agent: Any, client: Any) -> None:
        self.acp, self.agent, self.client = acp, agent, client
        self.counts: Counter[str] = Counter()

    async def sessions(self, numbers: range) -> None:
        """All of these sessions, at the same time."""
        await asyncio.gather(*(self.session(Random(SEED + number), f"/{number}") for number in numbers))

    async def session(self, random: Random, name: str) -> None:
        self.client.updates[name] = []
        await self.agent.session_new(self.acp.NewSessionRequest(cwd=name, mcp_servers=[]))
        outcomes = [await self.turn(random, name, turn) for turn in range(TURNS)]
        sent = await self.agent.ext_method("_sent", {"session": name})
        self.check(self.client.updates.pop(name), outcomes, {int(turn): count for turn, count in sent.items()})
        self.counts["sessions"] += 1

    async def turn(self, random: Random, session: str, turn: int) -> tuple[str, int]:
        """One prompt; returns how it ended, and how many updates it would have."""
        count = random.randint(1, MOST_UPDATES)
        prompt = [self.acp.ContentBlockText(text=f"{turn} {count}")]
        request = self.acp.PromptRequest(session_id=session, prompt=prompt)
        task = asyncio.create_task(self.agent.session_prompt(request))
        plan = random.choice(["leave alone", "session/cancel", "cancel the task"])
        if plan != "leave alone":
            await self.some_updates(session, random.randint(0, count), task)
            self.counts[plan] += 1
            if plan == "cancel the task":
                task.cancel()
            else:
                await self.agent.session_cancel(self.acp.CancelNotification(session_id=session))
        try:
            outcome = str((await task).stop_reason)
        except asyncio.CancelledError:
            outcome = "withdrawn"
        assert outcome in {"end_turn", {"session/cancel": "cancelled", "cancel the task": "withdrawn"}.get(plan)}
        self.counts[f"ended as {outcome}"] += 1
        return outcome, count

    async def some_updates(self, session: str, number: int, task: asyncio.Task[Any]) -> None:
        """Wait until so many more have come, or the turn has ended."""
        reached = asyncio.Event()
        target = len(self.client.updates[session]) + number

        def watch() -> None:
            if len(self.client.updates[session]) >= target or task.done():
                reached.set()

        self.client.watches[session] = watch
        task.add_done_callback(lambda _: reached.set())
        watch()
        await reached.wait()
        del self.client.watches[session]

    def check(self, seen: list[tuple[int, int]], outcomes: list[tuple[str, int]], sent: dict[int, int]) -> None:
        """Each update came once and in order, turn by turn."""
        assert [turn for turn, _ in seen] == sorted(turn for turn, _ in seen)
        for turn, (outcome, count) in enumerate(outcomes):
            numbers = [number for of, number in seen if of == turn]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) == count if outcome == "end_turn" else len(numbers) <= count
            # a turn that is withdrawn may end between the sending of an update and the counting of it
            assert len(numbers) - sent.get(turn, 0) in ({0, 1} if outcome == "withdrawn" else {0})
        self.counts["updates"] += len(seen)

    def report(self, where: str, **more: int) -> None:
        counts = ", ".join(f"{name}: {count}" for name, count in sorted((self.counts | more).items()))
        print(f"soak {where}: {counts}")
        assert self.counts["sessions"] == SESSIONS
        ends = sum(count for name, count in self.counts.items() if name.startswith("ended as "))
        assert ends == SESSIONS * TURNS
        for outcome in ("end_turn", "cancelled", "withdrawn"):
            assert self.counts[f"ended as {outcome}"] > SESSIONS * TURNS / 10


HALVES = (range(SESSIONS // 2), range(SESSIONS // 2, SESSIONS))


async def soak_in_memory(acp: ModuleType) -> tuple[Soak, int, int]:
    """The soak within this process; also returns how many more blocks and bytes are left by the second half of it."""
    async with pair(acp, soaker(acp), recorder(acp)) as both:
        soak = Soak(acp, both.agent, both.client_handler)
        sizes: list[tuple[int, int]] = []
        sides = both.agent_side, both.client_side
        idle, idle_tasks = [items_in(each) for each in sides], len(asyncio.all_tasks())
        for half in HALVES:
            working = asyncio.create_task(soak.sessions(half))
            while not both.agent_handler.running:
                await asyncio.sleep(0)
            assert all(items_in(each).total() > before.total() for each, before in zip(sides, idle, strict=True))
            await working
            await both.agent.ext_method("_sent", {"session": ""})  # whose answer comes after all the rest
            assert [items_in(each) for each in sides] == idle
            assert len(asyncio.all_tasks()) == idle_tasks
            assert (both.agent_handler.running, both.agent_handler.sent) == ({}, {})
            gc.collect()
            sizes.append((sys.getallocatedblocks(), tracemalloc.get_traced_memory()[0]))
        (blocks, traced), (more_blocks, more_traced) = sizes
        return soak, more_blocks - blocks, more_traced - traced


def test_in_one_process(packages: Packages) -> None:
    """Not in the debug mode of asyncio, which makes tracing slow, and which the soak with a process has."""
    acp = packages(SOURCES[1])
    tracemalloc.start()
    try:
        soak, blocks, traced = asyncio.run(soak_in_memory(acp))
    finally:
        tracemalloc.stop()
    soak.report("in one process", blocks_more=blocks, bytes_more=traced)
    assert blocks < MOST_BLOCKS
    assert traced < MOST_BYTES


def resident(pid: int) -> int:
    """The memory of a process, in KiB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1])


def test_with_an_agent_that_is_a_process(packages: Packages, caplog: pytest.LogCaptureFixture) -> None:
    acp = packages(SOURCES[1])
    kind, clients = recorder(acp), list[Any]()

    def factory(agent: Any) -> Any:
        clients.append(kind(agent))
        return clients[-1]

    async def main() -> tuple[Soak, list[int]]:
        sizes: list[int] = []
        async with acp.spawn_agent(factory, command("soaker.py"), env=environment(acp), stderr="log") as agent:
            soak = Soak(acp, agent, clients[0])
            for half in HALVES:
                await soak.sessions(half)
                if sys.platform == "linux":
                    sizes.append(resident(await agent.ext_method("_pid", None)))
        return soak, sizes

    with caplog.at_level(logging.INFO, logger="acp.agent"):
        soak, sizes = run(main(), seconds=600)
    said = "".join(f"{record.getMessage()}\n" for record in caplog.records if record.name == "acp.agent")
    assert without_slowness(said) == ""
    growth = sizes[-1] - sizes[0] if sizes else 0
    soak.report("with a process", agent_more_kib=growth)
    assert growth < MOST_RESIDENT_KIB
