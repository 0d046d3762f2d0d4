"""How connections over HTTP start, and how an application starts and ends."""

from __future__ import annotations

import asyncio
import json
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import JSON, Client, Server, agent_for, asgi_of, ended, request_of, settled
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

Pair = tuple[bytes, bytes]
PROMPT = {"sessionId": "s1", "prompt": []}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def limits_of(acp: ModuleType, **fields: Any) -> Any:
    return asgi_of(acp).RemoteLimits(**fields)


# --- The first request ----------------------------------------------------------------------------------------------


def test_an_agent_that_never_answers_the_first_request(acp: ModuleType) -> None:
    class Silent(agent_for(acp)):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            await asyncio.Event().wait()

    async def main() -> None:
        async with Server.of(acp, Silent, limits=limits_of(acp, stall_seconds=0.05)) as server:
            answer = await Client(server.app).post(request_of(1, "initialize", {"protocolVersion": 1}))
            assert (answer.status, answer.body) == (504, b"Gateway Timeout")
            assert "acp-connection-id" not in answer.headers
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_an_agent_that_answers_the_first_request_after_idle_seconds(acp: ModuleType) -> None:
    class Slow(agent_for(acp)):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            await asyncio.sleep(0.2)
            return await super().initialize(params)

    async def main() -> None:
        async with Server.of(acp, Slow, limits=limits_of(acp, idle_seconds=0.04)) as server:
            await Client(server.app).initialize()

    run(main())


def test_a_client_that_leaves_before_the_first_response(acp: ModuleType) -> None:
    class Silent(agent_for(acp)):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            called.set()
            await asyncio.Event().wait()

    called = asyncio.Event()

    async def main() -> None:
        async with Server.of(acp, Silent) as server:
            client = Client(server.app)
            exchange = client.start("POST", [JSON])
            body = json.dumps(request_of(1, "initialize", {"protocolVersion": 1})).encode()
            exchange.feed("http.request", body=body)
            await called.wait()
            exchange.task.cancel()  # as servers do
            await ended(exchange)
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_a_factory_that_raises(acp: ModuleType) -> None:
    def broken(client: Any) -> Any:
        raise ValueError("the password is hunter2")

    async def main() -> None:
        async with Server.of(acp, broken) as server:
            client = Client(server.app)
            answer = await client.post(request_of(1, "initialize", {"protocolVersion": 1}))
            assert (answer.status, answer.body) == (500, b"Internal Server Error")
            assert answer.headers.keys() == {"content-length", "content-type"}
            socket = client.open_socket()
            assert (await socket.connect())["type"] == "websocket.accept"
            assert (await socket.receive())["type"] == "websocket.close"
            await socket.task

    with acp_log() as records:
        run(main())
    assert texts(records).count("ValueError: the password is hunter2") == 2


def test_a_first_request_that_is_refused(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            for params in (None, {}, {"protocolVersion": "x"}):
                answer = await Client(server.app).post(request_of("a", "initialize", params))
                assert answer.status == 200
                assert answer.json["id"] == "a"
                assert answer.json["error"]["code"] == -32602
            answer = await Client(server.app).post({"id": 3, "method": "initialize", "params": {}})
            assert (answer.json["id"], answer.json["error"]["code"]) == (3, -32600)

    run(main())


def test_a_client_to_which_nothing_can_be_sent(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            body = json.dumps(request_of(1, "initialize", {"protocolVersion": 1})).encode()
            events: list[Any] = []

            async def receive() -> Any:
                return events.pop() if events else await asyncio.Event().wait()

            async def send(event: Any) -> None:
                raise ConnectionResetError("the client has gone")

            events.append({"type": "http.request", "body": body})
            await server.app(client.scope("http", [JSON], method="POST"), receive, send)
            events.append({"type": "websocket.connect"})
            await server.app(client.scope("websocket", []), receive, send)
            await settled(lambda: server.app.connections == 0)

    run(main())


# --- Lifespan -------------------------------------------------------------------------------------------------------


def test_the_lifespan_ends_all_connections(acp: ModuleType) -> None:
    async def main() -> None:
        app = asgi_of(acp).asgi_app(agent_for(acp))
        server = Server(acp, app)
        client, other = Client(app), Client(app)
        async with server.lifespan():
            await client.initialize()
            stream = client.open_get()
            assert await stream.start() is None
            socket = other.open_socket()
            await socket.connect()
        server.check_empty()
        assert await stream.receive() is None
        assert await socket.receive() == {"type": "websocket.close", "code": 1001}
        assert (await other.post(request_of(1, "initialize"))).status == 503
        await ended(stream, socket)

    run(main())


def test_a_first_request_whose_body_ends_after_the_lifespan(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            exchange = Client(server.app).start("POST", [JSON])
            exchange.feed("http.request", body=b"", more_body=True)
            await settled(lambda: server.app.connections == 1)
            await server.app.close()
            exchange.feed("http.request", body=json.dumps(request_of(1, "initialize")).encode())
            assert (await exchange.answer()).status == 503

    run(main())


def test_other_scopes(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            with pytest.raises(ValueError, match="unknown ASGI scope: 'webtransport'"):
                await server.app({"type": "webtransport"}, None, None)

    run(main())
