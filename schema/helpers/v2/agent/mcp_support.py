"""The capabilities of an agent for MCP servers."""

from __future__ import annotations

from typing import Literal

from .._base import UNSET
from ..types import McpCapabilities, McpHttpCapabilities, McpStdioCapabilities

__all__ = ["mcp_capabilities"]


def mcp_capabilities(*accept: Literal["stdio", "http"]) -> McpCapabilities:
    """The `mcp` of the `session` capabilities for what `mcp_parameters` accepts."""
    return McpCapabilities(
        stdio=McpStdioCapabilities() if "stdio" in accept else UNSET,
        http=McpHttpCapabilities() if "http" in accept else UNSET,
    )
