"""The kinds of MCP servers that an agent accepts: how it advertises them, and how a client reads that."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from ..decision import explains
from ..types import InitializeResponse, McpCapabilities

__all__ = ["McpKind", "mcp_capabilities", "mcp_kinds"]

McpKind: TypeAlias = Literal["stdio", "http", "sse", "acp"]
"""How a server is reached. `acp` is through the connection with the client, by the extension `mcp-over-acp`."""


@explains
def mcp_capabilities(*accept: McpKind) -> McpCapabilities:
    """The `mcp_capabilities` of `AgentCapabilities` for what `mcp_parameters` accepts.

    There is none for `stdio`: by the protocol, all agents accept it. `acp` needs a package with the extension
    `mcp-over-acp`.
    """
    more: dict[str, Any] = {"acp": True} if "acp" in accept else {}
    return McpCapabilities(http="http" in accept, sse="sse" in accept, **more)


@explains
def mcp_kinds(response: InitializeResponse) -> frozenset[McpKind]:
    """The kinds that an agent accepts, by its response to `initialize`."""
    able = response.agent_capabilities.mcp_capabilities
    accepts: dict[McpKind, bool] = {
        "stdio": True,
        "http": able.http,
        "sse": able.sse,
        "acp": getattr(able, "acp", False),
    }
    return frozenset(kind for kind, is_accepted in accepts.items() if is_accepted)
