"""Our packages and the official SDKs over the network: the flows of `test_conversations.py`, and more.

It is one module, because starting the pairs takes most of its time.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from http.cookiejar import CookieJar
from typing import Any

import pytest

from tests.interop import test_conversations as flows
from tests.interop.pairs import Json, Pair, Setup
from tests.interop.remote_asgi import COOKIE
from tests.interop.remote_pairs import (
    OF_TWO,
    OVER_HTTP,
    OVER_HTTP2,
    OVER_WEBSOCKET,
    OurServer,
    connect,
    remote,
    requests,
    their_server,
)
from tests.interop.theatre import VALUES, Share, Theatre, matches
from tests.interop.values import TEXT

pytestmark = pytest.mark.full

CASES = {
    # on HTTP, the method says which stream a message takes
    **dict.fromkeys(OVER_HTTP, Share.METHODS),
    # a WebSocket carries every message in the same way, of both protocols
    **{each: Share.FLOWS if each.version == 1 else Share.NOTHING for each in OVER_WEBSOCKET},
    # how both sides agree on a version is `test_both_sides_agree_on_a_version`
    **dict.fromkeys(OF_TWO, Share.NOTHING),
}
"""The pairs that every flow is played with: see `conftest.py`."""
OURS = [each for each in (*OVER_HTTP, *OVER_WEBSOCKET) if each.ours == "agent"]
THEIRS = [each for each in (*OVER_HTTP, *OVER_WEBSOCKET) if each.ours == "client"]
TWO = ("ts-v1-our_agent_of_two-http1", "ts-v2-our_client_of_two-http1")
LARGE = "é" * 2**19
"""1 MiB, or three times as much where each is escaped."""

# --- The flows that there are on stdio, too -------------------------------------------------------------------------

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


@pytest.mark.parametrize("setup", [each for each in CASES if each.is_recorded], ids=str)
def test_recordings_have_no_mistakes(theatre: Theatre, setup: Setup) -> None:
    """By the package at one end of the network, with the TypeScript SDK at the other."""
    flows.test_recordings_have_no_mistakes(theatre, setup)


# --- Sessions over several streams ----------------------------------------------------------------------------------


def chunk(session: str, number: int, text: str = "") -> Json:
    """An update of a session."""
    content = {**TEXT, "text": text or str(number)}
    update = {"sessionUpdate": "agent_message_chunk", "content": content, "messageId": "m1"}
    return {"method": "session/update", "params": {"sessionId": session, "update": update}}


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_is_taken_up(theatre: Theatre, setup: Setup, method: str) -> None:
    """A session of which the connection knows nothing; what the agent says before it answers arrives, too."""
    known = {each.method: each for each in VALUES[setup.version].EXCHANGES}
    if method not in known:
        assert (method, setup.version) == ("session/load", 2)
        return
    name = f"of another connection, {method[8:]}"

    async def scenario(pair: Pair) -> None:
        said = [chunk(name, number) for number in range(20)]
        params = {**known[method].params, "sessionId": name}
        await pair.reset(**{method: {"first": said, "result": known[method].result}})
        outcome = await pair.say("client", method, params)
        assert matches(outcome.get("result"), known[method].result), outcome
        assert matches(await pair.seen("client", len(said)), said)
        asked, result = flows.prompt(setup)
        await pair.reset(**{"session/prompt": {"first": said, "result": result}})
        outcome = await pair.say("client", "session/prompt", {**asked, "sessionId": name})
        assert matches(outcome, {"result": result}), outcome
        assert matches(await pair.seen("client", len(said)), said)

    theatre.play(setup, f"a session is taken up: {method}", scenario)


def test_a_thousand_updates(theatre: Theatre, setup: Setup) -> None:
    async def scenario(pair: Pair) -> None:
        params, result = flows.prompt(setup)
        said = [chunk(params["sessionId"], number) for number in range(1000)]
        await pair.reset(**{"session/prompt": {"first": said, "result": result}})
        assert matches(await pair.say("client", "session/prompt", params), {"result": result})
        assert matches(await pair.seen("client"), said)

    theatre.play(setup, "a thousand updates", scenario)


def test_a_large_message(theatre: Theatre, setup: Setup) -> None:
    """In a request, in its response, and in a notification."""

    async def scenario(pair: Pair) -> None:
        params, _ = flows.prompt(setup)
        said = chunk(params["sessionId"], 0, LARGE)
        await pair.reset(**{"_vendor/large": {"first": [said], "result": {"text": LARGE}}})
        waiting = asyncio.ensure_future(pair.say("client", "_vendor/large", {"text": LARGE}))
        ended, _ = await asyncio.wait({waiting}, timeout=20)
        assert ended, "the connection is closed, and the SDK waits"
        assert waiting.result() == {"result": {"text": LARGE}}
        assert matches((await pair.seen("client", 1))[0], said)

    theatre.play(setup, "a large message", scenario)


# --- Requests -------------------------------------------------------------------------------------------------------


def test_cookies_go_with_every_request(theatre: Theatre, setup: Setup) -> None:
    """The server has set one with its first response. A WebSocket has one request."""

    async def scenario(pair: Pair) -> None:
        [kind, version, cookie], *more = await requests(pair)
        assert [kind, cookie] == ["POST" if setup.is_http else "websocket", ""]
        assert bool(more) is setup.is_http
        assert {each[2] for each in more} <= {COOKIE}
        assert {version, *(each[1] for each in more)} == {"2" if setup.transport == "http2" else "1.1"}

    theatre.play(setup, "cookies", scenario)


@pytest.mark.parametrize("setup", THEIRS, ids=str)
def test_cookies_are_kept_for_the_next_connection(theatre: Theatre, setup: Setup) -> None:
    async def scenario(pair: Pair) -> None:
        before, jar = len(await requests(pair)), CookieJar()
        for _ in range(2):
            await greet(theatre, setup, connect, setup.transport, pair.url, cookies=jar)
        firsts = [each for each in (await requests(pair))[before:] if each[0] in ("POST", "websocket")]
        opened = [each for each in firsts if each[0] == "websocket"] or [firsts[0], firsts[-1]]
        assert [each[2] for each in opened] == ["", COOKIE]

    theatre.play(setup, "cookies of two connections", scenario)


async def greet(theatre: Theatre, setup: Setup, opening: Any, *arguments: Any, **more: Any) -> None:
    """Open a connection of a new client of ours, and begin."""
    stage = theatre.stage(setup)
    puppet = stage.our_client(setup)
    async with opening(stage.acp, *arguments, puppet.factory, **more) as agent:
        await agent.initialize(puppet.acp.decode(puppet.acp.InitializeRequest, stage.offered[setup.version]))


def connect_url(acp: Any, url: str, factory: Any) -> Any:
    return remote(acp, "remote").connect_url(factory, url)


@pytest.mark.parametrize("setup", [each for each in OVER_HTTP if each.ours == "client"], ids=str)
def test_a_url_says_how_to_connect(theatre: Theatre, setup: Setup) -> None:
    """Servers on node:http have no HTTP/2, which Streamable HTTP needs, but WebSocket."""

    async def scenario(pair: Pair) -> None:
        before = len(await requests(pair))
        await greet(theatre, setup, connect_url, pair.url)
        found = [each[0] for each in (await requests(pair))[before:]]
        assert ("websocket" in found) is (setup.transport == "http1")
        assert ("DELETE" in found) is (setup.transport == "http2")
        before = len(await requests(pair))
        await greet(theatre, setup, connect_url, pair.url.replace("http", "ws", 1))
        found = [each[0] for each in (await requests(pair))[before:]]
        assert "websocket" in found
        assert "DELETE" not in found

    theatre.play(setup, "a URL", scenario)


# --- Versions, ends -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setup", OVER_HTTP2, ids=str)
def test_our_server_over_http_2_alone(theatre: Theatre, setup: Setup) -> None:
    """With `require_http2`; the SDKs speak HTTP/2 without TLS only when they are given a client that does."""
    test_initialize(theatre, setup)
    test_a_whole_turn(theatre, setup)
    test_cancel_in_the_middle_of_a_prompt(theatre, setup)
    test_sessions_side_by_side(theatre, setup)
    if setup.peer == "ts":  # it takes httpx too long
        test_a_thousand_updates(theatre, setup)
        test_a_large_message(theatre, setup)
    test_cookies_go_with_every_request(theatre, setup)


@pytest.mark.parametrize("setup", [each for each in OF_TWO if str(each) in TWO], ids=str)
def test_both_sides_agree_on_a_version(theatre: Theatre, setup: Setup) -> None:
    """Our side has two, and theirs has one of them."""
    test_initialize(theatre, setup)
    test_a_whole_turn(theatre, setup)


@pytest.mark.parametrize("setup", [each for each in OVER_HTTP if each.ours == "client" and each.peer == "ts"], ids=str)
def test_their_server_on_node_http_2(theatre: Theatre, setup: Setup) -> None:
    """The TypeScript SDK's adapter fails with the pseudo-headers of HTTP/2."""

    async def scenario(_: Pair) -> None:
        over_http2 = replace(setup, transport="http2")
        async with their_server(over_http2, theatre.stage(setup)) as url:
            await greet(theatre, setup, connect, "http2", url)

    with pytest.raises(Exception, match=r'500: Headers.set: ":method" is an invalid header name'):
        theatre.play(setup, "node:http2", scenario)


@pytest.mark.parametrize("setup", OURS, ids=str)
def test_our_server_sees_its_client_go(theatre: Theatre, setup: Setup) -> None:
    async def scenario(_: Pair) -> None: ...

    theatre.play(setup, "end", scenario)
    pair = theatre.drop(setup)
    assert isinstance(pair, OurServer)
    assert pair.left == 0
    assert not setup.is_http or pair.journal.requests[-1][0] == "DELETE"
