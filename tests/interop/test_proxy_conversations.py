"""A proxy of ours between our packages and the official SDKs, and between these: what a proxy can break.

That is a request and a notification of each side, errors, cancelling, and the order: the flows of
`test_conversations.py`. What each message says is the same through a proxy, as `proxy/test_proxy_fidelity.py` shows
with the same exchanges, so with the SDKs they are `deep`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.interop import test_conversations as flows
from tests.interop.pairs import OF_ONE, Pair, Setup
from tests.interop.remote_pairs import OVER_HTTP, OVER_WEBSOCKET
from tests.interop.theatre import Share, Theatre, matches
from tests.support import deep_except

pytestmark = pytest.mark.full

ON_STDIO = [replace(each, proxy=kind) for each in OF_ONE for kind in ("empty", "typed", "two")]
REMOTE = [replace(each, proxy="empty") for each in (*OVER_HTTP, *OVER_WEBSOCKET)]
KEPT = {
    *(each for each in ON_STDIO if each.proxy == "two"),  # which has both of the other kinds, one behind the other
    # once a server and once a client, over each transport
    Setup("ts", 1, "agent", proxy="empty", transport="http1"),
    Setup("ts", 2, "agent", proxy="empty", transport="websocket"),
    Setup("ts", 2, "client", proxy="empty", transport="http1"),
    Setup("ts", 1, "client", proxy="empty", transport="websocket"),
}
CASES = {each: Share.FLOWS if each in KEPT else Share.NOTHING for each in (*ON_STDIO, *REMOTE)}
"""The pairs that every flow is played with: see `conftest.py`."""
THEIRS = {
    str(each): each
    for client, agent, version in (("ts", "py", 1), ("py", "ts", 1), ("ts", "ts", 1), ("py", "py", 1), ("ts", "ts", 2))
    for kind in ("empty", "typed")
    for each in [Setup(client, version, "agent", proxy=kind, agent_of=agent)]
}
"""Both sides are of an SDK."""
EACH_OF_THEIRS = pytest.mark.parametrize(
    "setup",
    # each SDK on each side, each protocol, and each kind of proxy
    deep_except(
        {"ts-v1-our_agent-py_agent-typed", "py-v1-our_agent-ts_agent-empty", "ts-v2-our_agent-ts_agent-typed"}, THEIRS
    ),
)

test_an_error_arrives_as_it_was_raised = flows.test_an_error_arrives_as_it_was_raised
test_an_exception_is_an_internal_error = flows.test_an_exception_is_an_internal_error
test_an_unknown_method = flows.test_an_unknown_method
test_invalid_params = flows.test_invalid_params
test_cancel_in_the_middle_of_a_prompt = flows.test_cancel_in_the_middle_of_a_prompt
test_cancelling_a_request = flows.test_cancelling_a_request
test_extensions = flows.test_extensions
test_a_whole_turn = flows.test_a_whole_turn
test_sessions_side_by_side = flows.test_sessions_side_by_side
test_exchange = flows.test_exchange
test_initialize = flows.test_initialize


@EACH_OF_THEIRS
@pytest.mark.parametrize("flow", ["initialize", "turn", "error", "cancel", "extension"])
def test_both_sides_are_of_an_sdk(theatre: Theatre, setup: Setup, flow: str) -> None:
    plays = {"initialize": initialize, "turn": turn, "error": error, "cancel": cancel, "extension": extension}
    theatre.play(setup, flow, plays[flow])


@EACH_OF_THEIRS
def test_recordings_of_a_proxy_have_no_mistakes(theatre: Theatre, setup: Setup) -> None:
    """A proxy records both of its sides."""
    flows.test_recordings_have_no_mistakes(theatre, setup)


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
