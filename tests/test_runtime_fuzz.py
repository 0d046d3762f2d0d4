"""Broken messages by the thousand: nothing crashes or hangs, each request is answered once, and good ones still are."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from random import Random
from time import perf_counter
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import MethodKind
from acpgen.roles import Side
from tests.runtime_support import run, started, unchecked
from tests.support import DEEP, Packages
from tests.test_dataclasses import SOURCES, Samples, model_for
from tests.test_dispatch import base_of, decoded_as, methods

SEED = 20261121
BATCH = 20
LONGEST_WAIT = 120.0
"""Seconds for the answer to one good request, after which the connection counts as hung."""

Line = bytes
Key = tuple[str, Any]

# --- What is sent ---------------------------------------------------------------------------------------------------


def good_messages(protocol: int, side: Side) -> list[Any]:
    """A message for each method that `side` handles, with as little and with as much as there can be; and answers."""
    found: list[Any] = [
        {"result": {}},
        {"result": None},
        {"error": {"code": -32603, "message": "no"}},
        {"error": {"code": -32000, "message": "no", "data": {"authMethods": []}}},
        {"method": "_vendor/method", "params": {"a": [1, 2.5, None, True, "\u00e4\u2028\U0001f600"]}},
        {"method": "no/such_method", "params": []},
    ]
    for full in (False, True):
        samples = Samples(model_for(SOURCES[protocol]), full=full)
        for method in methods(f"v{protocol}", side):
            found.append({"method": method.wire, "params": samples.of(method.params)})
            found[-1]["_"] = method.kind  # taken out again by `good_line`
    return found


def good_line(random: Random, messages: list[Any], number: int) -> Line:
    message = dict(random.choice(messages))
    kind = message.pop("_", None)
    if "method" not in message:
        message["id"] = random.randrange(number + 10) // 10  # some of those wait for an answer
    elif kind is not MethodKind.NOTIFICATION:
        message["id"] = random.choice([number, f"r{number}", -number, 2**53 + number])
    if message.get("method") == "$/cancel_request":
        message["params"] = {"requestId": random.randrange(number + 1)}
    ascii_only = random.random() < 0.5
    return json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


ODD_VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**70), 10**400, 1.5, 1e300, -0.0, "", "x", "\u0000",
    "\ud800", "2.0", "id", [], [[]], {}, {"": {}}, {"id": 1}, "y" * 5_000, [None] * 500,
]  # fmt: skip
ODD_BYTES = [
    b"\x00", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\r", b"\n", b"\\", b'"', b"{",
    b"}", b"[", b"]", b",", b":", b"NaN", b"-Infinity", b"1e999", b"-", b"9" * 5_000,
    b"[" * 3_000, b'{"a":' * 3_000, b"\\ud83d", b" ",
]  # fmt: skip


def flip(random: Random, line: Line, other: Line) -> Line:
    at = random.randrange(len(line))
    return line[:at] + bytes([line[at] ^ 1 << random.randrange(8)]) + line[at + 1 :]


def cut_off(random: Random, line: Line, other: Line) -> Line:
    return line[: random.randrange(len(line))]


def cut_out(random: Random, line: Line, other: Line) -> Line:
    start = random.randrange(len(line))
    return line[:start] + line[start + random.randrange(30) :]


def repeat(random: Random, line: Line, other: Line) -> Line:
    start = random.randrange(len(line))
    piece = line[start : start + random.randrange(60)]
    return line[:start] + piece * random.randint(2, 4) + line[start + len(piece) :]


def splice(random: Random, line: Line, other: Line) -> Line:
    return line[: random.randrange(len(line))] + other[random.randrange(len(other)) :]


def insert(random: Random, line: Line, other: Line) -> Line:
    at = random.randrange(len(line))
    return line[:at] + random.choice(ODD_BYTES) + line[at:]


def double_key(random: Random, line: Line, other: Line) -> Line:
    key = random.choice(["id", "method", "params", "jsonrpc", "result", "sessionId"])
    pair = f'"{key}": {json.dumps(random.choice(ODD_VALUES))}'
    text = pair.encode()
    return line.replace(b"{", b"{" + text + b",", 1) if random.random() < 0.5 else line[:-1] + b"," + text + b"}"


def batch(random: Random, line: Line, other: Line) -> Line:
    return b"[" + line + b"," + other + b"]"


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a value, with each of its keys."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def in_json(change: Callable[[Random, Any, Any, Any], None]) -> Callable[[Random, Line, Line], Line]:
    """A mutation that stays within JSON, and changes one place."""

    def mutate(random: Random, line: Line, other: Line) -> Line:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return flip(random, line, other)
        found = list(places(message))
        if found:
            # near the top things go wrong in the connection, further down in the codec
            container, key = found[0] if random.random() < 0.1 else random.choice(found)
            change(random, message, container, key)
        return json.dumps(message).encode()

    return mutate


def replace(random: Random, message: Any, container: Any, key: Any) -> None:
    container[key] = random.choice(ODD_VALUES)


def swap(random: Random, message: Any, container: Any, key: Any) -> None:
    other, place = random.choice(list(places(json.loads(json.dumps(message)))))
    container[key] = other[place]


def nest(random: Random, message: Any, container: Any, key: Any) -> None:
    for _ in range(random.choice([1, 2, 50])):
        container[key] = [container[key]] if random.random() < 0.5 else {"a": container[key]}


def remove(random: Random, message: Any, container: Any, key: Any) -> None:
    del container[key]


def rename(random: Random, message: Any, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[random.choice(["id", "method", "params", "x", ""])] = container.pop(key)


def change_id(random: Random, message: Any, container: Any, key: Any) -> None:
    if isinstance(message, dict):
        message["id"] = random.choice(ODD_VALUES)


MUTATIONS: list[Callable[[Random, Line, Line], Line]] = [
    *(flip, cut_off, cut_out, repeat, splice, insert, double_key, batch),
    *map(in_json, (replace, swap, nest, remove, rename, change_id) * 2),
]


def mutated_lines(protocol: int, side: Side, count: int) -> Iterator[Line]:
    """Lines without an end; the same ones in each run."""
    random, messages = Random(f"{SEED} {protocol} {side.value}"), good_messages(protocol, side)
    for number in range(count):
        line, other = (good_line(random, messages, number) for _ in range(2))
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            line = random.choice(MUTATIONS)(random, line, other) or b"{}"
        yield line


# --- What must come back --------------------------------------------------------------------------------------------


def refuse(constant: str) -> Any:
    raise ValueError(constant)


def key_of(number: Any) -> Key:
    """What tells ids apart: 1 is not "1"."""
    return type(number).__name__, number


def is_sent_back(number: Any) -> bool:
    """True for integers of 64 bits, and for texts of at most 256 bytes; a request with another id is refused."""
    if type(number) is int:
        return -(2**63) <= number < 2**64
    try:
        return type(number) is str and len(number.encode()) <= 256
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def expected_answers(line: Line) -> Counter[Key]:
    """The ids which must be answered because of what is sent; those with null for an id may be as many as there are."""
    answers: Counter[Key] = Counter()
    for part in line.split(b"\n"):
        try:
            message = json.loads(part.decode("utf-8"), parse_constant=refuse)
        except (ValueError, RecursionError):
            continue
        # batches are no part of the protocol: each is one invalid request
        if isinstance(message, dict) and "method" in message and is_sent_back(message.get("id")):
            answers[key_of(message["id"])] += 1
    return answers


def ids_of_deep(line: Line) -> set[Key]:
    """The ids in lines with many brackets. What is nested too deep is refused with its id, even if it is not JSON."""
    deep = [part for part in line.split(b"\n") if part.count(b"[") + part.count(b"{") > 200]
    return {key_of(json.loads(found)) for part in deep for found in re.findall(rb'"id"\s*:\s*(-?\d+|"[^"\\]*")', part)}


class Crashes(logging.Handler):
    """Keeps errors in the log that are none of the peer's doing."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if type(error).__name__ != "InvalidParamsError":
            self.found.append(f"{record.getMessage():.300}: {error!r:.300}")


@contextmanager
def crashes() -> Iterator[Crashes]:
    logger, handler = logging.getLogger("acp"), Crashes()
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


# --- Both together --------------------------------------------------------------------------------------------------


def answering(acp: ModuleType, protocol: int, side: Side) -> type[Any]:
    """A handler for every method, which answers at once what the schema wants."""
    samples, base = Samples(model_for(SOURCES[protocol])), base_of(acp, side)

    def handler(result: Any) -> Any:
        async def handle(self: Any, params: Any) -> Any:
            return result

        return handle

    results = {
        method.name: decoded_as(acp, method.result, samples.of(method.result)) if method.result else None
        for method in methods(f"v{protocol}", side)
    }
    overrides = {name: handler(result) for name, result in results.items()}

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return {"method": method}

    return type("Answering", (base,), overrides | {"ext_method": ext_method})


@asynccontextmanager
async def wire(acp: ModuleType, kind: type[Any]) -> AsyncGenerator[tuple[Any, Any], None]:
    """The stream to a handler, which reads lines as from any other; and its connection."""
    ours, its = socket.socketpair()
    transport = acp.StreamTransport(*await asyncio.open_connection(sock=its))
    connection, _ = started(acp, kind, transport, unchecked(acp, max_message_bytes=2**20))
    far = acp.StreamTransport(*await asyncio.open_connection(sock=ours))
    try:
        yield far, connection
    finally:
        await far.close()
        await connection.close()


class Fuzz:
    """Sends lines in batches, and holds what comes back against what must."""

    def __init__(self, far: Any, connection: Any) -> None:
        self.far, self.connection = far, connection
        self.counts: Counter[str] = Counter()
        self.calls: list[asyncio.Task[Any]] = []
        self.refused_twins = 0

    async def batch(self, number: int, lines: list[Line]) -> None:
        # something waits for an answer all the time, which lines may hit
        self.calls.append(asyncio.create_task(self.connection.request("_call", None)))
        self.refused_twins = 0
        expected: Counter[Key] = Counter()
        refused: set[Key] = set()
        for line in lines:
            expected += expected_answers(line)
            refused |= ids_of_deep(line)
            await self.far.write(line)
        ping = f"good request {number}"
        await self.far.write(json.dumps({"jsonrpc": "2.0", "id": ping, "method": "_ping"}).encode())
        found = await asyncio.wait_for(self.answers_until(ping), LONGEST_WAIT)
        for key in refused - expected.keys():
            found.pop(key, None)
        assert found.keys() == expected.keys(), lines
        missing = expected - found
        # an id may be used again once it is answered, which these lines do not wait for: then the second is refused
        assert (found - expected, sum(missing.values())) == (Counter(), self.refused_twins), lines
        self.counts["lines"] += len(lines)
        self.counts["answers to requests"] += sum(expected.values())

    async def answers_until(self, ping: str) -> Counter[Key]:
        answers: Counter[Key] = Counter()
        while True:
            line = await self.far.read()
            assert line is not None, "the connection has ended"
            message = json.loads(line)
            if "method" in message:
                continue
            assert message["jsonrpc"] == "2.0"
            assert ("result" in message) is not ("error" in message)
            if "error" in message:
                assert message["error"]["code"] != -32603, message
                self.counts[f"error {message['error']['code']}"] += 1
            if message["id"] == ping:
                assert message["result"] == {"method": "_ping"}
                return answers
            if message["id"] is None:
                self.counts["answers without an id"] += 1
                self.refused_twins += "a request with this id is running" in message.get("error", {}).get("message", "")
            else:
                answers[key_of(message["id"])] += 1


async def fuzz(acp: ModuleType, protocol: int, side: Side, count: int) -> Counter[str]:
    lines = list(mutated_lines(protocol, side, count))
    async with wire(acp, answering(acp, protocol, side)) as (far, connection):
        fuzz = Fuzz(far, connection)
        for start in range(0, len(lines), BATCH):
            await fuzz.batch(start, lines[start : start + BATCH])
    outcomes = await asyncio.wait_for(asyncio.gather(*fuzz.calls, return_exceptions=True), LONGEST_WAIT)
    fuzz.counts["calls of its own that a line answered"] = sum(
        not isinstance(outcome, acp.ConnectionClosed) for outcome in outcomes
    )
    assert fuzz.counts["lines"] == count
    assert fuzz.counts["calls of its own that a line answered"] > count / 1000
    assert all(fuzz.counts[f"error {code}"] > count / 1000 for code in (-32700, -32600, -32601, -32602))
    return fuzz.counts


def check(packages: Packages, protocol: int, side: Side, count: int) -> None:
    acp = packages(SOURCES[protocol])
    start = perf_counter()
    with crashes() as found:
        counts = run(fuzz(acp, protocol, side, count), seconds=900)
    assert found.found == []
    told = ", ".join(f"{name}: {number}" for name, number in sorted(counts.items()))
    print(f"fuzz v{protocol} {side.value}: {told}, seconds: {perf_counter() - start:.1f}")


@pytest.mark.every_python
@pytest.mark.full
@pytest.mark.parametrize("side", list(Side), ids=lambda side: side.value)
@pytest.mark.parametrize(("protocol", "count"), [(1, 20_000 if DEEP else 2_000), (2, 2_000)], ids=["v1", "v2"])
def test_many_lines(packages: Packages, protocol: int, side: Side, count: int) -> None:
    check(packages, protocol, side, count)
