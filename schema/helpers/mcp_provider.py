"""MCP servers that a client or a proxy offers to the agent through the connection. It needs the package `mcp`.

A client makes an `McpProvider` of its stub, returns `await provider.handle(params)` from `mcp_message`, and closes it
in `connection_closed`. The entry that `offer` returns goes into the `mcp_servers` of a session, if the agent has
advertised `acp` for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final

import anyio
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.transport_context import TransportContext

from .._base import UNSET
from ..dispatch import ConnectionClosed
from ..errors import InvalidParamsError, RequestCancelledError, RequestError
from ..types import (
    McpError,
    McpServerAcp,
    MessageMcpNotification,
    MessageMcpRequest,
    MessageMcpResponse,
    MessageMcpResponseError,
    MessageMcpResponseResult,
)

__all__ = ["McpProvider"]

_logger: Final = logging.getLogger("acp")
_TOO_MANY: Final = -33000
_UNKNOWN_SERVER: Final = -33001
_MAX_ID: Final = 256
"""The longest `request_id`, in characters: the ids of active requests are kept."""


class McpProvider:
    """The MCP servers of one connection. `limit` is the number of requests that a server handles at the same time."""

    def __init__(self, agent: Any, *, limit: int = 64) -> None:
        self._agent = agent
        self._limit = limit
        self._offers: dict[str, _Offer] = {}

    def __contains__(self, server_id: object) -> bool:
        """True for the id of a server that is offered here: a proxy passes on requests for all others."""
        return server_id in self._offers

    async def offer(self, server: Any, *, name: str | None = None) -> McpServerAcp:
        """Start to serve, and return the entry for `mcp_servers`. Raises `TypeError` for what is no server.

        `server` is an `MCPServer` or a `Server` of the package `mcp`, or a `FastMCP` of the package `fastmcp` (4 or
        later). `name` is shown to people; by default it is that of the server.
        """
        low = _low_level(server)
        offer = _Offer(low, self._limit)
        await offer.start()
        server_id = token_hex(8)
        self._offers[server_id] = offer
        return McpServerAcp(name=name or low.name, server_id=server_id)

    async def withdraw(self, server_id: str) -> None:
        """Stop to serve: as when its session ends. Requests that are active are cancelled. Unknown ids are ignored."""
        offer = self._offers.pop(server_id, None)
        if offer is not None:
            await offer.stop()

    async def close(self) -> None:
        """Withdraw all servers."""
        for server_id in [*self._offers]:
            await self.withdraw(server_id)

    async def handle(self, params: MessageMcpRequest) -> MessageMcpResponse:
        """The response to a request of the agent. Raises `RequestError` if no server can answer it."""
        offer = self._offers.get(params.server_id)
        if offer is None:
            text = "there is no such MCP server, or it was withdrawn"
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
        except Exception as error:  # noqa: BLE001  of a handler of the user's: it becomes an error of MCP
            found = modern_error_data(error).model_dump(mode="json", exclude_unset=True)
            data = found.get("data", UNSET)
            return MessageMcpResponseError(error=McpError(code=found["code"], message=found["message"], data=data))
        finally:
            context.is_over = True
        return MessageMcpResponseResult(result=result)


def _low_level(server: Any) -> Server[Any]:
    """The server below the convenient classes, which give it under a private name only."""
    inner = (getattr(server, name, None) for name in ("_lowlevel_server", "_mcp_server"))
    found: list[Any] = [each for each in (*inner, server) if isinstance(each, Server)]
    if not found:
        raise TypeError("an MCP server is a `Server` or `MCPServer` of mcp 2, or a `FastMCP` of fastmcp 4")
    low: Server[Any] = found[0]
    return low


class _Offer:
    """A server that is offered. Its lifespan has a task of its own, which has to leave what it has entered."""

    def __init__(self, server: Server[Any], limit: int) -> None:
        self.server = server
        self.state: Any = None
        self.active: dict[str, asyncio.Task[MessageMcpResponse]] = {}
        self._limit = limit
        self._started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Enter the lifespan of the server. Raises what it raises."""
        self._task = asyncio.create_task(self._run())
        await self._started

    async def stop(self) -> None:
        """Cancel the active requests, and leave the lifespan."""
        for task in self.active.values():
            task.cancel()
        if self.active:
            await asyncio.wait(self.active.values())
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait({self._task})

    def check(self, request_id: str) -> None:
        """Raise `RequestError` if a request with this id cannot be handled now."""
        if len(request_id) > _MAX_ID:
            raise InvalidParamsError(f"requestId is longer than {_MAX_ID} characters")
        if request_id in self.active:
            raise InvalidParamsError("a request with this requestId is active", data={"requestId": request_id})
        if len(self.active) >= self._limit:
            raise RequestError(f"too many requests at the same time; the limit is {self._limit}", code=_TOO_MANY)

    async def _run(self) -> None:
        try:
            async with self.server.lifespan(self.server) as self.state:
                self._started.set_result(None)
                await self._stopping.wait()
        except Exception as error:
            if self._started.done():
                _logger.exception("the MCP server %.80r failed to stop", self.server.name)
            else:
                self._started.set_exception(error)


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
