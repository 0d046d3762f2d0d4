"""The end of a server with open streams and sockets, and networks that are lost without a word."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.network.agents import Notes, counting_agent
from tests.network.load import connecting, initialize, open_session, prompt
from tests.network.package import remote_module, remote_package
from tests.network.processes import serving
from tests.network.relay import relaying
from tests.runtime_support import run

SECONDS = 60.0
SERVERS = [
    ("hypercorn", {}, ("http", "websocket")),
    ("uvicorn", {"timeout_graceful_shutdown": 5}, ("websocket",)),
    ("granian", {"workers_kill_timeout": 3}, ("websocket",)),
]
END = {("hypercorn", "http"): "the server has ended a stream", ("hypercorn", "websocket"): "1001"}
"""What the application ends a connection with, where the server lets it."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "settings", "transport"),
    [(kind, settings, transport) for kind, settings, transports in SERVERS for transport in transports],
)
def test_a_server_ends_with_connections_open(
    kind: str, settings: dict[str, Any], transport: str, tmp_path: Path
) -> None:
    async def main() -> None:
        with serving(kind, tmp_path, server=settings) as server:
            await server.state()
            async with connecting(transport, server.port) as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                call = asyncio.create_task(prompt(agent, "/1", "wait"))
                await asyncio.sleep(0.2)
                server.send(signal.SIGTERM)
                with pytest.raises(remote_package().ConnectionClosed, match=END.get((kind, transport), "")):
                    await asyncio.wait_for(call, SECONDS)
            await asyncio.wait_for(server.ended(), SECONDS)

    run(main())


@pytest.mark.full
def test_a_lost_network(transport: str, tmp_path: Path) -> None:
    """Both sides notice that nothing arrives any more, and close."""
    settings: dict[str, Any] = {"silence_seconds": 1.5}
    if transport == "websocket":
        settings = {"settings": {"ping_interval": 0.5, "ping_timeout": 1.0}}
    limits = {"stall_seconds": 1.0, "idle_seconds": 1.0, "keep_alive_seconds": 0.4}

    async def main() -> None:
        server_settings = {"websocket_ping_interval": 0.5}
        with serving("hypercorn", tmp_path, limits=limits, server=server_settings) as server:
            before = await server.state()
            async with relaying(server.port) as relay, connecting(transport, relay.port, **settings) as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                await prompt(agent, "/1", "count 3")
                relay.freeze()
                with pytest.raises(remote_package().ConnectionClosed):
                    await asyncio.wait_for(prompt(agent, "/1", "wait"), SECONDS)
            await server.settled(before)

    run(main())


def test_a_network_that_is_lost_while_the_agent_sends(transport: str, tmp_path: Path) -> None:
    """The server closes the connection after `stall_seconds`, although the sockets stay open."""

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits={"stall_seconds": 1.0, "idle_seconds": 1.0}) as server:
            await server.state()
            async with relaying(server.port) as relay, connecting(transport, relay.port) as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                before = relay.passed["down"]
                calls = [asyncio.create_task(prompt(agent, "/1", "pad 8000000")) for _ in range(3)]
                while relay.passed["down"] < before + 2**16:
                    await asyncio.sleep(0)
                relay.freeze()
                async with asyncio.timeout(SECONDS):
                    while (await server.state())["connections"]:
                        await asyncio.sleep(0.1)
                relay.cut()
                relay.is_open.set()
                done = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SECONDS)
            assert {type(each).__name__ for each in done} <= {"ConnectionClosed", "PromptResponse"}
            assert (await server.state())["closed"] == 1

    run(main())


class Lifespan:
    """An application that is called by hand, with the lifespan events of a server."""

    def __init__(self) -> None:
        self.notes = Notes()
        acp, asgi = remote_package(), remote_module("asgi")
        self.app = asgi.asgi_app(counting_agent(acp, self.notes), hosts=["*"])

    async def post(self, body: bytes) -> int:
        """The status of the response to a first request."""
        found: list[int] = []

        events = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            return events.pop() if events else await asyncio.Event().wait()

        async def send(event: Any) -> None:
            if event["type"] == "http.response.start":
                found.append(event["status"])

        headers = [(b"host", b"here"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": "/acp", "http_version": "2", "headers": headers}
        await self.app(scope, receive, send)
        return found[0]


INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}'


@pytest.mark.parametrize("by", ["close", "lifespan"])
def test_after_the_end_nothing_is_taken(by: str) -> None:
    async def main() -> None:
        before, host = asyncio.all_tasks(), Lifespan()
        assert await host.post(INITIALIZE) == 200
        assert host.app.connections == 1
        if by == "close":
            await host.app.close()
        else:
            events, sent = iter(["lifespan.startup", "lifespan.shutdown"]), list[str]()

            async def receive() -> Any:
                return {"type": next(events)}

            async def send(event: Any) -> None:
                sent.append(event["type"])

            await host.app({"type": "lifespan"}, receive, send)
            assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert (host.app.connections, host.notes.closings) == (0, {1: 1})
        assert await host.post(INITIALIZE) == 503
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before

    run(main())
