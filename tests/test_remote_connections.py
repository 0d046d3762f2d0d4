"""The connections of HTTP/2 that a client makes over Streamable HTTP: which requests share one."""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import build_package
from tests.needs import need
from tests.runtime_support import agent_of, client_of, pass_time, run
from tests.support import import_folder


@pytest.fixture(scope="module")
def acp(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    for library in ("httpx2", "hypercorn"):
        need(library)
    folder = tmp_path_factory.mktemp("connections") / "acp_connections"
    return import_folder(
        build_package(folder, "--role", "both", "--with", "turns", "--with", "sessions", "--with", "remote")
    )


@dataclass
class Traffic:
    """The port of the client for each request, and the cookies of the first requests on each of them."""

    posts: list[int] = field(default_factory=list)
    streams: dict[str, int] = field(default_factory=dict)
    cookies: dict[int, str | None] = field(default_factory=dict)

    def note(self, scope: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        port = scope["client"][1]
        self.cookies.setdefault(port, headers.get("cookie"))
        if scope["method"] == "POST":
            self.posts.append(port)
        elif scope["method"] == "GET":
            self.streams[headers.get("acp-session-id", "")] = port


def noting(app: Any, traffic: Traffic) -> Any:
    """The application, which sets a cookie with each response."""

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        async def sending(event: Any) -> None:
            if event["type"] == "http.response.start":
                event["headers"] = [*event["headers"], (b"set-cookie", b"place=here")]
            await send(event)

        if scope["type"] == "http":
            traffic.note(scope)
        await app(scope, receive, sending)

    return noted


@asynccontextmanager
async def served(app: Any, **settings: Any) -> AsyncGenerator[str, None]:
    """Serve an application; yields its URL."""
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    for name, value in {"loglevel": "ERROR", **settings}.items():
        setattr(config, name, value)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    stop = asyncio.Event()
    serving = asyncio.create_task(serve(app, config, shutdown_trigger=stop.wait))
    try:
        yield f"http://127.0.0.1:{port}/acp"
    finally:
        stop.set()
        await serving


def agent_with_sessions(acp: ModuleType, cancelled: list[str]) -> type[Any]:
    """An agent that makes sessions, and notes those that are cancelled."""
    names = iter("abc")

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def session_new(self: Any, params: Any) -> Any:
        return acp.NewSessionResponse(session_id=next(names))

    async def session_cancel(self: Any, params: Any) -> None:
        cancelled.append(params.session_id)

    return agent_of(acp, initialize=initialize, session_new=session_new, session_cancel=session_cancel)


def talk(acp: ModuleType, cancels: int, *, pause: float = 0.0, **settings: Any) -> tuple[Traffic, list[str]]:
    """Open two sessions, and cancel the second one so many times, each after a pause."""
    traffic, cancelled = Traffic(), list[str]()
    asgi, remote = (importlib.import_module(f"{acp.__name__}.{name}") for name in ("asgi", "remote"))

    async def main() -> None:
        before = asyncio.all_tasks()
        limits = asgi.RemoteLimits(keep_alive_seconds=0.2)  # the server looks after its streams four times as often
        app = asgi.asgi_app(agent_with_sessions(acp, cancelled), limits=limits)
        async with served(noting(app, traffic), **settings) as url, remote.connect_http(client_of(acp), url) as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            for _ in range(2):
                session = await agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))
            for _ in range(cancels):
                if pause:
                    pass_time(pause)
                await agent.session_cancel(acp.CancelNotification(session_id=session.session_id))
            while len(cancelled) < cancels or len(traffic.streams) < 3:
                await asyncio.sleep(0.001)
        await app.close()
        while asyncio.all_tasks() - before:  # what looks after the streams ends at its next look
            await asyncio.sleep(0.01)

    run(main(), seconds=60)
    return traffic, cancelled


def test_each_stream_and_the_messages_have_a_connection_of_their_own(acp: ModuleType) -> None:
    """On one connection, httpx2 lets one request wait for bytes while another does not see those that have arrived."""
    traffic, _ = talk(acp, 3)
    assert traffic.streams.keys() == {"", "a", "b"}
    assert len(traffic.posts) == 6
    assert len({*traffic.posts, *traffic.streams.values()}) == 4


def test_all_connections_share_the_cookies(acp: ModuleType) -> None:
    traffic, _ = talk(acp, 0)
    assert [traffic.cookies[port] for port in traffic.streams.values()] == ["place=here"] * 3


@pytest.mark.full
def test_messages_change_to_another_connection_before_the_server_closes_one(acp: ModuleType) -> None:
    """Hypercorn closes a connection after `keep_alive_max_requests`, and loses the request after that."""
    traffic, cancelled = talk(acp, 510, keep_alive_max_requests=501)
    assert cancelled == ["b"] * 510
    assert [traffic.posts.count(port) for port in dict.fromkeys(traffic.posts)] == [500, 13]


@pytest.mark.parametrize(("pause", "connections"), [(1.0, 1), (6.0, 4)])
def test_messages_change_to_another_connection_after_a_long_pause(
    acp: ModuleType, pause: float, connections: int
) -> None:
    """What lies between may drop a connection without a word."""
    traffic, cancelled = talk(acp, 3, pause=pause, keep_alive_timeout=1000)
    assert cancelled == ["b"] * 3
    assert len(set(traffic.posts)) == connections


@pytest.mark.parametrize("name", ["transport", "mounts"])
def test_clients_cannot_share_what_each_of_them_would_close(acp: ModuleType, name: str) -> None:
    async def main() -> None:
        remote = importlib.import_module(f"{acp.__name__}.remote")
        async with remote.connect_http(client_of(acp), "http://127.0.0.1:9/acp", settings={name: None}):
            pass

    with pytest.raises(ValueError, match=f"the settings cannot have {name}"):
        run(main())


def test_importing_the_module_imports_no_library(acp: ModuleType) -> None:
    folder = Path(str(acp.__file__)).parent
    script = f"import sys, {folder.name}.remote; print({{'httpx2', 'websockets', 'h2'}} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", script], cwd=folder.parent, capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
