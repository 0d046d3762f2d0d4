"""The MCP servers of a session as plain records, for any MCP library. Nothing here imports one.

Values of environment variables and headers, arguments, and all of a URL but its host and path are not in `repr`: they
may be secrets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from .._base import UnsetType
from ..errors import InvalidParamsError
from ..types import McpServer
from .mcp_support import McpKind

__all__ = ["AcpParameters", "HttpParameters", "McpParameters", "StdioParameters", "mcp_parameters"]


@dataclass(frozen=True, kw_only=True)
class StdioParameters:
    """A server that is started as a process: the arguments of `StdioServerParameters` of the package `mcp`."""

    name: str
    command: str
    args: list[str] = field(repr=False)
    env: dict[str, str] = field(repr=False)
    """What the client adds to the environment. Of two variables with one name, the last counts."""
    cwd: str | None
    meta: dict[str, Any] | None = field(default=None, repr=False)
    kind: Literal["stdio"] = field(default="stdio", init=False)


@dataclass(frozen=True, kw_only=True)
class HttpParameters:
    """A server at a URL: Streamable HTTP, or HTTP with server-sent events, which is older."""

    name: str
    url: str = field(repr=False)
    headers: list[tuple[str, str]] = field(repr=False)
    """The headers to send with each request, in their order; a name may occur more than once."""
    kind: Literal["http", "sse"] = "http"
    meta: dict[str, Any] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The name and the URL, without what may be a secret."""
        parts = urlsplit(self.url)
        return f"{self.name} at {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@dataclass(frozen=True, kw_only=True)
class AcpParameters:
    """A server that the client offers through the connection."""

    name: str
    server_id: str
    meta: dict[str, Any] | None = field(default=None, repr=False)
    kind: Literal["acp"] = field(default="acp", init=False)


McpParameters: TypeAlias = StdioParameters | HttpParameters | AcpParameters


def mcp_parameters(
    servers: Iterable[McpServer] | UnsetType, *, cwd: str | None = None, accept: Sequence[McpKind] = ("stdio", "http")
) -> list[McpParameters]:
    """The `servers` of a request that opens a session, in their order; equal names stay apart.

    `cwd` is that of the session, in which processes start. `accept` are the kinds that the agent can use; it should
    advertise them, as by `mcp_capabilities`. Raises `InvalidParamsError` for a server of another kind, with its index.
    """
    found = list[McpParameters]()
    for index, server in enumerate([] if isinstance(servers, UnsetType) else servers):
        kind = str(getattr(server, "type", "stdio"))  # protocol 1 has no tag for it
        if kind not in accept:
            text = f"mcpServers[{index}] is of type {kind[:80]!r}: this agent accepts {', '.join(accept) or 'none'}"
            raise InvalidParamsError(text, data={"index": index, "type": kind[:80]})
        found.append(_read(server, kind, cwd))
    return found


def _read(server: Any, kind: str, cwd: str | None) -> McpParameters:
    name, meta = server.name, _given(server.meta, None)
    if kind == "stdio":
        env = {each.name: each.value for each in _given(server.env, ())}
        return StdioParameters(
            name=name, command=server.command, args=[*_given(server.args, ())], env=env, cwd=cwd, meta=meta
        )
    if kind == "acp":
        return AcpParameters(name=name, server_id=server.server_id, meta=meta)
    headers = [(each.name, each.value) for each in _given(server.headers, ())]
    return HttpParameters(
        name=name, url=server.url, headers=headers, kind="sse" if kind == "sse" else "http", meta=meta
    )


def _given(value: Any, default: Any) -> Any:
    return default if isinstance(value, UnsetType) else value
