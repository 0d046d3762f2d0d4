"""How a peer introduces itself: `capabilities` and `info` of the stubs, and `supports` for capabilities."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role
from acpgen.schema.bundled import load_release, newest_release
from tests.remote_support import Client, Server
from tests.runtime_support import OLD, V1, V2, acp_log, agent_of, pair, raw_peer, run, texts, unchecked
from tests.support import Packages, schema_of

pytestmark = pytest.mark.every_python

EDITOR = {"name": "editor", "version": "1.2"}
HELLO: dict[int, dict[str, Any]] = {
    1: {
        "protocolVersion": 1,
        "clientInfo": EDITOR,
        "clientCapabilities": {"fs": {"readTextFile": True}, "session": {"configOptions": {"boolean": {}}}},
    },
    2: {"protocolVersion": 2, "info": EDITOR, "capabilities": {"elicitation": {"form": {}}, "auth": {"terminal": {}}}},
}
ANSWER: dict[int, dict[str, Any]] = {
    1: {
        "protocolVersion": 1,
        "agentInfo": {"name": "a", "version": "7"},
        "agentCapabilities": {"loadSession": True, "promptCapabilities": {"image": True}},
    },
    2: {
        "protocolVersion": 2,
        "info": {"name": "a", "version": "7"},
        "capabilities": {"session": {"prompt": {"image": {}}}},
    },
}
SOURCES = {1: V1, 2: V2}
EVERY_PROTOCOL = pytest.mark.parametrize("protocol", [1, 2])


def answering(acp: ModuleType, protocol: int, during: list[Any] | None = None) -> type[Any]:
    """A class of agents that answer `initialize`, and keep in `during` what the stub says meanwhile."""

    async def initialize(self: Any, params: Any) -> Any:
        if during is not None:
            during.append((self.client.capabilities, self.client.info))
        return acp.decode(acp.InitializeResponse, ANSWER[protocol])

    return agent_of(acp, initialize=initialize)


@EVERY_PROTOCOL
def test_both_stubs_have_what_the_other_side_said(packages: Packages, protocol: int) -> None:
    acp, during = packages(SOURCES[protocol]), list[Any]()
    request = acp.decode(acp.InitializeRequest, HELLO[protocol])

    async def main() -> None:
        async with pair(acp, answering(acp, protocol, during), acp.Client) as both:
            for stub in (both.agent, both.client):
                assert (stub.capabilities, stub.info) == (None, None)
            response = await both.agent.initialize(request)
            old = "agent_" if protocol == 1 else ""
            assert both.agent.capabilities == getattr(response, f"{old}capabilities")
            assert both.agent.info == getattr(response, f"{old}info") == acp.Implementation(name="a", version="7")
            assert isinstance(both.agent.capabilities, acp.AgentCapabilities)
            old = "client_" if protocol == 1 else ""
            assert both.client.capabilities == getattr(request, f"{old}capabilities")
            assert both.client.info == acp.Implementation(name="editor", version="1.2")
            assert during == [(both.client.capabilities, both.client.info)], "known while `initialize` is handled"

    run(main())


@pytest.mark.parametrize("fails", ["params", "handler"])
@EVERY_PROTOCOL
def test_a_request_that_fails_has_said_nothing(packages: Packages, protocol: int, fails: str) -> None:
    acp, during = packages(SOURCES[protocol]), list[Any]()

    async def initialize(self: Any, params: Any) -> Any:
        during.append(self.client.info)
        raise acp.InvalidParamsError

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            broken = {"protocolVersion": "x"} if fails == "params" else {}
            assert "error" in await peer.ask(1, "initialize", HELLO[protocol] | broken)
            assert (peer.stub.capabilities, peer.stub.info) == (None, None)

    run(main())
    assert during == ([acp.Implementation(name="editor", version="1.2")] if fails == "handler" else [])


def test_the_first_request_that_succeeds_counts(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, answering(acp, 1)) as peer:
            await peer.ask(1, "initialize", HELLO[1])
            await peer.ask(2, "initialize", HELLO[1] | {"clientInfo": {"name": "other", "version": "1"}})
            assert peer.stub.info.name == "editor"

    run(main())


@pytest.mark.parametrize("said", [{}, {"clientCapabilities": "all", "clientInfo": {"name": 5}}, {"clientInfo": None}])
def test_what_is_absent_or_does_not_fit(packages: Packages, said: dict[str, Any]) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, answering(acp, 1)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1, **said})
            assert peer.stub.capabilities == acp.ClientCapabilities()
            assert peer.stub.info is None
            assert not peer.stub.supports("terminal")

    run(main())


def test_what_is_too_large_is_not_kept(packages: Packages) -> None:
    """A peer may write any amount. The gates that it opens are kept all the same."""
    acp = packages(V1)
    capabilities = {"fs": {"readTextFile": True}, "_meta": {"pad": "x" * 2**16}}

    async def main() -> None:
        async with raw_peer(acp, answering(acp, 1)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
            assert peer.stub.capabilities is None
            assert not peer.stub.supports("fs.readTextFile")
            assert peer.stub.supports("fs/read_text_file")

    with acp_log() as records:
        run(main())
    assert "how the peer introduced itself is not kept: it has 65," in texts(records)
    assert "the limit is 65,536" in texts(records)


def test_who_changes_it_changes_a_copy(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, answering(acp, 1)) as peer:
            await peer.ask(1, "initialize", HELLO[1])
            peer.stub.capabilities.fs.read_text_file = False
            assert peer.stub.capabilities.fs.read_text_file is True

    run(main())


@EVERY_PROTOCOL
def test_it_is_there_without_the_checks(packages: Packages, protocol: int) -> None:
    acp = packages(SOURCES[protocol])

    async def main() -> None:
        async with raw_peer(acp, answering(acp, protocol), options=unchecked(acp)) as peer:
            await peer.ask(1, "initialize", HELLO[protocol])
            assert peer.stub.info.name == "editor"

    run(main())


# --- Several versions, networks, other schemas ----------------------------------------------------------------------


@EVERY_PROTOCOL
def test_a_package_of_both_versions(packages: Packages, protocol: int) -> None:
    acp = packages(V1, V2)
    chosen = getattr(acp, f"v{protocol}")
    agents = {version: answering(getattr(acp, f"v{version}"), version) for version in (1, 2)}
    clients = {version: getattr(acp, f"v{version}").Client for version in (1, 2)}
    params = {
        version: getattr(acp, f"v{version}").decode(getattr(acp, f"v{version}").InitializeRequest, HELLO[version])
        for version in (1, 2)
        if version <= protocol
    }
    stubs = list[Any]()

    def noted(version: int) -> Any:
        return lambda client: stubs.append(client) or agents[version](client)

    async def main() -> None:
        near, far = acp.memory_transports()
        served = asyncio.create_task(acp.serve_agent({version: noted(version) for version in agents}, near))
        async with acp.connect({version: clients[version] for version in params}, far, params=params) as agent:
            assert isinstance(agent.capabilities, chosen.AgentCapabilities)
            assert agent.info.version == "7"
            assert agent.supports("loadSession" if protocol == 1 else "session.prompt.image")
            assert not agent.supports(
                "session.prompt" if protocol == 1 else "load_session"
            ), "only the other one has it"
            (client,) = stubs
            assert isinstance(client.capabilities, chosen.ClientCapabilities)
            assert client.info.name == "editor"
        await served

    run(main())


def test_over_the_network(packages: Packages) -> None:
    acp, during = packages(V1, roles=(Role.AGENT,), remote=True), list[Any]()

    async def main() -> None:
        async with Server.of(acp, answering(acp, 1, during)) as server:
            await Client(server.app).initialize(HELLO[1])

    run(main())
    ((capabilities, info),) = during
    assert capabilities.fs.read_text_file
    assert info.name == "editor"


def test_a_schema_without_such_properties(packages: Packages) -> None:
    """A stub has only what the schema has."""
    messages = {
        "HelloRequest": {"type": "object", "x-side": "agent", "x-method": "initialize"},
        "HelloResponse": {"type": "object", "x-side": "agent", "x-method": "initialize"},
    }
    acp = packages.of(schema_of(**messages))
    for stub in (acp.RemoteAgent, acp.RemoteClient):
        assert not hasattr(stub, "capabilities")
        assert not hasattr(stub, "info")


@pytest.mark.parametrize("property_", ["clientCapabilities", "clientInfo"])
def test_a_copy_that_lacks_one(packages: Packages, property_: str) -> None:
    release = newest_release(1)
    assert release is not None
    root = deepcopy(load_release(release).root)
    del root["$defs"]["InitializeRequest"]["properties"][property_]
    acp = packages(SchemaChoice(schema=packages.write(root)))
    assert hasattr(acp.RemoteClient, "capabilities") is (property_ != "clientCapabilities")
    assert hasattr(acp.RemoteClient, "info") is (property_ != "clientInfo")
    assert hasattr(acp.RemoteAgent, "capabilities")


# --- supports -------------------------------------------------------------------------------------------------------


async def supported(acp: ModuleType, protocol: int, hello: dict[str, Any], names: list[str]) -> list[bool]:
    async with raw_peer(acp, answering(acp, protocol)) as peer:
        await peer.ask(1, "initialize", {**HELLO[protocol], **hello})
        return [peer.stub.supports(name) for name in names]


@pytest.mark.parametrize(
    ("told", "is_open"),
    [(None, False), (False, False), ("yes", False), ([], False), (True, True), ({}, True), ([1], True)],
)
def test_a_capability_by_its_path(packages: Packages, told: Any, *, is_open: bool) -> None:
    names = ["terminal", "clientCapabilities.terminal", "client_capabilities.terminal"]
    hello = {"clientCapabilities": {"terminal": told}}
    assert run(supported(packages(V1), 1, hello, names)) == [is_open] * 3


def test_each_part_is_a_name_on_the_wire_or_in_python(packages: Packages) -> None:
    names = ["session.configOptions.boolean", "session.config_options.boolean", "fs.readTextFile", "fs.read_text_file"]
    assert run(supported(packages(V1), 1, {}, names)) == [True] * 4
    names = ["capabilities.elicitation.form", "elicitation.form", "elicitation.url", "auth.terminal"]
    assert run(supported(packages(V2), 2, {}, names)) == [True, True, False, True]


def test_a_client_that_has_said_nothing_has_no_terminal(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, answering(acp, 1)) as peer:
            assert not peer.stub.supports("terminal")
            assert not peer.stub.supports("terminal/create")

    run(main())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("terminals", "terminal"),
        ("fs.readTextFil", "fs.readTextFile"),
        ("readTextFile", "fs.readTextFile"),
        ("session.config_options.bool", "session.configOptions"),
        ("fs", "fs.readTextFile"),  # an object that is there in any case says nothing
    ],
)
def test_an_unknown_name_raises_with_the_nearest(packages: Packages, name: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"has no such method or capability: expected .*{meant}"):
        run(supported(packages(V1), 1, {}, [name]))


def test_a_stub_without_a_connection_knows_nothing(packages: Packages) -> None:
    acp = packages(OLD)
    stub = acp.RemoteClient(None)
    assert (stub.capabilities, stub.info, stub.supports("terminal")) == (None, None, False)
