"""The capabilities of an agent for MCP servers."""

from __future__ import annotations

from typing import Literal

from ..types import McpCapabilities

__all__ = ["mcp_capabilities"]


def mcp_capabilities(*accept: Literal["stdio", "http", "sse"]) -> McpCapabilities:
    """The `mcp_capabilities` of `AgentCapabilities` for what `mcp_parameters` accepts; all agents accept `stdio`."""
    return McpCapabilities(http="http" in accept, sse="sse" in accept)
