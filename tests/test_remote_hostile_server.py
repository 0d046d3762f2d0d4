"""Clients on the network against a hostile server: whatever that sends, little is kept of it."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import logging
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.needs import need
from tests.runtime_support import V1, acp_log, at_rest, client_of, run
from tests.support import Packages
from tests.test_remote_http_loss import accept, mock

MIB = 2**20
MANY = 1_000
SESSION = {"sessionId": "a"}


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    need("httpx2")
    return packages(V1, roles=(Role.CLIENT,), remote=True)


def event_of(**message: Any) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


class Hostile:
    """A server that answers `session/new`, then sends `events` on the stream of the session, then answers a prompt."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events
        self._opened, self._prompted = asyncio.Event(), asyncio.Event()
        self._received = 0
        self.sent = 0

    async def serve(self, request: Any) -> Any:
        """The response to a request."""
        import httpx2

        if request.method == "GET":
            own = "acp-session-id" in request.headers
            stream = Chunks(self.session() if own else self.connection())
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)
        body = await request.aread()
        self._received += 1
        if b'"session/new"' in body:
            self._opened.set()
        elif b'"session/prompt"' in body:
            self._prompted.set()
        return await accept(request)

    async def connection(self) -> AsyncIterator[bytes]:
        yield b":\n\n"
        await self._opened.wait()
        yield event_of(id=1, result=SESSION)
        await asyncio.Event().wait()

    async def session(self) -> AsyncIterator[bytes]:
        yield b":\n\n"
        await self._prompted.wait()
        for chunk in self._events:
            self.sent += 1
            yield chunk
        chunk = b""  # is not measured
        await at_rest(lambda: self._received)  # what the client has not answered yet, it has not dealt with
        yield event_of(id=2, result={"stopReason": "end_turn"})
        await asyncio.Event().wait()


def Chunks(chunks: AsyncIterator[bytes]) -> Any:  # noqa: N802
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks

    return Stream()


async def talk(acp: ModuleType, client: type[Any], options: Any = None) -> Any:
    """Open a session, and prompt it once; returns the response."""
    connect = importlib.import_module(f"{acp.__name__}.remote").connect_http
    async with connect(client, "http://127.0.0.1/acp", options=options) as agent:
        await agent.initialize(acp.InitializeRequest(protocol_version=1))
        opened = await agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))
        return await agent.session_prompt(acp.PromptRequest(session_id=opened.session_id, prompt=[]))


async def standing(count: Callable[[], int]) -> None:
    """Wait until something was sent, and nothing more is."""
    before = 0
    while not before or count() != before:
        before = count()
        await asyncio.sleep(0.3)


def of_session(name: str) -> dict[str, str]:
    return {"sessionId": name}


def long(number: int) -> str:
    return f"{number} " + "x" * MIB


def short(number: int) -> str:
    return f"{number} " + "x" * 200


FLOODS: dict[str, Callable[[], Iterator[bytes]]] = {
    "requests with long ids": lambda: (event_of(id=long(n), method="_ask", params=SESSION) for n in range(8)),
    "requests with ids that cannot be sent back": lambda: (
        event_of(id=short(n) + "\ud800", method="_ask", params=of_session(short(n))) for n in range(MANY)
    ),
    "requests for long sessions": lambda: (event_of(id=n, method="_ask", params=of_session(long(n))) for n in range(8)),
    "requests for many sessions": lambda: (
        event_of(id=n, method="_ask", params=of_session(short(n))) for n in range(MANY // 5)  # each is answered
    ),
    "notifications for long sessions": lambda: (event_of(method="_note", params=of_session(long(n))) for n in range(8)),
    "responses with long ids": lambda: (event_of(id=long(n), result=SESSION) for n in range(8)),
    "responses that open sessions": lambda: (
        event_of(id=n, result=of_session(short(n))) for n in range(100, 100 + MANY)
    ),
    "other events": lambda: (b"event: other\ndata: %d %s\n\n" % (n, b"x" * MIB) for n in range(8)),
}


@pytest.mark.parametrize("events", FLOODS.values(), ids=FLOODS.keys())
def test_nothing_is_kept_of_what_was_dealt_with(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch, events: Callable[[], Iterator[bytes]]
) -> None:
    kept: list[int] = []

    def measured() -> Iterator[bytes]:
        tracemalloc.start()
        yield from events()

    async def main() -> None:
        mock(monkeypatch, Hostile(measured()).serve)

        class Measuring(client_of(acp)):  # type: ignore[misc]
            async def connection_closed(self, reason: Any) -> None:
                gc.collect()  # clears the lists of freed objects, too, which Python keeps
                kept.append(tracemalloc.get_traced_memory()[0])

        assert (await talk(acp, Measuring)).stop_reason == "end_turn"

    try:
        with acp_log(logging.WARNING):  # the records are kept
            run(main(), seconds=60)
    finally:
        tracemalloc.stop()
    assert kept[0] < MIB / 2


ENDLESS: dict[str, bytes] = {
    "a line": b"x" * 2**14,
    "lines": b"data: " + b"x" * 2**14 + b"\n",
    "a name": b"\nid: " + b"x" * 2**14,
}


@pytest.mark.parametrize("chunk", ENDLESS.values(), ids=ENDLESS.keys())
def test_an_event_that_never_ends(acp: ModuleType, monkeypatch: pytest.MonkeyPatch, chunk: bytes) -> None:
    def endless() -> Iterator[bytes]:
        yield b"data: "
        while True:
            yield chunk

    async def main() -> int:
        server = Hostile(endless())
        mock(monkeypatch, server.serve)
        with pytest.raises(acp.ConnectionClosed, match="invalid stream"):
            await talk(acp, client_of(acp), acp.ConnectionOptions(max_message_bytes=MIB))
        return server.sent * len(chunk)

    assert run(main(), seconds=20) < 1.1 * MIB


def test_a_client_that_is_busy_reads_no_further(acp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has arrived waits in bytes: of large messages there are few."""
    note = event_of(method="_note", params={**SESSION, "text": "x" * 2**16})

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> int:
        server = Hostile(iter(lambda: note, b""))
        mock(monkeypatch, server.serve)
        client = client_of(acp, ext_notification=ext_notification)
        talking = asyncio.create_task(talk(acp, client, acp.ConnectionOptions(max_write_buffer_bytes=MIB)))
        await standing(lambda: server.sent)
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        return server.sent * len(note)

    with acp_log():
        assert run(main(), seconds=20) < 3 * MIB


def test_a_client_that_is_busy_takes_few_frames(acp: ModuleType) -> None:
    """A socket of the system takes a few MiB."""
    need("websockets")
    import websockets

    note = json.dumps({"jsonrpc": "2.0", "method": "_note", "params": "x" * MIB})
    sent = 0

    async def serve(socket: Any) -> None:
        nonlocal sent
        number = json.loads(await socket.recv())["id"]
        result = {"protocolVersion": 1, "agentCapabilities": {}}
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}))
        while True:
            await socket.send(note)
            sent += 1

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        connect = importlib.import_module(f"{acp.__name__}.remote").connect_websocket
        async with websockets.serve(serve, "127.0.0.1", 0, compression=None, close_timeout=1) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            client = client_of(acp, ext_notification=ext_notification)
            async with connect(client, f"ws://127.0.0.1:{port}/acp") as agent:
                await agent.initialize(acp.InitializeRequest(protocol_version=1))
                await standing(lambda: sent)

    run(main(), seconds=30)
    assert sent < 24
