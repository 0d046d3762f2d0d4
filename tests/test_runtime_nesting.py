"""Values as deep as the JSON reader takes them, wherever a message may have one: no connection ends for that."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.runtime_support import V1, agent_of, raw_peer, run
from tests.support import Packages

SHAPES = {"arrays": ("[", "]"), "objects": ('{"a":', "}")}

POSITIONS = {
    "a result": '{"jsonrpc":"2.0","id":99,"result":%s}',
    "an error": '{"jsonrpc":"2.0","id":99,"error":%s}',
    "the data of an error": '{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"m","data":%s}}',
    "the message of an error": '{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":%s}}',
    "the id of an answer": '{"jsonrpc":"2.0","id":%s,"result":1}',
    "the id of a request": '{"jsonrpc":"2.0","id":%s,"method":"_a"}',
    "a method": '{"jsonrpc":"2.0","id":1,"method":%s}',
    "a protocol": '{"jsonrpc":%s,"id":1,"method":"_a"}',
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


def deepest(opening: str, closing: str) -> int:
    """How deep a value may be for the JSON reader of this Python, where the stack is as it is here."""
    good, bad = 1, 200_000
    while bad - good > 1:
        depth = (good + bad) // 2
        try:
            json.loads(opening * depth + "1" + closing * depth)
        except RecursionError:
            bad = depth
        else:
            good = depth
    return good


def depths(opening: str, closing: str) -> list[int]:
    """Some on both sides of the limit: the stack is not the same where messages are read."""
    limit = deepest(opening, closing)
    return [limit // 2, *range(limit - 110, limit + 20, 15), 2 * limit]


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("position", POSITIONS)
def test_a_deep_value_ends_no_connection(packages: Packages, position: str, shape: str) -> None:
    acp = packages(V1)
    opening, closing = SHAPES[shape]
    template = POSITIONS[position]

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
            for depth in depths(opening, closing):
                await peer.send_line((template % (opening * depth + "1" + closing * depth)).encode())
                answers = await peer.ping()
                has_id = '"id":1,' in template or '"id":%s,"method"' in template
                assert len(answers) == 1 or not (has_id or template == "%s"), depth

    with printed_log() as log:
        run(main(), seconds=120)
    of_peer = [line for line in log.getvalue().splitlines() if not line.startswith("ValueError: ")]
    assert max(map(len, of_peer), default=0) < 500


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_answer_reaches_the_request(packages: Packages, shape: str) -> None:
    acp = packages(V1)
    opening, closing = SHAPES[shape]

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            for outcome in ('"result":%s', '"error":%s', '"error":{"code":1,"message":"m","data":%s}', '"more":%s'):
                depth = deepest(opening, closing) - 100
                waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
                number = (await peer.receive())["id"]
                value = opening * depth + "1" + closing * depth
                await peer.send_line(f'{{"jsonrpc":"2.0","id":{number},{outcome % value}}}'.encode())
                (found,) = await asyncio.gather(waiter, return_exceptions=True)
                assert isinstance(found, (list, dict, acp.RequestError))
                assert await peer.ping() == []

    with printed_log():
        run(main(), seconds=120)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_deep_value_is_a_short_error(packages: Packages, shape: str) -> None:
    acp = packages(V1)
    opening, closing = SHAPES[shape]
    depth = deepest(opening, closing) - 50
    value = json.loads(opening * depth + "1" + closing * depth)
    for raw in (value, {"sessionId": value, "prompt": []}, {"sessionId": "s", "prompt": [value]}):
        with pytest.raises(acp.DecodeError) as caught:
            acp.decode(acp.PromptRequest, raw)
        assert len(str(caught.value)) < 2_000
        assert len(repr(caught.value)) < 500
