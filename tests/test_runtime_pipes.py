"""The two pipes of an agent: what was written is taken once and in order, and neither stays open."""

from __future__ import annotations

import asyncio
import json
import os
import random
import weakref
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, at_rest, over_pipes, run
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


@dataclass
class Ends:
    """The descriptors of the agent, and those of its client."""

    stdin: int
    stdout: int
    to_agent: int
    from_agent: int


def pipes() -> Ends:
    stdin, to_agent = os.pipe()
    from_agent, stdout = os.pipe()
    return Ends(stdin, stdout, to_agent, from_agent)


class Counting:
    """A mixin for agents that count the characters of notifications, and take their time."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)  # type: ignore[call-arg]
        self.sizes: asyncio.Queue[int] = asyncio.Queue()

    async def ext_notification(self, method: str, params: Any) -> None:
        await asyncio.sleep(0.01)  # the client is faster
        self.sizes.put_nowait(len(params))


async def opened(acp: ModuleType, ends: Ends, **options: int) -> tuple[Any, Any]:
    kind = type("CountingAgent", (Counting, acp.Agent), {})
    return await over_pipes(acp, kind, ends.stdin, ends.stdout, **options)


def note(size: int) -> bytes:
    """A line of so many bytes."""
    start, end = b'{"jsonrpc":"2.0","method":"_n","params":"', b'"}'
    return start + b"x" * (size - len(start + end)) + end


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def are_closed(ends: Ends) -> bool:
    """Whether the agent has let go of both; the client does so here."""
    os.close(ends.from_agent)
    return not (is_open(ends.stdin) or is_open(ends.stdout))


def test_what_is_read_comes_whole(acp: ModuleType) -> None:
    lines = [note(size) for size in (43, 2**16 - 1, 2**16, 2**16 + 1, 500_000)]

    async def main() -> list[int]:
        ends = pipes()
        connection, agent = await opened(acp, ends)
        connection.start(agent)
        with os.fdopen(ends.to_agent, "wb") as wire:
            writing = asyncio.to_thread(lambda: (wire.write(b"\n".join(lines)), wire.close()))
            task = asyncio.create_task(writing)
            await connection.wait_closed()
            await task
        os.close(ends.from_agent)
        return [len(note(0)) + agent.sizes.get_nowait() for _ in range(agent.sizes.qsize())]

    assert run(main()) == [len(line) for line in lines]


@pytest.mark.parametrize("read", [0, 1, 2], ids=["before all", "while more is there", "at the end"])
def test_both_are_closed(acp: ModuleType, read: int) -> None:
    async def main() -> Ends:
        ends = pipes()
        connection, agent = await opened(acp, ends)
        os.write(ends.to_agent, note(50) + b"\n")
        if read:
            connection.start(agent)
            await agent.sizes.get()
        if read == 2:
            os.close(ends.to_agent)
            await connection.wait_closed()
        await connection.close()
        await asyncio.sleep(0.01)
        return ends

    ends = run(main())
    assert are_closed(ends)
    if read < 2:
        with pytest.raises(BrokenPipeError):
            os.write(ends.to_agent, b"two\n")
        os.close(ends.to_agent)


# --- An agent at work -------------------------------------------------------------------------------------------------


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


@dataclass
class PipePeer:
    """The other end of the pipes of an agent."""

    connection: Any
    to_agent: int
    from_agent: int
    received: list[Any] = field(default_factory=list)
    rest: bytes = b""

    def read(self) -> None:
        try:
            chunk = os.read(self.from_agent, 2**16)
        except BlockingIOError:
            return
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        self.received += map(json.loads, lines)
        if not chunk:
            asyncio.get_running_loop().remove_reader(self.from_agent)

    def send(self, **message: Any) -> None:
        os.write(self.to_agent, line(**message))

    async def answer_to(self, number: Any) -> Any:
        while True:
            for message in self.received:
                if message.get("id") == number and "method" not in message:
                    return message
            await asyncio.sleep(0.001)


@asynccontextmanager
async def piped(
    acp: ModuleType, kind: type[Any], *, reads: bool = True, **options: Any
) -> AsyncGenerator[PipePeer, None]:
    stdin, to_agent = os.pipe()
    from_agent, stdout = os.pipe()
    connection, handler = await over_pipes(acp, kind, stdin, stdout, **options)
    connection.start(handler)
    peer = PipePeer(connection, to_agent, from_agent)
    os.set_blocking(from_agent, False)
    if reads:
        asyncio.get_running_loop().add_reader(from_agent, peer.read)
    try:
        await asyncio.sleep(0.001)  # from now on the read loop waits
        yield peer
    finally:
        await connection.close()
        asyncio.get_running_loop().remove_reader(from_agent)
        os.close(to_agent)
        os.close(from_agent)


@dataclass
class Script:
    """Random messages, and what the agent makes of them."""

    chance: random.Random
    begun: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    seen: list[bytes] = field(default_factory=list)

    def agent(self, acp: ModuleType) -> type[Any]:
        script = self

        class Agent(acp.Agent):  # type: ignore[name-defined,misc]
            def __init__(self, client: Any) -> None:
                super().__init__(client)
                self.client = client

            async def ext_method(self, method: str, params: Any) -> Any:
                await self.handle(params)
                return params["name"]

            async def ext_notification(self, method: str, params: Any) -> None:
                await self.handle(params)

            async def handle(self, params: Any) -> None:
                script.begun.append(params["name"])
                if params["asks"]:
                    assert await self.client.ext_method("_ask", params["name"]) == params["name"]
                for _ in range(params["turns"]):
                    await asyncio.sleep(0)

        return Agent

    def message(self, name: str) -> bytes:
        chance = self.chance
        params = {"name": name, "asks": chance.random() < 0.3, "turns": chance.choice([0, 0, 1, 3])}
        kind = chance.random()
        if kind > 0.9:
            return chance.choice([b"junk\n", b"\n", b"[]\n", line(id=999, result=1)])
        self.sent.append(name)
        return line(method="_n", params=params) if kind < 0.3 else line(id=name, method="_m", params=params)


@pytest.mark.parametrize("seed", range(20))
def test_handlers_begin_in_the_order_of_arrival(acp: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    script = Script(chance)

    async def main() -> None:
        agent, written, answered = script.agent(acp), b"", 0
        seen = {"in": list[bytes](), "out": list[bytes]()}
        async with piped(acp, agent, on_message=lambda way, text: seen[way].append(text)) as peer:

            async def put(data: bytes) -> None:
                os.write(peer.to_agent, data)
                for _ in range(chance.choice([0, 1, 2, 5])):
                    await asyncio.sleep(0)

            async def answer() -> None:
                nonlocal written, answered
                asked = [each for each in peer.received if each.get("method") == "_ask"]
                for each in asked[answered:]:
                    answered += 1
                    data = line(id=each["id"], result=each["params"])
                    written += data
                    await put(data)

            for number in range(40):
                data = script.message(f"m{number}")
                cut = chance.randint(0, len(data))
                await put(data[:cut])
                await put(data[cut:])
                written += data
                await answer()
            last = line(id="last", method="_m", params={"name": "last", "asks": False, "turns": 0})
            written += last
            await put(last)
            while not all(any(e.get("id") == name for e in peer.received) for name in requests(written)):
                await asyncio.sleep(0.001)
                await answer()
            await at_rest(lambda: len(peer.received))
            assert script.begun == [*script.sent, "last"]
            assert seen["in"] == [text for text in written.split(b"\n") if text]
            assert list(map(json.loads, seen["out"])) == peer.received

    run(main())


def requests(written: bytes) -> list[str]:
    found = (json.loads(text) for text in written.split(b"\n") if text.startswith(b"{"))
    return [each["id"] for each in found if "method" in each and "id" in each]


mode: ContextVar[str] = ContextVar("mode", default="at the start")


def test_a_handler_has_the_same_context_however_its_request_arrives(acp: ModuleType) -> None:
    seen: list[str] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_notification(self, method: str, params: Any) -> None:
            mode.set("set by a notification")

        async def ext_method(self, method: str, params: Any) -> Any:
            seen.append(mode.get())

    async def main() -> None:
        async with piped(acp, Agent) as peer:
            os.write(peer.to_agent, line(method="_n") + line(id=1, method="_m"))
            await peer.answer_to(1)
            peer.send(id=2, method="_m")
            await peer.answer_to(2)

    run(main())
    assert seen == ["set by a notification"] * 2


class Object(dict[str, Any]):
    """A JSON object that can be referred to weakly."""


def test_a_message_is_not_kept_while_the_next_one_is_awaited(acp: ModuleType) -> None:
    kept: list[weakref.ref[Object]] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_notification(self, method: str, params: Any) -> None:
            kept.append(weakref.ref(params))

    async def main() -> None:
        loads = lambda text: json.loads(text, object_hook=Object)  # noqa: E731
        async with piped(acp, Agent, loads=loads) as peer:
            peer.send(method="_n", params={})
            while not kept:
                await asyncio.sleep(0)
            await at_rest(lambda: kept[0]() is None)
            assert kept[0]() is None

    run(main())


# --- The end ----------------------------------------------------------------------------------------------------------


def test_an_end_before_the_start(acp: ModuleType) -> None:
    async def main() -> None:
        stdin, to_agent = os.pipe()
        from_agent, stdout = os.pipe()
        os.close(to_agent)
        connection, handler = await over_pipes(acp, acp.Agent, stdin, stdout)
        await asyncio.sleep(0.01)  # the transport has seen it
        connection.start(handler)
        await connection.wait_closed()
        os.close(from_agent)

    run(main(), seconds=10.0)


def test_who_waits_for_room_does_not_wait_after_the_end(acp: ModuleType) -> None:
    async def main() -> None:
        agent = type("Agent", (acp.Agent,), {})
        async with piped(acp, agent, reads=False, max_write_buffer_bytes=1000, cleanup_seconds=0.05) as peer:

            async def flood() -> None:
                while True:
                    await peer.connection.notify("_n", "x" * 50_000)

            flooding = asyncio.create_task(flood())  # a task of the program, which the connection does not cancel
            await asyncio.sleep(0.01)
            await peer.connection.close()
            with pytest.raises(acp.ConnectionClosed):
                await flooding

    with acp_log():
        run(main(), seconds=10.0)
