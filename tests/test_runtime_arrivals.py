"""Messages that arrive while the read loop waits: they are dispatched in its place, and nothing may differ from it."""

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

from tests.runtime_support import V1, acp_log, at_rest, over_pipes, run, started, streams, texts
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


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


# --- Order -----------------------------------------------------------------------------------------------------------


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


# --- As the loop does ------------------------------------------------------------------------------------------------

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


def test_responses_to_nothing_do_not_make_junk_worth_an_answer(acp: ModuleType) -> None:
    async def main() -> int:
        async with piped(acp, type("Agent", (acp.Agent,), {})) as peer:
            for _ in range(150):
                peer.send(id=999, result=1)
                for _ in range(3):
                    await asyncio.sleep(0)
                os.write(peer.to_agent, b"junk\n")
                for _ in range(3):
                    await asyncio.sleep(0)
            peer.send(id=1, method="_m")
            await peer.answer_to(1)
            return sum(each.get("id") is None for each in peer.received)

    with acp_log():
        assert run(main()) == 100


def test_no_request_begins_after_stop(acp: ModuleType) -> None:
    begun: list[str] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            begun.append(method)

    async def main() -> None:
        async with piped(acp, Agent) as peer:
            peer.send(id=1, method="_m")
            peer.connection.stop()
            await peer.connection.wait_closed()

    run(main())
    assert begun == []


def test_a_request_is_read_after_a_handler_has_cancelled_the_loop(acp: ModuleType) -> None:
    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_notification(self, method: str, params: Any) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

        async def ext_method(self, method: str, params: Any) -> Any:
            return 1

    async def main() -> None:
        async with piped(acp, Agent) as peer:
            for number in range(4):
                peer.send(method="_n")
                await asyncio.sleep(0.001 * (number % 2))
                peer.send(id=number, method="_m")
                assert (await peer.answer_to(number))["result"] == 1

    with acp_log():
        run(main())


# --- The end ---------------------------------------------------------------------------------------------------------


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


def test_a_result_that_comes_too_late_is_no_failure_of_its_handler(acp: ModuleType) -> None:
    failures: list[Any] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return "in time, it thinks"

    async def main() -> None:
        async with piped(acp, Agent, on_error=lambda *failure: failures.append(failure)) as peer:
            peer.send(id=1, method="_m")
            await asyncio.sleep(0.01)

    run(main())
    assert failures == []


# --- Memory ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("part", ["method", "params"])
def test_all_of_a_message_counts(acp: ModuleType, part: str) -> None:
    begun: list[int] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            begun.append(len(method))
            await asyncio.Event().wait()

    async def main() -> None:
        async with piped(acp, Agent, max_in_flight_bytes=400_000) as peer:
            for number in range(10):
                text = "x" * 60_000
                peer.send(
                    id=number,
                    method=f"_{text}" if part == "method" else "_m",
                    params=[text] if part == "params" else [],
                )
                await at_rest(lambda: (len(begun), len(peer.received)))
            assert len(begun) == 6

    with acp_log() as records:
        run(main())
    assert "max_in_flight_bytes" in texts(records)


def test_messages_count_with_the_size_that_a_transport_of_values_says(acp: ModuleType) -> None:
    begun: list[str] = []

    class Agent(acp.Agent):  # type: ignore[name-defined,misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            begun.append(method)
            await asyncio.Event().wait()

    class Messages:
        def __init__(self) -> None:
            self.arrived: asyncio.Queue[Any] = asyncio.Queue()
            self.sent: list[Any] = []

        async def read(self) -> Any:
            return await self.arrived.get()

        def send(self, message: Any) -> None:
            self.sent.append(message)

        async def close(self) -> None:
            pass

    async def main() -> None:
        transport = Messages()
        connection = acp.Connection(transport, acp.ConnectionOptions(max_in_flight_bytes=400_000))
        connection.start(Agent(acp.RemoteClient(connection)))
        for number in range(10):
            transport.arrived.put_nowait(acp.Message("request", None, method="_m", id=number, size=60_000))
        while len(begun) + len(transport.sent) < 10:
            await asyncio.sleep(0)
        await connection.close()

    with acp_log():
        run(main())
    assert len(begun) == 6


def test_a_subclass_of_the_transport_sees_all_messages(acp: ModuleType) -> None:
    seen: list[bytes] = []

    class Watched(acp.StreamTransport):  # type: ignore[misc]
        async def read(self) -> bytes | None:
            found: bytes | None = await super().read()
            seen.append(found or b"")
            return found

        async def write(self, message: bytes) -> None:
            seen.append(message)
            await super().write(message)

    async def main() -> None:
        here, (reader, writer) = await streams()
        connection, _ = started(acp, acp.Agent, Watched(*here))
        writer.write(line(id=1, method="_a") + line(id=2, method="_a"))
        for _ in range(2):
            await reader.readline()
        await connection.close()
        writer.close()

    run(main())
    assert sorted(json.loads(each)["id"] for each in seen if each) == [1, 1, 2, 2]
