"""Limits on memory: on the network, of a message and of all that are in flight; and an agent that a peer wants to fill.

On the network, the memory of messages counts, which is estimated before they are parsed; between two processes their
text does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.runtime_agents import AgentProcess, command, environment
from tests.runtime_support import V1, RawPeer, acp_log, agent_of, raw_peer, run
from tests.support import Packages, deep_except, runtime_module
from tests.test_runtime_memory import peak

pytestmark = pytest.mark.every_python

INVALID, INTERNAL = -32600, -32603
LIMIT = 100_000
MIB = 2**20


def codes(answers: list[Any]) -> list[tuple[Any, int]]:
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


def request(number: Any, params: bytes, method: str = "_wait") -> bytes:
    return b'{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}' % (
        json.dumps(number).encode(),
        method.encode(),
        params,
    )


def items(item: bytes, size: int) -> bytes:
    """An array of equal items, of about so many bytes."""
    return b"[" + b",".join([item] * (size // (len(item) + 1))) + b"]"


def waiting_agent(acp: Any, go: asyncio.Event) -> type[Any]:
    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_wait":
            await go.wait()
        return None

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await self.client.ext_method("_ask", None)

    return agent_of(acp, ext_method=ext_method, ext_notification=ext_notification)


@asynccontextmanager
async def network_peer(acp: Any, kind: type[Any], *, options: Any) -> AsyncGenerator[RawPeer, None]:
    """A peer by hand, whose messages count as those of a client on the network do."""
    memory = runtime_module(acp, "shared_memory")

    def through(near: Any) -> Any:
        wire = replace(options, wire=lambda _: memory.estimating_wire(options))
        transport = runtime_module(acp, "transport").LineTransport(near, wire)
        transport.budget = memory.SharedMemory()
        return transport

    async with raw_peer(acp, kind, options=options, through=through) as peer:
        yield peer


# --- The estimate ---------------------------------------------------------------------------------------------------


def size_of(value: Any) -> int:
    """The memory of a JSON value."""
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []
    return sys.getsizeof(value) + sum(map(size_of, inner))


FIELDS = {"name": "a name", "line": 1234, "done": True, "path": "/a/path", "kind": None}
RECORD = {f"{key}{n}": value for n in (1, 2) for key, value in FIELDS.items()}

VALUES: dict[str, Callable[[int], bytes]] = {
    "objects": lambda size: items(b"{}", size),
    "arrays": lambda size: items(b"[]", size),
    "objects with arrays": lambda size: items(b'{"":[]}', size),
    "nested objects": lambda size: items(b'{"":' * 90 + b"0" + b"}" * 90, size),
    "different keys": lambda size: json.dumps({f"{n:x}": n + 1000 for n in range(size // 12)}).encode(),
    "numbers": lambda size: json.dumps(list(range(1000, 1000 + size // 6))).encode(),
    "strings": lambda size: json.dumps([f"{n:x}" for n in range(1000, 1000 + size // 8)]).encode(),
    "texts": lambda size: b'"' + b"x" * size + b'"',
    "a text with a wide character": lambda size: ('"\U0001f600' + "x" * size + '"').encode(),
    "a text with an escaped one": lambda size: b'"\\uD83D\\uDE00' + b"x" * size + b'"',
    "a text with an umlaut": lambda size: ('"\u0142' + "x" * size + '"').encode(),
    "wide strings": lambda size: items('"\U0001f600"'.encode(), size),
    "strings with umlauts": lambda size: items('"\u0142"'.encode(), size),
    "properties with umlauts": lambda size: items('{"\u0142":"\u0142"}'.encode(), size),
    "short arrays": lambda size: items(b'["ab"]', size),
    "nested arrays": lambda size: items(b"[" * 90 + b"0" + b"]" * 90, size),
    "records": lambda size: json.dumps([RECORD] * (size // 160)).encode(),
    "escapes": lambda size: b'"' + b"\\n" * (size // 2) + b'"',
}


def answers(acp: Any, limit: int, *lines: bytes) -> list[Any]:
    """What requests are answered with that share so much memory: nothing is, if it fits and waits."""

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(max_in_flight_bytes=limit)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            for line in lines:
                await peer.send_line(line)
            return await peer.ping()

    with acp_log():
        return run(main())


@pytest.mark.full
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("size", [900, 20_000, 300_000])
def test_the_estimate_is_no_less_than_what_it_takes(
    packages: Packages, make: Callable[[int], bytes], size: int
) -> None:
    """What takes 100 bytes more than the limit is not parsed."""
    line = request(1, make(size))
    taken = size_of(json.loads(line))
    assert codes(answers(packages(V1, remote=True), taken - 100, line)) == [(1, INVALID)]


@pytest.mark.full
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("size", [900, 20_000, 300_000])
def test_the_measure_is_no_less_than_what_it_takes(packages: Packages, make: Callable[[int], bytes], size: int) -> None:
    """The room that is left beside a message is filled with texts, until one is refused."""
    acp, line = packages(V1, remote=True), request("heavy", make(size))
    tracemalloc.start()
    value = json.loads(line)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del value
    limit = max(taken, 2**16)
    while answers(acp, limit, line):
        limit = limit * 5 // 4
    text = b'"' + b"x" * max(2_000, limit // 64) + b'"'
    texts = [request(number, text) for number in range(64)]
    refused = answers(acp, limit, line, *texts)
    assert {each["error"]["code"] for each in refused} == {INTERNAL}
    beside = len(texts) - len(refused)
    assert taken + beside * size_of(json.loads(texts[-1])) < limit * 1.1 + 1_000


def test_the_estimate_of_ordinary_records_is_near(packages: Packages) -> None:
    line = request(1, VALUES["records"](1_000_000))
    assert answers(packages(V1, remote=True), int(2.2 * size_of(json.loads(line))), line) == []


TEXTS = {
    "code": "if (a[1]) { b: c, d }, " * 5_000,
    "JSON": json.dumps([{"a": [1, 2, {"b": '"'}]}] * 3_000),
    "quotes": '",{"' * 20_000,
    "backslashes": "\\" * 20_001 + '",{[' * 10_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_what_looks_like_structure_in_a_text_does_not_count(packages: Packages, text: str) -> None:
    line = request(1, json.dumps({"a": text, "b": [1, {"c": text}]}).encode())
    assert answers(packages(V1, remote=True), len(line) + 2_500, line) == []


def test_an_image_beside_any_text_is_let_through(packages: Packages) -> None:
    """One of 20 MiB in base64."""
    image = "A" * (20 * MIB * 4 // 3)
    for ascii_only in (False, True):
        blocks = [{"type": "image", "data": image}, {"type": "text", "text": "\U0001f600, or {[:,]}"}]
        line = request(1, json.dumps({"prompt": blocks}, ensure_ascii=ascii_only).encode())
        options = packages(V1, remote=True).ConnectionOptions()
        assert len(line) <= options.max_message_bytes
        assert answers(packages(V1, remote=True), options.max_in_flight_bytes, line) == []


# --- The limit ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [b"{}", b"[]", b'{"":[]}'])
def test_a_message_that_would_take_too_much_is_not_read(packages: Packages, item: bytes) -> None:
    acp = packages(V1, remote=True)
    read: list[bytes] = []

    def loads(line: bytes) -> Any:
        read.append(line)
        return json.loads(line)

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT, loads=loads)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            await peer.send_line(request(1, items(item, 10_000)))
            return await peer.ping()

    with acp_log():
        assert codes(run(main())) == [(1, INVALID)]
    assert 0 < max(map(len, read)) < 1_000  # only the request after it was


def test_requests_in_flight_share_a_limit(packages: Packages) -> None:
    """What does not fit is refused with its id; what was answered makes room."""
    acp = packages(V1, remote=True)

    async def main() -> None:
        go = asyncio.Event()
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT)
        async with network_peer(acp, waiting_agent(acp, go), options=options) as peer:
            for number in range(4):
                await peer.send_line(request(number, b'"' + b"x" * 30_000 + b'"'))
            refused = await peer.receive()
            assert codes([refused]) == [(3, INTERNAL)]
            assert f"{LIMIT} bytes" in refused["error"]["message"]
            go.set()
            assert sorted([(await peer.receive())["id"] for _ in range(3)]) == [0, 1, 2]
            for number in range(4, 8):
                await peer.send_line(request(number, b'"' + b"x" * 80_000 + b'"'))
                assert (await peer.receive())["result"] is None

    with acp_log():
        run(main())


def block(**properties: Any) -> bytes:
    """The params of a prompt: a text with an emoji, and something beside it."""
    prompt = [{"type": "text", "text": "\U0001f600"}, properties]
    return json.dumps({"sessionId": "s", "prompt": prompt}, ensure_ascii=False).encode()


CODE = json.dumps({"key": [1, 2, {"inner": "value"}]}) + ","
BLOCKS = {
    "two large images": (2, lambda: block(type="image", data="A" * (20 * MIB * 4 // 3 // 100))),
    "five images": (5, lambda: block(type="image", data="A" * (5 * MIB * 4 // 3 // 100))),
    "sixteen files": (16, lambda: block(type="resource", resource={"text": CODE * (MIB // 100 // len(CODE))})),
}


@pytest.mark.parametrize(("count", "make"), BLOCKS.values(), ids=BLOCKS.keys())
def test_ordinary_prompts_fit_side_by_side(packages: Packages, count: int, make: Callable[[], bytes]) -> None:
    """All sizes are a hundredth of those that the defaults are made for."""
    acp = packages(V1, remote=True)

    async def main() -> None:
        go = asyncio.Event()
        options = acp.ConnectionOptions(max_in_flight_bytes=128 * MIB // 100)
        async with network_peer(acp, waiting_agent(acp, go), options=options) as peer:
            for number in range(count):
                await peer.send_line(request(number, make()))
            assert await peer.ping() == []
            go.set()
            assert [(await peer.receive())["result"] for _ in range(count)] == [None] * count

    run(main())


@pytest.mark.parametrize("number", [7, "seven", 'with a " quote', -1])
@pytest.mark.parametrize("spaces", [False, True])
def test_a_request_that_is_too_heavy_is_refused_with_its_id(packages: Packages, number: Any, *, spaces: bool) -> None:
    acp = packages(V1, remote=True)
    message = {"jsonrpc": "2.0", "id": number, "method": "_wait", "params": [{"id": 5}] * 2_000}
    line = json.dumps(message, separators=(", ", ": ") if spaces else (",", ":")).encode()

    async def main() -> None:
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            await peer.send_line(line)
            refused = await peer.receive()
            assert codes([refused]) == [(number, INVALID)]
            assert f"the limit is {LIMIT} (max_in_flight_bytes)" in refused["error"]["message"]

    with acp_log():
        run(main())


HEADLESS = {
    "the id comes last": b'{"jsonrpc":"2.0","method":"_wait","params":%s,"id":7}',
    "only an id within": b'{"jsonrpc":"2.0","method":"_wait","params":{"id":7,"x":%s},"id":8}',
    "a text that looks like an id": b'{"jsonrpc":"2.0","method":"\\"id\\":7,","params":%s}',
    "an array": b'[{"jsonrpc":"2.0","id":7,"method":"_wait","params":%s}]',
    "no kind": b'{"jsonrpc":"2.0","id":7,"params":%s,"method":"_wait"}',
}


@pytest.mark.parametrize("line", HEADLESS.values(), ids=HEADLESS.keys())
def test_an_id_that_is_not_at_the_start_is_not_guessed(packages: Packages, line: bytes) -> None:
    acp = packages(V1, remote=True)

    async def main() -> list[Any]:
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            await peer.send_line(line % items(b"{}", 10_000))
            return await peer.ping()

    with acp_log():
        assert codes(run(main())) == [(None, INVALID)]


@pytest.mark.parametrize("outcome", ["result", "error"])
def test_a_call_whose_answer_is_too_heavy_fails(packages: Packages, outcome: str) -> None:
    acp = packages(V1, remote=True)

    async def main() -> None:
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            call = asyncio.create_task(peer.stub.ext_method("_ask", None))
            await peer.answer((await peer.receive())["id"], **{outcome: [{}] * 10_000})
            with pytest.raises(acp.InternalError, match=rf"too large.*{LIMIT} \(max_in_flight_bytes\)"):
                await call
            assert await peer.ping() == []

    with acp_log():
        run(main())


def test_notifications_that_wait_for_the_peer_count(packages: Packages) -> None:
    acp = packages(V1, remote=True)

    async def main() -> None:
        options = acp.ConnectionOptions(max_in_flight_bytes=LIMIT)
        async with network_peer(acp, waiting_agent(acp, asyncio.Event()), options=options) as peer:
            numbers = []
            for _ in range(3):
                await peer.send_line(b'{"jsonrpc":"2.0","method":"_n","params":"' + b"x" * 30_000 + b'"}')
                numbers.append((await peer.receive())["id"])
            await peer.send_line(request(1, b'"' + b"x" * 30_000 + b'"'))
            assert codes([await peer.receive()]) == [(1, INTERNAL)]
            await peer.send_line(b'{"jsonrpc":"2.0","method":"_n","params":"' + b"x" * 30_000 + b'"}')
            for number in numbers:
                await peer.answer(number, result=None)
            await peer.ping()
            await peer.send_line(request(2, b'"' + b"x" * 80_000 + b'"', "_quick"))
            assert (await peer.receive())["id"] == 2

    with acp_log() as records:
        run(main())
    assert len([record for record in records if "failed" in record.getMessage()]) == 1


# --- A whole agent --------------------------------------------------------------------------------------------------

TEXT_31 = b"x" * (31 * MIB)
EMOJI = "\U0001f600".encode()

HOSTILE: dict[str, Callable[[], list[bytes]]] = {
    "60 MiB of objects": lambda: [request(1, items(b"{}", 60 * MIB))],
    "waiting texts with a wide character": lambda: [request(n, b'"' + TEXT_31 + EMOJI + b'"') for n in range(2)],
    "waiting texts": lambda: [request(n, b'"' + TEXT_31 + b'"') for n in range(8)],
    "waiting small messages": lambda: [request(n, items(b"{}", 900)) for n in range(1_100)],
    "answers to nothing": lambda: [b'{"id":99,"result":"' + TEXT_31 + EMOJI + b'"}'] * 4,
    "all at once, with answers that are not read": lambda: [
        *(request(n, b'"' + TEXT_31 + b'"') for n in range(4)),
        *(request(f"{n}" + "i" * 300_000, b"0") for n in range(20)),
        *(request(n, items(b"{}", 900)) for n in range(4, 5_000)),
        b'{"id":99,"result":"' + TEXT_31 + EMOJI + b'"}',
    ],
}

WHOLE = {
    # one value that is parsed, a text that takes four bytes a character, and all the others together
    "60 MiB of objects",
    "waiting texts with a wide character",
    "all at once, with answers that are not read",
}

UNREAD_SECONDS = 10.0
"""The time in which the answers of the agent are not read, if they keep the peer from writing."""


@pytest.mark.full
@pytest.mark.needs("linux")
@pytest.mark.parametrize("make", deep_except(WHOLE, HOSTILE))
def test_a_hostile_peer_fills_no_memory(packages: Packages, tmp_path: Path, make: Callable[[], list[bytes]]) -> None:
    env = environment(packages(V1), PYTHONASYNCIODEBUG="")
    plain = [part for part in command("waiter.py") if part not in ("-X", "dev")]  # which takes memory of its own
    with AgentProcess(plain, env, tmp_path / "stderr") as agent:
        assert agent.process.stdin is not None
        lines = [*make(), request("last", b"0", "_quick")]
        # in a thread: where the answers fill the pipe, the agent reads no further
        writing = Thread(target=write_lines, args=(agent.process.stdin.fileno(), lines), daemon=True)
        writing.start()
        writing.join(UNREAD_SECONDS)
        while agent.read().get("id") != "last":
            pass
        used = peak(Path(f"/proc/{agent.process.pid}/status").read_text(encoding="utf-8"))
        print(f"memory: at most {used // 1024} MiB")
        assert used * 1024 < 640 * MIB


def write_lines(descriptor: int, lines: list[bytes]) -> None:
    for line in lines:
        write_all(descriptor, line + b"\n")


def write_all(descriptor: int, line: bytes) -> None:
    data = memoryview(line)
    while data:
        data = data[os.write(descriptor, data) :]
