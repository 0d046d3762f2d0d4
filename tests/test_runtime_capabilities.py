"""Capabilities that are true: what was not advertised is not called, and what is advertised is there."""

from __future__ import annotations

import asyncio
import logging
from copy import deepcopy
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Side
from tests.runtime_support import (
    EVERY_BASE,
    OLD,
    V1,
    V2,
    acp_log,
    agent_of,
    client_of,
    pair,
    raw_peer,
    run,
    texts,
    unchecked,
)
from tests.support import Packages
from tests.test_dataclasses import Samples, model_for
from tests.test_dispatch import recording

pytestmark = pytest.mark.every_python

SIDES = pytest.mark.parametrize("side", list(Side), ids=lambda side: side.value)
LISTING = {"agentCapabilities": {"sessionCapabilities": {"list": {}}}}
READING = {"clientCapabilities": {"fs": {"readTextFile": True}}}


async def initialize_by_hand(peer: Any, result: dict[str, Any]) -> None:
    """Let the client that is tested initialize, and answer `result`."""
    waiter = asyncio.create_task(peer.connection.request("initialize", {"protocolVersion": 1}))
    await peer.answer((await peer.receive())["id"], result=result)
    await waiter


# --- Calls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "opens"),
    [
        (None, False),
        ({"protocolVersion": 1}, False),
        ({"agentCapabilities": {}}, False),
        ({"agentCapabilities": {"sessionCapabilities": {"list": None}}}, False),
        ({"agentCapabilities": {"sessionCapabilities": {"list": False}}}, False),
        ({"agentCapabilities": {"sessionCapabilities": []}}, False),
        ({"agentCapabilities": "all of them"}, False),
        (LISTING, True),
        ({"agentCapabilities": {"sessionCapabilities": {"list": {"_meta": {}}}}}, True),
    ],
)
def test_what_is_not_advertised_is_not_called(packages: Packages, answer: Any, *, opens: bool) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            if answer is not None:
                await initialize_by_hand(peer, answer)
            assert peer.stub.supports("session/list") is opens
            assert peer.connection.supports("session/list") is opens
            call = asyncio.create_task(peer.stub.session_list(acp.ListSessionsRequest()))
            if opens:
                await peer.answer((await peer.receive())["id"], result={"sessions": []})
                assert (await call).sessions == []
                return
            with pytest.raises(acp.CapabilityError, match=r"session/list.*sessionCapabilities\.list") as caught:
                await call
            assert caught.value.method == "session/list"
            assert caught.value.gate == acp.AGENT_METHODS["session/list"].capability
            assert await peer.ping() == []  # nothing was sent

    run(main())


def test_the_check_can_be_turned_off(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> Any:
        async with raw_peer(acp, client_of(acp), options=unchecked(acp)) as peer:
            call = asyncio.create_task(peer.stub.session_list(acp.ListSessionsRequest()))
            message = await peer.receive()
            await peer.answer(message["id"], result={"sessions": []})
            await call
            assert not peer.stub.supports("session/list")
            return message["method"]

    assert run(main()) == "session/list"


@pytest.mark.parametrize(("capabilities", "opens"), [({}, False), (READING, True)])
def test_what_the_client_tells_is_for_the_agent(packages: Packages, capabilities: Any, *, opens: bool) -> None:
    """The other direction: the params of what comes in."""
    acp = packages(V1)

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1, **capabilities})
            assert peer.stub.supports("fs/read_text_file") is opens
            assert not peer.stub.supports("fs/write_text_file")
            call = asyncio.create_task(
                peer.stub.fs_read_text_file(acp.ReadTextFileRequest(session_id="s", path="/etc/hosts"))
            )
            if opens:
                await peer.answer((await peer.receive())["id"], result={"content": "text"})
                assert (await call).content == "text"
                return
            with pytest.raises(acp.CapabilityError, match=r"clientCapabilities\.fs\.readTextFile"):
                await call
            assert await peer.ping() == []

    run(main())


@pytest.mark.parametrize("second", [{"protocolVersion": "1"}, {"protocolVersion": 1}, {"protocolVersion": 2}])
def test_the_first_valid_request_decides(packages: Packages, second: Any) -> None:
    acp = packages(V1)

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1, **READING})
            await peer.ask(2, "initialize", second)
            assert peer.stub.supports("fs/read_text_file")

    run(main())


@pytest.mark.parametrize("fails", ["params", "handler"])
def test_a_request_that_fails_advertises_nothing(packages: Packages, fails: str) -> None:
    """While its handler runs, it does: it may call the peer."""
    acp = packages(V1)
    during: list[bool] = []

    async def initialize(self: Any, params: Any) -> Any:
        during.append(self.client.supports("fs/read_text_file"))
        raise acp.InvalidParamsError

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            version = "1" if fails == "params" else 1
            assert "error" in await peer.ask(1, "initialize", {"protocolVersion": version, **READING})
            assert not peer.stub.supports("fs/read_text_file")

    run(main())
    assert during == ([True] if fails == "handler" else [])


def test_a_gated_notification_is_not_sent(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            with pytest.raises(acp.CapabilityError):
                await peer.stub.elicitation_complete(acp.CompleteElicitationNotification(elicitation_id="e"))
            return await peer.ping()

    assert run(main()) == []


@pytest.mark.parametrize("form", ["form", "url"])
def test_one_of_several_ways_opens(packages: Packages, form: str) -> None:
    acp = packages(V1)

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            assert not peer.stub.supports("elicitation/create")
            params = {"protocolVersion": 1, "clientCapabilities": {"elicitation": {form: {}}}}
            await peer.ask(1, "initialize", params)
            assert peer.stub.supports("elicitation/create")
            assert peer.stub.supports("elicitation/complete") is (form == "url")

    run(main())


@pytest.mark.parametrize(("listed", "opens"), [([], False), ([{"id": "m", "name": "M"}], True)])
def test_a_list_opens_where_something_is_in_it(packages: Packages, listed: list[Any], *, opens: bool) -> None:
    acp = packages(V1)

    async def main() -> bool:
        async with raw_peer(acp, client_of(acp)) as peer:
            await initialize_by_hand(peer, {"authMethods": listed})
            return peer.stub.supports("authenticate")

    assert run(main()) is opens


def test_methods_without_a_gate_are_always_open(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            for method in ("initialize", "session/new", "session/cancel", "_vendor/x"):
                assert peer.stub.supports(method)
            await peer.stub.session_cancel(acp.CancelNotification(session_id="s"))
            await peer.stub.ext_notification("_vendor/x", None)
            assert [each["method"] for each in await peer.ping()] == ["session/cancel", "_vendor/x"]

    run(main())


def put(message: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of `message` with `value` where `path` leads."""
    told = deepcopy(message)
    inner = told
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value
    return told


@EVERY_BASE
def test_every_gate_of_every_method(packages: Packages, sources: SchemaChoice) -> None:
    """Each path opens its methods, and false, null and nothing do not."""
    acp = packages(sources)
    gated = [method for method in acp.AGENT_METHODS.values() if method.capability is not None]

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            for method in gated:
                for path in method.capability.paths:
                    for value, opens in [(True, True), ({}, True), ([1], True), ([], False), (None, False), (0, False)]:
                        await initialize_by_hand(peer, put({}, path, value))
                        assert peer.stub.supports(method.name) is opens, (method.name, value)
                await initialize_by_hand(peer, {})
                assert not peer.stub.supports(method.name)

    run(main())
    assert len(gated) >= 2


# --- advertise ------------------------------------------------------------------------------------------------------


async def handler(self: Any, params: Any) -> Any:
    raise NotImplementedError


def test_advertise_tells_what_is_overridden(packages: Packages) -> None:
    acp = packages(V1)
    message = acp.InitializeResponse(protocol_version=1)
    told = acp.encode(acp.advertise(agent_of(acp, session_list=handler, logout=handler), message))
    assert told["agentCapabilities"]["sessionCapabilities"] == {"list": {}}
    assert told["agentCapabilities"]["auth"] == {"logout": {}}
    assert not told["agentCapabilities"].get("loadSession")
    assert message == acp.InitializeResponse(protocol_version=1)  # what comes out is a copy


def test_advertise_takes_an_object_and_counts_base_classes(packages: Packages) -> None:
    acp = packages(V1)
    kind = type("Derived", (agent_of(acp, session_load=handler),), {})
    for each in (kind, kind(None)):
        told = acp.advertise(each, acp.InitializeResponse(protocol_version=1))
        assert told.agent_capabilities.load_session is True


def test_advertise_tells_nothing_of_what_is_not_overridden(packages: Packages) -> None:
    acp = packages(V1)
    for message in (acp.InitializeResponse(protocol_version=1), acp.InitializeRequest(protocol_version=1)):
        for kind in (acp.Agent, acp.Client):
            assert acp.encode(acp.advertise(kind, message)) == acp.encode(message)


@pytest.mark.parametrize("said", [None, {"_meta": {"pages": 5}}])
def test_advertise_keeps_what_is_said(packages: Packages, said: Any) -> None:
    """Null is a no that somebody meant; false is what a boolean is by default, and becomes true."""
    acp = packages(V1)
    kind = agent_of(acp, session_list=handler, session_resume=handler, session_load=handler)
    capabilities = {"loadSession": False, "sessionCapabilities": {"list": said}}
    message = acp.decode(acp.InitializeResponse, {"protocolVersion": 1, "agentCapabilities": capabilities})
    told = acp.encode(acp.advertise(kind, message))["agentCapabilities"]
    assert told["sessionCapabilities"] == {**({"list": said} if said else {}), "resume": {}}
    assert told["loadSession"] is True


def test_advertise_leaves_forms_and_lists_to_you(packages: Packages) -> None:
    acp = packages(V1)
    for kind, name in [
        (client_of(acp, elicitation_create=handler, elicitation_complete=handler), "InitializeRequest"),
        (agent_of(acp, authenticate=handler), "InitializeResponse"),
    ]:
        message = getattr(acp, name)(protocol_version=1)
        told = acp.encode(acp.advertise(kind, message))
        assert not told.get("authMethods")
        assert "form" not in told.get("clientCapabilities", {}).get("elicitation", {})


@EVERY_BASE
@SIDES
def test_advertise_for_a_class_that_overrides_everything(packages: Packages, sources: SchemaChoice, side: Side) -> None:
    """What comes out can be sent, and opens every gate that methods tell of."""
    acp, samples = packages(sources), Samples(model_for(sources))
    kind, name = (acp.Agent, "InitializeResponse") if side is Side.AGENT else (acp.Client, "InitializeRequest")
    message = acp.decode(getattr(acp, name), samples.named(name))
    everything = recording(acp, side, results={})
    told = acp.encode(acp.advertise(everything, message))
    assert acp.encode(acp.decode(getattr(acp, name), told)) == told
    for method in kind.METHODS.values():
        gate = method.capability
        if gate is not None and gate.says_yes and len(gate.paths) == 1:
            assert is_advertised(told, gate.paths[0]), method.name


def is_advertised(raw: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw is True or isinstance(raw, dict)


# --- Warnings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overridden", [False, True])
def test_an_agent_that_advertises_what_it_does_not_have(packages: Packages, *, overridden: bool) -> None:
    acp = packages(V1)

    async def initialize(self: Any, params: Any) -> Any:
        capabilities = acp.AgentCapabilities(load_session=True)
        return acp.InitializeResponse(protocol_version=1, agent_capabilities=capabilities)

    async def main() -> None:
        methods = {"session_load": handler} if overridden else {}
        async with raw_peer(acp, agent_of(acp, initialize=initialize, **methods)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1})

    with acp_log() as records:
        run(main())
    assert ("session/load" in texts(records)) is not overridden
    assert ("TestAgent" in texts(records)) is not overridden


@pytest.mark.parametrize("overridden", [False, True])
def test_a_client_that_advertises_what_it_does_not_have(packages: Packages, *, overridden: bool) -> None:
    acp = packages(V1)

    async def main() -> None:
        kind = client_of(acp, **({"fs_read_text_file": handler} if overridden else {}))
        async with raw_peer(acp, kind) as peer:
            await initialize_with(peer, acp)

    with acp_log() as records:
        run(main())
    assert ("fs/read_text_file" in texts(records)) is not overridden


async def initialize_with(peer: Any, acp: Any) -> None:
    request = acp.decode(acp.InitializeRequest, {"protocolVersion": 1, **READING})
    waiter = asyncio.create_task(peer.stub.initialize(request))
    await peer.answer((await peer.receive())["id"], result={"protocolVersion": 1})
    await waiter


@pytest.mark.parametrize("sources", [V1, V2, OLD], ids=["v1", "v2", "old v1"])
def test_both_sides_know_after_initialize(packages: Packages, sources: SchemaChoice) -> None:
    """The real exchange, with `advertise` on both sides: whatever one side tells, the other one may call."""
    acp, samples = packages(sources), Samples(model_for(sources))
    response = acp.decode(acp.InitializeResponse, samples.named("InitializeResponse"))
    request = acp.decode(acp.InitializeRequest, samples.named("InitializeRequest"))
    results = {"initialize": acp.advertise(type(recording(acp, Side.AGENT, results={})), response)}
    agent = type(recording(acp, Side.AGENT, results=results))
    client = type(recording(acp, Side.CLIENT, results={}))
    for kind in (agent, client):
        kind.seen = []

    async def main() -> None:
        async with pair(acp, agent, client) as both:
            await both.agent.initialize(acp.advertise(client, request))
            for stub, methods in [(both.agent, acp.AGENT_METHODS), (both.client, acp.CLIENT_METHODS)]:
                for method in methods.values():
                    gate = method.capability
                    told = gate is None or (gate.says_yes is not None and len(gate.paths) == 1)
                    assert stub.supports(method.name) or not told, method.name

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


def test_what_is_advertised_to_call_the_peer_needs_no_handler(packages: Packages) -> None:
    """The same capability opens requests to the client, and notifications of the client."""
    acp = packages(SchemaChoice(release="2026-11-02", extensions=("mcp-over-acp",)))

    async def initialize(self: Any, params: Any) -> Any:
        capabilities = acp.AgentCapabilities(mcp_capabilities=acp.McpCapabilities(acp=True))
        return acp.InitializeResponse(protocol_version=1, agent_capabilities=capabilities)

    async def main() -> None:
        async with pair(acp, agent_of(acp, initialize=initialize), client_of(acp)) as both:
            await both.agent.initialize(acp.InitializeRequest(protocol_version=1))

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


# --- Overridden, and not advertised ---------------------------------------------------------------------------------


def test_what_is_overridden_and_not_advertised_is_a_warning(packages: Packages) -> None:
    """A client forgets to advertise; the agent's call fails, and the log of each side says what to do."""
    acp = packages(V1)

    async def fs_read_text_file(self: Any, params: Any) -> Any:
        return acp.ReadTextFileResponse(content="text")

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return (await self.client.fs_read_text_file(acp.ReadTextFileRequest(session_id="s", path="/a"))).content

    async def main(advertise: Any) -> Any:
        client = client_of(acp, fs_read_text_file=fs_read_text_file)
        async with pair(acp, agent_of(acp, initialize=initialize, ext_method=ext_method), client) as both:
            await both.agent.initialize(advertise(client, acp.InitializeRequest(protocol_version=1)))
            try:
                return await both.agent.ext_method("_read", None)
            except acp.InternalError as error:
                return error.message

    with acp_log() as records:
        assert run(main(lambda _, message: message)) == "Internal error"
    warning, error = (record for record in records if record.levelno >= logging.WARNING)
    assert warning.levelno == logging.WARNING
    assert "not advertised: fs/read_text_file" in warning.getMessage()
    assert "advertise()" in warning.getMessage()
    assert "fs/read_text_file needs clientCapabilities.fs.readTextFile" in error.getMessage()

    with acp_log() as records:
        assert run(main(acp.advertise)) == "text"
    assert texts(records) == ""
