"""The MCP servers of a session as plain records, for any MCP library. Nothing here imports one.

Values of environment variables and headers, arguments, and all of a URL but its host and path are not in `repr`: they
may be secrets.

A client over the network must not start programs here, nor reach what only this machine or its network can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from .._base import UnsetType
from ..decision import explains
from ..errors import InvalidParamsError
from ..peer_kind import current_peer_kind
from ..types import McpServer
from .internal_urls import is_internal
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

_MAX_SERVERS: Final = 64
"""The most servers that a client over the network has in a session: the agent connects to each."""


@explains
def mcp_parameters(
    servers: Iterable[McpServer] | UnsetType,
    *,
    cwd: str | None = None,
    accept: Sequence[McpKind] = ("stdio", "http"),
    allow_local: bool | None = None,
) -> list[McpParameters]:
    """The `servers` of a request that opens a session, in their order; equal names stay apart.

    `cwd` is that of the session, in which processes start. `accept` are the kinds that the agent can use; it should
    advertise them, as by `mcp_capabilities`. Raises `InvalidParamsError` for a server of another kind, with its index.

    From a client over the network, three things are refused, too: programs; internal URLs, which are those of this
    machine and of private networks, as far as the URL tells (no host is looked up); and more than 64 servers. If
    `allow_local` is true, all clients may ask for them, and if it is false, none. By default, the connection whose
    message is being handled decides. Where that is not known, as in a thread that was not started with the context of
    the handler, they are taken unless the process has had a connection over the network.
    """
    is_local = current_peer_kind.get() != "network" if allow_local is None else allow_local
    given = [] if isinstance(servers, UnsetType) else [*servers]
    if not is_local and len(given) > _MAX_SERVERS:
        raise InvalidParamsError(f"mcpServers has {len(given)} MCP servers, and this agent takes {_MAX_SERVERS}")
    found = list[McpParameters]()
    for index, server in enumerate(given):
        kind = str(getattr(server, "type", "stdio"))  # protocol 1 has no tag for it
        if kind not in accept:
            text = f"mcpServers[{index}] is of type {kind[:80]!r}: this agent accepts {', '.join(accept) or 'none'}"
            raise InvalidParamsError(text, data={"index": index, "type": kind[:80]})
        if not is_local and (reason := _local_reason(server, kind)):
            text = f"mcpServers[{index}] {reason}, which this agent does not take from the network"
            raise InvalidParamsError(text, data={"index": index, "type": kind[:80]})
        found.append(_read(server, kind, cwd))
    return found


def _local_reason(server: Any, kind: str) -> str:
    """Why only a local client may ask for a server; empty if all may."""
    if kind == "stdio":
        return "is a program"
    return "is at an internal URL" if kind != "acp" and is_internal(server.url) else ""


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
