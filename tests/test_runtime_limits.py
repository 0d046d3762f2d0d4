"""Limits: large messages, many requests, and a peer that does not read."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import (
    V1,
    V2,
    RawPeer,
    acp_log,
    agent_of,
    client_of,
    pair,
    raw_peer,
    run,
    started,
    streams,
    stub_of,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
INVALID, UNKNOWN, INTERNAL = -32600, -32601, -32603


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


def codes(answers: list[Any]) -> list[tuple[Any, int]]:
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


@dataclass
class SocketPeer(RawPeer):
    """A peer by hand behind a socket; `writer` is the stream that the tested side writes to."""

    writer: asyncio.StreamWriter = field(kw_only=True)

    @property
    def buffered(self) -> int:
        """The bytes that the tested side has written, and that the socket has not taken."""
        return self.writer.transport.get_write_buffer_size()


@asynccontextmanager
async def socket_peer(
    acp: Any, kind: type[Any], *, options: Any = None, **limits: int
) -> AsyncGenerator[SocketPeer, None]:
    """A peer by hand behind a socket, whose transport has `limits`."""
    near, far = await streams()
    near[1].get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**14)
    connection, handler = started(acp, kind, acp.StreamTransport(*near, **limits), options)
    stub = stub_of(acp, kind, connection)
    peer = SocketPeer(acp.StreamTransport(*far), connection, handler, stub, writer=near[1])
    try:
        yield peer
    finally:
        await peer.transport.close()
        await connection.close()


# --- The size of messages -------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("size", [101, 150, 70_000, 300_000])
def test_a_message_that_is_too_large_is_skipped(packages: Packages, sources: SchemaChoice, size: int) -> None:
    acp = packages(sources)

    async def main() -> list[Any]:
        async with socket_peer(acp, agent_of(acp, ext_method=echo), max_message_bytes=100) as peer:
            head = b'{"jsonrpc":"2.0","id":1,"method":"_a","params":"'
            await peer.send_line(head + b"x" * (size - len(head) - 2) + b'"}')
            answers = [await peer.receive()]
            await peer.send_line(head + b"x" * (100 - len(head) - 2) + b'"}')
            return [*answers, await peer.receive(), *await peer.ping()]

    refused, accepted = run(main())
    assert codes([refused]) == [(1, INVALID)]
    assert "100 bytes" in refused["error"]["message"]
    assert (accepted["id"], set(accepted["result"])) == (1, {"x"})


@pytest.mark.parametrize("size", [101, 150, 70_000, 300_000])
def test_a_call_whose_answer_is_too_large_fails(packages: Packages, size: int) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with socket_peer(acp, agent_of(acp), max_message_bytes=100) as peer:
            call = asyncio.create_task(peer.stub.ext_method("_ask", None))
            await peer.answer((await peer.receive())["id"], result="x" * size)
            with pytest.raises(acp.InternalError, match=r"too large.*100 bytes \(max_message_bytes\)"):
                await call
            await peer.ping()

    with acp_log():
        run(main())


def test_a_large_message_at_the_end_of_the_stream(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> bytes:
        near, (reader, writer) = await streams()
        writer.write(b"x" * 1000)
        writer.write_eof()
        await acp.serve_agent(agent_of(acp), acp.StreamTransport(*near, max_message_bytes=100))
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer

    assert json.loads(run(main()))["error"]["code"] == INVALID


LONG_ID = "\x01" * 80
"""An id of 80 bytes, and of 482 as it would go out."""

SHORT_ANSWERS = {
    "refused": ({"jsonrpc": "1.0", "id": LONG_ID, "method": "_a"}, INTERNAL),
    "unknown": ({"jsonrpc": "2.0", "id": LONG_ID, "method": "no_such"}, INTERNAL),
    "answered": ({"jsonrpc": "2.0", "id": LONG_ID, "method": "_a", "params": 1}, INTERNAL),
}


@BOTH
@pytest.mark.parametrize("case", SHORT_ANSWERS)
def test_an_id_that_is_too_long_for_an_answer(packages: Packages, sources: SchemaChoice, case: str) -> None:
    """Then the answer is a short error, for which no limit holds."""
    acp = packages(sources)
    message, code = SHORT_ANSWERS[case]

    async def main() -> list[Any]:
        async with raw_peer(
            acp, agent_of(acp, ext_method=echo), options=acp.ConnectionOptions(max_message_bytes=400)
        ) as peer:
            await peer.send_line(json.dumps(message, ensure_ascii=False).encode())
            return [await peer.receive(), *await peer.ping()]

    with acp_log():
        assert codes(run(main())) == [(LONG_ID, code)]


@BOTH
@pytest.mark.parametrize("text", ["é" * 150, "中" * 100, "\U0001f600" * 75], ids=["two", "three", "four"])
def test_what_fits_as_it_came_can_be_sent(packages: Packages, sources: SchemaChoice, text: str) -> None:
    """In ASCII it would take two or three times the bytes, and exceed the limit."""
    acp = packages(sources)

    async def main() -> Any:
        async with raw_peer(
            acp, agent_of(acp, ext_method=echo), options=acp.ConnectionOptions(max_message_bytes=400)
        ) as peer:
            await peer.send_line(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "_a", "params": text}).encode())
            return await peer.receive()

    assert run(main())["result"] == text


@BOTH
def test_a_long_name_of_a_method_does_not_come_back(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def main() -> list[Any]:
        answers = []
        async with raw_peer(acp, agent_of(acp)) as peer:
            for start in ("", "_"):
                await peer.request(1, start + "x" * 100_000)
                answers.append(await peer.receive())
        return answers

    for answer in run(main()):
        assert answer["error"]["code"] == UNKNOWN
        assert len(answer["error"]["message"]) < 300


def test_messages_may_be_large(packages: Packages) -> None:
    """Far above the 64 KiB that a line of asyncio's may have, in both directions."""
    acp = packages(V1)
    text = "x" * 3_000_000

    async def main() -> Any:
        near, far = await streams()
        transports = acp.StreamTransport(*near), acp.StreamTransport(*far)
        async with pair(acp, agent_of(acp, ext_method=echo), client_of(acp), transports=transports) as both:
            return await both.agent.ext_method("_a", text)

    assert run(main()) == text


# --- How many requests ----------------------------------------------------------------------------------------------


@BOTH
def test_requests_above_the_limit_are_refused(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def main() -> tuple[list[Any], list[Any], Any]:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            if method == "_wait":
                await go.wait()
            return method

        options = acp.ConnectionOptions(max_requests=3)
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options) as peer:
            for number in range(5):
                await peer.request(number, "_wait")
            refused = [await peer.receive(), await peer.receive()]
            go.set()
            answers = [await peer.receive() for _ in range(3)]
            return refused, answers, await peer.ask(9, "_quick")

    refused, answers, after = run(main())
    assert codes(refused) == [(3, INTERNAL), (4, INTERNAL)]
    assert "3 requests" in refused[0]["error"]["message"]
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2]
    assert after["result"] == "_quick"


@BOTH
def test_requests_in_flight_share_a_limit_on_text(packages: Packages, sources: SchemaChoice) -> None:
    """Notifications whose handlers wait for the peer do, too. What was answered makes room."""
    acp = packages(sources)

    async def main() -> None:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            if method == "_m":
                await go.wait()

        async def ext_notification(self: Any, method: str, params: Any) -> None:
            await self.client.ext_method("_ask", None)

        kind = agent_of(acp, ext_method=ext_method, ext_notification=ext_notification)
        async with raw_peer(acp, kind, options=acp.ConnectionOptions(max_in_flight_bytes=1_000)) as peer:
            await peer.notify("_n", "x" * 300)
            asked = (await peer.receive())["id"]
            for number in range(2):
                await peer.request(number, "_m", "x" * 300)
            refused = await peer.receive()
            assert (refused["id"], refused["error"]["code"]) == (1, INTERNAL)
            assert "the limit is 1000 bytes (max_in_flight_bytes)" in refused["error"]["message"]
            await peer.request(2, "_m", "x" * 1_000)
            assert (await peer.receive())["error"]["code"] == INVALID
            await peer.answer(asked, result=None)
            await peer.ping()
            await peer.request(3, "_m", "x" * 300)
            go.set()
            assert sorted([(await peer.receive())["id"] for _ in range(2)]) == [0, 3]

    with acp_log():
        run(main())


def test_answers_that_nobody_reads_are_limited(packages: Packages) -> None:
    """A peer that asks on and on, and reads no answer, must not make memory grow: it is not read any longer."""
    acp = packages(V1)
    handled: list[int] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        handled.append(params)
        return params

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(max_requests=10)
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options, max_messages=5) as peer:
            asking = asyncio.create_task(ask_on(peer))
            for _ in range(3_000):
                await asyncio.sleep(0)
            assert not asking.done()
            assert len(handled) <= 5 + 10 + 1
            answers = [await peer.receive() for _ in range(500)]
            await asking
            return answers

    async def ask_on(peer: RawPeer) -> None:
        for number in range(500):
            await peer.request(number, "_a", number)

    answers = run(main())
    assert sorted(answer["id"] for answer in answers) == list(range(500))


# --- A peer that does not read --------------------------------------------------------------------------------------


async def stuck(task: asyncio.Task[Any], progress: list[Any]) -> None:
    """Return once `task` makes no progress any longer."""
    before = -1
    while before != len(progress):
        before = len(progress)
        await asyncio.wait([task], timeout=0.2)
    assert not task.done()


def test_senders_wait_for_a_peer_that_does_not_read(packages: Packages) -> None:
    acp = packages(V1)
    sent: list[int] = []

    async def stream(client: Any) -> None:
        for number in range(2_000):
            await client.ext_notification("_n", [number, "x" * 2_000])
            sent.append(number)

    async def main() -> list[int]:
        async with socket_peer(acp, agent_of(acp), max_write_buffer_bytes=2**14) as peer:
            streaming = asyncio.create_task(stream(peer.stub))
            await stuck(streaming, sent)
            assert peer.buffered < 2**14 + 5_000
            assert len(sent) < 500
            received = [(await peer.receive())["params"][0] for _ in range(2_000)]
            await streaming
            return received

    assert run(main()) == list(range(2_000))


def test_many_senders_wait_outside_of_the_buffer(packages: Packages) -> None:
    """A hundred tasks that send at once: only what the limit allows is in the buffer, not one message of each."""
    acp = packages(V1)
    sent: list[int] = []

    async def send(client: Any, number: int) -> None:
        await client.ext_notification("_n", [number, "x" * 20_000])
        sent.append(number)

    async def main() -> list[int]:
        async with socket_peer(acp, agent_of(acp), max_write_buffer_bytes=2**14) as peer:
            sending = asyncio.ensure_future(asyncio.gather(*(send(peer.stub, number) for number in range(100))))
            await stuck(sending, sent)  # type: ignore[arg-type]
            assert peer.buffered < 2**14 + 25_000
            received = [(await peer.receive())["params"][0] for _ in range(100)]
            await sending
            return received

    assert run(main()) == list(range(100))


def test_memory_transports_hold_so_many_messages(packages: Packages) -> None:
    acp = packages(V1)
    sent: list[int] = []

    async def stream(client: Any) -> None:
        for number in range(20):
            await client.ext_notification("_n", number)
            sent.append(number)

    async def main() -> list[int]:
        async with raw_peer(acp, agent_of(acp), max_messages=4) as peer:
            streaming = asyncio.create_task(stream(peer.stub))
            for _ in range(100):
                await asyncio.sleep(0)
            assert sent == [0, 1, 2, 3]
            received = [(await peer.receive())["params"] for _ in range(20)]
            await streaming
            return received

    assert run(main()) == list(range(20))


def test_senders_that_wait_learn_of_the_end(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp), max_messages=1) as peer:
            senders = [asyncio.create_task(peer.stub.ext_notification("_n", n)) for n in range(4)]
            await asyncio.wait(senders, return_when=asyncio.FIRST_COMPLETED)
            await peer.transport.close()
            await peer.connection.wait_closed()
            found = await asyncio.gather(*senders, return_exceptions=True)
            assert found[0] is None
            assert all(isinstance(each, acp.ConnectionClosed) for each in found[1:])

    run(main())


@pytest.mark.parametrize("part", ["method", "params"])
def test_all_of_a_message_counts(packages: Packages, part: str) -> None:
    acp, text = packages(V1), "x" * 60_000

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        options = acp.ConnectionOptions(max_in_flight_bytes=400_000)
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options) as peer:
            for number in range(7):
                await peer.request(number, *((f"_{text}", []) if part == "method" else ("_m", [text])))
            refused = await peer.receive()
            assert (refused["id"], refused["error"]["code"]) == (6, INTERNAL)
            assert "max_in_flight_bytes" in refused["error"]["message"]

    with acp_log():
        run(main())


def test_messages_count_with_the_size_that_a_transport_of_values_says(packages: Packages) -> None:
    acp = packages(V1)
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
