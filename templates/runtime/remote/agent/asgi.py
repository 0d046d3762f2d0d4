"""Serves an agent over Streamable HTTP and WebSocket: an ASGI 3 application, which needs no other package.

    app = asgi_app(EchoAgent, hosts=["agent.example.com"])

Any ASGI server on asyncio runs it. hypercorn and granian have HTTP/2; uvicorn has HTTP/1.1 only.
Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ._runtime.connection import check_factory
from ._runtime.decision import explains
from ._runtime.network.asgi_application import LOCAL_HOSTS, AsgiApp
from ._runtime.network.hosting import Authorize, RemoteLimits, RequestCheck, Scope, Server, client_identity
from ._runtime.options import ConnectionOptions, options_or_default
from ._runtime.stdio import AnyFactory, serve_agent

__all__ = ["LOCAL_HOSTS", "AsgiApp", "Authorize", "RemoteLimits", "Scope", "asgi_app", "client_identity"]


@explains
def asgi_app(
    factory: AnyFactory,
    *,
    path: str | None = "/acp",
    hosts: Collection[str] = LOCAL_HOSTS,
    origins: Collection[str] = (),
    authorize: Authorize | None = None,
    subprotocols: Collection[str] = (),
    require_http2: bool = False,
    limits: RemoteLimits | None = None,
    options: ConnectionOptions | None = None,
) -> AsgiApp:
    """An ASGI application that serves an agent on one path: POST, GET and DELETE over HTTP, and WebSocket.

    `factory` makes an agent for each connection; a mapping by version serves several versions of the protocol.

    `path` is where the application answers; None stands for everywhere, as below a router. `hosts` are the names,
    without port, that the header Host may have: a page whose name was made to lead to this machine has another one (DNS
    rebinding). `origins` are those of the pages that may connect ("https://editor.example.com"). "*" allows all.

    `authorize` gets the ASGI scope of each request, and returns the identity of its sender, such as a name, or None to
    refuse it. It may be a coroutine function. The identity must be hashable, and no bool, so that a predicate does not
    let everybody pass. A connection belongs to the identity that opened it; `client_identity` tells the agent.

    The first of `subprotocols` that a WebSocket client offers is accepted. `require_http2` refuses requests over
    HTTP/1.1 with status 505, but for WebSockets: the RFD requires HTTP/2, but many clients do not have it.
    """
    check_factory(factory, "Agent", None)
    options = options_or_default(options)
    return AsgiApp(
        Server(partial(serve_agent, factory, options=options), limits or RemoteLimits(), options),
        RequestCheck(path, hosts, origins, authorize, require_http2=require_http2),
        tuple(subprotocols),
    )
