"""MCP through the connection, with the official TypeScript SDK as client or as agent, and through a proxy."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role, RoleChoice
from tests.interop import peers
from tests.interop.remote_asgi import serving
from tests.mcp_support import VERSION, greeting, helper
from tests.needs import lacks, need
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.full

HERE = Path(__file__).resolve().parent
OURS = HERE / "our_mcp_agent.py"
WAIT = {"name": "wait", "arguments": {}}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    need("mcp")
    base = V1 if request.param == 1 else V2
    return packages(replace(base, extensions=("mcp-over-acp",)), roles=RoleChoice.BOTH.roles, remote=True)


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> list[str]:
    """The command that runs the peer, without its role and version."""
    cache = request.config.cache
    assert cache is not None
    try:
        command, folder = peers.typescript(peers.home(cache.mkdir("interop-peers")))
    except peers.MissingPeerError as error:
        lacks("registry", error)
    return [*command, str(HERE / "ts_mcp.mjs"), str(folder)]


def peer(node: list[str], role: str, acp: ModuleType, *more: str) -> list[str]:
    runner, script, folder = node
    return [runner, script, role, str(acp.PROTOCOL_VERSION), folder, *more]


def place(package: ModuleType) -> list[str]:
    """Where a package is, for a script: the folder that holds it, and its name there."""
    folder = Path(str(package.__file__)).resolve().parent
    return [str(folder.parent), folder.name]


def between(packages: Packages, acp: ModuleType, *command: str) -> list[str]:
    """A command with a proxy before it."""
    base = V1 if acp.PROTOCOL_VERSION == 1 else V2
    package = packages(replace(base, extensions=("mcp-over-acp",)), roles=(Role.PROXY,))
    return [sys.executable, str(OURS), "proxy", *place(package), *command]


# --- Our client offers, their agent calls ----------------------------------------------------------------------------


@asynccontextmanager
async def their_agent(acp: ModuleType, command: list[str], servers: list[Any]) -> AsyncGenerator[Any, None]:
    """Their agent with a session that has our servers; a function that lets it call one."""
    providing = helper(acp, "mcp_provider")

    class Editor(acp.Client):  # type: ignore[name-defined,misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.servers = providing.McpProvider(agent, limit=4)
            self.active = 0

        async def mcp_message(self, params: Any) -> Any:
            self.active += 1
            try:
                return await self.servers.handle(params)
            finally:
                self.active -= 1

        async def connection_closed(self, reason: Any) -> None:
            await self.servers.close()

    async with (connection := acp.spawn_agent(Editor, command)) as agent:
        await agent.initialize(acp.InitializeRequest(**greeting(acp)))
        provider = connection.handler.servers
        entries = [await provider.offer(each) for each in servers]
        await agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=entries))

        async def call(method: str, params: Any = None, *, server: int = 0, **more: Any) -> Any:
            wanted = {"serverId": entries[server].server_id, "method": method, **more}
            return await agent.ext_method("_mcp", wanted if params is None else {**wanted, "params": params})

        yield call, connection.handler, entries, agent


@pytest.mark.parametrize("has_proxy", [False, True], ids=["direct", "proxy"])
def test_their_agent_calls_our_servers(acp: ModuleType, packages: Packages, node: list[str], has_proxy: bool) -> None:
    from tests.mcp_tools import Tools

    command = peer(node, "agent", acp)
    command = between(packages, acp, *command) if has_proxy else command
    tools = Tools()

    async def main() -> None:
        async with their_agent(acp, command, [tools.server(), fast_server()]) as (call, editor, entries, agent):
            shown = await agent.ext_method("_servers", {})
            assert [each["type"] for each in shown["servers"]] == ["acp", "acp"]
            found = await call("server/discover")
            assert found["outcome"]["result"]["supportedVersions"] == [VERSION]
            listed = (await call("tools/list"))["outcome"]["result"]["tools"]
            assert {each["name"] for each in listed} > {"add", "count"}
            await their_calls(call, tools)
            await their_mistakes(call)
            fast = await call("tools/call", {"name": "twice", "arguments": {"number": 4}}, server=1)
            assert fast["outcome"]["result"]["content"][0]["text"] == "8"
            await their_endings(call, tools, editor, entries)

    run(main())
    assert (tools.entered, tools.left) == (1, 1)


def fast_server() -> Any:
    """A server on the library `fastmcp`."""
    need("fastmcp")
    fastmcp = importlib.import_module("fastmcp")
    server = fastmcp.FastMCP("fast")

    @server.tool  # type: ignore[untyped-decorator]
    def twice(number: int) -> int:
        return 2 * number

    return server


async def their_calls(call: Any, tools: Any) -> None:
    added = await call("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}})
    assert added["outcome"]["result"]["content"][0]["text"] == "5"
    counted = {"name": "count", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}
    seen = await call("tools/call", counted)
    assert seen["outcome"]["result"]["content"][0]["text"] == "counted"
    shown = [each["params"]["progress"] for each in seen["notifications"]]
    assert shown == [1, 2, 3][: len(shown)]  # their side may take a result before what came earlier
    assert (await call("tools/call", {**counted, "_meta": {}}))["notifications"] == []
    note = await call("resources/read", {"uri": "note://one"})
    assert note["outcome"]["result"]["contents"][0]["text"] == "a note"
    prompt = await call("prompts/get", {"name": "hello", "arguments": {"name": "Ada"}})
    assert "Ada" in prompt["outcome"]["result"]["messages"][0]["content"]["text"]


async def their_mistakes(call: Any) -> None:
    for method, code in (("nothing/here", -32601), ("ping", -32601)):
        assert (await call(method))["outcome"]["error"]["code"] == code
    failed = await call("tools/call", {"name": "broken", "arguments": {}})
    assert failed["outcome"]["result"]["isError"] is True
    unknown = await call("tools/list", serverId="nowhere")
    assert (unknown["error"]["code"], unknown["error"]["data"]) == (-33001, {"serverId": "nowhere"})


async def their_endings(call: Any, tools: Any, editor: Any, entries: list[Any]) -> None:
    """Too many calls, a subscription that they cancel, and a server that is withdrawn."""
    from mcp.server.subscriptions import ToolsListChanged

    events = {"notifications": {"toolsListChanged": True}}
    listening = asyncio.ensure_future(call("subscriptions/listen", events, cancelAfter=2))
    waiting = [asyncio.ensure_future(call("tools/call", WAIT)) for _ in range(3)]
    await tools.started.wait()
    while editor.active < 4:
        await asyncio.sleep(0.01)
    assert (await call("tools/list"))["error"]["code"] == -33000
    await tools.bus.publish(ToolsListChanged())
    listened = await listening
    assert [each["method"] for each in listened["notifications"]] == [
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ]
    assert listened["error"]["code"] == -32800
    await editor.servers.withdraw(entries[0])
    assert [(await each)["error"]["code"] for each in waiting] == [-32800] * 3
    assert (await call("tools/list"))["error"]["code"] == -33001
    assert tools.cancelled == 3


# --- Their client offers, our agent calls ----------------------------------------------------------------------------

PLAYED = {
    "tools": ["echo", "count", "wait", "broken"],
    "echo": "snow \u2603",
    "count": "counted",
    "progress": [1, 2, 3, 4, 5],
    "broken": True,
    "note": "a note",
    "prompt": "Say hello to Ada",
    "unknown": -32602,
    "event": "ToolsListChanged",
    "disposed": -33001,
}


async def played(*command: str) -> Any:
    """What our agent got, and that the tool which it cancelled was."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stdin=asyncio.subprocess.DEVNULL
    )
    written, _ = await asyncio.wait_for(process.communicate(), 120)
    lines = [json.loads(line) for line in written.splitlines()]
    assert [each["tool"] for each in lines if "tool" in each] == ["wait", "cancelled"]
    return next(each["response"] for each in lines if "response" in each)


@pytest.mark.parametrize("has_proxy", [False, True], ids=["direct", "proxy"])
def test_our_agent_calls_their_servers(acp: ModuleType, packages: Packages, node: list[str], has_proxy: bool) -> None:
    command = [sys.executable, str(OURS), *place(acp)]
    command = between(packages, acp, *command) if has_proxy else command
    assert run(played(*peer(node, "client", acp, *command))) == PLAYED


@pytest.mark.parametrize("transport", ["websocket", "http1"])
def test_our_agent_calls_their_servers_on_the_network(acp: ModuleType, node: list[str], transport: str) -> None:
    from tests.interop.our_mcp_agent import agent_of

    app = importlib.import_module(f"{acp.__name__}.asgi").asgi_app(agent_of(acp), path="/acp")

    async def main() -> None:
        async with serving(app) as port:
            url = f"http://127.0.0.1:{port}/acp"
            assert await played(*peer(node, "remote_client", acp, transport, url)) == PLAYED

    run(main())
