"""Does things COUNT times, so that their instructions can be counted.

Usage: python instructions.py FOLDER_OF_THE_PACKAGE SCENARIO=COUNT …, or with `plain` in place of the folder.

The difference of two counts leaves out what is done once. The garbage collector is off, as its turns would fall into
one count or the other. The plain counterparts do the same without a package: no types, no checks.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import sys
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is not imported in each process
UPDATES = 10
PROMPT = {"sessionId": "session-1", "prompt": [{"type": "text", "text": "Say something about it."}]}
REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": PROMPT}


def updates() -> list[Any]:
    """Two notifications `session/update`: a piece of a text, and a tool call."""
    found = []
    for name in ("06_agent_message_chunk", "07_tool_call"):
        with open(f"{HERE}/corpus/{name}.json", encoding="utf-8") as file:  # noqa: PTH123
            found.append(json.load(file)["message"])
    return found


def line_of(message: object) -> bytes:
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def text_of(at: int) -> str:
    """A piece of an answer."""
    return f"piece {at} of what the agent has to say about it. "


async def connect(lines: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The near end of a socket that has all of `lines`, and then ends."""
    here, there = socket.socketpair()
    there.sendall(lines)
    there.close()
    return await asyncio.open_connection(sock=here)


# --- With a package -------------------------------------------------------------------------------------------------


async def decode(acp: Any, count: int) -> None:
    """Decode the params of two updates."""
    payloads = [message["params"] for message in updates()]
    for _ in range(count):
        for each in payloads:
            acp.decode(acp.SessionNotification, each)


async def encode(acp: Any, count: int) -> None:
    """Encode them."""
    values = [acp.decode(acp.SessionNotification, message["params"]) for message in updates()]
    for _ in range(count):
        for each in values:
            acp.encode(each)


async def receive(acp: Any, count: int) -> None:
    """Read a line with an update from a socket, decode it, and call the handler of a client."""
    handled = 0

    class Client(acp.Client):  # type: ignore[misc]
        async def session_update(self, params: object) -> None:
            nonlocal handled
            handled += 1

    streams = await connect(line_of(updates()[0]) * count)
    connection = acp.Connection(acp.StreamTransport(*streams), acp.ConnectionOptions(check_capabilities=False))
    connection.start(Client(acp.RemoteAgent(connection)))
    await connection.wait_closed()
    assert handled == count, f"{handled} of {count} updates"


async def prompt(acp: Any, count: int) -> None:
    """Answer a prompt with ten updates in one turn of the event loop, over a transport in memory."""

    class Agent(acp.Agent):  # type: ignore[misc]
        async def session_prompt(self, params: Any) -> object:
            for at in range(UPDATES):
                update = acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text=text_of(at)))
                await self.client.session_update(acp.SessionNotification(session_id=params.session_id, update=update))
            return acp.PromptResponse(stop_reason="end_turn")

    near, far = acp.memory_transports()
    connection = acp.Connection(near, acp.ConnectionOptions(check_capabilities=False))
    connection.start(Agent(acp.RemoteClient(connection)))
    request = line_of(REQUEST).strip()
    for _ in range(count):
        await far.write(request)
        for _ in range(UPDATES):
            await far.read()
        assert b'"end_turn"' in await far.read()
    await connection.close()


async def hop(acp: Any, count: int) -> None:
    """Pass an update on to the client, by a proxy that overrides nothing, over transports in memory."""
    (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
    serving = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far))
    update = line_of(updates()[0]).strip()
    for _ in range(count):
        await agent.write(update)
        assert await client.read() == update
    await client.close()
    await agent.close()
    await serving


# --- Plain ----------------------------------------------------------------------------------------------------------


async def plain_decode(_: None, count: int) -> None:
    """Read the JSON of two updates."""
    lines = [line_of(message["params"]) for message in updates()]
    for _ in range(count):
        for each in lines:
            json.loads(each)


async def plain_encode(_: None, count: int) -> None:
    """Write it."""
    values = [message["params"] for message in updates()]
    for _ in range(count):
        for each in values:
            json.dumps(each)


async def plain_receive(_: None, count: int) -> None:
    """Read a line with an update from a socket, and call a handler."""
    handled = 0

    async def session_update(_params: object) -> None:
        nonlocal handled
        handled += 1

    reader, writer = await connect(line_of(updates()[0]) * count)
    while line := await reader.readline():
        message = json.loads(line)
        if message["method"] == "session/update":
            await session_update(message["params"])
    writer.close()
    assert handled == count


async def plain_prompt(_: None, count: int) -> None:
    """Answer a prompt with ten updates, over queues."""
    inbox: asyncio.Queue[bytes] = asyncio.Queue()
    outbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def agent() -> None:
        while line := await inbox.get():
            message = json.loads(line)
            for at in range(UPDATES):
                content = {"type": "text", "text": text_of(at)}
                update = {"sessionUpdate": "agent_message_chunk", "content": content}
                params = {"sessionId": message["params"]["sessionId"], "update": update}
                await outbox.put(line_of({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            await outbox.put(line_of({"jsonrpc": "2.0", "id": message["id"], "result": {"stopReason": "end_turn"}}))

    running = asyncio.ensure_future(agent())
    request = line_of(REQUEST)
    for _ in range(count):
        await inbox.put(request)
        for _ in range(UPDATES):
            await outbox.get()
        assert b'"end_turn"' in await outbox.get()
    await inbox.put(b"")
    await running


async def plain_hop(_: None, count: int) -> None:
    """Read a line from one queue, and write it to another one."""
    inbox: asyncio.Queue[bytes] = asyncio.Queue()
    outbox: asyncio.Queue[bytes] = asyncio.Queue()

    async def proxy() -> None:
        while line := await inbox.get():
            await outbox.put(line_of(json.loads(line)))

    running = asyncio.ensure_future(proxy())
    update = line_of(updates()[0])
    for _ in range(count):
        await inbox.put(update)
        assert await outbox.get() == update
    await inbox.put(b"")
    await running


def main() -> None:
    """Run the scenarios, each in an event loop of its own."""
    gc.disable()
    folder, *wanted = sys.argv[1:]
    package, prefix = None, "plain_"
    if folder != "plain":
        home, name = os.path.split(folder)
        sys.path.insert(0, home)
        package, prefix = __import__(name), ""
    for each in wanted:
        scenario, _, count = each.partition("=")
        asyncio.run(globals()[prefix + scenario](package, int(count)))


main()
