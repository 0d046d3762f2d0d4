"""A client that offers MCP servers through the connection, and an agent that calls them, for tests."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tests.runtime_support import run

if TYPE_CHECKING:
    from tests.mcp_tools import Tools

VERSION = "2026-07-28"
REQUIRED = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def helper(acp: ModuleType, name: str) -> Any:
    return importlib.import_module(f"{acp.__name__}.helpers.{name}")


@dataclass
class Pair:
    """An agent that has called `initialize`, and the client that offers servers to it."""

    acp: ModuleType
    remote: Any
    provider: Any
    caller: Any
    client: Any
    requests: list[Any]
    notifications: list[Any]
    cancellations: list[Any]

    async def raw(
        self, server_id: str, method: str, params: Any = None, *, number: str = "r1", meta: Any = None
    ) -> Any:
        """Send a request as it is on the wire; returns the result of the message around it."""
        inner = {"params": {**(params or {}), "_meta": meta or REQUIRED}}
        message = {"serverId": server_id, "requestId": number, "method": method, **inner}
        return await self.remote.ext_method("mcp/message", message)

    def mcp(self, server_id: str, **options: Any) -> Any:
        import mcp

        return mcp.Client(self.caller.transport(server_id), mode=VERSION, **options)


@asynccontextmanager
async def pair(
    acp: ModuleType, *, proxy: Any = None, kinds: tuple[str, ...] = ("acp",), **limits: Any
) -> AsyncGenerator[Pair, None]:
    """Both sides over memory. What the agent has sent of requests is kept, and what has come of notifications.

    `kinds` are the servers that the agent accepts.
    """
    before = asyncio.all_tasks()
    requests, notifications, cancellations = list[Any](), list[Any](), list[Any]()
    agents = list[Any]()

    class Editor(acp.Client):  # type: ignore[name-defined,misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.servers = helper(acp, "mcp_provider").McpProvider(agent, **limits)

        async def mcp_message(self, params: Any) -> Any:
            requests.append(params)
            return await self.servers.handle(params)

        async def connection_closed(self, reason: Any) -> None:
            await self.servers.close()

    class Helpful(acp.Agent):  # type: ignore[name-defined,misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.caller = helper(acp, "mcp_caller").McpCaller(client)
            agents.append(self)

        async def initialize(self, params: Any) -> Any:
            return acp.InitializeResponse(**hello(acp, kinds))

        async def mcp_message_notification(self, params: Any) -> None:
            notifications.append(params)
            await self.caller.handle(params)

    def watch(direction: str, line: bytes) -> None:
        if direction == "out" and b"cancel_request" in line:
            cancellations.append(line)

    near, far = acp.memory_transports()
    passing: Any = None
    if proxy is not None:
        package, kind = proxy
        towards, back = package.memory_transports()
        passing = asyncio.ensure_future(package.serve_proxy(kind, back, far))
        far = towards
    options = acp.ConnectionOptions(on_message=watch)
    serving = asyncio.ensure_future(acp.serve_agent(Helpful, near, options=options))
    async with (connection := acp.connect(Editor, far)) as agent:
        await agent.initialize(acp.InitializeRequest(**greeting(acp)))
        servers = connection.handler.servers
        yield Pair(
            acp,
            agents[0].client,
            servers,
            agents[0].caller,
            agent,
            requests,
            notifications,
            cancellations,
        )
    await serving
    if passing is not None:
        await passing
    left = asyncio.all_tasks() - before
    watchers = [each for each in left if is_of_sse(each)]
    for each in watchers:
        each.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    assert left <= {*watchers}


def is_of_sse(task: asyncio.Task[Any]) -> bool:
    """True for the task with which `sse-starlette` waits for the end of the process: it outlives servers."""
    return "sse_starlette" in getattr(getattr(task.get_coro(), "cr_code", None), "co_filename", "")


def greeting(acp: ModuleType) -> dict[str, Any]:
    info = {"info": acp.Implementation(name="e", version="1")} if acp.PROTOCOL_VERSION == 2 else {}
    return {"protocol_version": acp.PROTOCOL_VERSION, **info}


def hello(acp: ModuleType, kinds: tuple[str, ...]) -> dict[str, Any]:
    able = helper(acp, "mcp_support").mcp_capabilities(*kinds)
    if acp.PROTOCOL_VERSION == 1:
        return {**greeting(acp), "agent_capabilities": acp.AgentCapabilities(mcp_capabilities=able)}
    session = acp.SessionCapabilities(mcp=able)
    return {**greeting(acp), "capabilities": acp.AgentCapabilities(session=session)}


def play(acp: ModuleType, talk: Callable[[Pair, Tools, str], Coroutine[Any, Any, None]], **limits: Any) -> Tools:
    """Run a conversation with one server that is offered."""
    from tests.mcp_tools import Tools

    found = list[Tools]()

    async def main() -> None:
        tools = Tools()
        found.append(tools)
        async with pair(acp, **limits) as both:
            entry = await both.provider.offer(tools.server())
            await talk(both, tools, entry.server_id)

    run(main())
    assert (found[0].entered, found[0].left) == (1, 1)
    return found[0]
