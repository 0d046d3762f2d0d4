"""Serves an agent over Streamable HTTP and WebSocket: an ASGI 3 application, which needs no other package.

    app = asgi_app(EchoAgent, hosts=["agent.example.com"])

Any ASGI server on asyncio runs it. hypercorn and granian have both transports; uvicorn has WebSocket only.
Source: RFD "Streamable HTTP & WebSocket Transport".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final

from .asgi_http import HttpRequests, Receive, Send, cancel
from .envelope import CONNECTION_HEADER
from .hosting import Authorize, Headers, Refusal, RemoteLimits, RequestCheck, Scope, Server, client_identity
from .log import logger
from .options import ConnectionOptions
from .stdio import AnyFactory
from .streamable import SocketTransport
from .transport import MessageTooLarge

__all__ = ["LOCAL_HOSTS", "AsgiApp", "Authorize", "RemoteLimits", "Scope", "asgi_app", "client_identity"]

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]")


def asgi_app(
    factory: AnyFactory,
    *,
    path: str | None = "/acp",
    hosts: Collection[str] = LOCAL_HOSTS,
    origins: Collection[str] = (),
    authorize: Authorize | None = None,
    subprotocols: Collection[str] = (),
    allow_http1: bool = False,
    limits: RemoteLimits | None = None,
    options: ConnectionOptions | None = None,
) -> AsgiApp:
    """An ASGI application that serves an agent on one path: POST, GET and DELETE over HTTP/2, and WebSocket.

    `factory` makes an agent for each connection; a mapping by version serves several versions of the protocol.

    `path` is where the application answers; None stands for everywhere, as below a router. `hosts` are the names,
    without port, that the header Host may have: a page whose name was made to lead to this machine has another one (DNS
    rebinding). `origins` are those of the pages that may connect ("https://editor.example.com"). "*" allows all.

    `authorize` gets the ASGI scope of each request, and returns who has sent it, which must be hashable, or None. It
    may be a coroutine function. A connection belongs to the one who opened it; `client_identity` tells the agent.

    The first of `subprotocols` that a WebSocket client offers is accepted. `allow_http1` also takes HTTP/1.1: for a
    proxy in front that speaks HTTP/2 with the clients.
    """
    return AsgiApp(
        Server(factory, limits or RemoteLimits(), options or ConnectionOptions()),
        RequestCheck(path, hosts, origins, authorize, allow_http1=allow_http1),
        tuple(subprotocols),
    )


class AsgiApp:
    """The application of `asgi_app`. If nothing sends it ASGI's lifespan events, as below a router, call `close`."""

    def __init__(self, server: Server, checks: RequestCheck, subprotocols: tuple[str, ...]) -> None:
        self._server = server
        self._checks = checks
        self._requests = HttpRequests(server, checks)
        self._subprotocols = subprotocols

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket or the lifespan of the server."""
        match scope["type"]:
            case "http":
                with contextlib.suppress(OSError):  # from `send`: the client has gone
                    await self._requests.handle(scope, receive, send)
            case "websocket":
                with contextlib.suppress(OSError):
                    await self._websocket(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case other:
                raise ValueError(f"the ASGI scope {other!r} is not known")

    @property
    def connections(self) -> int:
        """The number of connections. One that the client has ended counts until its agent has finished."""
        return len(self._server)

    async def close(self) -> None:
        """Take no more connections, end those that there are, and wait until their agents have finished."""
        await self._server.close()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            kind = (await receive())["type"]
            if kind == "lifespan.shutdown":
                await self.close()
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        server = self._server
        try:
            identity = await self._checks.check(scope, Headers(scope))
            transport = SocketTransport(server.options, server.limits.max_sessions, server.budget(identity), send)
            entry = server.reserve(transport, identity)
        except Refusal as refusal:
            await _refuse_socket(scope, send, refusal)
            return
        offered = [each for each in scope.get("subprotocols", ()) if each in self._subprotocols]
        headers = [(CONNECTION_HEADER.encode(), entry.key.encode())]
        try:
            await send({"type": "websocket.accept", "subprotocol": next(iter(offered), None), "headers": headers})
            serving = server.serve(entry)
        finally:
            if entry.task is None:
                server.discard(entry)
        receiving = asyncio.create_task(_receive_frames(transport, receive))
        try:
            await asyncio.wait({serving, receiving}, return_when=asyncio.FIRST_COMPLETED)
            transport.end()
            await asyncio.wait({serving})
        finally:
            serving.cancel()
            await cancel(receiving)


async def _refuse_socket(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer the upgrade with a status, if the server can; otherwise it answers with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *refusal.headers]
    start = {"type": "websocket.http.response.start", "status": refusal.status.value, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": refusal.text.encode()})


async def _receive_frames(transport: SocketTransport, receive: Receive) -> None:
    while (event := await receive())["type"] != "websocket.disconnect":
        text = event.get("text")
        if text is None:
            continue  # other frames are ignored
        try:
            refusal = transport.receive(text)
        except MessageTooLarge as error:
            logger.info("a WebSocket is closed: %s", error)
            return
        del event, text  # the agent may read, or the client, much later
        if refusal is None:
            await transport.inbox.room()
        else:
            await transport.write(refusal)
    transport.is_gone = True
