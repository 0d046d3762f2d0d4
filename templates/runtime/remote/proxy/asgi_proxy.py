"""Serves a proxy over Streamable HTTP and WebSocket: an ASGI 3 application, which needs no other package.

    app = proxy_app([Guard], ["my-agent"], hosts=["agent.example.com"])

Each connection has an agent of its own: here, a process. Without proxies, this offers the agent as it is.
Any ASGI server on asyncio runs it. hypercorn and granian have HTTP/2; uvicorn has HTTP/1.1 only.
Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from ._runtime.decision import explains
from ._runtime.network.asgi_application import LOCAL_HOSTS, AsgiApp
from ._runtime.network.hosting import Authorize, RemoteLimits, RequestCheck, Scope, Server, client_identity
from ._runtime.options import ConnectionOptions, options_or_default
from ._runtime.proxy.conductor import serve_conductor
from ._runtime.proxy.relay import passing_options
from ._runtime.proxy.sources import AnyAgent, Component, check_components

__all__ = ["LOCAL_HOSTS", "AsgiApp", "Authorize", "RemoteLimits", "Scope", "client_identity", "proxy_app"]


@explains
def proxy_app(
    proxies: Sequence[Component],
    agent: AnyAgent,
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
    """An ASGI application that serves an agent behind proxies on one path: POST, GET and DELETE, and WebSocket.

    `proxies` and `agent` are those of `run_conductor`. Each connection has proxies and an agent of its own, from its
    first message until it ends: `RemoteLimits.max_connections` limits the processes, too.

    `path` is where the application answers; None stands for everywhere, as below a router. `hosts` are the names,
    without port, that the header Host may have: a page whose name was made to lead to this machine has another one (DNS
    rebinding). `origins` are those of the pages that may connect ("https://editor.example.com"). "*" allows all.

    `authorize` gets the ASGI scope of each request, and returns the identity of its sender, such as a name, or None to
    refuse it. It may be a coroutine function. The identity must be hashable, and no bool, so that a predicate does not
    let everybody pass. A connection belongs to the identity that opened it; proxies find it in `client_identity`.

    The first of `subprotocols` that a WebSocket client offers is accepted. `require_http2` refuses requests over
    HTTP/1.1 with status 505, but for WebSockets: the RFD requires HTTP/2, but many clients do not have it.
    """
    check_components(proxies, agent)
    options = options_or_default(options)
    serve = partial(serve_conductor, proxies, agent, options=options)
    return AsgiApp(
        Server(serve, limits or RemoteLimits(), passing_options(options)),
        RequestCheck(path, hosts, origins, authorize, require_http2=require_http2),
        tuple(subprotocols),
    )
