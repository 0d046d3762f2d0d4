"""Times calls of a tool through `mcp/message`, beside the same in memory by the package `mcp`, and a round trip.

Usage: python mcp_calls.py FOLDER_OF_THE_PACKAGE COUNT

Prints microseconds of CPU time by call as JSON: `over` the connection; over the transport in `memory` of `mcp`;
`direct`, without any; and the `trip` of a request of the same size that is answered at once. All runs in one process
and thread, one call after the other.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp
from mcp.client._memory import InMemoryTransport
from mcp.server import MCPServer

REPEATS = 5
ARGUMENTS = {"a": 2, "b": 3}
Call = Callable[[], Awaitable[Any]]


def server() -> MCPServer:
    """A server with one tool."""
    found = MCPServer("adding")

    @found.tool()
    async def add(a: int, b: int) -> int:
        return a + b

    return found


@asynccontextmanager
async def connected(acp: Any) -> AsyncGenerator[tuple[Any, Any, str], None]:
    """The stub of the client and the caller that an agent has, and the id of a server that the client offers."""
    caller_of, provider_of = (
        importlib.import_module(f"{acp.__name__}.helpers.{name}") for name in ("mcp_caller", "mcp_provider")
    )
    agents = list[Any]()

    class Agent(acp.Agent):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.caller = caller_of.McpCaller(client)
            agents.append(self)

        async def initialize(self, params: Any) -> Any:
            able = acp.AgentCapabilities(mcp_capabilities=acp.McpCapabilities(acp=True))
            return acp.InitializeResponse(protocol_version=1, agent_capabilities=able)

        async def mcp_message_notification(self, params: Any) -> None:
            await self.caller.handle(params)

    class Client(acp.Client):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.servers = provider_of.McpProvider(agent)

        async def mcp_message(self, params: Any) -> Any:
            return await self.servers.handle(params)

        async def ext_method(self, method: str, params: Any) -> Any:
            return params

        async def connection_closed(self, reason: Any) -> None:
            await self.servers.close()

    near, far = acp.memory_transports()
    serving = asyncio.ensure_future(acp.serve_agent(Agent, near))
    async with (connection := acp.connect(Client, far)) as agent:
        await agent.initialize(acp.InitializeRequest(protocol_version=1))
        entry = await connection.handler.servers.offer(server())
        yield agents[0].client, agents[0].caller, entry.server_id
    await serving


async def timed(call: Call, count: int) -> float:
    """The CPU time of one call, the best of some repeats."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(count):
            await call()
        best = min(best, time.process_time() - start)
    return best / count * 1e6


async def adds(client: mcp.Client) -> Call:
    """A call of the tool, which has to give the sum."""

    async def call() -> Any:
        return await client.call_tool("add", ARGUMENTS)

    if (await call()).structured_content != {"result": 5}:
        raise SystemExit("the tool does not add")
    return call


async def measured(acp: Any, count: int) -> dict[str, float]:
    """The times."""
    version = importlib.import_module(f"{acp.__name__}.helpers.mcp_caller").MCP_VERSION
    found = dict[str, float]()
    async with connected(acp) as (stub, caller, server_id):
        params = {"serverId": server_id, "requestId": "1", "method": "tools/call", "params": {"arguments": ARGUMENTS}}
        found["trip"] = await timed(lambda: stub.ext_method("_trip", params), count)
        async with mcp.Client(caller.transport(server_id), mode=version) as client:
            found["over"] = await timed(await adds(client), count)
    for name, target in (("memory", InMemoryTransport(server())), ("direct", server())):
        async with mcp.Client(target, mode=version) as client:
            found[name] = await timed(await adds(client), count)
    return found


def main() -> None:
    """Measure a package."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder.parent))
    print(json.dumps(asyncio.run(measured(importlib.import_module(folder.name), int(sys.argv[2])))))


main()
