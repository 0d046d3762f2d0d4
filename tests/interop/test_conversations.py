"""Our packages and the official SDKs: every message with its content, errors, cancelling, whole turns.

It is one module, because starting the pairs takes most of its time.
"""

from __future__ import annotations

import asyncio
import json
import re
from itertools import filterfalse
from pathlib import Path

import pytest

from acpgen.ir.model import TaggedUnion
from tests.interop.gaps import GAPS
from tests.interop.pairs import OF_ONE, SETUPS, Json, OurAgent, Pair, Setup
from tests.interop.recordings import USUAL, findings_of, said, unexpected
from tests.interop.remote_pairs import REMOTE
from tests.interop.theatre import BOTH_WAYS, FENCE, SIDES, VALUES, Share, Theatre, matches, new_session, other
from tests.interop.values import SESSION, TEXT, Exchange
from tests.support import Packages
from tests.test_dataclasses import SOURCES, model_for

pytestmark = pytest.mark.full

CASES = {each: Share.ALL if each in OF_ONE else Share.FLOWS for each in SETUPS}
"""The pairs that every flow is played with: see `conftest.py`.

Once both sides have agreed on a version, a side of two has the same classes for its messages as one of that version.
"""

# --- Errors ---------------------------------------------------------------------------------------------------------

DATA = {"code": -32000, "message": "Log in – first", "data": {"why": ["x", 1], "nothing": None}}
PLAIN = {"code": 4711, "message": "No"}


def question(setup: Setup, caller: str) -> Exchange:
    """A request of `caller`."""
    found: list[Exchange] = [each for each in VALUES[setup.version].EXCHANGES if each.caller == caller]
    return next(each for each in found if each.method in ("session/new", "session/request_permission"))


@BOTH_WAYS
@pytest.mark.parametrize("error", [DATA, PLAIN], ids=["with data", "without data"])
def test_an_error_arrives_as_it_was_raised(theatre: Theatre, setup: Setup, caller: str, error: Json) -> None:
    async def scenario(pair: Pair) -> None:
        asked = question(setup, caller)
        await pair.reset(**{asked.method: {"error": error}})
        outcome = await pair.say(caller, asked.method, asked.params)
        assert without_null_data(outcome["error"]) == error

    theatre.play(setup, f"errors: {caller}", scenario)


def without_null_data(error: Json) -> Json:
    """The Python SDK sends `data: null` for none, which is the same."""
    return {key: value for key, value in error.items() if (key, value) != ("data", None)}


@BOTH_WAYS
def test_an_exception_is_an_internal_error(theatre: Theatre, setup: Setup, caller: str) -> None:
    async def scenario(pair: Pair) -> None:
        asked = question(setup, caller)
        await pair.reset(**{asked.method: {"raise": "a secret"}})
        error = (await pair.say(caller, asked.method, asked.params))["error"]
        assert error["code"] == -32603
        if caller != setup.ours:
            assert "secret" not in json.dumps(error)

    theatre.play(setup, f"exceptions: {caller}", scenario)


@BOTH_WAYS
@pytest.mark.parametrize("method", ["no/such_method", "_vendor/no_such_method"])
def test_an_unknown_method(theatre: Theatre, setup: Setup, caller: str, method: str) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.reset(**{method: {"error": {"code": -32601, "message": "Method not found"}}})
        outcome = await pair.say(caller, method, {"a": 1}, raw=True)
        assert outcome["error"]["code"] == -32601

    theatre.play(setup, f"unknown methods: {caller}", scenario)


@BOTH_WAYS
def test_invalid_params(theatre: Theatre, setup: Setup, caller: str) -> None:
    async def scenario(pair: Pair) -> None:
        asked = question(setup, caller)
        outcome = await pair.say(caller, asked.method, {"cwd": 5, "options": 5}, raw=True)
        assert outcome["error"]["code"] == -32602
        assert outcome["error"]["data"]
        assert await pair.seen(other(caller)) == []

    theatre.play(setup, f"invalid params: {caller}", scenario)


# --- Cancelling -----------------------------------------------------------------------------------------------------


def prompt(setup: Setup) -> tuple[Json, Json]:
    """The params of a prompt, and what answers it."""
    asked = next(each for each in VALUES[setup.version].EXCHANGES if each.method == "session/prompt")
    return asked.params, asked.result


def test_cancel_in_the_middle_of_a_prompt(theatre: Theatre, setup: Setup) -> None:
    async def scenario(pair: Pair) -> None:
        params, result = prompt(setup)
        ended = {1: {"stopReason": "cancelled"}, 2: result}[setup.version]
        chunk = {"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "m1"}
        update = {"method": "session/update", "params": {**SESSION, "update": chunk}}
        await pair.reset(**{"session/prompt": {"first": [update], "hold": True, "result": ended}})
        waiting = asyncio.ensure_future(pair.say("client", "session/prompt", params))
        [message] = await pair.seen("client", 1)
        assert matches(message, update)
        assert not waiting.done()
        assert await pair.say("client", "session/cancel", SESSION) == {}
        assert matches(await waiting, {"result": ended})
        assert (await pair.seen("agent"))[-1] == {"method": "session/cancel", "params": SESSION}

    theatre.play(setup, "session/cancel", scenario)


@BOTH_WAYS
def test_cancelling_a_request(theatre: Theatre, setup: Setup, caller: str) -> None:
    """In our packages, a caller that cancels does not wait for the response; in the TypeScript SDK it does."""

    async def scenario(pair: Pair) -> None:
        asked = question(setup, caller)
        await pair.reset(**{asked.method: {"hold": True, "result": asked.result}})
        waiting = asyncio.ensure_future(pair.say(caller, asked.method, asked.params, key="held"))
        assert [each["method"] for each in await pair.seen(other(caller), 1)] == [asked.method]
        await pair.order(caller, "abort", {"key": "held"})
        outcome = await waiting
        await pair.say(caller, FENCE, {})
        assert {"cancelled": asked.method} in await pair.seen(other(caller)), ("not cancelled", outcome)
        if caller == setup.ours:
            assert outcome == {"cancelled": True}
        else:
            assert outcome["error"]["code"] == -32800
        after = await pair.say(caller, "_vendor/after", {})
        assert "result" in after

    theatre.play(setup, f"$/cancel_request: {caller}", scenario)


# --- Extensions, order, whole turns ---------------------------------------------------------------------------------


@BOTH_WAYS
def test_extensions(theatre: Theatre, setup: Setup, caller: str) -> None:
    async def scenario(pair: Pair) -> None:
        told, params = {"b": [1.5, False]}, {"a": [None, {"ü": 1}]}
        await pair.reset(**{"_vendor/ask": {"result": {"answer": [None, "x"]}}})
        assert await pair.say(caller, "_vendor/tell", told, notify=True) == {}
        if caller == setup.ours:  # a request may overtake a notification in the TypeScript SDK
            await pair.seen(other(caller), 1)
        assert await pair.say(caller, "_vendor/ask", params) == {"result": {"answer": [None, "x"]}}
        assert await pair.seen(other(caller)) == [
            {"method": "_vendor/tell", "params": told},
            {"method": "_vendor/ask", "params": params},
        ]

    theatre.play(setup, f"extensions: {caller}", scenario)


def test_a_whole_turn(theatre: Theatre, setup: Setup) -> None:
    """Within a prompt, the agent tells and asks; all of it arrives in order, and before the answer.

    With the SDKs, a request may be seen before a notification that was sent before it.
    """

    async def scenario(pair: Pair) -> None:
        params, result = prompt(setup)
        asked = question(setup, "agent")
        chunks = [
            {"sessionUpdate": "agent_message_chunk", "content": {**TEXT, "text": str(number)}, "messageId": "m1"}
            for number in range(40)
        ]
        said = [{"method": "session/update", "params": {**SESSION, "update": each}} for each in chunks]
        said.insert(20, {"method": asked.method, "params": asked.params})
        await pair.reset(
            **{"session/prompt": {"first": said, "result": result}, asked.method: {"result": asked.result}}
        )
        assert matches(await pair.say("client", "session/prompt", params), {"result": result})
        seen = await pair.seen("client")
        if setup.ours == "agent":
            said, seen = ([*filter(is_update, each), *filterfalse(is_update, each)] for each in (said, seen))
        assert matches(seen, said), [each.get("method") for each in seen]
        [_, *outcomes] = await pair.seen("agent")
        assert matches(outcomes[20], {"asked": asked.method, "got": {"result": asked.result}})

    theatre.play(setup, "a whole turn", scenario)


def is_update(message: Json) -> bool:
    return bool(message.get("method") == "session/update")


def test_sessions_side_by_side(theatre: Theatre, setup: Setup) -> None:
    """Prompts wait for each other neither in our agent nor in theirs."""

    async def scenario(pair: Pair) -> None:
        params, result = prompt(setup)
        sessions = [f"s{number}" for number in range(5)]
        for each in sessions:
            await pair.open_session(each, new_session(setup))
        await pair.reset(**{"session/prompt": {"hold": True, "result": result}})
        waiting = [
            asyncio.ensure_future(pair.say("client", "session/prompt", {**params, "sessionId": each}))
            for each in sessions
        ]
        seen = await pair.seen("agent", len(sessions))
        names = [each["params"]["sessionId"] for each in seen]
        if (setup.peer, setup.ours, setup.is_http) == ("py", "agent", True):
            names.sort()  # the Python SDK lets POSTs overtake each other
        assert names == sessions
        assert not any(each.done() for each in waiting)
        await pair.say("client", "session/cancel", SESSION)
        for outcome in await asyncio.gather(*waiting):
            assert matches(outcome, {"result": result})

    theatre.play(setup, "sessions side by side", scenario)


# --- Exchanges ------------------------------------------------------------------------------------------------------


def test_exchange(theatre: Theatre, setup: Setup, exchange: Exchange) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.reset(**{exchange.method: {"result": exchange.result}})
        outcome = await pair.say(exchange.caller, exchange.method, exchange.params)
        if exchange.result is None:
            assert outcome == {}, outcome
            fence = SESSION if "sessionId" in exchange.params else {}  # it takes the same way
            await pair.say(exchange.caller, FENCE, fence)
        else:
            assert "result" in outcome, outcome
            assert matches(outcome["result"], exchange.result), ("result", outcome["result"])
        messages = [each for each in await pair.seen(other(exchange.caller)) if each.get("method") != FENCE]
        assert [each.get("method") for each in messages] == [exchange.method], messages
        assert matches(messages[0]["params"], exchange.params), ("params", messages[0]["params"])

    theatre.play(setup, str(exchange), scenario)


def test_initialize(theatre: Theatre, setup: Setup) -> None:
    async def scenario(pair: Pair) -> None:
        expected = VALUES[setup.version].INITIALIZE
        outcome, [message] = theatre.initialized(setup)
        assert matches(outcome["result"], expected.result), outcome
        assert message["method"] == expected.method
        asked = {"protocolVersion": 2} if setup.of_two and setup.ours == "client" else {}
        assert matches(message["params"], {**expected.params, **asked}), message

    theatre.play(setup, "initialize", scenario)


@pytest.mark.parametrize("version", VALUES)
def test_the_exchanges_have_every_method_and_every_update(packages: Packages, version: int) -> None:
    acp, values = packages(SOURCES[version]), VALUES[version]
    said = {values.INITIALIZE.method, *(each.method for each in values.EXCHANGES)}
    elsewhere = {"$/cancel_request", "session/cancel"}
    assert said | elsewhere == acp.AGENT_METHODS.keys() | acp.CLIENT_METHODS.keys()
    texts = json.dumps([each.params for each in values.EXCHANGES])
    for union in ("SessionUpdate", "ContentBlock", "ToolCallContent"):
        definition = model_for(SOURCES[version]).by_name[union]
        assert isinstance(definition, TaggedUnion)
        tags = [variant.tag for variant in definition.variants]
        assert len(tags) > 2
        assert [tag for tag in tags if f'"{definition.tag}": "{tag}"' not in texts] == []


def test_no_gap_is_for_nothing() -> None:
    flows = {str(each) for values in VALUES.values() for each in values.EXCHANGES}
    flows |= {"initialize: version 7", *(f"$/cancel_request: {side}" for side in SIDES)}
    flows |= {"a large message", *(f"a session is taken up: session/{each}" for each in ("load", "resume"))}
    for gap in GAPS:
        assert [flow for flow in flows if re.fullmatch(gap.flow, flow)], gap
        assert [setup for setup in (*SETUPS, *REMOTE) if any(gap.is_met(each, setup) for each in flows)], gap


def check_recording(trace: Path) -> None:
    """Look at the recording of a pair that has played a whole turn and invalid params."""
    by_side = said(trace)
    assert by_side.keys() == {"agent", "client"}
    assert set().union(*by_side.values()) >= USUAL
    found = findings_of(trace)
    assert unexpected(found) == []
    assert {each["code"] for side in SIDES for each in found[f"invalid params: {side}"]} >= {"wrong-value"}


@pytest.mark.parametrize("setup", [each for each in SETUPS if each.is_recorded], ids=str)
def test_recordings_have_no_mistakes(theatre: Theatre, setup: Setup) -> None:
    """In what is played here, which has a few on purpose, and in all that was played before."""
    for caller in SIDES:
        test_invalid_params(theatre, setup, caller)
    test_a_whole_turn(theatre, setup)
    check_recording(theatre.trace(setup))


@pytest.mark.parametrize("setup", [each for each in SETUPS if each.ours == "agent"], ids=str)
def test_our_agent_ends_with_its_client(theatre: Theatre, setup: Setup) -> None:
    async def scenario(_: Pair) -> None: ...

    theatre.play(setup, "end", scenario)
    pair = theatre.drop(setup)
    assert isinstance(pair, OurAgent)
    assert pair.exit == 0
    assert "our agent has begun" in theatre.stderr(setup).read_text(encoding="utf-8")


@pytest.mark.parametrize("setup", OF_ONE, ids=str)
def test_a_version_of_the_future(theatre: Theatre, setup: Setup) -> None:
    async def scenario(_: Pair) -> None:
        outcome, [message] = theatre.initialized(setup)
        assert message["params"]["protocolVersion"] == 7, message
        assert outcome["result"]["protocolVersion"] == setup.version

    theatre.play(setup, "initialize: version 7", scenario, version=7)
    theatre.drop(setup)
