"""Does one thing COUNT times, so that its instructions can be counted.

Usage: python instructions.py SCENARIO FOLDER_OF_THE_PACKAGE COUNT LAYOUT

The difference of two counts leaves out what is done once. The garbage collector is off, as its turns would fall into
one count or the other. Each LAYOUT, a number, has other addresses: collisions in hash tables depend on them.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

NAMES = """Agent, ContentBlockText, InitializeRequest, InitializeResponse, NewSessionRequest, NewSessionResponse,
PromptRequest, PromptResponse, SessionNotification, SessionUpdateAgentMessageChunk, run_agent"""
CORPUS = Path(__file__).resolve().parent.parent / "corpus"
UPDATES = 10
PROMPT = {"sessionId": "session-1", "prompt": [{"type": "text", "text": "Say something about it."}]}


def import_agent(package: str, count: int) -> None:
    """Import what an agent names; import it once, or not at all."""
    if count:
        exec(f"from {package} import ({NAMES})")


def loads(_package: str, count: int) -> None:
    """Read the JSON of two updates: a piece of a text, and a tool call."""
    import json

    lines = [line_of(message) for message in updates()]
    for _ in range(count):
        for each in lines:
            json.loads(each)


def decode(package: str, count: int) -> None:
    """Decode the params of the same updates."""
    acp, payloads = __import__(package), [message["params"] for message in updates()]
    for _ in range(count):
        for each in payloads:
            acp.decode(acp.SessionNotification, each)


def encode(package: str, count: int) -> None:
    """Encode them."""
    acp = __import__(package)
    values = [acp.decode(acp.SessionNotification, message["params"]) for message in updates()]
    for _ in range(count):
        for each in values:
            acp.encode(each)


def receive(package: str, count: int) -> None:
    """Read a line with an update from a socket, decode it, and call the handler of a client."""
    import asyncio
    import socket

    acp, handled = __import__(package), 0

    class Client(acp.Client):  # type: ignore[misc]
        async def session_update(self, params: object) -> None:
            nonlocal handled
            handled += 1

    async def main() -> None:
        here, there = socket.socketpair()
        there.sendall(line_of(updates()[0]) * count)
        there.shutdown(socket.SHUT_WR)
        streams = await asyncio.open_connection(sock=here)
        connection = acp.Connection(acp.StreamTransport(*streams), acp.ConnectionOptions(check_capabilities=False))
        connection.start(Client(acp.RemoteAgent(connection)))
        await connection.wait_closed()
        there.close()

    asyncio.run(main())
    assert handled == count, f"{handled} of {count} updates"


def prompt(package: str, count: int) -> None:
    """Answer a prompt with ten updates in one turn of the event loop, over a transport in memory."""
    import asyncio

    acp: Any = __import__(package)

    class Agent(acp.Agent):  # type: ignore[misc]
        async def session_prompt(self, params: Any) -> object:
            for at in range(UPDATES):
                content = acp.ContentBlockText(text=f"piece {at} of what the agent has to say about it. ")
                update = acp.SessionUpdateAgentMessageChunk(content=content)
                await self.client.session_update(acp.SessionNotification(session_id=params.session_id, update=update))
            return acp.PromptResponse(stop_reason="end_turn")

    async def main() -> None:
        near, far = acp.memory_transports()
        connection = acp.Connection(near, acp.ConnectionOptions(check_capabilities=False))
        connection.start(Agent(acp.RemoteClient(connection)))
        request = line_of({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": PROMPT}).strip()
        for _ in range(count):
            await far.write(request)
            for _ in range(UPDATES):
                await far.read()
            assert b'"end_turn"' in await far.read()
        await connection.close()

    asyncio.run(main())


def hop(package: str, count: int) -> None:
    """Pass an update on to the client, by a proxy that overrides nothing, over transports in memory."""
    import asyncio

    acp: Any = __import__(package)

    async def main() -> None:
        (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
        serving = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far))
        update = line_of(updates()[0]).strip()
        for _ in range(count):
            await agent.write(update)
            assert await client.read() == update
        await client.close()
        await agent.close()
        await serving

    asyncio.run(main())


def updates() -> list[Any]:
    """Two notifications `session/update`."""
    import json

    names = "06_agent_message_chunk", "07_tool_call"
    return [json.loads((CORPUS / f"{name}.json").read_text(encoding="utf-8"))["message"] for name in names]


def line_of(message: object) -> bytes:
    """A message as a line."""
    import json

    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


SCENARIOS = {
    "import": import_agent,
    "loads": loads,
    "decode": decode,
    "encode": encode,
    "receive": receive,
    "prompt": prompt,
    "hop": hop,
}


def main() -> None:
    """Run the scenario."""
    gc.disable()
    scenario, folder, count, layout = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:])
    objects, block = [object() for _ in range(17 * layout)], bytearray(5000 + 649 * layout)
    sys.path.insert(0, str(folder.parent))
    SCENARIOS[scenario](folder.name, count)
    del objects, block


main()
