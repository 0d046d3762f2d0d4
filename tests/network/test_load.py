"""Many connections and sessions at once: nothing is lost, doubled, out of order or left behind."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.network.load import check_texts, connecting, initialize, open_session, play, prompt
from tests.network.processes import serving
from tests.support import DEEP

MANY = {"max_connections_per_identity": 1024}
SECONDS = 300.0
IDLE = 50 if not DEEP else 200
MOST_KIB = {"http": 265, "websocket": 135}
"""The memory of the server for an idle connection: five times what it was measured at."""


async def load(transport: str, folder: Path, *, connections: int, sessions: int, updates: int) -> None:
    """Play, and see that the server is as before."""
    # on a busy machine, a message comes late, and a server that closes idle connections may lose it
    with serving("hypercorn", folder, limits=MANY, server={"keep_alive_timeout": 5}) as server:
        before = await server.state()
        playing = play(transport, server, connections=connections, sessions=sessions, updates=updates)
        found = await asyncio.wait_for(playing, SECONDS)
        check_texts(found, sessions=sessions, updates=updates)
        after = await server.settled(before)
        assert after["made"] == connections
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_some_connections(transport: str, tmp_path: Path) -> None:
    asyncio.run(load(transport, tmp_path, connections=10, sessions=5, updates=100 if DEEP else 40))


@pytest.mark.full
def test_many_connections(transport: str, tmp_path: Path) -> None:
    asyncio.run(load(transport, tmp_path, connections=200 if DEEP else 20, sessions=5, updates=100 if DEEP else 40))


async def idle_kib(transport: str, folder: Path) -> float:
    """The memory of the server for each connection that does nothing, in KiB."""
    limits = {**MANY, "stall_seconds": 5}  # hypercorn may wait so long to end a response whose client has gone
    with serving("hypercorn", folder, limits=limits) as server:
        async with AsyncExitStack() as stack:
            first = await server.state()
            await initialize(await stack.enter_async_context(connecting(transport, server.port)))
            before = await server.state()
            for _ in range(IDLE):
                await initialize(await stack.enter_async_context(connecting(transport, server.port)))
            after = await server.state()
        await server.settled(first)
    assert after["connections"] == IDLE + 1
    return float(after["resident_kib"] - before["resident_kib"]) / IDLE


@pytest.mark.full
def test_the_memory_of_idle_connections(transport: str, tmp_path: Path) -> None:
    measured = asyncio.run(idle_kib(transport, tmp_path))
    print(f"{transport}: {measured:.1f} KiB for each idle connection")
    assert measured < MOST_KIB[transport]


def test_idle_streams_hold_nothing_up(tmp_path: Path) -> None:
    """Comments on the streams, which come at the start and then each hour, would let everything go on."""

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits={"keep_alive_seconds": 3600.0}) as server:
            connection: Any = connecting("http", server.port)
            async with connection as agent:
                await initialize(agent)
                for number in range(6):
                    await open_session(agent, f"/{number}")
                for text in ["count 1"] * 20:
                    await asyncio.gather(*(prompt(agent, f"/{number}", text) for number in range(6)))
                assert connection.handler.texts == {f"/{number}": ["0"] * 20 for number in range(6)}

    asyncio.run(asyncio.wait_for(main(), 60.0))
