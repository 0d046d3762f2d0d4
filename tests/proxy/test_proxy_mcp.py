"""A proxy that adds MCP servers of its own: the cases 18 and 34 to 36 by which other implementations are tested."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.mcp_support import REQUIRED, helper
from tests.needs import need
from tests.proxy.between import OPTIONS, Stage, between, proxy_of
from tests.runtime_support import V1, V2, run
from tests.support import Packages

OPENING = {1: ("session/new", "session/load", "session/resume"), 2: ("session/new", "session/resume")}
OF_CLIENT = {"type": "acp", "name": "of the client", "serverId": "c1"}
ADD = {"name": "add", "arguments": {"a": 2, "b": 3}, "_meta": REQUIRED}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    for library in ("mcp", "uvicorn"):
        need(library)
    base = V1 if request.param == 1 else V2
    return packages(replace(base, extensions=("mcp-over-acp",)), roles=(Role.PROXY,), options=OPTIONS)


def adding(acp: ModuleType, tools: Any, *, sees_capabilities: bool = True) -> type[Any]:
    """A proxy that offers one server in all sessions. `sees_capabilities`: it handles `initialize` as well."""

    def start(self: Any, client: Any, agent: Any) -> None:
        acp.Proxy.__init__(self, client, agent)
        self.servers = helper(acp, "mcp_provider").McpProvider(agent)
        self.entry = None

    async def opened(self: Any, method: str, params: Any) -> Any:
        if self.entry is None:
            self.entry = await self.servers.offer(tools.server(), name="of the proxy")
        return await getattr(self.agent, method)(replace(params, mcp_servers=[*params.mcp_servers, self.entry]))

    async def initialize(self: Any, params: Any) -> Any:
        return await self.agent.initialize(params)

    async def session_new(self: Any, params: Any) -> Any:
        return await opened(self, "session_new", params)

    async def session_load(self: Any, params: Any) -> Any:
        return await opened(self, "session_load", params)

    async def session_resume(self: Any, params: Any) -> Any:
        return await opened(self, "session_resume", params)

    async def mcp_message(self: Any, params: Any) -> Any:
        if params.server_id in self.servers:
            return await self.servers.handle(params)
        return await self.client.mcp_message(params)

    async def connection_closed(self: Any, reason: Any) -> None:
        await self.servers.close()

    handlers = {"session_new": session_new, "session_resume": session_resume, "mcp_message": mcp_message}
    if acp.PROTOCOL_VERSION == 1:
        handlers["session_load"] = session_load
    if sees_capabilities:
        handlers["initialize"] = initialize
    return proxy_of(acp, __init__=start, connection_closed=connection_closed, **handlers)


async def greet(acp: ModuleType, stage: Stage, *kinds: str) -> None:
    """Call `initialize`; the agent takes servers of these kinds."""
    version = acp.PROTOCOL_VERSION
    number, request = await stage.asked(
        "initialize", {"protocolVersion": version, "info": {"name": "c", "version": "1"}}
    )
    able: dict[str, Any]
    if version == 1:
        able = {"agentCapabilities": {"mcpCapabilities": {"acp": "acp" in kinds, "http": "http" in kinds}}}
    else:
        able = {"capabilities": {"session": {"mcp": {kind: {} for kind in kinds}}}}
    result = {"protocolVersion": version, "info": {"name": "a", "version": "1"}, **able}
    await stage.agent.answer(request, result=result)
    assert (await stage.client.receive())["id"] == number


async def opened(stage: Stage, method: str) -> list[Any]:
    """The servers that the agent gets if the client opens a session with one of its own."""
    params = {"cwd": "/", "mcpServers": [OF_CLIENT], **({} if method == "session/new" else {"sessionId": "s"})}
    number, request = await stage.asked(method, params)
    await stage.agent.answer(request, result={"sessionId": "s"})
    assert (await stage.client.receive())["id"] == number
    servers: list[Any] = request["params"]["mcpServers"]
    assert servers[0] == OF_CLIENT
    return servers[1:]


async def called(stage: Stage, server: str) -> Any:
    """What a call of a tool by the agent comes to, at a server of the proxy."""
    message = {"serverId": server, "requestId": "r", "method": "tools/call", "params": ADD}
    number = await stage.agent.request("mcp/message", message)
    found = await stage.agent.receive()
    assert found["id"] == number
    return found


def test_18_a_session_that_is_cancelled_leaves_no_server(acp: ModuleType) -> None:
    """Its server is withdrawn; a call of it is refused there, and reaches nobody else. The chain goes on."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def session_new(self: Any, params: Any) -> Any:
        entry = await self.servers.offer(tools.server())
        try:
            return await self.agent.session_new(replace(params, mcp_servers=[entry]))
        except BaseException:
            await self.servers.withdraw(entry)
            raise

    kind = type("Withdrawing", (adding(acp, tools),), {"session_new": session_new})

    async def main() -> None:
        async with between(acp, [kind]) as stage:
            await greet(acp, stage, "acp")
            number, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
            await stage.client.cancel(number)
            assert (await stage.agent.receive())["params"] == {"requestId": request["id"]}
            await stage.agent.answer(request, error={"code": -32800, "message": "cancelled"})
            assert (await stage.client.receive())["error"]["code"] == -32800
            stale = request["params"]["mcpServers"][0]["serverId"]
            asked = await stage.agent.request(
                "mcp/message", {"serverId": stale, "requestId": "r", "method": "tools/list"}
            )
            passed = await stage.client.receive()  # unknown ids are the client's, which refuses this one
            assert passed["params"]["serverId"] == stale
            await stage.client.answer(passed, error={"code": -33001, "message": "unknown server"})
            assert (await stage.agent.receive())["id"] == asked
            await stage.barrier()

    run(main())
    assert (tools.entered, tools.left) == (1, 1)


def test_34_a_server_of_the_proxy_in_all_sessions(acp: ModuleType) -> None:
    """Handlers run for each way to open a session; the agent gets the same id, and reaches the server by it."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def main() -> None:
        async with between(acp, [adding(acp, tools)]) as stage:
            await greet(acp, stage, "acp")
            added = [await opened(stage, method) for method in OPENING[acp.PROTOCOL_VERSION]]
            assert added == [added[0]] * len(added)
            (entry,) = added[0]
            assert (entry["type"], entry["name"]) == ("acp", "of the proxy")
            assert (await called(stage, entry["serverId"]))["result"]["result"]["content"][0]["text"] == "5"

    run(main())
    assert (tools.entered, tools.left) == (1, 1)


@pytest.mark.parametrize("kinds", [("acp",), ("http",), ("acp", "http"), ()])
def test_35_what_the_agent_takes(acp: ModuleType, kinds: tuple[str, ...], caplog: pytest.LogCaptureFixture) -> None:
    """Through the connection if it can, else at a URL; for an agent that takes neither, the request fails."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def main() -> None:
        async with between(acp, [adding(acp, tools)]) as stage:
            await greet(acp, stage, *kinds)
            for method in OPENING[acp.PROTOCOL_VERSION]:
                if kinds:
                    (entry,) = await opened(stage, method)
                    assert entry["type"] == kinds[0]
                else:
                    await stage.client.request(method, {"cwd": "/", "mcpServers": [], "sessionId": "s"})
                    assert (await stage.client.receive())["error"]["code"] == -32603
                    assert "mcp/message needs" in caplog.records[-1].getMessage()
            await stage.barrier()

    run(main())
    assert tools.entered == tools.left == bool(kinds)


def test_35_a_proxy_that_passes_initialize_on(acp: ModuleType) -> None:
    """It does not know what the agent takes, and offers through the connection."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with between(acp, [adding(acp, Tools(), sees_capabilities=False)]) as stage:
            await greet(acp, stage, "http")
            (entry,) = await opened(stage, "session/new")
            assert entry["type"] == "acp"

    run(main())


def test_36_each_server_is_called_once_by_its_owner(acp: ModuleType) -> None:
    """A call of a server of the client passes both proxies; one of a proxy ends there, whichever it is."""
    from tests.mcp_tools import Tools

    owners = [Tools(), Tools()]

    async def main() -> None:
        async with between(acp, [adding(acp, each) for each in owners]) as stage:
            await greet(acp, stage, "acp")
            entries = await opened(stage, "session/new")
            for entry in entries:
                answer = await called(stage, entry["serverId"])
                assert answer["result"]["result"]["content"][0]["text"] == "5"
            asked = await stage.agent.request(
                "mcp/message", {"serverId": "c1", "requestId": "r", "method": "tools/list"}
            )
            passed = await stage.client.receive()
            assert (passed["method"], passed["params"]["serverId"]) == ("mcp/message", "c1")
            await stage.client.answer(passed, result={"result": {"tools": []}})
            assert await stage.agent.receive() == {"jsonrpc": "2.0", "id": asked, "result": {"result": {"tools": []}}}
            await stage.barrier()
            assert [each.added for each in owners] == [1, 1]

    run(main())
    assert [(each.entered, each.left) for each in owners] == [(1, 1), (1, 1)]
