"""A server in the event loop of a test, and connections to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from tests.network.agents import Notes, counting_agent, counting_client
from tests.network.package import remote_module, remote_package


class Seen:
    """An application in front of the real one: keeps the scopes of requests, and sets a cookie."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        self.scopes.append(scope)

        async def send_with_cookie(event: Any) -> None:
            if event["type"] in ("http.response.start", "websocket.accept", "websocket.http.response.start"):
                headers = [*event.get("headers", ()), (b"set-cookie", b"replica=one; Path=/")]
                event = {**event, "headers": headers}
            await send(event)

        await self.app(scope, receive, send_with_cookie)

    def headers(self, name: str) -> list[str | None]:
        """The header of this name in each request."""
        return [dict(scope["headers"]).get(name.encode(), b"").decode() or None for scope in self.scopes]


def certificate_files(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key, in this folder."""
    files = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run([*command, *names], check=True, capture_output=True)
    return files


@contextlib.asynccontextmanager
async def served(
    certificate: tuple[Path, Path] | None = None, *, agent: Any = None, **settings: Any
) -> AsyncGenerator[tuple[Seen, int], None]:
    """Serve an agent with hypercorn in this event loop; gives what it sees, and the port."""
    agent = agent or counting_agent(remote_package(), Notes())
    app = Seen(remote_module("asgi").asgi_app(agent, **settings))
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    files = {} if certificate is None else {"certfile": str(certificate[0]), "keyfile": str(certificate[1])}
    config = Config.from_mapping(bind=f"fd://{listening.detach()}", loglevel="WARNING", graceful_timeout=1, **files)
    stopping = asyncio.Event()
    serving = asyncio.create_task(serve(app, config, shutdown_trigger=stopping.wait))  # type: ignore[arg-type]
    try:
        yield app, port
    finally:
        stopping.set()
        await serving


def connection(transport: str, port: int, *, tls: bool = False, path: str = "/acp", **more: Any) -> Any:
    """A connection over one of the transports."""
    acp: Any = remote_package()
    remote = remote_module("remote")
    connect = {"http": remote.connect_http, "websocket": remote.connect_websocket, "url": remote.connect_url}[transport]
    scheme = ("ws" if transport == "websocket" else "http") + ("s" if tls else "")
    return connect(counting_client(acp), f"{scheme}://127.0.0.1:{port}{path}", **more)


async def talk(block: Any) -> None:
    """Open a session, and say something in it."""
    acp: Any = remote_package()
    async with block as agent:
        await agent.initialize(acp.v1.InitializeRequest(protocol_version=1))
        opened = await agent.session_new(acp.v1.NewSessionRequest(cwd="/one", mcp_servers=[]))
        block_of_text = acp.v1.ContentBlockText(text="count 3")
        await agent.session_prompt(acp.v1.PromptRequest(session_id=opened.session_id, prompt=[block_of_text]))
        assert block.handler.texts[opened.session_id] == ["0", "1", "2"]
