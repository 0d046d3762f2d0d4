"""What both Python sides of a remote pair serve with: a journal of the requests, and hypercorn.

The peer imports it as a module of its own folder, where neither pytest nor this repository is installed.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

COOKIE = "affinity=a1"
Json = Any


class Journal:
    """An ASGI application around another: it notes each request, and sets a cookie as a load balancer does."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.requests: list[Json] = []
        """The method or "websocket", the version of HTTP, and the cookies, of each request."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        cookies = [value.decode() for name, value in scope["headers"] if name == b"cookie"]
        self.requests.append([scope.get("method", "websocket"), scope["http_version"], "; ".join(cookies)])

        async def send_with_cookie(event: Any) -> None:
            if event["type"] in ("http.response.start", "websocket.accept"):
                event = {**event, "headers": [*event.get("headers", ()), (b"set-cookie", COOKIE.encode())]}
            await send(event)

        await self._app(scope, receive, send_with_cookie)


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """Serve an ASGI application on a free port of this machine: the port."""
    from hypercorn.asyncio import serve  # here, because not every environment that imports this module has it
    from hypercorn.config import Config

    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.errorlog = None
    config.graceful_timeout = 1.0
    stopping = asyncio.Event()
    task = asyncio.ensure_future(serve(app, config, shutdown_trigger=stopping.wait))
    try:
        yield port
    finally:
        stopping.set()
        await task
