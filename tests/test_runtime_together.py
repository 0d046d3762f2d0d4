"""Requests that arrive together: handlers begin in one turn of the event loop, unless one decides about others."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V1, V2, acp_log, agent_of, over_pipes, run, started, streams, texts
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]
WAYS = ["in the callback", "by the loop", "line by line"]
INVALID = -32600


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How messages reach the connection: each transport offers it more or less."""
    return str(request.param)


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def asks(*numbers: Any) -> bytes:
    """Requests of a method without a type, with their ids as params."""
    return b"".join(line(id=number, method="_m", params=number) for number in numbers)


class Peer:
    """The other end of an agent."""

    def __init__(self, connection: Any, send: Callable[[bytes], object], receive: Callable[[], Any]) -> None:
        self.connection = connection
        self.send = send
        self._receive = receive

    async def receive(self, count: int) -> list[Any]:
        """The next messages."""
        return [json.loads(await self._receive()) for _ in range(count)]


@asynccontextmanager
async def agent_by(acp: ModuleType, kind: type[Any], way: str, **options: Any) -> AsyncGenerator[Peer, None]:
    """An agent that messages reach in one of three ways; its read loop waits for the first one."""
    if way == "in the callback":
        (stdin, to_agent), (from_agent, stdout) = os.pipe(), os.pipe()
        connection, handler = await over_pipes(acp, kind, stdin, stdout, **options)
        connection.start(handler)
        reader, out = asyncio.StreamReader(), os.fdopen(from_agent, "rb", 0)
        protocol = asyncio.StreamReaderProtocol(reader)
        pipe, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, out)
        peer = Peer(connection, lambda data: os.write(to_agent, data), reader.readline)
        close = [lambda: os.close(to_agent), pipe.close]
    elif way == "by the loop":
        here, (reader, writer) = await streams()
        connection, _ = started(acp, kind, acp.StreamTransport(*here), acp.ConnectionOptions(**options))
        peer, close = Peer(connection, writer.write, reader.readline), [writer.close]
    else:
        transport = Lines()
        connection, _ = started(acp, kind, transport, acp.ConnectionOptions(**options))
        peer, close = Peer(connection, transport.arrive, transport.sent.get), []
    try:
        await asyncio.sleep(0.001)
        yield peer
    finally:
        await connection.close()
        for each in close:
            each()
        await asyncio.sleep(0)


class Lines:
    """A transport that can only read and write."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.read = self.lines.get

    def arrive(self, data: bytes) -> None:
        for each in data.splitlines():
            self.lines.put_nowait(each)

    async def write(self, message: bytes) -> None:
        self.sent.put_nowait(message)

    async def close(self) -> None:
        pass


# --- In one turn -----------------------------------------------------------------------------------------------------


class Turns:
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.count = 0
        self._next()

    def _next(self) -> None:
        self.count += 1
        self._handle = asyncio.get_running_loop().call_soon(self._next)

    def stop(self) -> None:
        self._handle.cancel()


def test_requests_that_arrive_together_begin_in_one_turn(acp: ModuleType, way: str) -> None:
    begun: list[tuple[int, int]] = []

    async def main() -> None:
        turns = Turns()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            begun.append((params, turns.count))
            await asyncio.sleep(0)

        async with agent_by(acp, agent_of(acp, ext_method=ext_method), way) as peer:
            peer.send(asks(*range(20)))
            await peer.receive(20)
        turns.stop()

    run(main())
    assert [number for number, _ in begun] == list(range(20))
    assert len({turn for _, turn in begun}) == 1


def test_what_comes_behind_them_finds_all_of_them_begun(acp: ModuleType, way: str) -> None:
    seen: list[str] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        seen.append(params.session_id)
        await self.stopped.wait()
        return acp.PromptResponse(stop_reason="cancelled")

    async def session_cancel(self: Any, params: Any) -> None:
        seen.append("cancel")
        self.stopped.set()

    async def main() -> list[Any]:
        kind = agent_of(acp, session_prompt=session_prompt, session_cancel=session_cancel, stopped=asyncio.Event())
        async with agent_by(acp, kind, way) as peer:
            prompts = [line(id=s, method="session/prompt", params={"sessionId": s, "prompt": []}) for s in "abc"]
            peer.send(b"".join([*prompts, line(method="session/cancel", params={"sessionId": "a"})]))
            return [each["result"]["stopReason"] for each in await peer.receive(3)]

    assert run(main()) == ["cancelled"] * 3
    assert seen == ["a", "b", "c", "cancel"]


def test_each_of_them_can_be_cancelled_by_what_comes_behind(acp: ModuleType, way: str) -> None:
    begun: list[int] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        begun.append(params)
        await asyncio.Event().wait()

    async def main() -> dict[int, int]:
        async with agent_by(acp, agent_of(acp, ext_method=ext_method), way) as peer:
            cancels = (line(method="$/cancel_request", params={"requestId": number}) for number in (2, 0, 1))
            peer.send(b"".join([asks(0, 1, 2), *cancels]))
            return {each["id"]: each["error"]["code"] for each in await peer.receive(3)}

    assert run(main()) == dict.fromkeys(range(3), -32800)
    assert begun == [0, 1, 2]


# --- One after the other ---------------------------------------------------------------------------------------------


def test_what_came_with_an_invalid_handshake_is_refused(packages: Packages, way: str) -> None:
    acp = packages(V2)
    begun: list[Any] = []

    async def initialize(self: Any, params: Any) -> Any:
        raise AssertionError("is not called")

    async def ext_method(self: Any, method: str, params: Any) -> None:
        begun.append(params)

    async def main() -> list[Any]:
        kind = agent_of(acp, initialize=initialize, ext_method=ext_method)
        async with agent_by(acp, kind, way) as peer:
            peer.send(line(id=0, method="initialize", params={"protocolVersion": 1}) + asks(1, 2))
            return [(each["id"], each["error"]["code"]) for each in await peer.receive(3)]

    with acp_log():
        assert run(main()) == [(0, -32022), (1, INVALID), (2, INVALID)]
    assert begun == []


def test_what_came_with_a_handshake_in_progress_begins(acp: ModuleType, way: str) -> None:
    begun: list[Any] = []

    async def initialize(self: Any, params: Any) -> Any:
        begun.append("initialize")
        while len(begun) < 3:
            await asyncio.sleep(0)
        return acp.InitializeResponse(protocol_version=1)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        begun.append(params)

    async def main() -> list[Any]:
        kind = agent_of(acp, initialize=initialize, ext_method=ext_method)
        async with agent_by(acp, kind, way) as peer:
            peer.send(line(id=0, method="initialize", params={"protocolVersion": 1}) + asks(1, 2))
            return [each["id"] for each in await peer.receive(3) if "result" in each]

    assert sorted(run(main())) == [0, 1, 2]
    assert begun == ["initialize", 1, 2]


def test_limits_count_what_runs_and_not_what_is_about_to_end(acp: ModuleType, way: str) -> None:
    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return params

    async def main() -> list[Any]:
        async with agent_by(acp, agent_of(acp, ext_method=ext_method), way, max_requests=3) as peer:
            peer.send(asks(*range(20)) + asks(*([20] * 5)))  # an id is free again when its handler has ended
            return [each.get("result") for each in await peer.receive(25)]

    assert run(main()) == [*range(20), *[20] * 5]


def test_a_request_beyond_the_limit_is_refused_when_those_before_it_have_begun(acp: ModuleType, way: str) -> None:
    begun: list[int] = []

    async def main() -> list[Any]:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            begun.append(params)
            await go.wait()

        async with agent_by(acp, agent_of(acp, ext_method=ext_method), way, max_requests=3) as peer:
            peer.send(asks(*range(5)))
            refused = await peer.receive(2)
            assert begun == [0, 1, 2]
            go.set()
            await peer.receive(3)
            return [each["id"] for each in refused]

    with acp_log() as records:
        assert run(main()) == [3, 4]
    assert "max_requests" in texts(records)


def test_no_request_begins_after_one_has_stopped_the_connection(acp: ModuleType, way: str) -> None:
    begun: list[int] = []
    connections: list[Any] = []

    async def ext_method(self: Any, method: str, params: Any) -> None:
        begun.append(params)
        if params == 1:
            connections[0].stop()

    async def main() -> None:
        async with agent_by(acp, agent_of(acp, ext_method=ext_method), way) as peer:
            connections.append(peer.connection)
            peer.send(asks(0, 1, 2, 3))
            await peer.connection.wait_closed()

    run(main())
    assert begun == [0, 1]
