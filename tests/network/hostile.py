"""A client that uses up all limits of a server together: it sends what is heavy, and reads nothing.

Each attack runs until it ends, or until the server lets it wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NamedTuple

KIB, MIB = 2**10, 2**20
Send = Callable[["Attack"], Awaitable[None]]
"""Sends a message, and does not wait for the response."""

HEAVY = "[" + "{}," * 100_000 + "{}]"
"""300 KB as JSON, and 7 MiB in memory."""
WIDE = json.dumps("\U0001f600" + "x" * 15 * MIB, ensure_ascii=False)
"""15 MiB, of which each character takes four bytes."""
LARGE = json.dumps("\U0001f600" + "x" * 7 * MIB)
"""The same for 7 MiB once it is parsed, and not before: four of them may be in flight on one connection."""
PADDING = "x" * 250 * KIB


class Attack(NamedTuple):
    """A message, and the session that it is for."""

    text: str
    session: str = ""


def request(number: Any, method: str, params: str = "null", session: str = "") -> Attack:
    """A request with these params."""
    return Attack(f'{{"jsonrpc":"2.0","id":{json.dumps(number)},"method":"{method}","params":{params}}}', session)


def prompt(number: Any, session: str, text: str, meta: str = "0") -> Attack:
    content = f'[{{"type":"text","text":"{text}"}}]'
    params = f'{{"sessionId":"{session}","prompt":{content},"_meta":{{"heavy":{meta}}}}}'
    return request(number, "session/prompt", params, session)


FIRST = request(0, "initialize", f'{{"protocolVersion":1,"_meta":{{"heavy":{HEAVY}}}}}')


def messages(name: str, sessions: int) -> Iterator[Attack]:
    """What one connection sends after the first request: each line uses up something else."""
    if int(name) < 16:  # in flight: first, as the agent reads no more once its streams are full
        for number in range(4):
            yield request(f"large {number}", "_wait", LARGE)
    for number in range(3):
        yield request(f"{number}" + "é" * 300 * KIB, "_echo")  # a long id
    yield request("load", "session/load", f'{{"sessionId":"{"s" * MIB}","cwd":"/","mcpServers":[]}}')
    names = [f"/{name}/{number}" for number in range(sessions)]
    for session in names:
        yield request(session, "session/new", f'{{"cwd":"{session}","mcpServers":[]}}')
    for session in names:  # streams that are not read
        yield prompt(session, session, f"pad {len(PADDING)}")
    yield request("echo", "_echo", json.dumps(PADDING))
    yield request("heavy echo", "_echo", HEAVY)
    for number in range(3):  # in flight
        yield prompt(f"wait {number}", names[0], "wait", HEAVY)
    for number in range(100):
        yield prompt(f"short {number}", names[0], "wait")
    yield Attack(f'{{"jsonrpc":"1.0","id":1,"method":"_echo","params":{HEAVY}}}')  # the refusal waits
    yield Attack(f'{{"jsonrpc":"2.0","method":"_note","params":{HEAVY}}}')
    for number in range(3):  # the inbox
        yield request(f"last {number}", "_echo", HEAVY)
        if name in ("0", "1"):
            yield request(f"wide {number}", "_echo", WIDE)
    if name in ("2", "3"):
        yield Attack("x" * 15 * MIB)  # no JSON


@contextlib.asynccontextmanager
async def http_connection(port: int) -> AsyncIterator[Send]:
    """Streamable HTTP: each message is a POST that waits beside the others. The streams are opened, and not read."""
    import httpx2

    limits = httpx2.Limits(max_connections=None)
    url = f"http://127.0.0.1:{port}/acp"
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx2.AsyncClient(http1=False, http2=True, timeout=None, limits=limits, verify=False)
        )
        kind = {"content-type": "application/json"}
        answer = await client.post(url, content=FIRST.text, headers=kind)
        key = {"acp-connection-id": answer.headers.get("acp-connection-id", "")}
        await stack.enter_async_context(client.stream("GET", url, headers={**key, "accept": "text/event-stream"}))

        async def send(message: Attack) -> None:
            named = {"acp-session-id": message.session} if message.session else {}
            await client.post(url, content=message.text, headers={**key, **named, **kind})

        yield send


@contextlib.asynccontextmanager
async def socket_connection(port: int) -> AsyncIterator[Send]:
    """A WebSocket that is not read."""
    import websockets

    async with websockets.connect(
        f"ws://127.0.0.1:{port}/acp", max_queue=1, compression=None, close_timeout=1
    ) as socket:
        await socket.send(FIRST.text)

        async def send(message: Attack) -> None:
            await socket.send(message.text)

        yield send


CONNECTIONS = {"http": http_connection, "websocket": socket_connection}


async def attack(transport: str, port: int, name: str, sessions: int) -> None:
    """Use up the limits over one connection; a refused message does not matter."""
    with contextlib.suppress(OSError, *_failures()):
        async with CONNECTIONS[transport](port) as send:
            waiting: set[asyncio.Task[None]] = set()
            try:
                for message in messages(name, sessions):
                    task = asyncio.create_task(send(message))
                    waiting.add(task)
                    await asyncio.wait({task}, timeout=0.1)
                await asyncio.wait(waiting)
            finally:
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)


def _failures() -> tuple[type[Exception], ...]:
    import httpx2
    import websockets

    return httpx2.HTTPError, websockets.WebSocketException
