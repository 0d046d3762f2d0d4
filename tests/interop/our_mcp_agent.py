"""An agent that calls the MCP servers of its client: python our_mcp_agent.py FOLDER PACKAGE [URL-OR-NOT PROXY ...]

On `_play` it does all that a client of `mcp` can, and returns what it got. `application` serves it on the network.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

import mcp


def agent_of(acp: Any) -> type[Any]:
    """The class of the agent on a package."""
    helpers = f"{acp.__name__}.helpers"
    calling = importlib.import_module(f"{helpers}.mcp_caller")
    kinds = importlib.import_module(f"{helpers}.mcp_support")
    servers = importlib.import_module(f"{helpers}.mcp_servers")

    class Calling(acp.Agent):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.caller = calling.McpCaller(client)
            self.server = ""

        async def initialize(self, params: Any) -> Any:
            able = kinds.mcp_capabilities("stdio", "acp")
            if acp.PROTOCOL_VERSION == 1:
                return acp.InitializeResponse(
                    protocol_version=1, agent_capabilities=acp.AgentCapabilities(mcp_capabilities=able)
                )
            session = acp.AgentCapabilities(session=acp.SessionCapabilities(mcp=able))
            info = acp.Implementation(name="ours", version="1")
            return acp.InitializeResponse(protocol_version=2, info=info, capabilities=session)

        async def session_new(self, params: Any) -> Any:
            (found,) = servers.mcp_parameters(params.mcp_servers, cwd=params.cwd, accept=("stdio", "acp"))
            self.server = found.server_id
            return acp.NewSessionResponse(session_id="session-1")

        async def mcp_message_notification(self, params: Any) -> None:
            await self.caller.handle(params)

        async def ext_method(self, method: str, params: Any) -> Any:
            transport = self.caller.transport(self.server)
            async with mcp.Client(transport, mode=calling.MCP_VERSION, read_timeout_seconds=60) as client:
                return await talk(client, self.client)

    return Calling


async def talk(client: Any, peer: Any) -> dict[str, Any]:
    """All that a client of `mcp` can do, in an order that the other side can follow."""
    found: dict[str, Any] = {"tools": [each.name for each in (await client.list_tools()).tools]}
    found["echo"] = text(await client.call_tool("echo", {"text": "snow \u2603"}))
    progress = list[float]()

    async def report(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    found["count"] = text(await client.call_tool("count", {"to": 5}, progress_callback=report))
    found["progress"] = progress
    found["broken"] = (await client.call_tool("broken", {})).is_error
    found["note"] = (await client.read_resource("note://one")).contents[0].text
    found["prompt"] = (await client.get_prompt("hello", {"name": "Ada"})).messages[0].content.text
    found["unknown"] = await code(client.call_tool("nothing", {}))
    waiting = asyncio.ensure_future(client.call_tool("wait", {}))
    await asyncio.sleep(0.5)
    waiting.cancel()
    await asyncio.wait({waiting})
    async with client.listen(tools_list_changed=True) as events:
        await peer.ext_method("_publish", {})
        async for event in events:
            found["event"] = type(event).__name__
            break
    await peer.ext_method("_dispose", {})
    found["disposed"] = await code(client.list_tools())
    return found


def text(result: Any) -> str:
    """The text of a result of a tool."""
    return str(result.content[0].text)


async def code(call: Any) -> Any:
    """The code of the error that a call ends with, or its result."""
    try:
        return repr(await call)
    except mcp.MCPError as error:
        return error.code


def load(folder: str, package: str) -> Any:
    """The package in a folder."""
    sys.path.insert(0, folder)
    return importlib.import_module(package)


if __name__ == "__main__":
    if sys.argv[1] == "proxy":
        proxy = load(*sys.argv[2:4])
        proxy.run_proxy(proxy.Proxy, sys.argv[4:])
    else:
        acp = load(*sys.argv[1:3])
        acp.run_agent(agent_of(acp))
