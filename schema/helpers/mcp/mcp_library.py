"""The names of the package `mcp` that the helpers for MCP use: 2.2 or later of it. No other helper imports it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any


def _found() -> str:
    """The version that is installed, for the error about one that will not do."""
    try:
        return f"{version('mcp')} is installed"
    except PackageNotFoundError:
        return "it is not installed"


_NEEDED = f"the helpers for MCP need the package mcp, 2.2 or later and below 3: {_found()}"
if _found().startswith(("0.", "1.", "2.0.", "2.1.")):
    raise ImportError(_NEEDED)

try:
    import anyio as anyio
    from mcp import MCPError as MCPError
    from mcp.server import Server as Server
    from mcp.server.connection import Connection as Connection
    from mcp.server.runner import modern_error_data as modern_error_data
    from mcp.server.runner import serve_one as serve_one
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager as StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings as TransportSecuritySettings
    from mcp.shared.dispatcher import CallOptions as CallOptions
    from mcp.shared.exceptions import NoBackChannelError as NoBackChannelError
    from mcp.shared.inbound import InboundLadderRejection as InboundLadderRejection
    from mcp.shared.inbound import classify_inbound_request as classify_inbound_request
    from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params as cancelled_request_id_from_params
    from mcp.shared.jsonrpc_dispatcher import progress_token_from_params as progress_token_from_params
    from mcp.shared.message import SessionMessage as SessionMessage
    from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY as SUBSCRIPTION_ID_META_KEY
    from mcp.shared.transport_context import TransportContext as TransportContext
    from mcp_types import ErrorData as ErrorData
    from mcp_types import JSONRPCError as JSONRPCError
    from mcp_types import JSONRPCNotification as JSONRPCNotification
    from mcp_types import JSONRPCRequest as JSONRPCRequest
    from mcp_types import JSONRPCResponse as JSONRPCResponse
    from mcp_types import RequestId as RequestId
except ImportError as error:
    raise ImportError(_NEEDED) from error


def low_level(server: Any) -> Server[Any]:
    """The server below the convenient classes, which give it under a private name only.

    Raises `TypeError` for what is no server.
    """
    inner = (getattr(server, name, None) for name in ("_lowlevel_server", "_mcp_server"))
    found: list[Any] = [each for each in (*inner, server) if isinstance(each, Server)]
    if not found:
        raise TypeError("an MCP server is a `Server` or `MCPServer` of mcp 2, or a `FastMCP` of fastmcp 4")
    low: Server[Any] = found[0]
    return low
