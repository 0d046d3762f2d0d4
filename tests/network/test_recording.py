"""`acpgen trace --listen`: what passes between a client and a remote agent is unchanged, and what both have said."""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
import sys
from collections.abc import AsyncGenerator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.network.in_process import Seen, certificate_files, connection, served
from tests.network.package import remote_package
from tests.network.recorder import SECONDS, checked, lines, relay, said
from tests.support import require

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ends the program by a signal")

SECRET = "sk-7d1"


@pytest.fixture(autouse=True)
def _parsers() -> None:
    for name in ("h11", "hpack", "hyperframe", "wsproto"):
        require(find_spec(name), name)
    remote_package()  # not in the time of a test


def options(file: Path) -> Any:
    return remote_package().ConnectionOptions(trace=file)  # type: ignore[attr-defined]


async def talk(block: Any, name: str = "/one") -> None:
    """Sessions with updates in one direction, and a question in the other."""
    acp: Any = remote_package()
    v1 = acp.v1
    async with block as agent:
        await agent.initialize(v1.InitializeRequest(protocol_version=1))
        servers = [v1.McpServerHttp(name="m", url="http://a", headers=[v1.HttpHeader(name="K", value=SECRET)])]
        for each in (name, f"{name}/two"):
            await agent.session_new(v1.NewSessionRequest(cwd=each, mcp_servers=servers))
        block.handler.may_answer.set()
        say = partial(prompt, agent, v1)
        await asyncio.gather(say(name, "count 20"), say(f"{name}/two", "ask"))
        await say(name, f"pad {2**20}")
        assert [len(each) for each in block.handler.texts[name]] == [1] * 10 + [2] * 10 + [2**20]


async def prompt(agent: Any, v1: Any, session: str, text: str) -> None:
    block = v1.ContentBlockText(text=text)
    await agent.session_prompt(v1.PromptRequest(session_id=session, prompt=[block]))


WAYS = {
    "HTTP/2": ("http", {}),
    "HTTP/1.1": ("http", {"settings": {"http1": True, "http2": False}}),
    "WebSocket": ("websocket", {}),
    "WebSocket, compressed": ("websocket", {"settings": {"compression": "deflate"}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_both_sides_have_said_is_recorded(way: str, tmp_path: Path) -> None:
    transport, more = WAYS[way]
    files = [tmp_path / name for name in ("passed", "client", "agent")]

    async def main() -> Seen:
        async with served(options=options(files[2])) as (seen, port):
            async with relay(f"http://127.0.0.1:{port}/acp", files[0]) as passing:
                await talk(connection(transport, passing.port, options=options(files[1]), **more))
            assert set(seen.headers("host")) == {f"127.0.0.1:{port}"}
            return seen

    seen = asyncio.run(asyncio.wait_for(main(), SECONDS))
    expected = "2" if way == "HTTP/2" else "1.1"
    assert {scope["http_version"] for scope in seen.scopes} == {expected}
    assert said(files[0]) == said(files[1]) == said(files[2])
    assert sum(map(len, said(files[0]).values())) == 35
    assert checked(files[0]) == []
    assert SECRET not in files[0].read_text(encoding="utf-8")
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    head, *rest = lines(files[0])
    assert (head["url"], head["transport"]) == (f"http://127.0.0.1:{seen_port(seen)}/acp", transport)
    assert {line["connection"] for line in rest} == {head["connection"]}
    assert rest[-1]["end"] is True


def seen_port(seen: Seen) -> str:
    return str(seen.headers("host")[0]).partition(":")[2]


@pytest.mark.full
@pytest.mark.parametrize("way", ["HTTP/2", "HTTP/1.1", "WebSocket"])
def test_a_remote_with_tls(way: str, tmp_path: Path) -> None:
    transport, more = WAYS[way]
    certificate = certificate_files(tmp_path)

    async def main() -> None:
        async with served(certificate, options=options(tmp_path / "agent")) as (seen, port):
            url = f"https://localhost:{port}/acp"
            async with relay(url, tmp_path / "passed", SSL_CERT_FILE=str(certificate[0])) as passing:
                await talk(connection(transport, passing.port, **more))
            assert set(seen.headers("host")) == {f"localhost:{port}"}

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    assert said(tmp_path / "passed") == said(tmp_path / "agent")
    assert checked(tmp_path / "passed") == []


@pytest.mark.full
def test_connections_at_the_same_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with served() as (_, port), relay(f"ws://127.0.0.1:{port}/acp", tmp_path / "passed") as passing:
            every = [WAYS[way] for way in WAYS for _ in range(2)]
            await asyncio.gather(
                *(talk(connection(name, passing.port, **more), f"/{at}") for at, (name, more) in enumerate(every))
            )

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    found = lines(tmp_path / "passed")
    assert len({line["connection"] for line in found}) == 8
    assert sum("msg" in line for line in found) == 8 * 35
    assert checked(tmp_path / "passed") == []


# --- Ends and refusals -----------------------------------------------------------------------------------------------


async def ask(port: int, *parts: bytes) -> bytes:
    """Send bytes, each part for itself, and read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await asyncio.sleep(0.1)
    found = await reader.read()
    writer.close()
    return found


@contextlib.asynccontextmanager
async def answering(answer: bytes, last: bytes) -> AsyncGenerator[tuple[int, list[bytes]], None]:
    """A server that sends the same to each client after its `last` bytes: its port, and what it got."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = b""
        while not found.endswith(last):
            found += await reader.read(2**16)
        got.append(found)
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], got
    finally:
        server.close()


HELLO = b'{"jsonrpc":"2.0","id":0,\r\n"method":"initialize","params":{"protocolVersion":1}}'
POST = b"POST /acp HTTP/1.1\r\nHOST:  127.0.0.1:%d \r\nX-Odd:  a\r\nContent-Length: %d\r\n\r\n%s"


def test_a_refusal_is_in_the_recording(tmp_path: Path) -> None:
    refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 9\r\nConnection: close\r\n\r\nno\x00 entry"

    async def main() -> None:
        async with (
            answering(refusal, HELLO) as (port, got),
            relay(f"http://127.0.0.1:{port}", tmp_path / "passed") as passing,
        ):
            assert await ask(passing.port, POST % (passing.port, len(HELLO), HELLO)) == refusal
            assert got == [POST % (port, len(HELLO), HELLO)]  # the rest of the header is as it was

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    found = lines(tmp_path / "passed")
    assert [each.get("msg", each.get("err", each.get("end"))) for each in found[1:]] == [
        json.loads(HELLO),
        "HTTP 401 for POST: no\x00 entry",
        True,
    ]
    assert [each["code"] for each in checked(tmp_path / "passed")] == ["unanswered"]


STRANGE = {
    "no HTTP": b"\x00\x01\x02 what is this\n" * 50,
    "a head that is no head": b"POST\r\n\r\n\r\n",
    "another name of the host": b"GET / HTTP/1.1\r\nHost: rebound.example.org:9000\r\n\r\n",
    "a change to another protocol": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("answer", [b"", b"\xff\x00" * 9, b"HTTP/1.1 101 -\r\nUpgrade: x\r\n\r\n\x00"])
def test_what_cannot_be_followed_passes(name: str, answer: bytes, tmp_path: Path) -> None:
    async def main() -> bytes:
        async with answering(answer, STRANGE[name]) as (port, got):
            process = relay(f"http://127.0.0.1:{port}", tmp_path / "passed")
            with contextlib.suppress(AssertionError):  # it says on stderr what is not recorded
                async with process as passing:
                    assert await ask(passing.port, STRANGE[name]) == answer or pytest.fail("it has not passed")
            return b"".join(got)

    assert asyncio.run(asyncio.wait_for(main(), SECONDS)) == STRANGE[name]


def test_a_head_in_two_parts_that_is_refused_passes_whole(tmp_path: Path) -> None:
    parts = (b"GET / HTTP/1.1\r\nHo", b"st: a\r\nno header\r\n\r\n")

    async def main() -> bytes:
        async with answering(b"", b"".join(parts)) as (port, got):
            with contextlib.suppress(AssertionError):  # it says on stderr what is not recorded
                async with relay(f"http://127.0.0.1:{port}", tmp_path / "passed") as passing:
                    await ask(passing.port, *parts)
            return b"".join(got)

    assert asyncio.run(asyncio.wait_for(main(), SECONDS)) == b"".join(parts)


def test_a_compressed_answer_is_read(tmp_path: Path) -> None:
    import gzip

    answer = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}).encode()
    body = gzip.compress(answer)
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nAcp-Connection-Id: a\r\n\r\n"
    )

    async def main() -> None:
        async with (
            answering(head + body, HELLO) as (port, _),
            relay(f"http://127.0.0.1:{port}", tmp_path / "passed") as passing,
        ):
            assert await ask(passing.port, POST % (passing.port, len(HELLO), HELLO)) == head + body

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    assert said(tmp_path / "passed")["agent"] == [json.loads(answer)]
    assert checked(tmp_path / "passed") == []


def test_each_end_is_the_end_of_the_other_side(transport: str, tmp_path: Path) -> None:
    """Of the client, of the agent, and of the program between them."""
    acp: Any = remote_package()

    async def main() -> None:
        async with served() as (seen, port):
            async with relay(f"http://127.0.0.1:{port}/acp", tmp_path / "passed") as passing:
                block = connection(transport, passing.port)
                async with block as agent:
                    await agent.initialize(acp.v1.InitializeRequest(protocol_version=1))
                    assert seen.app.connections == 1
                for _ in range(1000):
                    if not seen.app.connections:
                        break
                    await asyncio.sleep(0.02)
                assert seen.app.connections == 0
                left = connection(transport, passing.port)
                agent = await left.__aenter__()
                await agent.initialize(acp.v1.InitializeRequest(protocol_version=1))
            with pytest.raises(acp.ConnectionClosed):
                await agent.session_new(acp.v1.NewSessionRequest(cwd="/", mcp_servers=[]))
            with contextlib.suppress(acp.ConnectionClosed):
                await left.__aexit__(None, None, None)

    asyncio.run(asyncio.wait_for(main(), SECONDS))
    found = lines(tmp_path / "passed")
    assert [sum(key in line for line in found) for key in ("acp_trace", "end")] == [2, 2]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--listen", "127.0.0.1:0"], "it is not clear what to record"),
        (["--listen", "127.0.0.1:0", "--connect", "http://a"], "it is not clear what to record"),
        (["--connect", "http://a", "--out", "x", "--", "agent"], "it is not clear what to record"),
        (["--listen", "https://a:1", "--connect", "http://a", "--out", "x"], "--listen takes HOST:PORT"),
        (["--listen", "a:1", "--connect", "ftp://a", "--out", "x"], "--connect does not take 'ftp://a'"),
        (["--listen", "a:1", "--connect", "http://u:p@a", "--out", "x"], "--connect does not take"),
        (["--listen", "127.0.0.1:99999", "--connect", "http://a", "--out", "x"], "--listen does not take"),
        (["--listen", "127.0.0.1:0", "--connect", "http://a", "--out", "missing/x"], "cannot write missing/x"),
    ],
)
def test_what_cannot_be_started(arguments: list[str], problem: str, tmp_path: Path) -> None:
    outcome = run_acpgen("trace", *arguments, cwd=tmp_path)
    assert (outcome.code, problem in outcome.stderr) == (2, True), outcome.stderr
