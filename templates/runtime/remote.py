"""Connects a client to an agent on the network, over Streamable HTTP or WebSocket.

    async with connect_http(MyClient, "https://agent.example.com/acp") as agent:
        ...

This module needs Python 3.11 and httpx2 with HTTP/2 and WebSocket (`pip install "httpx2[http2,ws]"`). Nothing else in
the package imports it. TLS, proxies, headers, query parameters, cookies and time-outs are those of an
`httpx2.AsyncClient`: pass one to set them. Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, overload

from .envelope import keep_objects
from .options import ConnectionOptions
from .spawn import AgentConnection
from .transport import Transport
from .versions import AnyClientFactory, AnyConnection, AnyParams, C, ClientFactory

try:
    import httpx2

    from .remote_http import HttpClientTransport, WebSocketOnly
    from .remote_socket import SocketClientTransport
except ImportError as error:
    raise ImportError(
        'connections to an agent on the network need Python 3.11, and: pip install "httpx2[http2,ws]"'
    ) from error

__all__ = ["connect_http", "connect_url", "connect_websocket"]

_SILENCE_SECONDS: Final = 60.0
_PING_SECONDS: Final = 20.0


@overload
def connect_http(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    client: httpx2.AsyncClient | None = None,
    silence_seconds: float | None = _SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_http(
    factory: ClientFactory[C],
    url: str,
    *,
    client: httpx2.AsyncClient | None = None,
    silence_seconds: float | None = _SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
def connect_http(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    client: httpx2.AsyncClient | None = None,
    silence_seconds: float | None = _SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` over Streamable HTTP; the end of the block closes the connection.

    `factory`, `params` and the block are those of `connect`. The client that is made without `client` speaks HTTP/2;
    where `url` has no TLS, the server has to know. The connection is lost if nothing arrives on a stream for
    `silence_seconds`: servers send a comment every 15 seconds. None waits forever.

    Calls raise `ConnectionClosed` once the connection is lost. Messages that were under way are lost with it: connect
    again, and load or resume the session. A message of the server that exceeds `max_message_bytes` ends the connection.
    """
    options = options or ConnectionOptions()
    transport = HttpClientTransport(url, options, silence_seconds)
    opening = _open_http(transport, url, client)
    return AgentConnection(factory, opening, keep_objects(options, transport.see), params)


@contextlib.asynccontextmanager
async def _open_http(
    transport: HttpClientTransport, url: str, client: httpx2.AsyncClient | None
) -> AsyncGenerator[Transport, None]:
    async with _own_or(client, **_http_settings(url)) as transport.client:
        yield transport


def _http_settings(url: str) -> dict[str, bool]:
    """HTTP/2 in any case: over TLS the server agrees to it, without TLS it has to know."""
    return {"http1": not url.startswith("http://"), "http2": True}


@overload
def connect_websocket(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    client: httpx2.AsyncClient | None = None,
    subprotocols: Sequence[str] = (),
    ping_seconds: float | None = _PING_SECONDS,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_websocket(
    factory: ClientFactory[C],
    url: str,
    *,
    client: httpx2.AsyncClient | None = None,
    subprotocols: Sequence[str] = (),
    ping_seconds: float | None = _PING_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
def connect_websocket(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    client: httpx2.AsyncClient | None = None,
    subprotocols: Sequence[str] = (),
    ping_seconds: float | None = _PING_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` over WebSocket; the end of the block closes the connection.

    `factory`, `params` and the block are those of `connect`. A `client` must not offer HTTP/2 (`http2=False`).
    `subprotocols` are offered to the server. A ping is sent every `ping_seconds`; the connection is lost if no answer
    arrives within as many. None sends none.

    Entering the block raises `ConnectionClosed` if the server refuses; later, the same holds as for `connect_http`.
    """
    options = options or ConnectionOptions()
    transport = SocketClientTransport(url, subprotocols, ping_seconds, options)
    return AgentConnection(factory, _open_socket(transport, client), options, params)


@contextlib.asynccontextmanager
async def _open_socket(
    transport: SocketClientTransport, client: httpx2.AsyncClient | None, **settings: Any
) -> AsyncGenerator[Transport, None]:
    async with _own_or(client, **settings) as transport.client:
        await transport.open()
        yield transport


@overload
def connect_url(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_url(
    factory: ClientFactory[C],
    url: str,
    *,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
def connect_url(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` by what the URL says; the end of the block closes the connection.

    "ws" and "wss" stand for WebSocket. For "http" and "https", Streamable HTTP is tried first, and WebSocket if the
    server has no Streamable HTTP. `settings` are arguments for each `httpx2.AsyncClient` that is made, like `headers`.
    """
    options, settings = options or ConnectionOptions(), settings or {}
    socket = SocketClientTransport(url, (), _PING_SECONDS, options)
    if url.startswith(("ws://", "wss://")):
        return AgentConnection(factory, _open_socket(socket, None, **settings), options, params)
    http = HttpClientTransport(url, options, _SILENCE_SECONDS)
    opening = _open_either(http, socket, {**_http_settings(url), **settings}, settings)
    return AgentConnection(factory, opening, keep_objects(options, http.see), params)


@contextlib.asynccontextmanager
async def _open_either(
    http: HttpClientTransport,
    socket: SocketClientTransport,
    http_settings: Mapping[str, Any],
    socket_settings: Mapping[str, Any],
) -> AsyncGenerator[Transport, None]:
    async with (
        httpx2.AsyncClient(**http_settings) as http.client,
        httpx2.AsyncClient(**socket_settings) as socket.client,
    ):
        yield _EitherTransport(http, socket)


def _own_or(client: httpx2.AsyncClient | None, **settings: Any) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
    """The client of the caller, which stays open, or a new one."""
    return httpx2.AsyncClient(**settings) if client is None else contextlib.nullcontext(client)


class _EitherTransport:
    """Streamable HTTP, or WebSocket if the server refuses the first message because it has no Streamable HTTP."""

    def __init__(self, http: HttpClientTransport, socket: SocketClientTransport) -> None:
        self._http = http
        self._socket = socket
        self._lock = asyncio.Lock()
        self._chosen: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes | None:
        """The next message; None at the end."""
        return await (await asyncio.shield(self._chosen)).read()

    async def write(self, message: bytes) -> None:
        """Send a message; the first one chooses."""
        async with self._lock:
            if not self._chosen.done():
                await self._choose(message)
                return
        await self._chosen.result().write(message)

    async def _choose(self, message: bytes) -> None:
        transport: Transport = self._http
        try:
            await self._http.write(message)
        except WebSocketOnly:
            await self._socket.open()
            transport = self._socket
            await transport.write(message)
        self._chosen.set_result(transport)

    async def close(self) -> None:
        """Close both."""
        self._chosen.cancel()
        await self._http.close()
        await self._socket.close()
