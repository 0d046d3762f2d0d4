"""Ids of requests and of sessions: a long one is refused, or not kept, on every transport; and none comes back long."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Role
from tests.remote_support import NEW_SESSION, Client, Server, agent_for, asgi_of, request_of
from tests.runtime_support import V1, V2, acp_log, agent_of, raw_peer, run, started, streams, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

INVALID, INTERNAL = -32600, -32603

GOOD = {
    "text": "x" * 256,
    "two bytes a character": "é" * 128,
    "six times its bytes as JSON": "\x01" * 256,
    "integer": 2**63,
    "negative": -(2**63),
}
BAD = {
    "text": "x" * 257,
    "two bytes a character": "é" * 129,
    "half a character": "\ud800",
    "huge": "é" * 1_000_000,
    "integer": 2**64,
    "negative": -(2**64),
    "many digits": 10**4000,
}

Ask = Callable[[Any, str], Awaitable[Any]]
"""Sends a request, and returns the next message of the agent."""


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


# --- Requests -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def over_memory(acp: ModuleType) -> AsyncGenerator[Ask, None]:
    async with raw_peer(acp, agent_of(acp, ext_method=echo)) as peer:
        yield peer.ask


@asynccontextmanager
async def over_lines(acp: ModuleType) -> AsyncGenerator[Ask, None]:
    near, (reader, writer) = await streams()
    connection, _ = started(acp, agent_of(acp, ext_method=echo), acp.StreamTransport(*near))

    async def ask(number: Any, method: str) -> Any:
        writer.write(json.dumps(request_of(number, method)).encode() + b"\n")
        return json.loads(await reader.readline())

    try:
        yield ask
    finally:
        writer.close()
        await connection.close()


@asynccontextmanager
async def over_http(acp: ModuleType) -> AsyncGenerator[Ask, None]:
    async with Server.of(acp, agent_for(acp)) as server:
        client = Client(server.app)
        await client.initialize()
        async with client.get() as stream:

            async def ask(number: Any, method: str) -> Any:
                await client.call(number, method)
                return await stream.receive()

            yield ask


@asynccontextmanager
async def over_websocket(acp: ModuleType) -> AsyncGenerator[Ask, None]:
    async with Server.of(acp, agent_for(acp)) as server, Client(server.app).socket() as socket:
        yield socket.ask


TRANSPORTS = {"memory": over_memory, "lines": over_lines, "http": over_http, "websocket": over_websocket}
Opener = Callable[[ModuleType], AbstractAsyncContextManager[Ask]]
EACH = pytest.mark.parametrize("opened", TRANSPORTS.values(), ids=TRANSPORTS)


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


@EACH
@pytest.mark.parametrize("number", BAD.values(), ids=BAD)
def test_an_id_that_is_too_long_is_refused(acp: ModuleType, opened: Opener, number: Any) -> None:
    """The answer has no id, and the log has no traceback."""

    async def main() -> Any:
        async with opened(acp) as ask:
            refused = await ask(number, "_echo")
            assert (await ask(1, "_echo"))["id"] == 1
            return refused

    with acp_log() as records:
        refused = run(main())
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID)
    assert len(json.dumps(refused)) < 300
    assert len(texts(records)) < 300
    assert "Traceback" not in texts(records)


@EACH
@pytest.mark.parametrize("number", GOOD.values(), ids=GOOD)
def test_the_longest_ids(acp: ModuleType, opened: Opener, number: Any) -> None:
    async def main() -> None:
        async with opened(acp) as ask:
            answers = [await ask(number, method) for method in ("_echo", "_echo", "unknown")]
            assert [answer["id"] for answer in answers] == [number] * 3
            assert ["error" in answer for answer in answers] == [False, False, True]

    run(main())


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("number", BAD.values(), ids=BAD)
def test_an_id_at_the_start_of_a_message_that_is_not_parsed(
    packages: Packages, sources: SchemaChoice, number: Any
) -> None:
    acp = packages(sources)

    async def main() -> Any:
        options = acp.ConnectionOptions(max_in_flight_bytes=10_000)
        async with raw_peer(acp, agent_of(acp, ext_method=echo), options=options) as peer:
            return await peer.ask(number, "_echo", [{}] * 10_000)

    with acp_log():
        refused = run(main())
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID)


def test_a_request_that_cannot_be_answered_with_its_result_releases_its_session(acp: ModuleType) -> None:
    """Also if its id alone is larger than `max_message_bytes` where it is sent as ASCII."""

    class Verbose(agent_for(acp)):  # type: ignore[misc]
        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id="s" * self.length)

        length = 1000

    async def main() -> None:
        options = acp.ConnectionOptions(max_message_bytes=900)
        limits = asgi_of(acp).RemoteLimits(max_sessions=1)
        async with Server.of(acp, Verbose, options=options, limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream, client.socket() as socket:
                for number in ("\x7f" * 200, "é" * 120, 1):
                    message = json.dumps(request_of(number, "session/new", NEW_SESSION), ensure_ascii=False)
                    assert (await client.post(message.encode())).status == 202
                    await socket.send(message)
                    for answer in (await stream.receive(), await socket.receive()):
                        assert (answer["id"], answer["error"]["code"]) == (number, INTERNAL)
                        assert "sessions" not in answer["error"]["message"]
                Verbose.length = 10
                await client.new_session(stream)
                assert "result" in await socket.ask(2, "session/new", NEW_SESSION)

    with acp_log():
        run(main())


@pytest.mark.parametrize("number", BAD.values(), ids=BAD)
def test_requests_that_are_refused_open_no_session(acp: ModuleType, number: Any) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=asgi_of(acp).RemoteLimits(max_sessions=1)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream, client.socket() as socket:
                for count in range(2):  # also while there are too many sessions
                    await client.call(number, "session/new", NEW_SESSION)
                    for answer in (
                        await stream.receive(),
                        await socket.ask(number, "session/new", NEW_SESSION),
                    ):
                        assert (answer["id"], answer["error"]["code"]) == (None, INVALID)
                    if count == 0:
                        await client.new_session(stream)
                        assert "result" in await socket.ask(1, "session/new", NEW_SESSION)

    with acp_log():
        run(main())


# --- Sessions -------------------------------------------------------------------------------------------------------

LONG_NAMES = {"ASCII": "s" * 257, "two bytes a character": "é" * 129, "megabytes": "s" * 2_000_000}


@pytest.mark.parametrize("name", LONG_NAMES.values(), ids=LONG_NAMES)
def test_a_session_with_a_long_id_has_no_stream_of_its_own(acp: ModuleType, name: str) -> None:
    """It can be used, counts, and ends, as one whose id fits no header."""

    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=asgi_of(acp).RemoteLimits(max_sessions=1)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                params = {"sessionId": name, **NEW_SESSION}
                close = request_of(3, "session/close", {"sessionId": name})
                assert (await client.post(close)).status == 404
                await client.call(1, "session/load", params)
                assert "result" in await stream.receive()
                if name.isascii():
                    assert (await client.refused_get(name)).status == 404
                await client.call(2, "session/new", NEW_SESSION)
                assert "too many sessions" in (await stream.receive())["error"]["message"]
                assert (await client.post(close)).status == 202
                assert "result" in await stream.receive()
                assert (await client.post(close)).status == 404
                await client.new_session(stream)

    run(main())
