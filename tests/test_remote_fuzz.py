"""Broken requests by the thousand: each gets a status that fits, nothing fails within, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from random import Random
from types import ModuleType
from typing import Any, TypeAlias

import pytest

from acpgen.ir.model import Role
from tests.remote_support import (
    HOST,
    INITIALIZE,
    NEW_SESSION,
    Answer,
    Client,
    EventStream,
    Server,
    Socket,
    agent_for,
    request_of,
    settled,
)
from tests.runtime_support import V1, acp_log, at_rest, items_in, run, texts
from tests.support import DEEP, Packages
from tests.test_runtime_fuzz import MUTATIONS as LINES

SEED = 20261122
ROUND = 100
"""Requests between two looks at what they have left behind."""
OPTIONS = {"max_message_bytes": 20_000, "max_in_flight_bytes": 200_000}
Pair: TypeAlias = tuple[bytes, bytes]


# --- Valid requests, and what breaks them ---------------------------------------------------------------------------


@dataclass
class Request:
    """A request, and the statuses that it may be answered with; -1 stands for none, as its client has left."""

    method: str
    headers: list[Pair]
    body: bytes = b""
    path: str = "/acp"
    version: str = "2"
    pieces: int = 1
    leaves: bool = False
    statuses: set[int] = field(default_factory=set)

    def without(self, name: bytes) -> list[Pair]:
        return [each for each in self.headers if each[0] != name]


def base(random: Random, key: str, session: str, number: int) -> Request:
    """A valid request on a connection, or for a new one."""
    connection, sessioned = (b"acp-connection-id", key.encode()), (b"acp-session-id", session.encode())
    post = Request("POST", [HOST, (b"content-type", b"application/json"), connection], statuses={202})
    prompt = request_of(number, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]})
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    in_session = replace(post, headers=[*post.headers, sessioned])
    get = Request("GET", [HOST, (b"accept", b"text/event-stream"), connection], statuses={409})
    choices = [
        replace(post, body=encoded(request_of(number, "_echo", {"a": [1, 2.5, None, "\u00e4"]}))),
        replace(post, body=encoded(request_of(number, "session/new", {"cwd": 1}))),
        replace(post, body=encoded({"jsonrpc": "2.0", "id": number, "result": {}})),
        replace(in_session, body=encoded(prompt)),
        replace(in_session, body=encoded(cancel)),
        replace(get, statuses={409}),  # the streams are read already
        replace(get, headers=[*get.headers, sessioned]),
        Request(
            "POST",
            [HOST, (b"content-type", b"application/json")],
            encoded(request_of(number, "initialize", INITIALIZE)),
            statuses={200},
        ),
    ]
    return replace(random.choice(choices))


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def other_body(random: Random, request: Request) -> None:
    other = encoded(request_of(1, "session/load", {"sessionId": "s1", **NEW_SESSION}))
    request.body = random.choice(LINES)(random, request.body or other, other)
    if request.method == "POST":  # 404: the broken part may be the session
        request.statuses |= {200, 202, 400, 404, 413, 501}


def no_json(random: Random, request: Request) -> None:
    request.body = random.choice([b"", b"\xff", b"{", b"NaN", b'"', b"{}{}", b"\0", b"nul"])
    if request.method == "POST":
        request.statuses = {400}


def no_object(random: Random, request: Request) -> None:
    request.body = random.choice([b"1", b"null", b'"x"', b"true", b"[]", b'[{"id": 1}]'])
    if request.method == "POST":
        request.statuses = {501 if request.body.startswith(b"[") else 400}


def too_large(random: Random, request: Request) -> None:
    request.body = random.choice([b" " * 30_000, b"[" * 500, b'{"a":[' + b"{}," * 5_000 + b"1]}"])
    request.pieces = random.randint(1, 40)
    if request.method == "POST":
        request.statuses = {413}


def in_pieces(random: Random, request: Request) -> None:
    request.pieces = random.randint(2, 30)


def leave(random: Random, request: Request) -> None:
    request.leaves = True
    request.statuses |= {-1}


def media_type(random: Random, request: Request) -> None:
    name, status = (b"content-type", 415) if request.method == "POST" else (b"accept", 406)
    kinds = [b"", b"text/plain", b"application/xml", b"*/*", b"application/json+x", b"\xff", b";", b",,"]
    request.headers = [*request.without(name), *((name, random.choice(kinds)) for _ in range(random.randint(0, 2)))]
    request.statuses = {status}


def encoding(random: Random, request: Request) -> None:
    request.headers.append((b"content-encoding", random.choice([b"gzip", b"br", b"identity", b""])))
    if request.method == "POST":
        request.statuses = {415}


def connection(random: Random, request: Request) -> None:
    is_first = not any(name == b"acp-connection-id" for name, _ in request.headers)
    value = random.choice([b"", b"x", random.randbytes(16).hex().encode(), b"\xe9" * 32, b"0" * 5000, b"a, b"])
    request.headers = [*request.without(b"acp-connection-id"), (b"acp-connection-id", value)]
    if not is_first and random.random() < 0.3:
        request.headers = request.without(b"acp-connection-id")
        request.statuses = {400}
    else:
        request.statuses = {404}


def session(random: Random, request: Request) -> None:
    value = random.choice([b"", b"x", b"\xff", b"s", b"s1\0", b"../s1", b"y" * 5000])
    request.headers = [*request.without(b"acp-session-id"), (b"acp-session-id", value)]
    request.statuses |= {400, 404} | ({200} if request.method == "GET" else set())  # it may be loaded later


def no_session(random: Random, request: Request) -> None:
    request.headers = request.without(b"acp-session-id")
    request.statuses |= {400} if request.method == "POST" else {409}


def twice(random: Random, request: Request) -> None:
    names = [b"acp-connection-id", b"acp-session-id", b"host", b"origin"]
    name = random.choice(names)
    request.headers = [*request.without(name), (name, b"localhost"), (name.title(), b"localhost")]
    request.statuses = {400}


def length(random: Random, request: Request) -> None:
    value = random.choice([b"99999999", b"9" * 50, b"-1", b"", b"x", b"1e9", b"\xb2"])
    request.headers.append((b"content-length", value))
    if request.method == "POST" and value.startswith(b"9"):
        request.statuses = {413}


def host(random: Random, request: Request) -> None:
    kinds = [b"", b"evil.example", b"localhost.", b"localhost:x", b"a@localhost", b"[::1", b"::1", b"\xff", b"*"]
    request.headers = [
        *request.without(b"host"),
        *((b"host", random.choice(kinds)) for _ in range(random.randint(0, 1))),
    ]
    request.statuses = {403}


def origin(random: Random, request: Request) -> None:
    request.headers.append((b"origin", random.choice([b"null", b"", b"*", b"http://localhost", b"\xff"])))
    request.statuses = {403}


def method(random: Random, request: Request) -> None:
    request.method = random.choice(["PUT", "PATCH", "HEAD", "OPTIONS", "get", "", "PRI", "X" * 1000, "\u00e9"])
    request.statuses = {405}


def version(random: Random, request: Request) -> None:
    request.version = random.choice(["0.9", "1.0", "1.1"])
    request.statuses = {505}


def path(random: Random, request: Request) -> None:
    request.path = random.choice(["", "/", "/acp/", "/ACP", "//acp", "/acp%2f", "/\u00e9", "*", "/acp/../acp"])
    request.statuses = {404}


def strange_header(random: Random, request: Request) -> None:
    name = random.choice(
        [b"", b"x" * 3000, b"\xff", b"cookie", b"upgrade", b"transfer-encoding", b"acp-protocol-version"]
    )
    request.headers.insert(random.randrange(len(request.headers) + 1), (name, random.randbytes(20)))


def ended_connection(random: Random, request: Request) -> None:
    request.method, request.body = "DELETE", b""
    request.headers = [
        *request.without(b"acp-connection-id"),
        (b"acp-connection-id", random.randbytes(16).hex().encode()),
    ]
    request.statuses = {404}


BREAKS: list[Callable[[Random, Request], None]] = [
    *([other_body] * 8),
    *(no_json, no_object, too_large, in_pieces, leave, media_type, encoding, connection, session, no_session, twice),
    *(length, host, origin, method, version, path, strange_header, ended_connection),
]


def broken(random: Random, key: str, session: str, number: int) -> Request:
    """A request with one fault, or with two: then it is refused for either, or accepted if one undoes the other."""
    request = base(random, key, session, number)
    changes = random.sample(BREAKS, random.choice([1, 1, 1, 2]))
    statuses = set(request.statuses) if len(changes) > 1 else set[int]()
    for change in changes:
        change(random, request)
        statuses |= request.statuses
    return replace(request, statuses=statuses)


# --- What is done with them -----------------------------------------------------------------------------------------


@dataclass
class Fuzz:
    """Sends broken requests on a connection, and broken frames on a WebSocket, both of which stay useful."""

    server: Server
    client: Client
    socket: Socket
    random: Random
    session: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    first_look: tuple[Counter[str], int] | None = None

    async def send(self, number: int) -> None:
        if number % 4 == 0:
            await self._send_frame()
            return
        request = broken(self.random, self.client.key or "", self.session, number)
        status = await self._status(request)
        assert status in request.statuses, (status, request)
        self.counts[str(status)] += 1

    async def _send_frame(self) -> None:
        number = self.random.randrange(10**6)
        lines = [encoded(request_of(number, name, NEW_SESSION)) for name in ("session/load", "session/prompt", "_echo")]
        line, other = self.random.sample(lines, 2)
        frame = self.random.choice(LINES)(self.random, line, other)
        if self.random.random() < 0.1:
            self.socket.feed("websocket.receive", bytes=frame)
        else:
            await self.socket.send(frame.decode(errors=self.random.choice(["replace", "surrogateescape"])))
        self.counts["frames"] += 1

    async def _status(self, request: Request) -> int:
        """Send a request as it is; returns the status, and takes back what it has opened."""
        client = Client(self.server.app, headers=[], path=request.path, http_version=request.version)
        exchange = client.start(request.method, request.headers)
        size = max(1, len(request.body) // request.pieces)
        for at in range(0, len(request.body), size):
            exchange.feed("http.request", body=request.body[at : at + size], more_body=True)
        exchange.feed("http.disconnect" if request.leaves else "http.request")
        start = await exchange.event()
        if start is None:
            return -1
        if start["status"] == 200 and request.method == "GET":
            await exchange.leave()
            return 200
        answer = await exchange.rest(start)
        await self._check(answer)
        return answer.status

    async def _check(self, answer: Answer) -> None:
        if answer.status >= 400:
            assert answer.headers["content-type"].startswith("text/plain")
            assert len(answer.body) < 100
        if answer.status == 200:
            client = Client(self.server.app, key=answer.headers["acp-connection-id"])
            assert (await client.delete()).status == 202

    async def look(self) -> None:
        """Nothing of all that is left, and both connections are as good as new."""
        app, pings = self.server.app, self.counts["looks"]
        await self.client.call(f"ping{pings}", "_echo")
        await self.socket.call(f"ping{pings}", "_echo")
        while (message := await self.socket.receive()) is None or message.get("id") != f"ping{pings}":
            assert message is not None
            assert message.get("type") is None, message
        await settled(lambda: f"ping{pings}" in self.counts)
        await settled(lambda: app.connections == 2)
        await settled(lambda: self.server.held == 0)
        tasks = await at_rest(lambda: len(asyncio.all_tasks()))  # that of a request ends after it
        found = items_in(app), tasks
        self.first_look = self.first_look or found
        assert found == self.first_look
        self.counts["looks"] += 1

    async def read(self, stream: EventStream) -> None:
        """Take what the agent sends."""
        while (message := await stream.receive()) is not None:
            if str(message.get("id")).startswith("ping"):
                self.counts[message["id"]] += 1


async def converse(client: Client) -> None:
    """A valid conversation from its start to its end."""
    await client.initialize()
    async with client.get() as stream:
        session = await client.new_session(stream)
        async with client.get(session) as other:
            await client.call(1, "session/prompt", {"sessionId": session, "prompt": []}, session)
            assert (await other.receive())["result"] == {"stopReason": "end_turn"}
    assert (await client.delete()).status == 202


async def fuzz(acp: ModuleType, count: int, seed: int) -> Counter[str]:
    options = acp.ConnectionOptions(**OPTIONS)
    async with (
        Server.of(acp, agent_for(acp), require_http2=True, options=options) as server,
        AsyncExitStack() as opened,
    ):
        client = Client(server.app)
        await client.initialize()
        socket = await opened.enter_async_context(Client(server.app).socket())
        found = Fuzz(server, client, socket, Random(seed))
        stream = await opened.enter_async_context(client.get())
        found.session = await client.new_session(stream)
        streams = [stream, await opened.enter_async_context(client.get(found.session))]
        tasks = [asyncio.create_task(found.read(each)) for each in streams]
        for number in range(count):
            await found.send(number)
            if number % ROUND == ROUND - 1:
                await found.look()
                await converse(Client(server.app))
        await client.delete()
        await asyncio.gather(*tasks)
    return found.counts


def check(acp: ModuleType, count: int, seed: int) -> None:
    with acp_log() as records:
        counts = run(fuzz(acp, count, seed), seconds=900)
    assert "Traceback" not in texts(records, logging.DEBUG)
    print(f"remote fuzz: {', '.join(f'{name}: {many}' for name, many in sorted(counts.items()) if 'ping' not in name)}")
    for status in (-1, 200, 202, 400, 403, 404, 405, 406, 409, 413, 415, 501, 505):
        assert counts[str(status)] > count / 1000
    assert counts["frames"] == count // 4
    assert counts["looks"] == count // ROUND


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


@pytest.mark.every_python
def test_broken_requests(acp: ModuleType) -> None:
    check(acp, 1_000, SEED)


@pytest.mark.full
def test_many_broken_requests(acp: ModuleType) -> None:
    check(acp, 100_000 if DEEP else 2_000, SEED + 1)
