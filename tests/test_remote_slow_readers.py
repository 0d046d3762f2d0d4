"""Readers of streams that are slow when their session or connection ends: no request and no task is left behind."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import Client, EventStream, Server, agent_for, asgi_of, ended, settled
from tests.runtime_support import V1, run
from tests.support import Packages

pytestmark = pytest.mark.every_python


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


class Talkative:
    """A session whose stream is full when it ends: `end` waits for room there, behind updates."""

    def __init__(self, acp: ModuleType) -> None:
        class Agent(agent_for(acp)):  # type: ignore[misc]
            async def session_prompt(self, params: Any) -> Any:
                for _ in range(10):
                    await self.client.ext_notification("_said", {"sessionId": params.session_id, "text": "x" * 10_000})
                return await super().session_prompt(params)

        self.agent = Agent
        self.options = acp.ConnectionOptions(max_write_buffer_bytes=10_000, finish_seconds=0.1)

    async def end(self, client: Client) -> EventStream:
        """Open a session, and close it while its stream is read too slowly: returns that stream."""
        await client.initialize()
        async with client.get() as stream:
            session = await client.new_session(stream)
        slow = client.open_get(session)
        assert await slow.start() is None
        slow.pause()
        await client.call(1, "session/prompt", {"sessionId": session, "prompt": []}, session)
        await client.call(2, "session/close", {"sessionId": session}, session)
        for _ in range(100):
            await asyncio.sleep(0)
        return slow


@pytest.mark.parametrize("way", ["delete", "close", "nothing"])
def test_a_slow_reader_of_a_closed_session(acp: ModuleType, way: str) -> None:
    """Its stream ends after the response, whatever happens to the connection."""

    async def main() -> None:
        talkative = Talkative(acp)
        async with Server.of(acp, talkative.agent, options=talkative.options) as server:
            client = Client(server.app)
            slow = await talkative.end(client)
            if way == "delete":
                await client.delete()
                await settled(lambda: server.app.connections == 0)
            closing = asyncio.create_task(server.app.close()) if way == "close" else None
            slow.resume()
            received = []
            while (message := await slow.receive()) is not None:
                received.append(message)
            if way == "nothing":
                assert received[-1]["id"] == 2
            if closing is not None:
                await closing

    run(main())


@pytest.mark.parametrize("way", ["delete", "close"])
def test_a_reader_of_a_closed_session_that_takes_nothing(acp: ModuleType, way: str) -> None:
    """It is not waited for."""

    async def main() -> None:
        talkative = Talkative(acp)
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.1)
        async with Server.of(acp, talkative.agent, options=talkative.options, limits=limits) as server:
            client = Client(server.app)
            slow = await talkative.end(client)
            if way == "delete":
                server.hurry(stall_seconds=0.1)
                await client.delete()
            else:
                await server.app.close()
            await ended(slow)

    run(main())


def test_a_reader_that_takes_not_even_the_start(acp: ModuleType) -> None:
    """No message waits for it, only the end of the stream."""

    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.1)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            slow = client.open_get()
            slow.pause()
            slow.feed("http.request", body=b"", more_body=False)
            await settled(lambda: slow.waiting == 0)
            server.hurry(stall_seconds=0.1)
            await client.delete()
            await ended(slow)

    run(main())
