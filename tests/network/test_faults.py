"""Clients that drop, read slowly or are killed, and servers that end: every call ends, and nothing is left behind."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.network.load import connecting, initialize, open_session, prompt, url_of
from tests.network.package import remote_package
from tests.network.processes import FOLDER, ServerProcess, environment, serving
from tests.network.relay import relaying
from tests.runtime_support import run
from tests.support import DEEP

pytestmark = pytest.mark.full

SEED = 20261123
LIMITS = {"idle_seconds": 1.0, "stall_seconds": 4.0, "max_connections_per_identity": 1024}
SECONDS = 60.0
"""After which a call hangs."""


class Fault:
    """A client with several sessions, to which something happens after a random time."""

    def __init__(self, transport: str, server: ServerProcess, random: Random, name: str) -> None:
        self.transport, self.server, self.random, self.name = transport, server, random, name
        self.ends: Counter[str] = Counter()
        """How its calls have ended."""
        self.started = asyncio.Event()

    async def run(self, kind: str) -> Counter[str]:
        """Connect, prompt, and let it happen; returns how the calls ended."""
        async with relaying(self.server.port) as relay:
            task = asyncio.create_task(self.connected(relay.port, slow=kind == "slow"))
            happens = asyncio.create_task(self.happen(kind, task, relay))
            try:
                await asyncio.wait_for(task, SECONDS)
            except asyncio.CancelledError:
                assert kind == "cancel"
            except (remote_package().ConnectionClosed, OSError):
                assert kind == "cut"
            happens.cancel()
        return self.ends

    async def happen(self, kind: str, task: asyncio.Task[None], relay: Any) -> None:
        if self.random.random() < 0.7:  # on a busy machine, nothing might be under way otherwise
            await self.started.wait()
        await asyncio.sleep(self.random.uniform(0.0, 0.6))
        if kind == "cancel":
            task.cancel()
        elif kind == "cut":
            relay.cut()

    async def connected(self, port: int, *, slow: bool) -> None:
        connection = connecting(self.transport, port)
        async with connection as agent:
            if slow:
                connection.handler.pause = 0.001
            if self.random.random() < 0.7:
                connection.handler.may_answer.set()
            await self.call(initialize(agent))
            self.started.set()
            await asyncio.gather(*(self.session(agent, f"{self.name}/{number}") for number in range(3)))
            connection.handler.may_answer.set()
        assert connection.handler.closings == 1

    async def session(self, agent: Any, session: str) -> None:
        await self.call(open_session(agent, session))
        for _ in range(4):
            text = self.random.choice(["count 20", "ask", "pad 100000", "count 1"])
            call = asyncio.create_task(self.call(prompt(agent, session, text)))
            if self.random.random() < 0.2 or text == "ask":
                await asyncio.wait({call}, timeout=self.random.uniform(0.05, 0.3))
                call.cancel()  # which does nothing if it has ended
            await asyncio.wait({call})

    async def call(self, work: Any) -> None:
        """Await a call, and note how it ended."""
        try:
            await work
            self.ends["result"] += 1
        except remote_package().ConnectionClosed:
            self.ends["closed"] += 1
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            raise


async def faults(transport: str, folder: Path, count: int) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    random, ends = Random(SEED), Counter[str]()
    with serving("hypercorn", folder, limits=LIMITS) as server:
        before = await server.state()
        for _ in range(count // 8):
            seeds = [Random(random.random()) for _ in range(8)]
            work = (
                Fault(transport, server, seed, f"/{number}").run(seed.choice(["fine", "slow", "cancel", "cut"]))
                for number, seed in enumerate(seeds)
            )
            for each in await asyncio.gather(*work):
                ends += each
        after = await server.settled(before)
        print(f"{transport}: {dict(ends)}, agents: {after['ends']}")
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
    assert min(ends[name] for name in ("result", "closed", "cancelled")) > 0
    assert after["made"] <= count


def test_clients_that_drop(transport: str, tmp_path: Path) -> None:
    asyncio.run(faults(transport, tmp_path, 16))


def test_many_clients_that_drop(transport: str, tmp_path: Path) -> None:
    asyncio.run(faults(transport, tmp_path, 800 if DEEP else 40))


def test_a_question_to_a_client_that_has_gone(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        with serving("hypercorn", tmp_path, limits=LIMITS) as server:
            before = await server.state()
            async with relaying(server.port) as relay:
                connection = connecting(transport, relay.port)
                async with connection as agent:
                    await initialize(agent)
                    await open_session(agent, "/1")
                    call = asyncio.create_task(prompt(agent, "/1", "ask"))
                    await asyncio.wait_for(connection.handler.asked.wait(), SECONDS)
                    relay.cut()
                    with pytest.raises(remote_package().ConnectionClosed):
                        await asyncio.wait_for(call, SECONDS)
            after = await server.settled(before)
            assert after["ends"] == {"ask: ConnectionClosed": 1}

    asyncio.run(main())


def test_a_client_that_is_killed(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        with serving("hypercorn", tmp_path, limits=LIMITS) as server:
            before = await server.state()
            command = sys.executable, FOLDER / "client.py", transport, url_of(transport, server.port)
            process = await asyncio.create_subprocess_exec(
                *map(str, command), env=environment(), stdout=asyncio.subprocess.PIPE
            )
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), SECONDS) == b"prompted\n"
            process.kill()
            await process.wait()
            assert (await server.settled(before))["made"] == 1

    asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: str(number.name))
def test_a_server_that_ends(number: signal.Signals, transport: str, tmp_path: Path) -> None:
    """The calls that wait are rejected, and a client connects to the server that is started next."""

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits=LIMITS) as server:
            connection = connecting(transport, server.port)
            async with connection as agent:
                await initialize(agent)
                for each in ("/1", "/2"):
                    await open_session(agent, each)
                calls = [asyncio.create_task(prompt(agent, each, text)) for each, text in PROMPTS]
                await asyncio.wait_for(connection.handler.asked.wait(), SECONDS)
                server.send(number)
                done = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SECONDS)
                # the handler that asks may still answer that it has failed
                assert {type(each).__name__ for each in done} <= {"ConnectionClosed", "InternalError"}
                with pytest.raises(remote_package().ConnectionClosed):
                    await prompt(agent, "/1", "count 1")
            await asyncio.wait_for(server.ended(), SECONDS)
            server.restart()
            async with connecting(transport, server.port) as agent:
                await initialize(agent)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert connection.handler.closings == 1

    asyncio.run(main())


PROMPTS = (("/1", "wait"), ("/2", "ask"))


def test_messages_that_wait_when_the_client_closes(transport: str, tmp_path: Path) -> None:
    """They are not sent to a new connection, and their callers learn of the end."""

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits=LIMITS) as server:
            before = await server.state()
            async with connecting(transport, server.port) as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                calls = [asyncio.create_task(prompt(agent, "/1", "wait")) for _ in range(20)]
                await asyncio.sleep(0)
            done = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SECONDS)
            assert {type(each).__name__ for each in done} == {"ConnectionClosed"}
            assert (await server.settled(before))["made"] == 1

    run(main())
