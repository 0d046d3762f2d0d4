"""Many connections at once, with sessions that count: what is lost, doubled or out of order fails."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.network.agents import counting_client
from tests.network.package import remote_module, remote_package
from tests.network.processes import ServerProcess

TRANSPORTS = {"http": "http", "websocket": "ws"}


def url_of(transport: str, port: int) -> str:
    """Where the agent of a server is."""
    return f"{TRANSPORTS[transport]}://127.0.0.1:{port}/acp"


def connecting(transport: str, port: int, **more: Any) -> Any:
    """A connection of a client that counts, for an `async with` block."""
    connect = getattr(remote_module("remote"), f"connect_{transport}")
    return connect(counting_client(remote_package()), url_of(transport, port), **more)


async def initialize(agent: Any) -> None:
    """Send the first request."""
    await agent.initialize(remote_package().v1.InitializeRequest(protocol_version=1))


async def open_session(agent: Any, name: str) -> None:
    """Open a session whose id is `name`."""
    await agent.session_new(remote_package().v1.NewSessionRequest(cwd=name, mcp_servers=[]))


async def prompt(agent: Any, session: str, text: str) -> Any:
    """Send a prompt."""
    v1 = remote_package().v1
    return await agent.session_prompt(v1.PromptRequest(session_id=session, prompt=[v1.ContentBlockText(text=text)]))


async def play(
    transport: str, server: ServerProcess, *, connections: int, sessions: int, updates: int
) -> list[dict[str, list[str]]]:
    """So many connections with so many sessions of so many updates each, at the same time; returns the texts."""
    room = asyncio.Semaphore(32)

    async def one(number: int) -> dict[str, list[str]]:
        connection = connecting(transport, server.port)
        async with connection as agent:
            async with room:
                await initialize(agent)
            names = [f"/{number}/{each}" for each in range(sessions)]
            await asyncio.gather(*(session(agent, name) for name in names))
            return dict(connection.handler.texts)

    async def session(agent: Any, name: str) -> None:
        await open_session(agent, name)
        # in two turns: the second one begins when the stream is open
        for count in (updates // 2, updates - updates // 2):
            await prompt(agent, name, f"count {count}")

    return await asyncio.gather(*(one(number) for number in range(connections)))


def check_texts(found: list[dict[str, list[str]]], *, sessions: int, updates: int) -> None:
    """Each update came once, in order, and in its session."""
    turns = updates // 2, updates - updates // 2
    expected = [str(number) for count in turns for number in range(count)]
    for number, texts in enumerate(found):
        assert set(texts) == {f"/{number}/{each}" for each in range(sessions)}
        assert all(each == expected for each in texts.values())
