"""Responses to no request, and malformed ones: no request stays pending, and no response is answered."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import V1, V2, acp_log, agent_of, client_of, raw_peer, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])


def line_of(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def told(packages: Packages, sources: SchemaChoice, *lines: bytes) -> list[Any]:
    """What an agent answers to these lines; a request after them has to be answered, too."""

    async def main() -> list[Any]:
        acp = packages(sources)
        async with raw_peer(acp, agent_of(acp)) as peer:
            for line in lines:
                await peer.send_line(line)
            return await peer.ping()

    return run(main())


@BOTH
@pytest.mark.parametrize("number", [0, 99, -1, "0", None, 0.0, True, [0], {}])
@pytest.mark.parametrize("outcome", [{"result": 1}, {"error": {"code": 1, "message": "m"}}], ids=["result", "error"])
def test_answers_to_nothing_are_not_answered(
    packages: Packages, sources: SchemaChoice, number: Any, outcome: dict[str, Any]
) -> None:
    assert told(packages, sources, line_of(id=number, **outcome), line_of(**outcome)) == []


MALFORMED = {
    "both": {"result": 1, "error": {"code": -32000, "message": "m"}},
    "neither": {},
    "no jsonrpc": {"jsonrpc": None, "result": 1},
    "another jsonrpc": {"jsonrpc": "1.0", "result": 1},
    "the error is a string": {"error": "went wrong"},
    "the error is null": {"error": None},
    "the error is an array": {"error": [1]},
    "the error lacks its code": {"error": {"message": "m"}},
    "the code is a string": {"error": {"code": "1", "message": "m"}},
    "the message is a number": {"error": {"code": 1, "message": 1}},
}


@BOTH
@pytest.mark.parametrize("outcome", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_answers_fail_the_call(packages: Packages, sources: SchemaChoice, outcome: dict[str, Any]) -> None:
    """The pending request is rejected; the peer gets no message, because a response has no response."""
    acp = packages(sources)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            number = (await peer.receive())["id"]
            await peer.answer(number, **outcome)
            with pytest.raises(acp.RequestError) as caught:
                await waiter
            assert caught.value.data is not acp.UNSET
            return await peer.ping()

    assert run(main()) == []


def test_an_answer_without_an_outcome_is_no_invalid_request(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            await peer.answer((await peer.receive())["id"])
            with pytest.raises(acp.InternalError, match="the peer sent a malformed response"):
                await waiter

    with acp_log() as records:
        run(main())
    why = "Internal error: the peer sent a malformed response"
    assert f"the response to request 0 cannot be used: {why}" in texts(records)
    assert "Invalid request" not in texts(records)


def test_an_answer_with_a_null_error_is_an_answer(packages: Packages) -> None:
    """Written by libraries that print all members."""
    acp = packages(V1)

    async def main() -> Any:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            number = (await peer.receive())["id"]
            await peer.answer(number, result=5, error=None)
            return await waiter

    assert run(main()) == 5


def test_an_answer_of_another_shape_is_an_error_of_decoding(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            request = acp.NewSessionRequest(cwd="/", mcp_servers=[])
            waiter = asyncio.create_task(peer.stub.session_new(request))
            await peer.answer((await peer.receive())["id"], result={"sessionId": 5})
            with pytest.raises(acp.DecodeError, match="sessionId") as caught:
                await waiter
            assert caught.value.raw == {"sessionId": 5}  # what came is not lost
            assert await peer.ping() == []

    run(main())


@pytest.mark.parametrize("number", [False, 0.0, "0"])
def test_an_id_that_only_compares_equal_is_another(packages: Packages, number: Any) -> None:
    acp = packages(V1)

    async def main() -> Any:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            assert (await peer.receive())["id"] == 0
            await peer.answer(number, result="wrong")
            assert await peer.ping() == []
            await peer.answer(0, result="right")
            return await waiter

    assert run(main()) == "right"
