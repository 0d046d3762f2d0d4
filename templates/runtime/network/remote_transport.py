"""Opens transports that lead to an agent on the network, over Streamable HTTP and WebSocket.

    async with open_url("wss://agent.example.com/acp") as transport:
        ...

WebSocket needs `pip install "websockets>=15"`. Streamable HTTP needs Python 3.11 and `pip install "httpx2[http2]"`.
Each library is imported by the first connection that needs it, and by nothing else in the package. TLS, proxies,
headers, time-outs and authentication are settings of these libraries, which a caller may pass.

Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from ..dispatch import ConnectionClosed
from ..message import Message, Unreadable
from ..options import ConnectionOptions, options_or_default
from ..transport import Transport, Wire, wire_for
from .remote_failures import address
from .shared_memory import SharedMemory

if TYPE_CHECKING:
    from .remote_http import HttpClientTransport
    from .remote_socket import SocketClientTransport

__all__ = ["open_http", "open_url", "open_websocket"]

SILENCE_SECONDS: Final = 60.0
_HTTP: Final = frozenset({"http", "https"})
_SOCKET: Final = _HTTP | {"ws", "wss"}


def open_http(
    url: str,
    *,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    silence_seconds: float | None = SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AbstractAsyncContextManager[Transport]:
    """Open a transport over Streamable HTTP; the end of the block closes it. The first message connects.

    `settings` are arguments for `httpx2.AsyncClient`, such as `headers` or `verify`; without any, it speaks HTTP/2,
    even where `url` has no TLS. Each stream has a client of its own, so `transport` and `mounts` cannot be among them.
    `cookies` keeps the server's cookies: pass the same jar when you connect again, and a load balancer finds the same
    server.

    The connection is lost if nothing arrives on a stream for `silence_seconds`: servers send a comment every 15
    seconds. None waits forever. A message of the server that exceeds `max_message_bytes` ends the connection.

    Raises `ValueError` for any other URL.
    """
    _check_url(url, _HTTP)
    transport = _make_http(url, options_or_default(options), silence_seconds)
    return _open_http(transport, _http_settings(url, cookies, settings))


def open_websocket(
    url: str,
    *,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AbstractAsyncContextManager[Transport]:
    """Open a transport over WebSocket; the end of the block closes it.

    `settings` are arguments for `websockets.connect`, such as `additional_headers`, `subprotocols`, `ssl` or `proxy`.
    Messages are not compressed without `compression="deflate"`. A ping is sent every 20 seconds, and the connection is
    lost if no answer arrives within as many (`ping_interval`, `ping_timeout`). `cookies` are those of `open_http`.

    Entering the block raises `ConnectionClosed` if the server refuses, which a redirect is, too.
    """
    _check_url(url, _SOCKET)
    return _open_socket(url, cookies, settings, options_or_default(options))


def open_url(
    url: str,
    *,
    cookies: CookieJar | None = None,
    headers: Mapping[str, str] | None = None,
    options: ConnectionOptions | None = None,
) -> AbstractAsyncContextManager[Transport]:
    """Open a transport by what the URL says; the end of the block closes it.

    "ws" and "wss" stand for WebSocket. For "http" and "https", Streamable HTTP is tried first, and then WebSocket if
    the server has no Streamable HTTP. `headers` go with each request.
    """
    check_url(url)
    options, cookies = options_or_default(options), CookieJar() if cookies is None else cookies
    socket = _open_socket(url, cookies, {"additional_headers": headers}, options)
    if url.startswith(("ws://", "wss://")):
        return socket
    http = _make_http(url, options, SILENCE_SECONDS)
    return _open_either(http, _http_settings(url, cookies, {"headers": headers}), socket, wire_for(options))


def check_url(url: str) -> None:
    """Raise `ValueError` for a URL that `open_url` does not accept."""
    _check_url(url, _SOCKET)


def _check_url(url: str, schemes: frozenset[str]) -> None:
    """Raise `ValueError` for an invalid URL. The text does not show the URL, which may have secrets."""
    if urlsplit(url).scheme not in schemes:
        raise ValueError(f"the URL must start with {' or '.join(f'{each}://' for each in sorted(schemes))}")
    try:
        address(url)
    except ValueError as error:
        raise ValueError(f"the URL is invalid: {error}") from None


@contextlib.asynccontextmanager
async def _open_http(transport: HttpClientTransport, settings: Mapping[str, Any]) -> AsyncGenerator[Transport, None]:
    from .remote_post import client_maker

    transport.use(client_maker(settings, transport.silence_seconds))
    try:
        yield transport
    finally:
        await transport.poster.close()


def _make_http(url: str, options: ConnectionOptions, silence_seconds: float | None) -> HttpClientTransport:
    try:
        from .remote_http import HttpClientTransport
    except ImportError as error:
        raise ImportError('Streamable HTTP needs Python 3.11, and: pip install "httpx2[http2]"') from error
    return HttpClientTransport(url, options, silence_seconds)


def _http_settings(url: str, cookies: CookieJar | None, settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """HTTP/2 is agreed on over TLS; without TLS, the server has to know."""
    versions = {"http1": not url.startswith("http://"), "http2": True}
    return {**versions, **(settings or {}), **({} if cookies is None else {"cookies": cookies})}


def _open_socket(
    url: str, cookies: CookieJar | None, settings: Mapping[str, Any] | None, options: ConnectionOptions
) -> AbstractAsyncContextManager[SocketClientTransport]:
    try:
        from .remote_socket import open_socket
    except ImportError as error:
        raise ImportError('WebSocket needs: pip install "websockets>=15"') from error
    return open_socket(url, CookieJar() if cookies is None else cookies, settings or {}, options)


@contextlib.asynccontextmanager
async def _open_either(
    http: HttpClientTransport,
    settings: Mapping[str, Any],
    socket: AbstractAsyncContextManager[SocketClientTransport],
    wire: Wire,
) -> AsyncGenerator[Transport, None]:
    async with _open_http(http, settings), contextlib.AsyncExitStack() as stack:
        yield _EitherTransport(http, socket, stack, wire)


class _EitherTransport:
    """Streamable HTTP, or WebSocket if the server refuses the first message because it has no Streamable HTTP."""

    def __init__(
        self,
        http: HttpClientTransport,
        socket: AbstractAsyncContextManager[SocketClientTransport],
        stack: contextlib.AsyncExitStack,
        wire: Wire,
    ) -> None:
        self._http = http
        self._socket = socket
        self._stack = stack
        self._wire = wire
        self.budget = SharedMemory()
        self._choosing: asyncio.Task[HttpClientTransport | SocketClientTransport] | None = None
        self._has_begun = asyncio.Event()

    async def read(self) -> Message | Unreadable | None:
        """The next message; None at the end."""
        await self._has_begun.wait()
        return await (await self._chosen()).read()

    def send(self, message: Message) -> Awaitable[None]:
        """Send a message; returns what is left to await. The first one chooses."""
        return self._send(self._wire.write(message), message)

    async def _send(self, line: bytes, message: Message) -> None:
        if self._choosing is None:
            self._choosing = asyncio.create_task(self._choose(line, message))
            self._has_begun.set()
            await self._chosen()
        else:
            await (await self._chosen()).send_line(line, message)

    async def _chosen(self) -> HttpClientTransport | SocketClientTransport:
        """Wait for the choice; cancelling the caller does not interrupt it. Raises `ConnectionClosed`."""
        if self._choosing is None:
            raise ConnectionClosed("nothing was sent")
        await asyncio.wait({self._choosing})
        if self._choosing.cancelled():
            raise ConnectionClosed("this side has closed the connection")
        return self._choosing.result()

    async def _choose(self, line: bytes, message: Message) -> HttpClientTransport | SocketClientTransport:
        from .remote_http import WebSocketOnly

        try:
            await self._http.send_line(line, message)
        except WebSocketOnly:
            socket = await self._stack.enter_async_context(self._socket)
            await socket.send_line(line, message)
            return socket
        return self._http

    async def close(self) -> None:
        """Close the transport that was chosen, and the one that was tried before."""
        if self._choosing is not None:
            self._choosing.cancel()
            await asyncio.gather(self._choosing, return_exceptions=True)
        await self._http.close()
        await self._stack.aclose()
