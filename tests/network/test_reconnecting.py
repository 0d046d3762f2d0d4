"""Connecting again after a connection was lost: the session goes on, and its history comes in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.network.load import connecting, initialize, open_session, prompt
from tests.network.package import remote_package
from tests.network.processes import serving
from tests.network.relay import relaying
from tests.runtime_support import run


class Reconnecting:
    """An agent to which another connection is made if the last one is lost; `resume` is called with each new one."""

    def __init__(self, connect: Callable[[], Any], resume: Callable[[Any], Awaitable[None]], closed: type[Any]) -> None:
        self._connect = connect
        self._resume = resume
        self._closed = closed
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._agent: Any = None

    async def call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the agent, at most twice: only what may be done twice."""
        agent = await self._current(None)
        try:
            return await work(agent)
        except self._closed:
            return await work(await self._current(agent))

    async def _current(self, lost: Any) -> Any:
        async with self._lock:
            if self._agent is lost:
                await self._stack.aclose()
                agent = await self._stack.enter_async_context(self._connect())
                await self._resume(agent)
                self._agent = agent
            return self._agent

    async def close(self) -> None:
        """Close the connection."""
        await self._stack.aclose()


@asynccontextmanager
async def reconnecting(
    connect: Callable[[], Any], resume: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[Reconnecting, None]:
    """Connect by `connect`, and again whenever the connection is lost; the end of the block closes the last one."""
    made = Reconnecting(connect, resume, remote_package().ConnectionClosed)
    try:
        yield made
    finally:
        await made.close()


async def take_up(agent: Any, method: str) -> None:
    v1 = remote_package().v1
    if method == "load":
        await agent.session_load(v1.LoadSessionRequest(session_id="/1", cwd="/", mcp_servers=[]))
    else:
        await agent.session_resume(v1.ResumeSessionRequest(session_id="/1", cwd="/"))


@pytest.mark.parametrize("method", ["load", "resume"])
def test_a_session_goes_on(method: str, transport: str, tmp_path: Path) -> None:
    """The history is there when the request to load has returned, and the order of its messages is kept."""
    cookies, connections = CookieJar(), list[Any]()
    texts = [f"count {number}" for number in range(3)]

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits={"idle_seconds": 1.0}) as server:
            before = await server.state()
            async with relaying(server.port) as relay:

                def connect() -> Any:
                    connections.append(connecting(transport, relay.port, cookies=cookies))
                    return connections[-1]

                async def start(agent: Any) -> None:
                    await initialize(agent)
                    if len(connections) == 1:
                        await open_session(agent, "/1")
                    else:
                        await take_up(agent, method)
                        seen.extend(connections[-1].handler.texts["/1"])

                seen: list[str] = []
                async with reconnecting(connect, start) as agent:
                    for text in texts:
                        await agent.call(lambda each, text=text: prompt(each, "/1", text))  # type: ignore[misc]
                    relay.cut()
                    await agent.call(lambda each: prompt(each, "/1", "count 2"))
            state = await server.settled(before)
        assert seen == (texts if method == "load" else [])
        assert connections[1].handler.texts["/1"] == [*seen, "0", "1"]
        assert state["made"] == 2

    run(main())
