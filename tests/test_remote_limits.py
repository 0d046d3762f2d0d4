"""The limits of `asgi_app` on connections and sessions: each holds, and is released again."""

from __future__ import annotations

import asyncio
import json
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import (
    INITIALIZE,
    JSON,
    NEW_SESSION,
    Client,
    Server,
    agent_for,
    asgi_of,
    ended,
    request_of,
    settled,
)
from tests.runtime_support import V1, at_rest, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

FIRST = json.dumps(request_of(0, "initialize", INITIALIZE)).encode()
TOO_MANY = "Internal error: the connection has too many sessions"


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def limits_of(acp: ModuleType, **fields: Any) -> Any:
    """Limits with which slow and idle clients are looked for often."""
    return asgi_of(acp).RemoteLimits(**{"keep_alive_seconds": 0.1, **fields})


# --- Connections ----------------------------------------------------------------------------------------------------


def by_port(scope: Any) -> int:
    return int(scope["client"][1])


async def statuses(clients: list[Client]) -> list[int]:
    return [(await client.post(FIRST)).status for client in clients]


def test_connections_in_total(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, max_connections=3)) as server:
            clients = [Client(server.app) for _ in range(3)]
            async with clients[0].socket():
                for client in clients[1:]:
                    await client.initialize()
                assert (await clients[0].post(FIRST)).status == 503
                assert await clients[0].refused_socket() == 1008
                assert server.app.connections == 3
            assert await statuses(clients[:1] * 2) == [200, 503]  # that of the WebSocket is released
            await clients[1].delete()
            await settled(lambda: server.app.connections == 2)
            assert await statuses([Client(server.app)]) == [200]

    run(main())


def test_connections_of_one_identity(acp: ModuleType) -> None:
    async def main() -> None:
        limits = limits_of(acp, max_connections_per_identity=2)
        async with Server.of(acp, agent_for(acp), limits=limits, authorize=by_port) as server:
            for port in (1, 2):
                client = Client(server.app)
                client.scope = with_port(client, port)  # type: ignore[method-assign]
                assert await statuses([client] * 3) == [200, 200, 429]
                assert await client.refused_socket() == 1008
            assert server.app.connections == 4

    def with_port(client: Client, port: int) -> Any:
        original = client.scope
        return lambda *args, **more: {**original(*args, **more), "client": ("127.0.0.1", port)}

    run(main())


def test_what_fails_midway_is_released(acp: ModuleType) -> None:
    async def main() -> None:
        limits = limits_of(acp, max_connections=1)
        options = acp.ConnectionOptions(max_message_bytes=1000)
        async with Server.of(acp, agent_for(acp), limits=limits, options=options) as server:
            client = Client(server.app)
            for body in (b"", b"{", b"[]", b"1", b"{}", b"x" * 2000, b"[" * 500):
                assert (await client.post(body)).status in {400, 413, 501}
                assert server.app.connections == 0
            gone = client.start("POST", [JSON])
            gone.feed("http.request", body=FIRST, more_body=True)
            await settled(lambda: server.app.connections)
            assert (await client.post(FIRST)).status == 503
            await gone.leave()
            server.hurry(stall_seconds=0.05)
            slow = client.start("POST", [JSON])
            assert (await slow.answer()).status == 408
            server.hurry(stall_seconds=60)
            cancelled = client.start("POST", [JSON])
            await settled(lambda: server.app.connections)
            cancelled.task.cancel()
            await ended(cancelled)
            await client.initialize()

    run(main())


def test_a_deleted_connection_counts_until_its_agent_has_finished(acp: ModuleType) -> None:
    class Busy(agent_for(acp)):  # type: ignore[misc]
        async def connection_closed(self, reason: Any) -> None:
            await finish.wait()

    finish = asyncio.Event()

    async def main() -> None:
        options = acp.ConnectionOptions(cleanup_seconds=100)
        async with Server.of(acp, Busy, limits=limits_of(acp, max_connections=1), options=options) as server:
            client = Client(server.app)
            await client.initialize()
            await client.delete()
            assert (await Client(server.app).post(FIRST)).status == 503
            finish.set()
            await settled(lambda: server.app.connections == 0)
            await Client(server.app).initialize()

    run(main())


def test_a_deleted_connection_that_cannot_write_is_ended(acp: ModuleType) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=1000)
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp), options=options) as server:
            client = Client(server.app)
            await client.initialize()
            for number in range(50):  # the read loop refuses them, and waits for room on the stream
                assert (await client.post({"id": number, "method": "_echo"})).status == 202
            await at_rest(lambda: server.held)
            await client.delete()
            server.hurry(stall_seconds=0.05)
            await settled(lambda: server.app.connections == 0)

    run(main())


# --- Sessions -------------------------------------------------------------------------------------------------------


def test_sessions_over_http(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, max_sessions=2)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                await client.call("load", "session/load", {"sessionId": "l", **NEW_SESSION}, "l")
                assert "result" in await stream.receive()
                for method, name in (("session/new", None), ("session/load", "other")):
                    await client.call(3, method, {"sessionId": name, **NEW_SESSION} if name else NEW_SESSION, name)
                    answer = await stream.receive()
                    assert (answer["id"], answer["error"]["code"]) == (3, -32603)
                    assert answer["error"]["message"] == TOO_MANY
                assert (await client.refused_get("other")).status == 404
                async with client.get(session) as other:
                    await client.call(4, "session/close", {"sessionId": session}, session)
                    assert (await other.receive())["id"] == 4
                    assert await other.receive() is None  # the stream of a session that is over
                await client.new_session(stream)

    run(main())


def test_sessions_that_are_being_opened_count(acp: ModuleType) -> None:
    class Slow(agent_for(acp)):  # type: ignore[misc]
        async def session_new(self, params: Any) -> Any:
            await opened.wait()
            return await super().session_new(params)

    opened = asyncio.Event()

    async def main() -> None:
        async with Server.of(acp, Slow, limits=limits_of(acp, max_sessions=2)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                for number in range(4):
                    await client.call(number, "session/new", NEW_SESSION)
                refused = [await stream.receive() for _ in range(2)]
                assert [(each["id"], each["error"]["message"]) for each in refused] == [(2, TOO_MANY), (3, TOO_MANY)]
                opened.set()
                assert all(["result" in await stream.receive() for _ in range(2)])
                await client.call(0, "session/new", NEW_SESSION)  # the id is free again
                assert (await stream.receive())["error"]["message"] == TOO_MANY
                await client.call(1, "session/close", {"sessionId": "s1"}, "s1")
                assert "result" in await stream.receive()
                await client.new_session(stream)

    run(main())


def test_a_session_that_cannot_be_opened_is_released(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, max_sessions=1)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream, client.socket() as socket:
                for number in range(3):
                    await client.call(number, "session/new", {"cwd": 1})
                    assert (await stream.receive())["error"]["code"] == -32602
                    assert (await socket.ask(number, "session/new", {"cwd": 1}))["error"]["code"] == -32602
                    load = {"sessionId": "missing", **NEW_SESSION}
                    await client.call(number, "session/load", load, "missing")
                    assert (await stream.receive())["error"]["code"] == -32002
                    assert (await socket.ask(number, "session/load", load))["error"]["code"] == -32002
                async with client.get("x"):  # takes a place until it ends: the session may be loaded
                    await client.call(5, "session/new", NEW_SESSION)
                    assert (await stream.receive())["error"]["message"] == TOO_MANY
                await client.new_session(stream)
                assert "result" in await socket.ask(6, "session/new", NEW_SESSION)

    run(main())


def test_sessions_over_a_websocket(acp: ModuleType) -> None:
    async def main() -> None:
        async with (
            Server.of(acp, agent_for(acp), limits=limits_of(acp, max_sessions=1)) as server,
            Client(server.app).socket() as socket,
        ):
            session = (await socket.ask(1, "session/new", NEW_SESSION))["result"]["sessionId"]
            for method in ("session/new", "session/load"):
                answer = await socket.ask(2, method, {"sessionId": "other", **NEW_SESSION})
                assert (answer["id"], answer["error"]["message"]) == (2, TOO_MANY)
            assert "result" in await socket.ask(3, "session/load", {"sessionId": session, **NEW_SESSION})
            assert "result" in await socket.ask(4, "session/close", {"sessionId": session})
            assert "result" in await socket.ask(5, "session/new", NEW_SESSION)

    run(main())


def test_a_refusal_does_not_release_the_request_of_the_same_id(acp: ModuleType) -> None:
    class Slow(agent_for(acp)):  # type: ignore[misc]
        async def session_new(self, params: Any) -> Any:
            await opened.wait()
            return await super().session_new(params)

    opened = asyncio.Event()

    async def main() -> None:
        async with Server.of(acp, Slow, limits=limits_of(acp, max_sessions=1)) as server:
            client = Client(server.app)
            async with client.socket() as socket:
                await socket.call(1, "session/new", NEW_SESSION)
                for _ in range(2):
                    answer = await socket.ask(1, "session/new", NEW_SESSION)
                    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
                assert (await socket.ask(2, "session/new", NEW_SESSION))["error"]["message"] == TOO_MANY
                opened.set()
                assert "result" in await socket.receive()
                assert (await socket.ask(2, "session/new", NEW_SESSION))["error"]["message"] == TOO_MANY

    run(main())


def test_sessions_cannot_be_opened_by_requests_of_one_id(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, max_sessions=2)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream, client.socket() as socket:
                twins = [request_of("one", "session/new", NEW_SESSION)] * 10
                for answer in await asyncio.gather(*(client.post(twin) for twin in twins)):
                    assert answer.status == 202
                for twin in twins:
                    await socket.send(twin)
                for receive, send in ((stream.receive, client.post), (socket.receive, socket.send)):
                    answers = [await receive() for _ in twins]
                    opened = sum("result" in answer for answer in answers)
                    assert opened in {1, 2}
                    for number in range(2):
                        await send(request_of(number, "session/new", NEW_SESSION))
                        opened += "result" in await receive()
                    assert opened == 2
                assert server.app.connections == 2

    run(main())


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_an_extension_method_that_opens_too_many(acp: ModuleType, transport: str) -> None:
    """These have no stream of their own; the others and the connection stay as they are."""

    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, max_sessions=2)) as server:
            client = Client(server.app)
            if transport == "http":
                await client.initialize()
                async with client.get() as stream:
                    for name in "abc":
                        await client.call(name, "_open", {"name": name})
                        assert (await stream.receive())["id"] == name
                    assert (await client.refused_get("c")).status == 404
                    async with client.get("b"):
                        assert server.app.connections == 1
            else:
                async with client.socket() as socket:
                    for name in "abc":
                        assert (await socket.ask(name, "_open", {"name": name}))["id"] == name
                    assert (await socket.ask(1, "session/new", NEW_SESSION))["error"]["message"] == TOO_MANY
                    assert "result" in await socket.ask(2, "session/close", {"sessionId": "a"})
                    assert "result" in await socket.ask(3, "session/new", NEW_SESSION)
                    assert (await socket.ask(4, "session/new", NEW_SESSION))["error"]["message"] == TOO_MANY

    run(main())
