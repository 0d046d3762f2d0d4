"""WebSockets of `asgi_app`: which are refused and how, what is accepted, and what frames come to."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import (
    EVENTS,
    HOST,
    INITIALIZE,
    JSON,
    NEW_SESSION,
    Answer,
    Client,
    Server,
    agent_for,
    asgi_of,
    request_of,
    settled,
)
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

WITH_RESPONSE = {"websocket.http.response": {}}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def nobody(scope: Any) -> None:
    """Authorizes no client."""


def breaking(scope: Any) -> str:
    raise ValueError("the password is hunter2")


# --- Refusals -------------------------------------------------------------------------------------------------------

REFUSALS: dict[str, tuple[int, dict[str, Any], list[tuple[bytes, bytes]], str]] = {
    "path": (404, {}, [HOST], "/other"),
    "host": (403, {}, [(b"host", b"evil.example")], "/acp"),
    "origin": (403, {}, [HOST, (b"origin", b"https://evil.example")], "/acp"),
    "two hosts": (400, {}, [HOST, HOST], "/acp"),
    "nobody": (401, {"authorize": nobody}, [HOST], "/acp"),
    "failure": (500, {"authorize": breaking}, [HOST], "/acp"),
    "limit": (503, {"limits": {"max_connections": 1}}, [HOST], "/acp"),
    "limit of a client": (429, {"limits": {"max_connections_per_identity": 1}}, [HOST], "/acp"),
}


@pytest.mark.parametrize(("status", "options", "headers", "path"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal(
    acp: ModuleType, *, status: int, options: dict[str, Any], headers: list[tuple[bytes, bytes]], path: str
) -> None:
    if "limits" in options:
        options = {"limits": asgi_of(acp).RemoteLimits(**options["limits"])}

    async def main() -> None:
        async with Server.of(acp, agent_for(acp), **options) as server:
            if "limits" in options:
                await Client(server.app).initialize()
            before = server.app.connections
            client = Client(server.app, headers=headers, path=path, http_version="1.1")
            assert await client.refused_socket() == 1008
            client.extensions = WITH_RESPONSE
            answer = await client.refused_socket()
            assert isinstance(answer, Answer)
            assert answer.status == status
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert ("www-authenticate" in answer.headers) == (status == 401)
            assert b"hunter2" not in answer.body
            assert server.app.connections == before

    run(main())


def test_a_client_that_leaves_before_it_is_accepted(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            socket = Client(server.app).open_socket()
            await socket.leave()
            assert socket.sent.get_nowait() is None

    run(main())


# --- What is accepted -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "offered"),
    [(None, []), (None, ["x"]), ("acp", ["x", "acp"]), ("acp.v2", ["acp.v2", "acp"]), (None, ["ACP"])],
    ids=repr,
)
def test_the_subprotocol(acp: ModuleType, chosen: str | None, offered: list[str]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), subprotocols=["acp", "acp.v2"]) as server:
            socket = Client(server.app).open_socket(subprotocols=offered)
            event = await socket.connect()
            assert (event["type"], event["subprotocol"]) == ("websocket.accept", chosen)
            await socket.leave()

    run(main())


def test_the_id_of_a_websocket_is_of_no_use_over_http(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            socket = client.open_socket()
            ((name, key),) = (await socket.connect())["headers"]
            assert name == b"acp-connection-id"
            client.key = key.decode()
            assert (await client.post(request_of(1, "_echo"))).status == 404
            assert (await client.refused_get()).status == 404
            assert (await client.delete()).status == 404
            assert "result" in await socket.ask(1, "initialize", INITIALIZE)
            await socket.leave()

    run(main())


@pytest.mark.parametrize("version", ["1.1", "2"])
def test_any_version_of_http(acp: ModuleType, version: str) -> None:
    async def main() -> None:
        async with (
            Server.of(acp, agent_for(acp)) as server,
            Client(server.app, http_version=version).socket() as socket,
        ):
            assert "sessionId" in (await socket.ask(1, "session/new", NEW_SESSION))["result"]

    run(main())


# --- Frames ---------------------------------------------------------------------------------------------------------

FRAMES: dict[str, tuple[Any, int, str]] = {
    "nothing": (None, -32700, ""),
    "text": (None, -32700, "hello"),
    "half": (None, -32700, '{"id": 1'),
    "half a pair": (None, -32700, '{"id": "\ud800"}'),
    "batch": (None, -32600, '[{"jsonrpc": "2.0", "id": 1, "method": "_echo"}]'),
    "empty batch": (None, -32600, "[]"),
    "number": (None, -32600, "1"),
    "empty": (None, -32600, "{}"),
    "version": (1, -32600, '{"id": 1, "method": "_echo"}'),
    "method in a list": (1, -32600, '{"jsonrpc": "2.0", "id": 1, "method": ["_echo"]}'),
    "method in an object": (1, -32600, '{"jsonrpc": "2.0", "id": 1, "method": {}}'),
    "id in a list": (None, -32600, '{"jsonrpc": "2.0", "id": [1], "method": "_echo"}'),
    "deep": (1, -32600, '{"jsonrpc": "2.0", "id": 1, "method": "_echo", "params": ' + "[" * 300 + "]" * 300 + "}"),
    "too large": (1, -32600, '{"jsonrpc": "2.0", "id": 1, "method": "_echo", "params": "' + "x" * 10_000 + '"}'),
    "too large, in bytes": (
        1,
        -32600,
        '{"jsonrpc": "2.0", "id": 1, "method": "_echo", "p": "' + "\u20ac" * 4000 + '"}',
    ),
    "too heavy": (1, -32600, '{"jsonrpc": "2.0", "id": 1, "method": "_echo", "params": [' + "{}," * 3000 + "{}]}"),
    "unknown": (1, -32601, '{"jsonrpc": "2.0", "id": 1, "method": "session/unknown"}'),
}


@pytest.mark.parametrize(("number", "code", "frame"), FRAMES.values(), ids=FRAMES.keys())
@pytest.mark.parametrize("initialized", [True, False], ids=["initialized", "first"])
def test_a_frame_that_is_no_message(acp: ModuleType, number: Any, code: int, frame: str, *, initialized: bool) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_message_bytes=10_000, max_in_flight_bytes=100_000)
        async with (
            Server.of(acp, agent_for(acp), options=options) as server,
            Client(server.app).socket(initialized=initialized) as socket,
        ):
            await socket.send(frame)
            answer = await socket.receive()
            expected = -32600 if code == -32601 and not initialized else code
            assert (answer["id"], answer["error"]["code"]) == (number, expected)
            assert "result" in await socket.ask("x", "initialize", INITIALIZE)
            for free in (1, 2):
                assert (await socket.ask(free, "_echo"))["result"] == {"method": "_echo"}
            await settled(lambda: server.held == 0)

    run(main())


def test_binary_frames_are_ignored(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server, Client(server.app).socket(initialized=False) as socket:
            for more in ({"bytes": b"\xff{}"}, {"bytes": b"{}", "text": None}, {"bytes": None}):
                socket.feed("websocket.receive", **more)
            assert "result" in await socket.ask(1, "initialize", INITIALIZE)

    run(main())


def test_a_first_message_that_is_not_the_handshake(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        async with Server.of(acp, agent) as server, Client(server.app).socket(initialized=False) as socket:
            answer = await socket.ask(1, "session/new", NEW_SESSION)
            assert (answer["id"], answer["error"]["code"]) == (1, -32600)
            await socket.send({"jsonrpc": "2.0", "method": "_note"})
            assert "result" in await socket.ask(2, "initialize", INITIALIZE)
            assert agent.seen == 0

    run(main())


def test_an_id_that_is_still_running(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server, Client(server.app).socket() as socket:
            await socket.call(1, "_wait")
            answer = await socket.ask(1, "_echo")
            assert (answer["id"], answer["error"]["code"]) == (None, -32600)
            await socket.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})
            assert (await socket.receive())["error"]["code"] == -32800
            assert "result" in await socket.ask(1, "_echo")

    run(main())


# --- The end --------------------------------------------------------------------------------------------------------


def test_a_client_that_leaves_ends_its_connection(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            async with Client(server.app).socket() as socket:
                await socket.call(1, "_wait")
            assert server.app.connections == 0
            assert socket.sent.get_nowait() is None  # no close is sent to a client that has gone

    run(main())


def test_an_application_that_is_cancelled_ends_its_connection(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            socket = Client(server.app).open_socket()
            await socket.connect()
            socket.task.cancel()
            await settled(lambda: server.app.connections == 0 and socket.task.done())

    run(main())


def test_a_server_that_fails_to_send_ends_the_connection(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client, incoming = Client(server.app), asyncio.Queue[Any]()

            async def send(event: Any) -> None:
                if event["type"] != "websocket.accept":
                    raise RuntimeError("the server has an error of its own")

            incoming.put_nowait({"type": "websocket.connect"})
            incoming.put_nowait({"type": "websocket.receive", "text": "{}"})
            await server.app(client.scope("websocket", []), incoming.get, send)
            assert server.app.connections == 0

    with acp_log() as records:
        run(main())
    assert "Traceback" not in texts(records)


@pytest.mark.parametrize("error", [RuntimeError("the response is complete"), KeyError(1), OSError("broken pipe")])
def test_nothing_that_send_raises_leaves_the_application(acp: ModuleType, error: Exception) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()

            async def send(event: Any) -> None:
                raise error

            methods = {"GET": [EVENTS], "POST": [JSON], "DELETE": [], "PUT": []}
            for method, headers in methods.items():
                incoming = asyncio.Queue[Any]()
                incoming.put_nowait({"type": "http.request", "body": b'{"jsonrpc": "2.0", "method": "_x"}'})
                scope = client.scope("http", [*headers, *client.ids()], method=method)
                await server.app(scope, incoming.get, send)
            for path in ("/acp", "/elsewhere"):
                incoming = asyncio.Queue[Any]()
                incoming.put_nowait({"type": "websocket.connect"})
                extensions = {"websocket.http.response": {}}
                await server.app(client.scope("websocket", [], path=path, extensions=extensions), incoming.get, send)

    with acp_log() as records:
        run(main())
    assert texts(records) == ""
