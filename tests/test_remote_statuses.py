"""The status of each request to a connection that `asgi_app` refuses over HTTP."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import HOST, JSON, Client, Server, agent_for, asgi_of, request_of, settled
from tests.runtime_support import V1, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

Pair = tuple[bytes, bytes]
PROMPT = {"sessionId": "s1", "prompt": []}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def limits_of(acp: ModuleType, **fields: Any) -> Any:
    return asgi_of(acp).RemoteLimits(**fields)


# --- Media types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (415, []),
        (415, [(b"content-type", b"")]),
        (415, [(b"content-type", b"text/plain")]),
        (415, [(b"content-type", b"application/jsonx")]),
        (415, [(b"content-type", b"application/json-rpc")]),
        (415, [(b"content-type", b"text/plain; application/json")]),
        (415, [(b"content-type", b"application/json, application/json")]),
        (415, [(b"content-type", b"text/plain, application/json")]),
        (415, [JSON, JSON]),
        (415, [JSON, (b"content-type", b"text/plain")]),
        (415, [JSON, (b"content-encoding", b"gzip")]),
        (415, [JSON, (b"content-encoding", b"")]),
        (200, [JSON]),
        (200, [(b"Content-Type", b"application/json; charset=utf-8")]),
        (200, [(b"content-type", b" APPLICATION/JSON ;charset=utf-8")]),
    ],
    ids=repr,
)
def test_the_content_type_of_a_post(acp: ModuleType, status: int, headers: list[Pair]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            body = json.dumps(request_of(1, "initialize", {"protocolVersion": 1})).encode()
            answer = await Client(server.app).request("POST", headers, body=body)
            assert answer.status == status
            assert server.app.connections == (status == 200)

    run(main())


@pytest.mark.parametrize(
    ("status", "accept"),
    [
        (406, []),
        (406, [b"*/*"]),
        (406, [b"application/json"]),
        (406, [b"text/event-streams"]),
        (406, [b"text/plain; text/event-stream"]),
        (200, [b"text/event-stream"]),
        (200, [b"application/json, Text/Event-Stream;q=0.9"]),
        (200, [b"application/json", b"text/event-stream"]),
    ],
    ids=repr,
)
def test_the_accept_of_a_get(acp: ModuleType, status: int, accept: list[bytes]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            exchange = client.start("GET", [*client.ids(), *((b"accept", value) for value in accept)])
            exchange.feed("http.request")
            event = await exchange.event()
            assert event is not None
            assert event["status"] == status
            await exchange.leave()

    run(main())


# --- Headers and ids ------------------------------------------------------------------------------------------------


def test_requests_without_a_connection(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            for message in (
                request_of(1, "session/new"),
                request_of(1.5, "initialize"),
                request_of([], "initialize"),
                {"jsonrpc": "2.0", "method": "initialize", "params": {}},
                {"jsonrpc": "2.0", "id": 1, "result": {}},
                {},
            ):
                assert (await client.post(message)).status == 400, message
            assert (await client.refused_get()).status == 400
            assert (await client.delete()).status == 400
            assert server.app.connections == 0

    run(main())


@pytest.mark.parametrize("key", ["", "x", "0" * 32, "\u00e9", "../../etc", "0" * 10_000], ids=lambda key: key[:10])
def test_an_unknown_connection(acp: ModuleType, key: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            client.key = key
            assert (await client.post(request_of(1, "_echo"))).status == 404
            assert (await client.refused_get()).status == 404
            assert (await client.delete()).status == 404
            assert server.app.connections == 1

    run(main())


def test_a_deleted_connection_is_unknown_at_once(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            deleted = await client.delete()
            assert (deleted.status, deleted.body) == (202, b"")
            assert (await client.post(request_of(1, "_echo"))).status == 404
            assert (await client.refused_get()).status == 404
            assert (await client.delete()).status == 404
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_a_deleted_connection_ends_its_streams(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                async with client.get(session) as other:
                    await client.delete()
                    assert await stream.receive() is None
                    assert await other.receive() is None

    run(main())


def test_a_body_that_ends_after_its_connection(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            exchange = client.start("POST", [JSON, *client.ids()])
            exchange.feed("http.request", body=b"{", more_body=True)
            await client.delete()
            await settled(lambda: server.app.connections == 0)
            exchange.feed("http.request", body=b'"jsonrpc": "2.0"}')
            assert (await exchange.answer()).status == 404

    run(main())


@pytest.mark.parametrize("name", [b"acp-connection-id", b"acp-session-id", b"content-length", b"host", b"origin"])
def test_a_header_that_stands_twice(acp: ModuleType, name: bytes) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            twice = [(name, b"1"), (name.upper(), b"1")]
            headers = [each for each in [HOST, JSON, *client.ids()] if each[0] != name]
            client.headers = []
            answer = await client.request("POST", [*headers, *twice], body=b"{}")
            assert answer.status == 400
            assert answer.body == b"More than one header " + name

    run(main())


def test_sessions_of_posts(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                prompt = request_of(1, "session/prompt", {"sessionId": session, "prompt": []})
                other = request_of(1, "session/prompt", {"sessionId": "x", "prompt": []})
                assert (await client.post(prompt)).status == 400
                assert (await client.post(prompt, "x")).status == 400
                assert (await client.post(other, "x")).status == 404
                assert (await client.post(other, "")).status == 400
                assert (await client.post(request_of(1, "session/prompt"), "")).status == 404
                assert (await client.post(request_of(1, "session/prompt", [session]))).status == 400
                assert (await client.post(prompt, session)).status == 202
                cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
                assert (await client.post(cancel)).status == 400
                assert (await client.post(cancel, session)).status == 202

    run(main())


def test_sessions_of_gets(acp: ModuleType) -> None:
    class Forgetful(agent_for(acp)):  # type: ignore[misc]
        """Takes up no session, so that a GET may not name one before it is opened."""

        async def initialize(self, params: Any) -> Any:
            return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        async with Server.of(acp, Forgetful) as server:
            client = Client(server.app)
            await client.initialize()
            assert (await client.refused_get("s1")).status == 404
            async with client.get() as stream:
                session = await client.new_session(stream)
                async with client.get(session) as other:
                    for name in (None, session):
                        assert (await client.refused_get(name)).status == 409
                    await client.call(1, "session/prompt", {"sessionId": session, "prompt": []}, session)
                    assert (await other.receive())["id"] == 1
                async with client.get(session):  # a stream that was left can be read again
                    pass

    run(main())


# --- Bodies ---------------------------------------------------------------------------------------------------------

NO_OBJECTS = {
    "nothing": (400, b""),
    "spaces": (400, b" \n"),
    "text": (400, b"hello"),
    "two": (400, b"{}{}"),
    "half": (400, b'{"a":'),
    "NaN": (400, b'{"id": NaN}'),
    "mark": (400, b"\xef\xbb\xbf{}"),
    "UTF-16": (400, '{"id":1}'.encode("utf-16")),
    "no UTF-8": (400, b'{"\xff": 1}'),
    "digits": (400, b"9" * 5000),
    "null": (400, b"null"),
    "number": (400, b"1"),
    "string": (400, b'"x"'),
    "batch": (501, b"[]"),
    "batch of requests": (501, b'[{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}]'),
    "deep": (413, b"[" * 300 + b"]" * 300),
    "open and deep": (413, b'{"a":' * 600),
}


@pytest.mark.parametrize(("status", "body"), NO_OBJECTS.values(), ids=NO_OBJECTS.keys())
def test_a_body_that_is_no_message(acp: ModuleType, status: int, body: bytes) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            assert (await client.post(body)).status == status
            assert server.app.connections == 0
            await client.initialize()
            assert (await client.post(body)).status == status
            assert (await client.post(request_of(1, "_echo"))).status == 202

    run(main())


@pytest.mark.parametrize("method", [None, [], {}, [[]], 1, True, {"a": []}], ids=repr)
def test_a_method_that_is_no_text(acp: ModuleType, method: Any) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            assert (await client.post(request_of(1, method))).status == 400
            await client.initialize()
            async with client.get() as stream:
                assert (await client.post(request_of(1, method))).status == 202
                answer = await stream.receive()
                assert (answer["id"], answer["error"]["code"]) == (1, -32600)

    run(main())


@pytest.mark.parametrize("length", [None, b"101", b"9" * 19, b"9" * 30, b"0" * 40 + b"101"], ids=repr)
def test_a_body_that_is_too_large(acp: ModuleType, length: bytes | None) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_message_bytes=100)
        async with Server.of(acp, agent_for(acp), options=options) as server:
            client = Client(server.app)
            headers = [JSON] if length is None else [JSON, (b"content-length", length)]
            exchange = client.start("POST", headers)
            if length is None:
                for _ in range(101):
                    exchange.feed("http.request", body=b" ", more_body=True)
            exchange.feed("http.request")
            assert (await exchange.answer()).status == 413
            assert server.app.connections == 0
            for text in (b"", b"x", b"-1", b"99 ", b"0" * 40 + b"2"):
                answer = await client.request("POST", [JSON, (b"content-length", text)], body=b"[]")
                assert answer.status == 501
            assert (await client.request("POST", [JSON], body=[b"[", b"", b"]" + b" " * 98])).status == 501

    run(main())


def test_a_body_that_is_too_heavy(acp: ModuleType) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_in_flight_bytes=100_000)
        async with Server.of(acp, agent_for(acp), options=options) as server:
            client = Client(server.app)
            body = b'{"a": [' + b"{}," * 20_000 + b"{}]}"
            assert len(body) < 100_000
            assert (await client.post(body)).status == 413
            await client.initialize()
            for _ in range(3):  # none of them counts afterwards
                assert (await client.post(body)).status == 413
            assert server.held == 0

    run(main())


def test_a_body_that_never_ends(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, stall_seconds=0.05)) as server:
            client = Client(server.app)
            exchange = client.start("POST", [JSON])
            exchange.feed("http.request", body=b"{", more_body=True)
            assert (await exchange.answer()).status == 408
            assert server.app.connections == 0

    run(main())


def test_a_client_that_leaves_during_the_body(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            exchange = client.start("POST", [JSON])
            exchange.feed("http.request", body=b"{", more_body=True)
            await settled(lambda: server.app.connections == 1)
            await exchange.leave()
            assert exchange.sent.get_nowait() is None
            assert server.app.connections == 0

    run(main())


def test_the_rest_of_a_small_body_is_taken_before_a_refusal(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app, headers=[])
            exchange = client.start("POST")
            exchange.feed("http.request", body=b"x" * 1000, more_body=True)
            await settled(lambda: not exchange.waiting)
            assert exchange.sent.empty()
            exchange.feed("http.request", body=b"x")
            assert (await exchange.answer()).status == 403
            assert (await client.request("DELETE", [HOST], body=[b"x", b"y"])).status == 400
            endless = client.start("POST")
            for _ in range(100):
                endless.feed("http.request", body=b"x" * 1000, more_body=True)
            assert (await endless.answer()).status == 403
            assert endless.waiting > 30  # no more than that is taken

    run(main())


def test_a_body_that_does_not_arrive_holds_up_no_refusal(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            assert (await Client(server.app, headers=[]).start("POST").answer()).status == 403

    run(main())
