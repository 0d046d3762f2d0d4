"""A proxy of ours between our packages and the official SDKs, and between these: the flows of `test_conversations.py`.

It is one module, because starting the pairs takes most of its time.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.interop import test_conversations as flows
from tests.interop.pairs import OF_ONE, Pair, Setup
from tests.interop.remote_pairs import OVER_HTTP, OVER_WEBSOCKET
from tests.interop.theatre import Share, Theatre, matches

ON_STDIO = [replace(each, proxy=kind) for each in OF_ONE for kind in ("empty", "typed", "two")]
REMOTE = [replace(each, proxy="empty") for each in (*OVER_HTTP, *OVER_WEBSOCKET)]
CASES = {
    **{each: Share.ALL if each.proxy != "two" else Share.FLOWS for each in ON_STDIO},
    **dict.fromkeys(REMOTE, Share.FLOWS),
}
"""The pairs that every flow is played with: see `conftest.py`."""
THEIRS = [
    Setup(client, 1, "agent", proxy=kind, agent_of=agent)
    for client, agent in (("ts", "py"), ("py", "ts"), ("ts", "ts"), ("py", "py"))
    for kind in ("empty", "typed")
]
"""Both sides are of an SDK."""

test_an_error_arrives_as_it_was_raised = pytest.mark.full(flows.test_an_error_arrives_as_it_was_raised)
test_an_exception_is_an_internal_error = pytest.mark.full(flows.test_an_exception_is_an_internal_error)
test_an_unknown_method = pytest.mark.full(flows.test_an_unknown_method)
test_invalid_params = pytest.mark.full(flows.test_invalid_params)
test_cancel_in_the_middle_of_a_prompt = pytest.mark.full(flows.test_cancel_in_the_middle_of_a_prompt)
test_cancelling_a_request = pytest.mark.full(flows.test_cancelling_a_request)
test_extensions = pytest.mark.full(flows.test_extensions)
test_a_whole_turn = pytest.mark.full(flows.test_a_whole_turn)
test_sessions_side_by_side = pytest.mark.full(flows.test_sessions_side_by_side)
test_exchange = pytest.mark.full(flows.test_exchange)
test_initialize = pytest.mark.full(flows.test_initialize)


@pytest.mark.full
@pytest.mark.parametrize("setup", THEIRS, ids=str)
@pytest.mark.parametrize("flow", ["initialize", "turn", "error", "cancel", "extension"])
def test_both_sides_are_of_an_sdk(theatre: Theatre, setup: Setup, flow: str) -> None:
    plays = {"initialize": initialize, "turn": turn, "error": error, "cancel": cancel, "extension": extension}
    theatre.play(setup, flow, plays[flow])


async def initialize(pair: Pair) -> None:
    pass  # `theatre.play` has done it


async def turn(pair: Pair) -> None:
    """Updates, a question within a prompt, and its result."""
    params, result = flows.prompt(pair.setup)
    asked = flows.question(pair.setup, "agent")
    content = {"type": "text", "text": "x"}
    update = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "m1"}
    told = {"method": "session/update", "params": {"sessionId": params["sessionId"], "update": update}}
    said = [told, {"method": asked.method, "params": asked.params}, told]
    await pair.reset(**{"session/prompt": {"first": said, "result": result}, asked.method: {"result": asked.result}})
    assert matches(await pair.say("client", "session/prompt", params), {"result": result})
    seen = await pair.seen("client", len(said))
    assert sorted(each["method"] for each in seen) == sorted(each["method"] for each in said)


async def error(pair: Pair) -> None:
    asked = flows.question(pair.setup, "client")
    await pair.reset(**{asked.method: {"error": flows.DATA}})
    assert (await pair.say("client", asked.method, asked.params))["error"] == flows.DATA


async def cancel(pair: Pair) -> None:
    params, result = flows.prompt(pair.setup)
    await pair.reset(**{"session/prompt": {"hold": True, "result": result}})
    waiting = asyncio.ensure_future(pair.say("client", "session/prompt", params))
    await pair.seen("agent", 1)
    await pair.say("client", "session/cancel", {"sessionId": params["sessionId"]})
    assert matches(await waiting, {"result": result})


async def extension(pair: Pair) -> None:
    await pair.reset(**{"_vendor/ask": {"result": {"answer": [None, "x"]}}})
    assert await pair.say("client", "_vendor/ask", {"a": 1}) == {"result": {"answer": [None, "x"]}}
