"""The client's end of Streamable HTTP when a stream fails, whatever the library raises."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import build_package
from tests.runtime_support import client_of, run
from tests.support import import_folder, require

HELLO = {"protocolVersion": 1, "agentCapabilities": {}}


@pytest.fixture(scope="module")
def acp(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    require(find_spec("httpx2"), "httpx2")
    return import_folder(build_package(tmp_path_factory.mktemp("loss") / "loss_acp", "--role", "both", "--remote"))


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


@pytest.mark.parametrize(
    ("is_complete", "posts"), [pytest.param(False, 2, id="in part"), pytest.param(True, 1, id="as a whole")]
)
def test_a_message_is_sent_again_only_if_the_server_has_not_had_all_of_it(
    acp: ModuleType, monkeypatch: pytest.MonkeyPatch, *, is_complete: bool, posts: int
) -> None:
    """hypercorn closes connections that are idle: one may be closed while a message is being written to it."""
    import httpx2
    from loss_acp.remote import connect_http

    seen: list[bytes] = []

    async def serve(request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Silent())
        if b"session/cancel" in request.content:
            seen.append(request.content)
            if len(seen) == 1:
                if is_complete:
                    await request.extensions["trace"]("http2.send_request_body.complete", {})
                raise httpx2.WriteError("broken pipe")
        return await accept(request)

    class Silent(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b":\n\n"
            await asyncio.Event().wait()

    mock(monkeypatch, serve)

    async def main() -> None:
        async with connect_http(client_of(acp), "http://127.0.0.1/acp") as agent:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
            with pytest.raises(acp.ConnectionClosed) if is_complete else contextlib.nullcontext():
                await agent.session_cancel(acp.CancelNotification(session_id="a"))

    run(main(), seconds=20)
    assert len(seen) == posts
    assert len(set(seen)) == 1


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
