"""The application below others: on the same path without a redirect, and closed with the outer one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.network.agents import Notes, counting_agent
from tests.network.load import connecting, initialize, open_session, prompt
from tests.network.package import remote_module, remote_package
from tests.runtime_support import run


def starlette_route(app: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Route, WebSocketRoute

    routes = [Route("/acp", app, methods=["POST", "GET", "DELETE"]), WebSocketRoute("/acp", app)]
    return Starlette(routes=routes, lifespan=closing(app))


def starlette_mount(app: Any) -> Any:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    return Starlette(routes=[Mount("/", app)], lifespan=closing(app))


def fastapi_mount(app: Any) -> Any:
    from fastapi import FastAPI

    outer = FastAPI(lifespan=closing(app))
    outer.mount("/", app)  # after all other routes
    return outer


def fastapi_route(app: Any) -> Any:
    from fastapi import FastAPI
    from starlette.routing import Route, WebSocketRoute

    outer = FastAPI(lifespan=closing(app))
    outer.router.routes += [Route("/acp", app, methods=["POST", "GET", "DELETE"]), WebSocketRoute("/acp", app)]
    return outer


def closing(app: Any) -> Any:
    """The lifespan of an outer application."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None, None]:
        yield
        await app.close()

    return lifespan


@pytest.mark.parametrize("path", ["/acp", pytest.param(None, id="any path")])
@pytest.mark.parametrize("mount", [starlette_route, starlette_mount, fastapi_route, fastapi_mount])
def test_below_another_application(mount: Any, path: str | None, transport: str) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    async def main() -> None:
        notes, stop = Notes(), asyncio.Event()
        app = remote_module("asgi").asgi_app(counting_agent(remote_package(), notes), path=path)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            config = Config.from_mapping({"bind": f"fd://{listening.detach()}", "loglevel": "WARNING"})
            serving = asyncio.create_task(serve(mount(app), config, shutdown_trigger=stop.wait))  # type: ignore[arg-type]
            connection = connecting(transport, port)
            async with connection as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                await prompt(agent, "/1", "count 3")
            assert connection.handler.texts == {"/1": ["0", "1", "2"]}
            stop.set()
            await serving
        assert (app.connections, notes.closings) == (0, {1: 1})
        assert await is_closed(app)

    run(main())


async def is_closed(app: Any) -> bool:
    """True if it takes no more connections."""
    found = list[int]()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    async def send(event: Any) -> None:
        found.append(event.get("status", 0))

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/acp", "http_version": "2", "headers": headers}
    await app(scope, receive, send)
    return found[0] == 503
