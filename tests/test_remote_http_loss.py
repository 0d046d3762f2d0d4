"""The client's end of Streamable HTTP when a stream fails, whatever the library raises."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import build_package
from tests.needs import need
from tests.runtime_support import at_rest, client_of, run, unchecked
from tests.support import import_folder

JSON = "application/json"
HELLO = {"protocolVersion": 1, "agentCapabilities": {}}


@pytest.fixture(scope="module")
def acp(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    need("httpx2")
    return import_folder(
        build_package(tmp_path_factory.mktemp("loss") / "loss_acp", "--role", "both", "--with", "remote")
    )


def test_a_stream_that_fails_in_the_library_below_ends_the_connection(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """httpx2 passes on errors of h2 that are none of its own: a ping after GOAWAY is one, which granian sends."""
    import httpx2
    from h2.exceptions import ProtocolError
    from loss_acp.remote import connect_http  # type: ignore[import-not-found]

    class Broken(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b":\n\n"
            raise ProtocolError("Invalid input")

    async def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Broken())
        return await accept(request)

    mock(monkeypatch, serve)

    async def main() -> None:
        async with connect_http(client_of(acp), "http://127.0.0.1/acp") as agent:
            with pytest.raises(acp.ConnectionClosed):
                await open_session(acp, agent)  # the stream may fail during either request

    run(main(), seconds=20)


def test_a_response_on_the_stream_of_the_connection_lets_what_came_before_it_go_first(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections are read at once: what is replayed takes some turns longer than the response behind it."""
    import httpx2
    from loss_acp.remote import connect_http

    loaded, chunks = asyncio.Event(), 4

    def event_of(message: Any) -> bytes:
        return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"

    class Events(httpx2.AsyncByteStream):
        def __init__(self, session: str | None) -> None:
            self._session = session

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b":\n\n"
            await loaded.wait()
            for number in range(chunks if self._session else 0):
                await asyncio.sleep(0)
                update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": str(number)}}
                yield event_of({"method": "session/update", "params": {"sessionId": self._session, "update": update}})
            if self._session is None:
                yield event_of({"id": 1, "result": {}})
            await asyncio.Event().wait()

    async def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            stream = Events(request.headers.get("acp-session-id"))
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)
        if b"session/load" in await request.aread():
            loaded.set()
        return await accept(request)

    mock(monkeypatch, serve)
    seen: list[str] = []

    async def session_update(self: Any, params: Any) -> None:
        seen.append(params.update.content.text)

    async def main() -> list[str]:
        client = client_of(acp, session_update=session_update)
        async with connect_http(client, "http://127.0.0.1/acp", options=unchecked(acp)) as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            await agent.session_load(acp.LoadSessionRequest(session_id="a", cwd="/", mcp_servers=[]))
            return list(seen)

    assert run(main(), seconds=20) == [str(number) for number in range(chunks)]


def test_messages_that_wait_for_a_slow_client_are_bounded_in_bytes(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more is read of the stream; here it has no sockets, which would hold megabytes."""
    import httpx2
    from loss_acp.remote import connect_http

    note = b"data: " + json.dumps({"jsonrpc": "2.0", "method": "_n", "params": "x" * 2**15}).encode() + b"\n\n"
    read, seen, go = list[int](), list[Any](), asyncio.Event()

    class Notes(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for number in range(50):
                read.append(number)
                yield note
            await asyncio.Event().wait()

    async def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Notes())
        return await accept(request)

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        seen.append(params)
        await go.wait()

    mock(monkeypatch, serve)

    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=2**16, max_in_flight_bytes=2**16)
        client = client_of(acp, ext_notification=ext_notification)
        async with connect_http(client, "http://127.0.0.1/acp", options=options) as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            assert await at_rest(lambda: len(read)) < 10
            go.set()
            while len(seen) < 50:
                await asyncio.sleep(0)

    run(main(), seconds=20)


@pytest.mark.parametrize("status", [401, 403, 410])
def test_a_stream_of_a_session_that_is_refused_ends_the_connection(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The identity or the connection is no longer known: no other message would be accepted."""
    import httpx2
    from loss_acp.remote import connect_http

    class Silent(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b":\n\n"
            await asyncio.Event().wait()

    async def serve(request: httpx2.Request) -> httpx2.Response:
        if "acp-session-id" in request.headers:
            return httpx2.Response(status)
        if request.method == "GET":
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Silent())
        return await accept(request)

    mock(monkeypatch, serve)
    reasons: list[Any] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        reasons.append(reason)

    async def main() -> None:
        client = client_of(acp, connection_closed=connection_closed)
        async with connect_http(client, "http://127.0.0.1/acp", options=unchecked(acp)) as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            with pytest.raises(acp.ConnectionClosed) as caught:
                await agent.session_load(acp.LoadSessionRequest(session_id="a", cwd="/", mcp_servers=[]))
            assert caught.value.status == status

    run(main(), seconds=20)
    assert [reason.status for reason in reasons] == [status]


@pytest.mark.parametrize(
    ("ends_at", "posts"), [("RequestReceived", 2), ("StreamEnded", 1)], ids=["at the headers", "at the end"]
)
def test_a_message_is_sent_again_only_if_the_server_has_not_had_all_of_it(
    acp: ModuleType, ends_at: str, posts: int
) -> None:
    """hypercorn closes connections that are idle: one may be closed while a message is being written to it."""
    from loss_acp.remote import connect_http

    seen = Breaking(ends_at)

    async def main() -> None:
        server = await asyncio.start_server(seen.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/acp"
        async with connect_http(client_of(acp), url) as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            with pytest.raises(acp.ConnectionClosed) if posts == 1 else contextlib.nullcontext():
                # larger than what the system takes before it knows that the connection has ended
                await agent.session_cancel(acp.CancelNotification(session_id="a", meta={"padding": "a" * 2**20}))
        server.close()
        await asyncio.gather(*seen.tasks)

    run(main(), seconds=20)
    assert seen.posts == posts


class Breaking:
    """A server of HTTP/2 that breaks the connection of the first message after `initialize` at an event of h2."""

    def __init__(self, ends_at: str) -> None:
        self._ends_at = ends_at
        self.posts = 0
        self.tasks: list[Any] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection."""
        from h2.config import H2Configuration
        from h2.connection import H2Connection

        self.tasks.append(asyncio.current_task())
        connection = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        connection.initiate_connection()
        connection.increment_flow_control_window(2**24)
        requests: dict[int, Request] = {}
        while not writer.is_closing():
            writer.write(connection.data_to_send())
            data = await reader.read(2**16)
            for event in connection.receive_data(data) if data else ():
                if self._handle(event, connection, requests):
                    writer.transport.abort()
            if not data:
                writer.close()

    def _handle(self, event: Any, connection: Any, requests: dict[int, Request]) -> bool:
        """Handle an event; returns true if the connection has to break."""
        kind, number = type(event).__name__, getattr(event, "stream_id", 0)
        if kind == "RequestReceived":
            headers = dict(event.headers)
            request = requests[number] = Request(headers[":method"], "acp-connection-id" in headers)
            self.posts += request.is_message
        elif kind == "DataReceived":
            requests[number].body += event.data
            connection.acknowledge_received_data(event.flow_controlled_length, number)
        if number in requests and requests[number].is_message and kind == self._ends_at and self.posts == 1:
            return True
        if kind == "StreamEnded":
            requests[number].respond(connection, number)
        return False


class Request:
    """A request that `Breaking` has received."""

    def __init__(self, method: str, is_known: bool) -> None:
        self._method = method
        self._is_known = is_known
        self.is_message = is_known and method == "POST"
        self.body = b""

    def respond(self, connection: Any, number: int) -> None:
        """Send the response."""
        body, kind = b"", "text/event-stream"
        if self._method == "GET":
            body = b":\n\n"
        elif not self._is_known:
            body, kind = (
                json.dumps({"jsonrpc": "2.0", "id": json.loads(self.body)["id"], "result": HELLO}).encode(),
                JSON,
            )
        headers = [(":status", "200" if body else "202"), ("acp-connection-id", "1"), ("content-type", kind)]
        connection.send_headers(number, headers, end_stream=not body)
        if body:
            connection.send_data(number, body, end_stream=self._method != "GET")


async def accept(request: Any) -> Any:
    """The response to a POST."""
    import httpx2

    if "acp-connection-id" in request.headers:
        return httpx2.Response(202)
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": json.loads(await request.aread())["id"], "result": HELLO}
    return httpx2.Response(200, headers={"acp-connection-id": "1"}, json=answer)


def mock(monkeypatch: pytest.MonkeyPatch, serve: Callable[[Any], Awaitable[Any]]) -> None:
    """Let `serve` answer all requests."""
    import httpx2

    make = httpx2.AsyncClient

    def make_mocked(**settings: Any) -> httpx2.AsyncClient:
        return make(transport=httpx2.MockTransport(serve), **settings)

    monkeypatch.setattr(httpx2, "AsyncClient", make_mocked)


async def open_session(acp: ModuleType, agent: Any) -> None:
    await agent.initialize(acp.InitializeRequest(protocol_version=1))
    await agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))
