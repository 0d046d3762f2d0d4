"""What callers set through the libraries: TLS, headers, query, subprotocols, cookies; and a library that is missing."""

from __future__ import annotations

import asyncio
import ssl
import sys
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.network.agents import counting_client
from tests.network.in_process import certificate_files, connection, served, talk
from tests.network.package import remote_module, remote_package

TRANSPORTS = ("http", "websocket", "url")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    return certificate_files(tmp_path_factory.mktemp("tls"))


def settings_for(transport: str, context: ssl.SSLContext) -> dict[str, Any]:
    """The settings that trust a certificate."""
    return {"verify": context} if transport == "http" else {"ssl": context}


@pytest.mark.parametrize("transport", ["http", "websocket"])
def test_tls_takes_the_context_of_the_caller(transport: str, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(certificate[0]))

    async def run() -> None:
        async with served(certificate) as (app, port):
            await talk(connection(transport, port, tls=True, settings=settings_for(transport, context)))
            versions = {scope["http_version"] for scope in app.scopes}
            assert versions == ({"2"} if transport == "http" else {"1.1"})

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_certificate_that_is_not_trusted_ends_the_connection(transport: str, certificate: tuple[Path, Path]) -> None:
    acp: Any = remote_package()

    async def run() -> None:
        async with served(certificate) as (_, port):
            with pytest.raises(acp.ConnectionClosed, match=r"(?i)certificate"):
                await talk(connection(transport, port, tls=True))

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_headers_and_the_query_are_sent_with_each_request(transport: str) -> None:
    """A token reaches `authorize` in either."""
    token = {"authorization": "Bearer secret"}
    more: dict[str, Any] = {
        "http": {"settings": {"headers": token}},
        "websocket": {"settings": {"additional_headers": token}},
        "url": {"headers": token},
    }[transport]

    def authorize(scope: Any) -> str | None:
        known = dict(scope["headers"]).get(b"authorization") == b"Bearer secret"
        return "somebody" if known and scope["query_string"] == b"key=1" else None

    async def run() -> None:
        async with served(authorize=authorize) as (app, port):
            await talk(connection(transport, port, path="/acp?key=1", **more))
            assert len(app.scopes) == (1 if transport == "websocket" else 6)

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_does_not_know_the_caller_is_named_in_the_error(transport: str) -> None:
    acp: Any = remote_package()

    async def run() -> None:
        async with served(authorize=lambda scope: None) as (app, port):
            with pytest.raises(acp.ConnectionClosed, match="401"):
                await talk(connection(transport, port))
            assert len(app.scopes) == 1  # not tried again in another way

    asyncio.run(run())


def test_a_token_may_be_a_subprotocol() -> None:
    def authorize(scope: Any) -> str | None:
        return "somebody" if "token.secret" in scope["subprotocols"] else None

    async def run() -> None:
        async with served(authorize=authorize, subprotocols=["acp"]) as (_, port):
            await talk(connection("websocket", port, settings={"subprotocols": ["token.secret", "acp"]}))

    asyncio.run(run())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_cookies_are_sent_back_and_kept_for_the_next_connection(transport: str) -> None:
    async def run() -> None:
        jar = CookieJar()
        async with served() as (app, port):
            await talk(connection(transport, port, cookies=jar))
            first = app.headers("cookie")
            assert first[0] is None
            assert set(first[1:]) <= {"replica=one"}
            await talk(connection(transport, port, cookies=jar))
            assert set(app.headers("cookie")[len(first) :]) == {"replica=one"}
        assert [(cookie.name, cookie.value) for cookie in jar] == [("replica", "one")]

    asyncio.run(run())


def test_a_url_of_http_leads_to_a_websocket_if_the_server_has_nothing_else() -> None:
    async def refuse_http(scope: Any, receive: Any, send: Any) -> None:
        start = {"type": "http.response.start", "status": 405, "headers": [(b"content-length", b"0")]}
        await send(start)
        await send({"type": "http.response.body"})

    async def run() -> None:
        async with served() as (app, port):
            real = app.app

            async def only_websocket(scope: Any, receive: Any, send: Any) -> None:
                await (refuse_http if scope["type"] == "http" else real)(scope, receive, send)

            app.app = only_websocket
            await talk(connection("url", port))
            assert [scope["type"] for scope in app.scopes] == ["http", "websocket"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("function", "library", "says"),
    [
        ("connect_http", "httpx2", r"Streamable HTTP needs .*httpx2\[http2\]"),
        ("connect_websocket", "websockets", r"WebSocket needs: .*websockets"),
    ],
)
def test_a_missing_library_is_named(function: str, library: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = remote_module("remote")
    for name in list(sys.modules):
        if name.partition(".")[0] == library or name.endswith((".remote_http", ".remote_socket")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=says):
        getattr(remote, function)(counting_client(remote_package()), "http://localhost/acp")
