"""The MCP servers of a session, and their tools. It needs the package `mcp`: without it, no server can be reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mcp

    from .acp.helpers import McpParameters


class SessionTools:
    """The servers of a session. They are connected in the background, until `close`."""

    def __init__(self, servers: Iterable[McpParameters]) -> None:
        self.servers = [ToolServer(each) for each in servers]

    async def describe(self) -> str:
        """A line for each server: its tools, or why it has none. Waits until all were tried."""
        for server in self.servers:
            await server.tried.wait()
        lines = [f"{each.name}: {each.error or ', '.join(tool.name for tool in each.tools)}" for each in self.servers]
        return "\n".join(lines or ["This session has no MCP servers."])

    async def call(self, tool: str, arguments: dict[str, Any]) -> mcp.types.CallToolResult:
        """Call a tool of the first server that has it. Raises `LookupError` if none has."""
        for server in self.servers:
            await server.tried.wait()
            if server.client is not None and any(each.name == tool for each in server.tools):
                return await server.client.call_tool(tool, arguments)
        raise LookupError(f"no server has the tool {tool}")

    async def close(self) -> None:
        """Disconnect the servers."""
        await asyncio.gather(*(each.close() for each in self.servers))


class ToolServer:
    """An MCP server. While it is connected, `client` lists and calls its tools; `error` says why it is not.

    It has a task of its own, since the task that connects a server must also disconnect it.
    """

    def __init__(self, parameters: McpParameters) -> None:
        self.name = parameters.name
        self.client: mcp.Client | None = None
        self.tools: list[mcp.Tool] = []
        self.error = ""
        self.tried = asyncio.Event()
        self._task = asyncio.create_task(self._run(parameters))

    async def close(self) -> None:
        """Disconnect it, or give up to connect it."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self, parameters: McpParameters) -> None:
        try:
            async with connected(parameters) as client:
                self.tools = (await client.list_tools()).tools
                self.client = client
                self.tried.set()
                await asyncio.Event().wait()  # until it is closed
        except Exception as error:  # one server that fails takes no other with it
            self.error = _reason(error)
        finally:
            self.client = None
            self.tried.set()


def _reason(error: BaseException) -> str:
    """The text of an error; of a group, such as that of the tasks of a client, the text of the first one in it."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return str(error) or type(error).__name__


@asynccontextmanager
async def connected(server: McpParameters) -> AsyncGenerator[mcp.Client, None]:
    """A client of the official SDK, connected to a server."""
    try:
        import mcp  # it takes a while, so a session without servers does not wait for it

        import httpx2
        from mcp.client.streamable_http import streamable_http_client
    except ImportError:
        raise RuntimeError('its tools need the package mcp: pip install "mcp>=2.2,<3"') from None

    if server.kind == "stdio":
        program = mcp.StdioServerParameters(command=server.command, args=server.args, env=server.env, cwd=server.cwd)
        async with mcp.Client(program) as client:
            yield client
    elif server.kind == "http":
        http = httpx2.AsyncClient(headers=server.headers, timeout=httpx2.Timeout(30, read=300))
        async with http, mcp.Client(streamable_http_client(server.url, http_client=http)) as client:
            yield client
    else:
        raise ValueError(f"it is of the kind {server.kind}")
