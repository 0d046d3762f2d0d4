"""MCP servers at URLs of this computer, by Streamable HTTP, for whatever knows URLs alone.

It needs the packages `mcp` and `uvicorn`; the first brings the second.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from secrets import token_hex, token_urlsafe
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from ..types import HttpHeader, McpServerHttp
from .held_context import HeldContext
from .mcp_library import StreamableHTTPSessionManager, TransportSecuritySettings, low_level

_HOST = "127.0.0.1"
_MAX_STRANGERS = 16
"""The most connections that have not sent a token yet: any program and user of this computer can make them."""
_TOKEN_SECONDS = 5.0
"""The time until a connection has to have sent a token."""


class McpEndpoint:
    """A listener at a free port of 127.0.0.1, from the first server that is offered to `close`.

    Each server has a path and a token of its own. It handles `limit` requests at the same time, and as many sessions of
    clients that speak an MCP before 2026-07-28. `max_body` is the longest body of a request, in bytes. Of connections
    that have not sent a token, 16 stay open, the latest ones, for five seconds each.
    """

    def __init__(self, *, limit: int = 64, max_body: int = 2**20) -> None:
        self._limit = limit
        self._max_body = max_body
        self._mounts: dict[str, _Mount] = {}
        self._listener: _Listener | None = None

    async def offer(self, server: Any, *, name: str | None = None) -> McpServerHttp:
        """Start to serve, and return the entry for `mcp_servers`.

        Raises `TypeError` for what is no server, and `RuntimeError` if the endpoint is closed meanwhile.

        `server` is an `MCPServer` or a `Server` of the package `mcp`, or a `FastMCP` of the package `fastmcp` (4 or
        later). `name` is shown to people; by default it is that of the server. The entry has the token.
        """
        low = low_level(server)
        if self._listener is None:
            self._listener = _Listener(self._answer)
        listener = self._listener
        origin = f"{_HOST}:{listener.port}"
        manager = StreamableHTTPSessionManager(
            low,
            security_settings=TransportSecuritySettings(allowed_hosts=[origin]),
            max_request_body_size=self._max_body,
            max_sessions=self._limit,
        )
        mount = _Mount(
            f"Bearer {token_urlsafe()}", manager, HeldContext(manager.run(), name=f"the MCP server {low.name}")
        )
        await mount.running.start()
        if self._listener is not listener:
            await mount.running.stop()
            raise RuntimeError(f"the endpoint was closed before it served {low.name}")
        path = f"/mcp/{token_hex(8)}"
        self._mounts[path] = mount
        header = HttpHeader(name="Authorization", value=mount.authorization)
        return McpServerHttp(name=name or low.name, url=f"http://{origin}{path}", headers=[header])

    async def withdraw(self, entry: McpServerHttp) -> None:
        """Stop to serve what `offer` has returned; requests that are active end. Unknown entries are ignored."""
        mount = self._mounts.pop(urlsplit(entry.url).path, None)
        if mount is not None:
            await mount.running.stop()

    async def close(self) -> None:
        """Withdraw all servers, and stop to listen."""
        mounts, self._mounts = self._mounts, {}
        for mount in mounts.values():
            await mount.running.stop()
        listener, self._listener = self._listener, None
        if listener is not None:
            await listener.close()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI application."""
        mount = self._mounts.get(scope["path"])
        if mount is None:
            await _refuse(send, 404)
        elif not mount.allows(scope["headers"]):
            await _refuse(send, 401)
        elif mount.active >= self._limit:
            await _refuse(send, 429)
        else:
            if self._listener is not None:
                self._listener.strangers.admit(scope["client"])
            mount.active += 1
            try:
                await mount.manager.handle_request(scope, receive, send)
            finally:
                mount.active -= 1


async def _refuse(send: Any, status: int) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


@dataclass
class _Mount:
    """A server at a path."""

    authorization: str
    manager: StreamableHTTPSessionManager
    running: HeldContext[None]
    active: int = 0

    def allows(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """True if the headers of a request have the token."""
        given = [value for name, value in headers if name == b"authorization"]
        return len(given) == 1 and compare_digest(given[0], self.authorization.encode())


class _Strangers:
    """The connections that have not sent a token, by the address of the client. The oldest one makes room."""

    def __init__(self) -> None:
        self._open: dict[Any, tuple[asyncio.Transport, asyncio.TimerHandle]] = {}

    def add(self, transport: asyncio.Transport) -> None:
        """Note that a connection was made."""
        if len(self._open) >= _MAX_STRANGERS:
            self._close(next(iter(self._open)))
        client = transport.get_extra_info("peername")
        timer = asyncio.get_running_loop().call_later(_TOKEN_SECONDS, self._close, client)
        self._open[client] = transport, timer

    def admit(self, client: Any) -> asyncio.Transport | None:
        """Note that the client has sent a token, or has gone."""
        transport, timer = self._open.pop(client, (None, None))
        if timer is not None:
            timer.cancel()
        return transport

    def _close(self, client: Any) -> None:
        if (transport := self.admit(client)) is not None:
            transport.abort()


def _counting(protocol: Any, strangers: _Strangers) -> Any:
    """The class of protocols of `uvicorn`, whose connections are strangers first."""

    class Counting(protocol):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            parent: Any = super()
            parent.connection_made(transport)
            strangers.add(transport)

        def connection_lost(self, exc: Exception | None) -> None:
            strangers.admit(self.client)
            parent: Any = super()
            parent.connection_lost(exc)

    return Counting


class _Listener:
    """An HTTP server in a task of this event loop."""

    def __init__(self, application: Any) -> None:
        self.strangers = _Strangers()
        self._socket = socket.create_server((_HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            application,
            interface="asgi3",  # uvicorn takes a bound method for an application of ASGI 2
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of a client is its own
            backlog=_MAX_STRANGERS,  # as many are accepted at once
            timeout_graceful_shutdown=1,
        )
        config.load()
        config.http_protocol_class = _counting(config.http_protocol_class, self.strangers)
        self._server = _HttpServer(config)
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def close(self) -> None:
        self._server.should_exit = True
        await asyncio.wait({self._task})
        self._socket.close()


class _HttpServer(uvicorn.Server):
    """A server that leaves the signals to the program."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield
