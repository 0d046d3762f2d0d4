"""Connects a client to an agent on the network, over Streamable HTTP or WebSocket.

    async with connect_websocket(MyClient, "wss://agent.example.com/acp") as agent:
        ...

WebSocket needs `pip install "websockets>=15"`. Streamable HTTP needs Python 3.11 and `pip install "httpx2[http2]"`.
Each library is imported by the first connection that needs it, and by nothing else in the package. TLS, proxies,
headers, time-outs and authentication are settings of these libraries, which a caller may pass.

Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar
from typing import Any, overload

from ._runtime.decision import explains
from ._runtime.network.remote_transport import SILENCE_SECONDS, open_http, open_url, open_websocket
from ._runtime.options import ConnectionOptions, options_or_default
from ._runtime.spawn import AgentConnection
from .methods import AnyClientFactory, AnyConnection, AnyParams, C, ClientFactory

__all__ = ["connect_http", "connect_url", "connect_websocket"]


@overload
def connect_http(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    silence_seconds: float | None = SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_http(
    factory: ClientFactory[C],
    url: str,
    *,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    silence_seconds: float | None = SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
@explains
def connect_http(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    silence_seconds: float | None = SILENCE_SECONDS,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` over Streamable HTTP; the end of the block closes the connection.

    `factory`, `params` and the block are those of `connect`. `settings` are arguments for `httpx2.AsyncClient`, such as
    `headers` or `verify`; without any, it speaks HTTP/2, even where `url` has no TLS. Each stream has a client of its
    own, so `transport` and `mounts` cannot be among them. `cookies` keeps the server's cookies: pass the same jar when
    you connect again, and a load balancer finds the same server.

    The connection is lost if nothing arrives on a stream for `silence_seconds`: servers send a comment every 15
    seconds. None waits forever. Once it is lost, calls raise `ConnectionClosed`, and messages that were under way are
    lost: connect again, and load or resume the session. A message of the server that exceeds `max_message_bytes` ends
    the connection. Raises `ValueError` for any other URL.
    """
    options = options_or_default(options)
    opening = open_http(url, cookies=cookies, settings=settings, silence_seconds=silence_seconds, options=options)
    return AgentConnection(factory, opening, options, params)


@overload
def connect_websocket(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_websocket(
    factory: ClientFactory[C],
    url: str,
    *,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
@explains
def connect_websocket(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    cookies: CookieJar | None = None,
    settings: Mapping[str, Any] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` over WebSocket; the end of the block closes the connection.

    `factory`, `params`, `cookies` and the block are those of `connect_http`. `settings` are arguments for
    `websockets.connect`, such as `additional_headers`, `subprotocols`, `ssl` or `proxy`. Messages are not compressed
    without `compression="deflate"`. A ping is sent every 20 seconds, and the connection is lost if no answer arrives
    within as many (`ping_interval`, `ping_timeout`).

    Entering the block raises `ConnectionClosed` if the server refuses, which a redirect is, too.
    """
    options = options_or_default(options)
    opening = open_websocket(url, cookies=cookies, settings=settings, options=options)
    return AgentConnection(factory, opening, options, params)


@overload
def connect_url(
    factory: Mapping[int, AnyClientFactory],
    url: str,
    *,
    params: Mapping[int, AnyParams],
    cookies: CookieJar | None = None,
    headers: Mapping[str, str] | None = None,
    options: ConnectionOptions | None = None,
) -> AnyConnection: ...
@overload
def connect_url(
    factory: ClientFactory[C],
    url: str,
    *,
    cookies: CookieJar | None = None,
    headers: Mapping[str, str] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[C]: ...
@explains
def connect_url(
    factory: Any,
    url: str,
    *,
    params: Mapping[int, Any] | None = None,
    cookies: CookieJar | None = None,
    headers: Mapping[str, str] | None = None,
    options: ConnectionOptions | None = None,
) -> AgentConnection[Any]:
    """Connect to the agent at `url` by what the URL says; the end of the block closes the connection.

    "ws" and "wss" stand for WebSocket. For "http" and "https", Streamable HTTP is tried first, and then WebSocket if
    the server has no Streamable HTTP. `headers` go with each request.
    """
    options = options_or_default(options)
    opening = open_url(url, cookies=cookies, headers=headers, options=options)
    return AgentConnection(factory, opening, options, params)
