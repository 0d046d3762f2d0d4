"""Clients of several versions: one `initialize`, and the stub of the version that the agent chooses."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V1, V2, run
from tests.support import Packages, package_folder

INFO = {"name": "editor", "version": "1.2"}


def params(acp: ModuleType) -> dict[int, Any]:
    """The params of `initialize` by version."""
    return {
        1: acp.v1.InitializeRequest(
            protocol_version=1, client_capabilities=acp.v1.ClientCapabilities(terminal=True), meta={"of": "v1"}
        ),
        2: acp.v2.InitializeRequest(
            protocol_version=2,
            info=acp.v2.Implementation(**INFO),
            capabilities=acp.v2.ClientCapabilities(),
            meta={"of": "v2"},
        ),
    }


def clients(acp: ModuleType) -> dict[int, type[Any]]:
    """A class of clients for each version."""
    return {version: type(f"Client{version}", (getattr(acp, f"v{version}").Client,), {}) for version in (1, 2)}


def agents(acp: ModuleType) -> dict[int, type[Any]]:
    """A class of agents for each version, which remember the params of `initialize`."""

    def agent(version: int) -> type[Any]:
        part = getattr(acp, f"v{version}")

        async def initialize(self: Any, request: Any) -> Any:
            self.request = request
            more = {"info": part.Implementation(name="a", version="1")} if version == 2 else {}
            return part.InitializeResponse(protocol_version=version, **more)

        return type(f"Agent{version}", (part.Agent,), {"initialize": initialize})

    return {version: agent(version) for version in (1, 2)}


def some(mapping: dict[int, Any], versions: tuple[int, ...]) -> dict[int, Any]:
    """The part of a mapping for these versions."""
    return {version: mapping[version] for version in versions}


SUBSETS = [(1,), (2,), (1, 2)]
NOTHING_COMMON = {
    (1,): "Unsupported protocol version: 1 (-32022): {'requested': 1, 'supported': [2]}",
    (2,): "the agent has chosen version 1 of the protocol; this side offered 2",
}


@pytest.mark.parametrize("theirs", SUBSETS)
@pytest.mark.parametrize("ours", SUBSETS)
def test_the_stub_is_that_of_the_highest_version_of_both(
    packages: Packages, ours: tuple[int, ...], theirs: tuple[int, ...]
) -> None:
    acp = packages(V1, V2)
    common = max(set(ours) & set(theirs), default=None)

    async def main() -> None:
        near, far = acp.memory_transports()
        server = asyncio.create_task(acp.serve_agent(some(agents(acp), theirs), near))
        connection = acp.connect(some(clients(acp), ours), far, params=some(params(acp), ours))
        if common is None:
            with pytest.raises((acp.ConnectionClosed, acp.RequestError)) as caught:
                await connection.__aenter__()
            assert str(caught.value) == NOTHING_COMMON[ours]
        else:
            async with connection as agent:
                part = getattr(acp, f"v{common}")
                more = {"info": part.Implementation(name="a", version="1")} if common == 2 else {}
                assert type(agent) is part.RemoteAgent
                assert agent.negotiated == part.InitializeResponse(protocol_version=common, **more)
                assert isinstance(connection.handler, part.Client)
                assert connection.handler.agent is agent
        await server

    run(main())


# --- On the wire ----------------------------------------------------------------------------------------------------


def talk(acp: ModuleType, answer: Any, then: Callable[[Any, Any], Awaitable[None]] | None = None) -> list[Any]:
    """Connect both clients to an agent that answers `initialize` with `answer`; returns what it received."""
    received: list[Any] = []

    async def agent(wire: Any) -> None:
        received.append(json.loads(await wire.read()))
        await wire.write(json.dumps({"jsonrpc": "2.0", "id": received[0]["id"], **answer}).encode())
        while (line := await wire.read()) is not None:
            received.append(json.loads(line))

    async def main() -> None:
        near, far = acp.memory_transports()
        task = asyncio.create_task(agent(near))
        try:
            async with acp.connect(clients(acp), far, params=params(acp)) as stub:
                if then is not None:
                    await then(stub, near)
        finally:
            await near.close()
            await task

    try:
        run(main())
    finally:
        assert len([message for message in received if message.get("method") == "initialize"]) == 1
    return received


def test_one_request_has_the_params_of_all_versions(packages: Packages) -> None:
    acp = packages(V1, V2)
    [request] = talk(acp, {"result": {"protocolVersion": 1}})
    sides = [acp.v1.encode(params(acp)[1]), acp.v2.encode(params(acp)[2])]
    assert request["params"] == {**sides[0], **sides[1]}
    assert request["params"]["protocolVersion"] == 2
    assert {"clientCapabilities", "info", "capabilities"} <= request["params"].keys()
    assert request["params"]["_meta"] == {"of": "v2"}


@pytest.mark.parametrize("version", [0, 3, -1, 65536, "1", None, 1.5, True, [], {}, "absent"])
def test_a_version_that_was_not_offered_ends_the_connection(packages: Packages, version: Any) -> None:
    acp = packages(V1, V2)
    result = {} if version == "absent" else {"protocolVersion": version}
    with pytest.raises(
        acp.ConnectionClosed, match=r"the agent has chosen version .*; this side offered 1 and 2"
    ) as caught:
        talk(acp, {"result": result})
    assert caught.value.is_permanent


@pytest.mark.parametrize("result", [None, [], 5, "x"])
def test_a_result_that_is_no_object(packages: Packages, result: Any) -> None:
    acp = packages(V1, V2)
    with pytest.raises(acp.ConnectionClosed, match="this side offered 1 and 2"):
        talk(acp, {"result": result})


def test_a_result_that_does_not_fit_the_version(packages: Packages) -> None:
    acp = packages(V1, V2)
    with pytest.raises(acp.DecodeError) as caught:
        talk(acp, {"result": {"protocolVersion": 2}})
    assert caught.value.is_from_peer


def test_an_error_of_the_agent_is_raised(packages: Packages) -> None:
    acp = packages(V1, V2)
    with pytest.raises(acp.RequestError) as caught:
        talk(acp, {"error": {"code": -32000, "message": "Log in", "data": [1]}})
    assert (type(caught.value), caught.value.data) == (acp.AuthenticationRequiredError, [1])


def test_what_both_sides_advertise_counts(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def call(agent: Any, wire: Any) -> None:
        assert not agent.supports("session/load")
        assert agent.supports("session/close")
        with pytest.raises(acp.CapabilityError):
            await agent.session_load(acp.v1.LoadSessionRequest(session_id="s", cwd="/", mcp_servers=[]))

    capabilities = {"sessionCapabilities": {"close": {}}}
    talk(acp, {"result": {"protocolVersion": 1, "agentCapabilities": capabilities}}, call)


def test_messages_of_the_agent_before_its_answer(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        near, far = acp.memory_transports()

        async def agent() -> None:
            request = json.loads(await near.read())
            for number, method in enumerate(("fs/read_text_file", "initialize")):
                early = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
                await near.write(json.dumps(early).encode())
                answer = json.loads(await near.read())
                assert (answer["id"], answer["error"]["code"]) == (number, -32600)
            await near.write(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": 5}).encode())
            result = {"protocolVersion": 1}
            await near.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())

        task = asyncio.create_task(agent())
        async with acp.connect(clients(acp), far, params=params(acp)) as stub:
            assert isinstance(stub, acp.v1.RemoteAgent)
        await task
        await near.close()

    run(main())


# --- Mistakes -------------------------------------------------------------------------------------------------------


def test_factories_and_params_belong_together(packages: Packages) -> None:
    acp = packages(V1, V2)
    transport, _ = acp.memory_transports()
    with pytest.raises(ValueError, match="`params` must have the params of each version"):
        acp.connect(clients(acp), transport)
    with pytest.raises(ValueError, match="`params` must have the params of each version"):
        acp.connect(clients(acp), transport, params=some(params(acp), (1,)))
    with pytest.raises(TypeError, match="`params` are for a mapping"):
        acp.connect(clients(acp)[1], transport, params=params(acp))
    with pytest.raises(ValueError, match="no version 3"):
        acp.connect({3: clients(acp)[1]}, transport, params={3: params(acp)[1]})
    with pytest.raises(TypeError, match="Client1 does not handle version 2"):
        acp.connect({2: clients(acp)[1]}, transport, params={2: params(acp)[2]})


def test_a_single_class_gets_the_stub_of_its_version(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        near, far = acp.memory_transports()
        server = asyncio.create_task(acp.serve_agent(agents(acp), near))
        async with acp.connect(clients(acp)[1], far) as agent:
            assert isinstance(agent, acp.v1.RemoteAgent)
            assert (await agent.initialize(params(acp)[1])).protocol_version == 1
            assert agent.negotiated.protocol_version == 1
        await server

    run(main())


def test_a_factory_that_makes_a_client_of_another_version(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        near, far = acp.memory_transports()
        server = asyncio.create_task(acp.serve_agent(some(agents(acp), (1,)), near))
        swapped = {1: partial(acp.v2.Client), 2: partial(acp.v1.Client)}
        with pytest.raises(TypeError, match="Client does not handle version 1 of the protocol, but 2"):
            await acp.connect(swapped, far, params=params(acp)).__aenter__()
        await server

    run(main())


# --- Processes, and what they import --------------------------------------------------------------------------------

AGENT = """
import sys
from two_acp import run_agent

def one(client):
    from two_acp import v1

    class One(v1.Agent):
        async def initialize(self, params):
            return v1.InitializeResponse(protocol_version=1)

        async def ext_method(self, method, params):
            return sorted(name for name in sys.modules if name in ("two_acp.v1", "two_acp.v2"))

    return One(client)

def two(client):
    raise RuntimeError("version 2 was not asked for")

assert "two_acp.v1" not in sys.modules and "two_acp.v2" not in sys.modules
run_agent({1: one, 2: two})
"""


@pytest.fixture
def agent_command(tmp_path: Path) -> list[str]:
    """The command of an agent that imports a version when it is chosen."""
    (tmp_path / "two_acp").symlink_to(package_folder(V1, V2), target_is_directory=True)
    (tmp_path / "agent.py").write_text(AGENT, encoding="utf-8")
    return [sys.executable, str(tmp_path / "agent.py")]


def test_an_agent_imports_the_version_that_is_chosen(packages: Packages, agent_command: list[str]) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        async with acp.spawn_agent(some(clients(acp), (1,)), agent_command, params=some(params(acp), (1,))) as agent:
            assert await agent.ext_method("_modules", None) == ["two_acp.v1"]

    run(main())


def test_the_package_imports_no_version(tmp_path: Path) -> None:
    (tmp_path / "two_acp").symlink_to(package_folder(V1, V2), target_is_directory=True)
    code = (
        "import sys, two_acp; print([n for n in sys.modules if n.startswith('two_acp.v1') or 'v2' in n]); "
        "from two_acp import v1; print(v1 is two_acp.v1, 'two_acp.v2' in sys.modules, hasattr(two_acp, 'v3'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True False False"]


OF_ANOTHER_VERSION = """
import json, sys
request = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"protocolVersion": 7}}), flush=True)
sys.exit(len(sys.stdin.read()))
"""


def test_an_agent_that_chooses_another_version_is_ended(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agent = acp.spawn_agent(clients(acp), [sys.executable, "-c", OF_ANOTHER_VERSION], params=params(acp))
        with pytest.raises(acp.ConnectionClosed, match="the agent has chosen version 7 of the protocol"):
            await agent.__aenter__()
        assert agent.returncode == 0

    run(main())
