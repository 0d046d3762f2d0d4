"""The tools of the MCP servers of a session, as functions for any framework. They need the package `mcp`."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import Any, Final

from ..decision import explains
from .mcp_servers import HttpParameters, McpParameters, StdioParameters
from .memory import MAX_ID, memory_of

__all__ = ["SessionTool", "SessionToolError", "SessionTools"]

_logger: Final = logging.getLogger("acp")
_MAX_NAME: Final = 64
"""The longest name of a tool that the APIs of models take."""
_MAX_PAGES: Final = 64
_MAX_TOOLS: Final = 1_000
_MAX_BYTES: Final = 2**23
"""The most memory of the tools of a server."""
_MAX_TEXT: Final = 2**20
"""The most characters of a result; a model takes fewer."""
_MAX_REASON: Final = 2_000
"""The most characters of an error that no tool has returned."""


class SessionToolError(Exception):
    """A tool has failed: the text is for the model."""


@dataclass(frozen=True, kw_only=True)
class SessionTool:
    """A tool of a server: what a framework has to know of it, and how to call it.

    `name` is for the model: up to 64 ASCII letters, digits, `_` and `-`, as the APIs of models want it, and no two
    tools of a session have the same. Tools of several servers with one name have that of their server before it, such
    as `files_read`, and if that is not enough, a digest behind it. `original_name` is that at the server.
    `input_schema` is a JSON Schema.
    """

    name: str
    original_name: str
    description: str
    input_schema: dict[str, Any]
    server: str
    _server: _ToolServer = field(repr=False)

    async def __call__(self, /, **arguments: Any) -> str:
        """Call the tool; returns the text of its result, up to 1,048,576 characters of it.

        Raises `SessionToolError` for an error, and without a server. Cancelling the task cancels the call.
        """
        if (client := self._server.client) is None:
            raise SessionToolError(f"the server {self.server} is not connected any more")
        try:
            result = await client.call_tool(self.original_name, arguments)
        except Exception as error:
            raise SessionToolError(_reason(error)) from error
        text = _text(result.content)
        if result.is_error:
            raise SessionToolError(text)
        return text


class SessionTools:
    """The servers of a session, connected in the background until `close`. One that fails takes no other with it.

        tools = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
        for tool in await tools.list():
            framework.add_tool(tool, tool.name, tool.description, tool.input_schema)

    A server that has not told its tools after `connect_seconds` has failed. Of each, up to 1,000 tools and 8 MiB of
    them are used.
    """

    @explains
    def __init__(self, servers: Iterable[McpParameters], *, connect_seconds: float = 30.0) -> None:
        self._servers = [_ToolServer(each, seconds=connect_seconds) for each in servers]

    @property
    def errors(self) -> Sequence[tuple[str, str]]:
        """The servers that cannot be used, each with the reason. They are logged, too."""
        return [(each.name, each.error) for each in self._servers if each.error]

    async def list(self) -> list[SessionTool]:
        """The tools of all servers that can be connected. Waits until each was tried."""
        for server in self._servers:
            await server.tried.wait()
        found = [(server, tool) for server in self._servers for tool in server.tools]
        names = _names([(server.name, tool.name) for server, tool in found])
        return [
            SessionTool(
                name=name,
                original_name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema,
                server=server.name,
                _server=server,
            )
            for name, (server, tool) in zip(names, found, strict=True)
        ]

    async def close(self) -> None:
        """Disconnect the servers, and end those that are programs."""
        await asyncio.gather(*(each.close() for each in self._servers))


# --- Names and texts -------------------------------------------------------------------------------------------------


def _names(tools: Sequence[tuple[str, str]]) -> Sequence[str]:
    """A name for the model for each tool of a server. The same tools get the same, in whatever order they come."""
    names = [_fitting(name) for _, name in tools]
    counts = Counter(names)
    names = [
        name if counts[name] == 1 else _fitting(f"{server}_{original}")
        for name, (server, original) in zip(names, tools, strict=True)
    ]
    counts = Counter(names)
    taken = {name for name in names if counts[name] == 1}
    for at, name in enumerate(names):
        if counts[name] > 1:
            marked = (_marked(name, (*tools[at], number)) for number in itertools.count())
            names[at] = next(each for each in marked if each not in taken)
            taken.add(names[at])
    return names


def _fitting(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_MAX_NAME] or "tool"


def _marked(name: str, tool: tuple[str, str, int]) -> str:
    digest = sha256(repr(tool).encode()).hexdigest()[:8]
    return f"{name[: _MAX_NAME - 1 - len(digest)]}_{digest}"


def _text(content: Iterable[Any]) -> str:
    """The texts of a result, and what else there is by its kind."""
    room, found = _MAX_TEXT, list[str]()
    for each in content:
        text = getattr(each, "text", None)
        found.append(str(f"[{each.type}]" if text is None else text)[: max(room, 0)])
        room -= len(found[-1]) + 1
        if room <= 0:
            found.append(f"[the rest is left out: a result may have {_MAX_TEXT} characters]")
            break
    return "\n".join(found)


def _reason(error: BaseException) -> str:
    """The text of an error; of a group, such as that of the tasks of a client, the text of the first one in it."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return str(error)[:_MAX_REASON] or type(error).__name__


# --- Servers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Tool:
    """What is kept of a tool of a server."""

    name: str
    description: str
    input_schema: dict[str, Any] = field(repr=False)


class _ToolServer:
    """A server, with a task of its own: the task that connects it must also disconnect it."""

    def __init__(self, parameters: McpParameters, *, seconds: float) -> None:
        self.name = parameters.name
        self.client: Any = None
        self.tools: Sequence[_Tool] = ()
        self.error = ""
        self.tried = asyncio.Event()
        self._task = asyncio.create_task(self._run(parameters, seconds))

    async def close(self) -> None:
        self._task.cancel()
        self.tried.set()  # the task may not have begun
        await asyncio.wait({self._task})

    def _give_up(self, seconds: float) -> None:
        self._fail(f"it was not ready after {seconds:g} seconds")
        self._task.cancel()  # nobody waits until it has cleaned up

    def _fail(self, reason: str) -> None:
        if not self.error:
            self.error, self.tools = reason, ()
            _logger.warning("the MCP server %.80r cannot be used: %s", self.name, reason)
        self.tried.set()

    async def _run(self, parameters: McpParameters, seconds: float) -> None:
        try:
            library = _library()
        except Exception as error:  # whatever a library raises
            return self._fail(_reason(error))
        timer = asyncio.get_running_loop().call_later(seconds, self._give_up, seconds)
        try:
            async with _connected(library, parameters) as client:
                self.tools = await _listed(client, self.name)
                self.client = client
                timer.cancel()
                self.tried.set()
                await asyncio.Event().wait()  # until it is closed
        except Exception as error:  # whatever a library raises
            self._fail(_reason(error))
        finally:
            self.client = None
            timer.cancel()


async def _listed(client: Any, server: str) -> Sequence[_Tool]:
    """The tools of a server, of all pages."""
    found = dict[str, _Tool]()
    room, cursor, cursors = _MAX_BYTES, None, set[str]()
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for each in page.tools:
            tool = _Tool(name=each.name, description=each.description or "", input_schema=each.input_schema)
            room -= memory_of(tool)
            if room < 0 or len(found) == _MAX_TOOLS:
                return _cut(found, server)
            found.setdefault(tool.name, tool)
        cursor = page.next_cursor
        if cursor is None or cursor in cursors:
            return [*found.values()]
        if len(cursor) > MAX_ID:
            break
        cursors.add(cursor)
    return _cut(found, server)


def _cut(found: dict[str, _Tool], server: str) -> Sequence[_Tool]:
    _logger.warning("the MCP server %.80r has too many tools: %d of them are used", server, len(found))
    return [*found.values()]


def _library() -> Any:
    """The official SDK. It is imported here, as that takes a while, and not all sessions have servers."""
    try:
        return import_module("mcp")
    except ImportError:
        raise RuntimeError('its tools need the package mcp: pip install "mcp>=2.2,<3"') from None


@asynccontextmanager
async def _connected(mcp: Any, server: McpParameters) -> AsyncGenerator[Any, None]:
    """A client of the official SDK, connected to a server."""
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
