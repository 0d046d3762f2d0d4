"""MCP servers that a client or a proxy offers to the agent. It needs the package `mcp`.

A client makes an `McpProvider` of its stub, returns `await provider.handle(params)` from `mcp_message`, and closes it
in `connection_closed`. The entry that `offer` returns goes into the `mcp_servers` of a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final

from .._base import UNSET
from ..closed_gates import CapabilityError
from ..dispatch import ConnectionClosed
from ..errors import InvalidParamsError, RequestCancelledError, RequestError
from ..types import (
    McpError,
    McpServerAcp,
    McpServerHttp,
    MessageMcpNotification,
    MessageMcpRequest,
    MessageMcpResponse,
    MessageMcpResponseError,
    MessageMcpResponseResult,
)
from .held_context import HeldContext
from .mcp_endpoint import McpEndpoint
from .mcp_library import (
    CallOptions,
    Connection,
    InboundLadderRejection,
    NoBackChannelError,
    Server,
    TransportContext,
    anyio,
    classify_inbound_request,
    low_level,
    modern_error_data,
    progress_token_from_params,
    serve_one,
)
from .mcp_support import McpKind, mcp_kinds

__all__ = ["McpProvider"]

_logger: Final = logging.getLogger("acp")
_TOO_MANY: Final = -33000
_UNKNOWN_SERVER: Final = -33001
_FAILED: Final = -33002
_MAX_ID: Final = 256
"""The longest `request_id`, in characters: the ids of active requests are kept."""


class McpProvider:
    """The MCP servers of one connection. `limit` is the number of requests that a server handles at the same time."""

    def __init__(self, agent: Any, *, limit: int = 64) -> None:
        self._agent = agent
        self._limit = limit
        self._offers: dict[str, _Offer] = {}
        self._endpoint = McpEndpoint(limit=limit)

    def __contains__(self, server_id: object) -> bool:
        """True for the id of a server that is offered here: a proxy passes on requests for all others."""
        return server_id in self._offers

    async def offer(self, server: Any, *, name: str | None = None) -> McpServerAcp | McpServerHttp:
        """Start to serve, and return the entry for `mcp_servers`.

        The server is reached through the connection, or at a URL of this computer if the agent has advertised `http`
        and not `acp`. `server` is an `MCPServer` or a `Server` of the package `mcp`, or a `FastMCP` of the package
        `fastmcp` (4 or later). `name` is shown to people; by default it is that of the server. Raises `TypeError` for
        what is no server, and `CapabilityError` if the agent has advertised neither.
        """
        kinds = self._kinds()
        if "acp" in kinds:
            return await self._offer(low_level(server), name)
        if "http" in kinds:
            return await self._endpoint.offer(server, name=name)
        method = self._agent.METHODS["mcp/message"]
        raise CapabilityError(method.name, method.capability)

    def _kinds(self) -> frozenset[McpKind]:
        """The kinds of servers that the agent accepts. A proxy that passes on `initialize` does not know them."""
        response = getattr(self._agent, "negotiated", None)
        return frozenset({"acp"}) if response is None else mcp_kinds(response)

    async def _offer(self, server: Server[Any], name: str | None) -> McpServerAcp:
        offer = _Offer(server, self._limit)
        await offer.start()
        server_id = token_hex(8)
        self._offers[server_id] = offer
        return McpServerAcp(name=name or server.name, server_id=server_id)

    async def withdraw(self, entry: McpServerAcp | McpServerHttp) -> None:
        """Stop to serve what `offer` has returned, as when its session ends. Requests that are active are cancelled.

        Unknown entries are ignored.
        """
        if isinstance(entry, McpServerHttp):
            await self._endpoint.withdraw(entry)
        elif offer := self._offers.pop(entry.server_id, None):
            await offer.stop()

    async def close(self) -> None:
        """Withdraw all servers."""
        offers, self._offers = self._offers, {}
        for offer in offers.values():
            await offer.stop()
        await self._endpoint.close()

    async def handle(self, params: MessageMcpRequest) -> MessageMcpResponse:
        """The response to a request of the agent. Raises `RequestError` if no server can answer it."""
        offer = self._offers.get(params.server_id)
        if offer is None:
            text = "MCP server registration unavailable: there is no such server, or it was withdrawn"
            raise RequestError(text, code=_UNKNOWN_SERVER, data={"serverId": params.server_id[:_MAX_ID]})
        offer.check(params.request_id)
        task = asyncio.ensure_future(self._respond(offer, params))
        offer.active[params.request_id] = task
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            if task.cancelled():
                raise
        finally:
            del offer.active[params.request_id]
        if task.cancelled():
            raise RequestCancelledError("the MCP server was withdrawn")
        if error := task.exception():  # it may have texts of the server, so the agent does not get it
            _logger.error("the MCP server %s failed", offer.server.name, exc_info=error)
            raise RequestError("MCP server handler failed", code=_FAILED)
        return task.result()

    async def _respond(self, offer: _Offer, request: MessageMcpRequest) -> MessageMcpResponse:
        params = request.params if isinstance(request.params, dict) else None
        route = classify_inbound_request({"method": request.method, "params": params})
        if isinstance(route, InboundLadderRejection):
            data = UNSET if route.data is None else route.data
            return MessageMcpResponseError(error=McpError(code=route.code, message=route.message, data=data))
        context = _Context(self._agent, request, progress_token_from_params(params))
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        try:
            result = await serve_one(
                offer.server, context, request.method, params, connection=connection, lifespan_state=offer.state
            )
        except Exception as error:  # of a handler of the user's: it becomes an error of MCP
            found = modern_error_data(error).model_dump(mode="json", exclude_unset=True)
            data = found.get("data", UNSET)
            return MessageMcpResponseError(error=McpError(code=found["code"], message=found["message"], data=data))
        finally:
            context.is_over = True
        return MessageMcpResponseResult(result=result)


class _Offer:
    """A server that is offered, and the requests to it."""

    def __init__(self, server: Server[Any], limit: int) -> None:
        self.server = server
        self.state: Any = None
        self.active: dict[str, asyncio.Task[MessageMcpResponse]] = {}
        self._limit = limit
        self._lifespan = HeldContext(server.lifespan(server), name=f"the MCP server {server.name}")

    async def start(self) -> None:
        """Enter the lifespan of the server. Raises what it raises."""
        self.state = await self._lifespan.start()

    async def stop(self) -> None:
        """Cancel the active requests, and leave the lifespan."""
        for task in self.active.values():
            task.cancel()
        if self.active:
            await asyncio.wait(self.active.values())
        await self._lifespan.stop()

    def check(self, request_id: str) -> None:
        """Raise `RequestError` if a request with this id cannot be handled now."""
        if len(request_id) > _MAX_ID:
            raise InvalidParamsError(f"requestId is longer than {_MAX_ID} characters")
        if request_id in self.active:
            raise InvalidParamsError("a request with this requestId is active", data={"requestId": request_id})
        if len(self.active) >= self._limit:
            text = f"MCP-over-ACP active request limit exceeded: the limit is {self._limit}"
            raise RequestError(text, code=_TOO_MANY)


@dataclass
class _Context:
    """What `mcp` needs of a connection for one request: the notifications about it go to the agent."""

    agent: Any
    request: MessageMcpRequest
    progress_token: Any
    is_over: bool = False
    can_send_request: bool = False
    message_metadata: None = None
    transport: TransportContext = field(default_factory=lambda: TransportContext(kind="acp", can_send_request=False))
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    @property
    def request_id(self) -> str:
        """The id of the request."""
        return self.request.request_id

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse a request of the server: it asks by its result."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification about the request, if it is not over."""
        if self.is_over:
            return
        given = UNSET if params is None else dict(params)
        message = MessageMcpNotification(
            server_id=self.request.server_id, request_id=self.request_id, method=method, params=given
        )
        with contextlib.suppress(ConnectionClosed):
            await self.agent.mcp_message_notification(message)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the caller has asked for that."""
        if self.progress_token is not None:
            more = {"total": total, "message": message}
            given = {key: each for key, each in more.items() if each is not None}
            params = {"progressToken": self.progress_token, "progress": progress, **given}
            await self.notify("notifications/progress", params)
