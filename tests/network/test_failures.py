"""Why a connection cannot be made, or was lost: what people read, and whether connecting again can succeed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.needs import lacks
from tests.network.agents import counting_client
from tests.network.in_process import certificate_files, connection, served
from tests.network.load import TRANSPORTS, connecting, initialize, open_session, prompt
from tests.network.package import remote_module, remote_package
from tests.network.relay import Relay, relaying
from tests.runtime_agents import PATIENCE
from tests.runtime_support import run

pytestmark = pytest.mark.full

INTERNALS = re.compile(
    r"Errno|_ssl\.c|Timeout\b|TaskGroup|frame|keepalive|attempts|handshake|Invalid input|cannot write"
)
"""What only those understand who know the libraries."""
KEY = b"acp-connection-id"
QUICK: dict[str, dict[str, Any]] = {
    "http": {"silence_seconds": 0.5},
    "websocket": {"settings": {"open_timeout": 0.5, "ping_interval": 0.3, "ping_timeout": 0.3}},
}


async def failure_of(block: Any, *, work: Callable[[Any], Awaitable[Any]] = initialize) -> Any:
    """The `ConnectionClosed` that a connection ends with."""
    with pytest.raises(remote_package().ConnectionClosed) as caught:
        async with asyncio.timeout(PATIENCE), block as agent:
            await work(agent)
    assert not INTERNALS.search(str(caught.value)), caught.value
    return caught.value


def connect(transport: str, address: str, **more: Any) -> Any:
    """A connection to a URL without its scheme."""
    function = getattr(remote_module("remote"), f"connect_{transport}")
    return function(counting_client(remote_package()), f"{TRANSPORTS[transport]}{address}", **more)


@contextlib.asynccontextmanager
async def answering(status: int, *headers: tuple[bytes, bytes]) -> AsyncGenerator[tuple[Any, int], None]:
    """A server that answers each request with a status; gives what it sees, and its port."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
        length = (b"content-length", b"5")
        await send({"type": f"{kind}.start", "status": status, "headers": [length, *headers]})
        await send({"type": f"{kind}.body", "body": b"sorry"})

    async with served() as (app, port):
        app.app = answer
        yield app, port


@contextlib.asynccontextmanager
async def replying(reply: bytes | None) -> AsyncGenerator[int, None]:
    """A server that reads, writes these bytes, and closes the connection; without any, it is silent. Gives the port."""

    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(2**16)
            if reply is None:
                await reader.read()
            else:
                writer.write(reply)
        writer.close()
        done.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
        await done.wait()
    finally:
        server.close()


# --- What the server answers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "is_permanent"),
    [
        *((status, True) for status in (200, 302, 400, 401, 403, 404, 405, 426, 501, 505)),
        *((status, False) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
def test_a_status(transport: str, status: int, *, is_permanent: bool) -> None:
    async def main() -> None:
        async with answering(status) as (_, port):
            error = await failure_of(connecting(transport, port))
        assert (error.status, error.is_permanent) == (status, is_permanent)
        assert f"the server answered {status}" in str(error)
        copy = error.again()
        assert (str(copy), copy.status, copy.is_permanent) == (str(error), status, is_permanent)

    run(main(), seconds=PATIENCE)


@pytest.mark.parametrize(
    ("status", "is_permanent"), [(401, True), (403, True), (404, False), (410, False), (503, False)]
)
def test_a_status_after_the_first_request(status: int, *, is_permanent: bool) -> None:
    """A server that has forgotten the connection, as after a restart, will make another one."""

    async def main() -> None:
        async with served() as (app, port):
            real = app.app

            async def refuse_later(scope: Any, receive: Any, send: Any) -> None:
                if scope["method"] != "POST" or KEY not in dict(scope["headers"]):
                    await real(scope, receive, send)
                    return
                while (await receive())["more_body"]:
                    pass
                await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
                await send({"type": "http.response.body"})

            async def work(agent: Any) -> None:
                await initialize(agent)
                app.app = refuse_later
                await agent.ext_notification("_note", {})

            error = await failure_of(connecting("http", port), work=work)
        assert (error.status, error.is_permanent) == (status, is_permanent)

    run(main(), seconds=PATIENCE)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("way", ["http", "websocket", "url"])
def test_a_redirect_is_not_followed(way: str, status: int) -> None:
    """Neither the token nor a cookie reaches another server, and none of its cookies is kept for the first one."""
    token = {"authorization": "Bearer secret"}
    more: dict[str, Any] = {
        "http": {"settings": {"headers": token}},
        "websocket": {"settings": {"additional_headers": token}},
        "url": {"headers": token},
    }[way]
    scheme = "ws" if way == "websocket" else "http"

    async def main() -> None:
        jar = CookieJar()
        async with served() as (other, other_port):
            location = f"{scheme}://127.0.0.1:{other_port}/acp"
            async with answering(status, (b"location", location.encode())) as (first, port):
                error = await failure_of(connection(way, port, cookies=jar, **more))
                assert len(first.scopes) == 1
            assert other.scopes == []
        assert (error.status, error.is_permanent) == (status, True)
        assert location in str(error)
        assert [cookie.value for cookie in jar] == ["one"]  # which the first one has set

    run(main(), seconds=PATIENCE)


NAMED = "import sys, pytest, websockets as w; assert w.__version__ == sys.argv[1]; sys.exit(pytest.main(sys.argv[2:]))"


@pytest.mark.parametrize("version", ["15.0", "16.0"])
def test_older_versions_of_the_library_follow_no_redirect_either(version: str, tmp_path: Path) -> None:
    """The first one that the documentation allows, and the last one that sends headers to another host."""

    def python(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env={**os.environ, **more}, check=False, capture_output=True, text=True)

    installed = python("-m", "pip", "install", "--quiet", "--target", str(tmp_path), f"websockets=={version}")
    if installed.returncode:
        lacks("registry", f"websockets {version}: {installed.stderr}")
    tests = f"{__file__}::{test_a_redirect_is_not_followed.__name__}"
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ran = python("-c", NAMED, version, "-q", "-p", "no:cacheprovider", tests, PYTHONPATH=paths)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_url_that_is_none() -> None:
    """No server is asked, and no secret of the URL is shown."""
    remote = remote_module("remote")
    for way, url in (
        *((way, "localhost/acp") for way in ("http", "websocket", "url")),
        *((way, "http://localhost:99999/acp") for way in ("http", "websocket", "url")),
        *((way, "http:///acp") for way in ("http", "websocket", "url")),
        *((way, "ftp://localhost/acp") for way in ("http", "websocket", "url")),
        ("http", "ws://localhost/acp"),
    ):
        with pytest.raises(ValueError, match=r"\bthe URL "):
            getattr(remote, f"connect_{way}")(counting_client(remote_package()), url)


# --- No answer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("://127.0.0.1:1/acp?key=secret", "cannot connect to 127.0.0.1:1: Connection refused"),
        ("://nowhere.invalid/acp", "cannot connect to nowhere.invalid: this name cannot be resolved"),
    ],
)
def test_a_server_that_cannot_be_reached(transport: str, address: str, reason: str) -> None:
    """The system cannot tell a name that does not exist from a network that is down, so both are tried again."""
    error = asyncio.run(failure_of(connect(transport, address)))
    assert (str(error), error.status, error.is_permanent) == (reason, None, False)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (None, "the server did not answer in time"),
        (b"", None),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", None),
    ],
    ids=["silence", "nothing", "another protocol"],
)
def test_a_server_that_does_not_answer(transport: str, reply: bytes | None, reason: str | None) -> None:
    reason = reason or f"no valid response over {'HTTP/2' if transport == 'http' else 'WebSocket'}"

    async def main() -> None:
        async with replying(reply) as port:
            error = await failure_of(connecting(transport, port, **QUICK[transport]))
        assert str(error) in (f"cannot connect to 127.0.0.1:{port}: {reason}", reset(port))
        assert (error.status, error.is_permanent) == (None, False)

    def reset(port: int) -> str:
        return f"cannot connect to 127.0.0.1:{port}: Connection reset by peer" if reply is not None else ""

    run(main(), seconds=PATIENCE)


def test_a_server_without_tls(transport: str) -> None:
    async def main() -> None:
        async with replying(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
            error = await failure_of(connect(transport, f"s://127.0.0.1:{port}/acp"))
        assert "TLS failed: wrong version number" in str(error)
        assert not error.is_permanent

    run(main(), seconds=PATIENCE)


def test_a_certificate_that_is_not_trusted(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with served(certificate_files(tmp_path)) as (_, port):
            error = await failure_of(connection(transport, port, tls=True))
        assert "the certificate of the server is not trusted: self-signed certificate" in str(error)
        assert (error.status, error.is_permanent) == (None, True)

    asyncio.run(main())  # asyncio reports a handshake that was refused


@pytest.mark.parametrize(("status", "is_permanent"), [(407, True), (502, False)])
def test_a_proxy_that_refuses(transport: str, status: int, *, is_permanent: bool) -> None:
    async def main() -> None:
        async with replying(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode()) as port:
            proxy = {"proxy": f"http://127.0.0.1:{port}"}
            error = await failure_of(connect(transport, "s://agent.example.com/acp", settings=proxy))
        assert f"cannot connect to agent.example.com: the proxy answered {status}" in str(error)
        assert (error.status, error.is_permanent) == (None, is_permanent)

    run(main(), seconds=PATIENCE)


# --- Connections that are lost --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happens", "reasons"),
    [
        ("cut", {"http": "the connection was lost", "websocket": "the connection was lost"}),
        ("freeze", {"http": "nothing has arrived for 0.5 seconds", "websocket": "no answer to a ping arrived in time"}),
    ],
)
def test_a_connection_that_is_lost(transport: str, happens: str, reasons: dict[str, str]) -> None:
    async def main() -> None:
        async with served() as (_, port), relaying(port) as relay:
            block = connecting(transport, relay.port, **(QUICK[transport] if happens == "freeze" else {}))

            async def work(agent: Any) -> None:
                await initialize(agent)
                await open_session(agent, "/1")
                call = asyncio.create_task(prompt(agent, "/1", "ask"))
                asked = asyncio.create_task(block.handler.asked.wait())
                await asyncio.wait({call, asked}, return_when=asyncio.FIRST_COMPLETED)  # on a slow machine, the former
                asked.cancel()
                getattr(Relay, happens)(relay)
                await call

            error = await failure_of(block, work=work)
        assert str(error).startswith(reasons[transport])
        assert (error.status, error.is_permanent) == (None, False)

    run(main(), seconds=PATIENCE)


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        (1011, "no memory\x1b[2J", r"the server has closed the connection: 1011 (internal error) no memory\x1b[2J"),
        (3000, "", "the server has closed the connection: 3000 (registered)"),
    ],
)
def test_the_code_that_closes_a_websocket(code: int, text: str, reason: str) -> None:
    async def close(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.close", "code": code, "reason": text})

    async def main() -> None:
        async with served() as (app, port):
            app.app = close
            error = await failure_of(connecting("websocket", port))
        assert str(error) == reason
        assert not error.is_permanent

    run(main(), seconds=PATIENCE)


def test_a_message_that_is_too_large_for_this_side(transport: str) -> None:
    acp = remote_package()

    async def work(agent: Any) -> None:
        await initialize(agent)
        await open_session(agent, "/1")
        await prompt(agent, "/1", "pad 200000")

    async def main() -> None:
        async with served() as (_, port):
            options = acp.ConnectionOptions(max_message_bytes=100_000)
            error = await failure_of(connecting(transport, port, options=options), work=work)
        assert (
            "100000 byte limit" in str(error) if transport == "http" else "larger than max_message_bytes" in str(error)
        )

    run(main(), seconds=PATIENCE)


# --- Sessions -------------------------------------------------------------------------------------------------------


def test_an_unknown_session_is_an_error_in_the_params(transport: str) -> None:
    """As an agent on stdio says, whether the server or the agent refuses it."""
    acp = remote_package()

    async def main() -> None:
        async with served() as (_, port), connecting(transport, port) as agent:
            await initialize(agent)
            if transport == "http":
                with pytest.raises(acp.InvalidParamsError, match="no session 'unknown'") as caught:
                    await prompt(agent, "unknown", "count 1")
                assert caught.value.data == {"status": 404}
            await open_session(agent, "/1")  # the connection goes on
            await prompt(agent, "/1", "count 1")

    run(main(), seconds=PATIENCE)
