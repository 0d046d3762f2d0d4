"""Deep values, wherever a message may have one: above a limit the message is refused, and no connection ends."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.runtime_support import V1, RawPeer, agent_of, raw_peer, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

MAX_DEPTH = 200
"""The deepest nesting of a message that is parsed (docs/security.md)."""

SHAPES = {"arrays": ("[", "]"), "objects": ('{"a":', "}")}

POSITIONS = {
    "a result": '{"jsonrpc":"2.0","id":99,"result":%s}',
    "an error": '{"jsonrpc":"2.0","id":99,"error":%s}',
    "the data of an error": '{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"m","data":%s}}',
    "the message of an error": '{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":%s}}',
    "the id of an answer": '{"jsonrpc":"2.0","id":%s,"result":1}',
    "the id of a request": '{"jsonrpc":"2.0","id":%s,"method":"_a"}',
    "a method": '{"jsonrpc":"2.0","id":1,"method":%s}',
    "a protocol": '{"jsonrpc":%s,"method":"_a","id":1,"more":1}',
    "params": '{"jsonrpc":"2.0","id":1,"method":"_a","params":%s}',
    "params that an exception carries": '{"jsonrpc":"2.0","id":1,"method":"_fail","params":%s}',
    "params that an error carries": '{"jsonrpc":"2.0","id":1,"method":"_refuse","params":%s}',
    "params that do not fit": '{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":%s}',
    "a property": '{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[%s]}}',
    "a lenient one": '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientInfo":%s}}',
    "_meta": '{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[],"_meta":%s}}',
    "a notification": '{"jsonrpc":"2.0","method":"_a","params":%s}',
    "a notification that fails": '{"jsonrpc":"2.0","method":"_fail","params":%s}',
    "a notification that does not fit": '{"jsonrpc":"2.0","method":"session/cancel","params":%s}',
    "a batch": "[%s]",
    "a message in a batch": '[{"jsonrpc":"2.0","id":99,"result":%s}]',
    "another member": '{"jsonrpc":"2.0","id":1,"method":"_a","more":%s}',
    "the whole": "%s",
}


@contextmanager
def printed_log() -> Iterator[io.StringIO]:
    """The log as a program has it: each line is formatted where it is logged."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("acp")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def nested(template: str, shape: str, depth: int) -> bytes:
    """The message with a value so deep that the whole is nested `depth` deep."""
    opening, closing = SHAPES[shape]
    before, _, after = template.partition("%s")
    own = sum(before.count(sign) for sign in "[{") - sum(before.count(sign) for sign in "]}")
    return (before + opening * (depth - own) + "1" + closing * (depth - own) + after).encode()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_depth_is_that_outside_of_strings(packages: Packages, shape: str) -> None:
    """Whatever comes before: text that looks deep, much that is not, a quote at each place of a chunk."""
    acp = packages(V1)
    opening, closing = SHAPES[shape]
    text = json.dumps(opening * MAX_DEPTH * 2 + '\\"')
    handled: list[int] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        handled.append(len(params))

    async def refusals(peer: RawPeer, line: str) -> list[bool]:
        await peer.send_line(line.encode())
        return ["nested more than" in each["error"]["message"] for each in await peer.ping()]

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            for before in ("", f"{text},", "{},[[]]," * 20_000, '"",' * 100_001):
                for depth in (MAX_DEPTH, MAX_DEPTH + 1):
                    inner = opening * (depth - 2) + text + closing * (depth - 2)  # the message and params are two more
                    params = f"[{before}{inner},{text}]"
                    found = await refusals(peer, f'{{"jsonrpc":"2.0","method":"_a","params":{params}}}')
                    assert found == ([True] if depth > MAX_DEPTH else [])
            assert await refusals(peer, opening * (MAX_DEPTH + 1) + " " * MAX_DEPTH) == [True]

    with printed_log():
        run(main())
    assert handled == [2, 3, 40_002, 100_003]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("position", POSITIONS)
def test_a_deep_value_ends_no_connection(packages: Packages, position: str, shape: str) -> None:
    acp = packages(V1)
    limit, template = MAX_DEPTH, POSITIONS[position]

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_fail":
            raise ValueError(params)
        if method == "_refuse":
            raise acp.InvalidParamsError(data=params)
        return params

    async def session_prompt(self: Any, params: Any) -> Any:
        return acp.PromptResponse(stop_reason="end_turn", meta=params.meta)

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        kind = agent_of(
            acp,
            ext_method=ext_method,
            ext_notification=ext_method,
            session_prompt=session_prompt,
            initialize=initialize,
        )
        options = acp.ConnectionOptions(on_drop=lambda drop: None)
        async with raw_peer(acp, kind, options=options) as peer:
            await peer.ask("first", "initialize", {"protocolVersion": 1})
            for depth in (limit // 2, limit, limit + 1, 5_000, 100_000):
                await peer.send_line(nested(template, shape, depth))
                answers = await peer.ping()
                refused = [each for each in answers if "nested more than" in str(each.get("error"))]
                assert len(refused) == (depth > limit)
                assert len(answers) == 1 or (depth <= limit and '"id":1,' not in template)
                if refused and '"id":1,"method"' in template:
                    assert (refused[0]["id"], refused[0]["error"]["code"]) == (1, -32600)

    with printed_log() as log:
        run(main())
    of_peer = [line for line in log.getvalue().splitlines() if not line.startswith("ValueError: ")]
    assert max(map(len, of_peer), default=0) < 500


ANSWERS = ('"result":%s', '"error":%s', '"error":{"code":1,"message":"m","data":%s}')


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("outcome", ANSWERS)
def test_a_deep_answer_reaches_the_request(packages: Packages, outcome: str, shape: str) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            for depth in (MAX_DEPTH, MAX_DEPTH + 1, 100_000):
                waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
                number = (await peer.receive())["id"]
                await peer.send_line(nested(f'{{"jsonrpc":"2.0","id":{number},{outcome}}}', shape, depth))
                (found,) = await asyncio.gather(waiter, return_exceptions=True)
                assert isinstance(found, (list, dict, acp.RequestError))
                assert ("nested more than" in str(found)) is (depth > MAX_DEPTH)
                assert await peer.ping() == []

    with printed_log():
        run(main())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_value_is_a_short_error(packages: Packages, shape: str) -> None:
    acp = packages(V1)
    value: Any = 1
    for _ in range(sys.getrecursionlimit() // 2):
        value = [value] if shape == "arrays" else {"a": value}
    for raw in (value, {"sessionId": value, "prompt": []}, {"sessionId": "s", "prompt": [value]}):
        with pytest.raises(acp.DecodeError) as caught:
            acp.decode(acp.PromptRequest, raw)
        assert len(str(caught.value)) < 2_000
        assert len(repr(caught.value)) < 500


@pytest.mark.parametrize("sign", ["[", "{", '[\\"'], ids=["arrays", "objects", "arrays and quotes"])
def test_brackets_in_a_long_text_are_text(packages: Packages, sign: str) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return len(params["text"])

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            return await peer.ask(1, "_count", {"before": [[], {}], "text": sign * 300_000, "after": "[" * 300})

    assert run(main()) == {"jsonrpc": "2.0", "id": 1, "result": len(sign) * 300_000}
