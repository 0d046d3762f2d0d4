"""The tools of the MCP servers of a session, as functions for any framework. They need the package `mcp`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

from ..decision import explains
from .mcp_servers import HttpParameters, McpParameters, StdioParameters

__all__ = ["SessionTool", "SessionToolError", "SessionTools"]

_logger: Final = logging.getLogger("acp")


class SessionToolError(Exception):
    """A tool has failed: the text is for the model."""


@dataclass(frozen=True, kw_only=True)
class SessionTool:
    """A tool of a server: what a framework has to know of it, and how to call it.

    `input_schema` is a JSON Schema. Of several tools with one name, all but the first have that of their server before
    it, such as `files_read`.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    server: str
    _server: _Server = field(repr=False)
    _tool: str = field(repr=False)

    async def __call__(self, **arguments: Any) -> str:
        """Call the tool; returns the text of its result. Raises `SessionToolError` for an error, and without a server.

        Cancelling the task cancels the call.
        """
        if (client := self._server.client) is None:
            raise SessionToolError(f"the server {self.server} is not connected any more")
        try:
            result = await client.call_tool(self._tool, arguments)
        except Exception as error:
            raise SessionToolError(_reason(error)) from error
        text = "\n".join(str(getattr(each, "text", None) or f"[{each.type}]") for each in result.content)
        if result.is_error:
            raise SessionToolError(text)
        return text


class SessionTools:
    """The servers of a session, connected in the background until `close`. One that fails takes no other with it.

    tools = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
    for tool in await tools.list():
        framework.add_tool(tool, tool.name, tool.description, tool.input_schema)
    """

    @explains
    def __init__(self, servers: Iterable[McpParameters]) -> None:
        self._servers = [_Server(each) for each in servers]

    @property
    def errors(self) -> dict[str, str]:
        """Why servers cannot be used, by their names."""
        return {each.name: each.error for each in self._servers if each.error}

    async def list(self) -> list[SessionTool]:
        """The tools of all servers that can be connected. Waits until each was tried."""
        found: dict[str, SessionTool] = {}
        for server in self._servers:
            await server.tried.wait()
            for tool in server.tools:
                name = tool.name if tool.name not in found else f"{server.name}_{tool.name}"
                found[name] = SessionTool(
                    name=name,
                    description=tool.description or "",
                    input_schema=tool.input_schema,
                    server=server.name,
                    _server=server,
                    _tool=tool.name,
                )
        return [*found.values()]

    async def close(self) -> None:
        """Disconnect the servers, and end those that are programs."""
        await asyncio.gather(*(each.close() for each in self._servers))


class _Server:
    """A server, with a task of its own: the task that connects it must also disconnect it."""

    def __init__(self, parameters: McpParameters) -> None:
        self.name = parameters.name
        self.client: Any = None
        self.tools: list[Any] = []
        self.error = ""
        self.tried = asyncio.Event()
        self._task = asyncio.create_task(self._run(parameters))

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self, parameters: McpParameters) -> None:
        try:
            async with _connected(parameters) as client:
                self.tools = (await client.list_tools()).tools
                self.client = client
                self.tried.set()
                await asyncio.Event().wait()  # until it is closed
        except Exception as error:  # noqa: BLE001  whatever a library raises
            self.error = _reason(error)
            _logger.warning("the MCP server %.80r cannot be used: %s", self.name, self.error)
        finally:
            self.client = None
            self.tried.set()


def _reason(error: BaseException) -> str:
    """The text of an error; of a group, such as that of the tasks of a client, the text of the first one in it."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return str(error) or type(error).__name__


@asynccontextmanager
async def _connected(server: McpParameters) -> AsyncGenerator[Any, None]:
    """A client of the official SDK, connected to a server. The SDK is imported here: that takes a while."""
    try:
        mcp = import_module("mcp")
    except ImportError:
        raise RuntimeError('its tools need the package mcp: pip install "mcp>=2.2,<3"') from None
    if isinstance(server, StdioParameters):
        program = mcp.StdioServerParameters(command=server.command, args=server.args, env=server.env, cwd=server.cwd)
        async with mcp.Client(program) as client:
            yield client
    elif isinstance(server, HttpParameters) and server.kind == "http":
        httpx, http_client = import_module("httpx2"), import_module("mcp.client.streamable_http")
        http = httpx.AsyncClient(headers=server.headers, timeout=httpx.Timeout(30, read=300))
        async with http, mcp.Client(http_client.streamable_http_client(server.url, http_client=http)) as client:
            yield client
    else:
        raise RuntimeError(f"servers of the kind {server.kind} are not supported here")
