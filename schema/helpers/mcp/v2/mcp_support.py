"""The kinds of MCP servers that an agent accepts: how it advertises them, and how a client reads that."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from ..codec import decode
from ..decision import explains
from ..peer_kind import current_peer_kind
from ..types import InitializeResponse, McpCapabilities

__all__ = ["McpKind", "mcp_capabilities", "mcp_kinds"]

McpKind: TypeAlias = Literal["stdio", "http", "acp"]
"""How a server is reached. `acp` is through the connection with the client, by the extension `mcp-over-acp`."""


@explains
def mcp_capabilities(*accept: McpKind, allow_local: bool | None = None) -> McpCapabilities:
    """The `mcp` of the `session` capabilities for what `mcp_parameters` accepts, with the same `allow_local`.

    `acp` needs a package with the extension `mcp-over-acp`.
    """
    is_local = current_peer_kind.get() != "network" if allow_local is None else allow_local
    return decode(McpCapabilities, {kind: {} for kind in accept if is_local or kind != "stdio"})


@explains
def mcp_kinds(response: InitializeResponse) -> frozenset[McpKind]:
    """The kinds that an agent accepts, by its response to `initialize`."""
    session = response.capabilities.session
    able = session.mcp if session else None
    kinds: tuple[McpKind, ...] = get_args(McpKind)
    return frozenset(kind for kind in kinds if able and getattr(able, kind, None))
