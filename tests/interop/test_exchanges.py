"""Every message arrives with what was in it, from our packages to the official SDKs and back."""

from __future__ import annotations

import json
import re

import pytest

from acpgen.ir.model import TaggedUnion
from tests.interop.gaps import GAPS
from tests.interop.pairs import SETUPS, Pair, Setup
from tests.interop.theatre import EVERY, FENCE, SIDES, VALUES, Theatre, matches, other
from tests.interop.values import Exchange
from tests.support import Packages
from tests.test_dataclasses import SOURCES, model_for


@pytest.mark.parametrize(
    ("setup", "exchange"),
    [pytest.param(setup, each, id=f"{setup}-{each}") for setup in SETUPS for each in VALUES[setup.version].EXCHANGES],
)
def test_exchange(theatre: Theatre, setup: Setup, exchange: Exchange) -> None:
    async def scenario(pair: Pair) -> None:
        await pair.reset(**{exchange.method: {"result": exchange.result}})
        outcome = await pair.say(exchange.caller, exchange.method, exchange.params)
        if exchange.result is None:
            assert outcome == {}, outcome
            await pair.say(exchange.caller, FENCE, {})
        else:
            assert "result" in outcome, outcome
            assert matches(outcome["result"], exchange.result), ("result", outcome["result"])
        messages = [each for each in await pair.seen(other(exchange.caller)) if each.get("method") != FENCE]
        assert [each.get("method") for each in messages] == [exchange.method], messages
        assert matches(messages[0]["params"], exchange.params), ("params", messages[0]["params"])

    theatre.play(setup, str(exchange), scenario)


@EVERY
def test_initialize(theatre: Theatre, setup: Setup) -> None:
    async def scenario(pair: Pair) -> None:
        expected = VALUES[setup.version].INITIALIZE
        outcome, [message] = theatre.initialized(setup)
        assert matches(outcome["result"], expected.result), outcome
        assert message["method"] == expected.method
        assert matches(message["params"], expected.params), message

    theatre.play(setup, "initialize", scenario)


@EVERY
def test_a_version_of_the_future(theatre: Theatre, setup: Setup) -> None:
    async def scenario(_: Pair) -> None:
        outcome, [message] = theatre.initialized(setup)
        assert message["params"]["protocolVersion"] == 7, message
        assert outcome["result"]["protocolVersion"] == setup.version

    theatre.play(setup, "initialize: version 7", scenario, version=7)
    theatre.drop(setup)


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
    for gap in GAPS:
        assert [flow for flow in flows if re.fullmatch(gap.flow, flow)], gap
        assert [setup for setup in SETUPS if re.fullmatch(gap.peer, str(setup))], gap
