"""The handshake: which versions an agent takes, what it forgives, and what it answers before."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AbstractAsyncContextManager
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import (
    BASES,
    OLD,
    V1,
    V2,
    RawPeer,
    acp_log,
    agent_of,
    client_of,
    raw_peer,
    run,
    texts,
    unchecked,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

VERSION = {V1: 1, V2: 2, OLD: 1}
EACH_BASE = pytest.mark.parametrize("sources", BASES.values(), ids=BASES.keys())
INFO = {"name": "editor", "version": "1.2"}
UNSUPPORTED = {
    "code": -32022,
    "message": "Unsupported protocol version: 1",
    "data": {"requested": 1, "supported": [2]},
}


def params_for(sources: SchemaChoice, **more: Any) -> dict[str, Any]:
    """Valid params of `initialize` for the version of `sources`."""
    return {"protocolVersion": VERSION[sources], **({"info": INFO} if sources == V2 else {}), **more}


def listening(acp: ModuleType, heard: list[Any], version: int = 1) -> type[Any]:
    """An agent that notes the params of each `initialize`, and answers extension methods."""

    async def initialize(_: Any, params: Any) -> Any:
        heard.append(params)
        more = {"info": acp.Implementation(name="a", version="1")} if version == 2 else {}
        return acp.InitializeResponse(protocol_version=version, **more)

    async def ext_method(_: Any, method: str, params: Any) -> Any:
        return method

    async def ext_notification(_: Any, method: str, params: Any) -> None:
        heard.append(method)

    return agent_of(acp, initialize=initialize, ext_method=ext_method, ext_notification=ext_notification)


def fresh(acp: ModuleType, heard: list[Any], **more: Any) -> AbstractAsyncContextManager[RawPeer]:
    """A peer of an agent that waits for `initialize`."""
    return raw_peer(acp, listening(acp, heard, acp.PROTOCOL_VERSION), **more)


async def is_open(peer: RawPeer) -> bool:
    answer = await peer.ask("open?", "_open")
    assert answer.get("result") == "_open" or answer["error"]["code"] == -32600
    return "result" in answer


# --- Versions -------------------------------------------------------------------------------------------------------


@EACH_BASE
def test_the_version_of_the_agent_is_decoded_strictly(packages: Packages, sources: SchemaChoice) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            answer = await peer.ask(0, "initialize", params_for(sources))
            assert answer["result"]["protocolVersion"] == VERSION[sources]
            assert await is_open(peer)

    run(main())
    assert heard == [acp.decode(acp.InitializeRequest, params_for(sources))]


def test_a_client_of_version_1_learns_which_versions_an_agent_of_2_has(packages: Packages) -> None:
    acp, heard = packages(V2), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            raw = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True}}}
            assert (await peer.ask(0, "initialize", raw))["error"] == UNSUPPORTED
            assert not await is_open(peer)
            assert "result" in await peer.ask(1, "initialize", params_for(V2))
            assert await is_open(peer)

    run(main())
    data = acp.decode(acp.UnsupportedProtocolVersionErrorData, UNSUPPORTED["data"])
    assert (data.requested, data.supported, len(heard)) == (1, [2], 1)


@pytest.mark.parametrize("asked", [0, 2, 9, 65535])
def test_an_agent_of_version_1_goes_on_with_its_own(packages: Packages, asked: int) -> None:
    acp, heard = packages(V1), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            answer = await peer.ask(0, "initialize", {"protocolVersion": asked, "info": INFO})
            assert answer["result"]["protocolVersion"] == 1
            assert await is_open(peer)

    run(main())
    assert heard == [acp.InitializeRequest(protocol_version=asked)]


@EACH_BASE
@pytest.mark.parametrize("asked", [None, "1", 1.5, True, -1, 65536, 10**30, [], {}])
def test_what_is_no_version_is_an_error_in_the_params(packages: Packages, sources: SchemaChoice, asked: Any) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            answer = await peer.ask(0, "initialize", params_for(sources, protocolVersion=asked))
            assert answer["error"]["code"] == -32602
            assert answer["error"]["data"]["path"] == "$.protocolVersion"
            assert not await is_open(peer)

    run(main())
    assert heard == []


@EACH_BASE
@pytest.mark.parametrize("params", [None, {}, [], [9], 9])
def test_params_without_a_version_are_an_error(packages: Packages, sources: SchemaChoice, params: Any) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            assert (await peer.ask(0, "initialize", params))["error"]["code"] == -32602

    run(main())
    assert heard == []


# --- What is forgiven -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({}, {"info": {"name": "", "version": ""}}),
        ({"info": None}, {"info": {"name": "", "version": ""}}),
        ({"info": {"name": "editor"}}, {"info": {"name": "", "version": ""}}),
        ({"info": INFO, "capabilities": 5}, {"info": INFO}),
        ({"info": {**INFO, "later": 1}, "later": [1]}, {"info": INFO}),
        ({"capabilities": {"elicitation": {"form": {}}}},
         {"info": {"name": "", "version": ""}, "capabilities": {"elicitation": {"form": {}}}}),
    ],
)  # fmt: skip
def test_params_for_a_later_version_are_forgiven(packages: Packages, more: Any, kept: Any) -> None:
    acp, heard = packages(V2), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            answer = await peer.ask(0, "initialize", {"protocolVersion": 9, **more})
            assert answer["result"]["protocolVersion"] == 2
            assert await is_open(peer)

    run(main())
    assert heard == [acp.decode(acp.InitializeRequest, {"protocolVersion": 9, **kept})]


def test_what_is_forgiven_is_reported(packages: Packages) -> None:
    acp, heard, drops = packages(V2), [], []

    async def main() -> None:
        options = acp.ConnectionOptions(on_drop=drops.append)
        async with fresh(acp, heard, options=options) as peer:
            assert "result" in await peer.ask(0, "initialize", {"protocolVersion": 3, "info": 5})

    run(main())
    assert [drop.path for drop in drops] == [("info",)]


def test_what_is_left_out_leniently_beside_it_is_reported_too(packages: Packages) -> None:
    acp, drops = packages(V1), []
    raw = {"protocolVersion": 9, "clientCapabilities": "none", "clientInfo": 5, "_meta": 7}
    dispatch = acp.dispatch_request(listening(acp, [], 1)(None), "initialize", raw, on_drop=drops.append)
    asyncio.run(dispatch)
    assert {drop.path for drop in drops} == {("clientCapabilities",), ("clientInfo",), ("_meta",)}


@EACH_BASE
def test_params_for_the_version_itself_are_not(packages: Packages, sources: SchemaChoice) -> None:
    acp, heard = packages(sources), []
    raw = {"protocolVersion": VERSION[sources], "info": {"name": "editor"}, "_meta": {}}

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            answer = await peer.ask(0, "initialize", raw)
            assert ("error" in answer) is (sources == V2)

    run(main())


def test_dispatch_by_hand_knows_the_versions_too(packages: Packages) -> None:
    acp, heard = packages(V2), []
    agent = listening(acp, heard, 2)(None)
    raw = {"protocolVersion": 9}
    run(acp.dispatch_request(agent, "initialize", raw))
    assert raw == {"protocolVersion": 9}
    with pytest.raises(acp.RequestError) as caught:
        run(acp.dispatch_request(agent, "initialize", {"protocolVersion": 1}))
    assert caught.value.to_json() == UNSUPPORTED


# --- What comes before ----------------------------------------------------------------------------------------------


@EACH_BASE
def test_what_comes_before_is_refused_and_the_connection_goes_on(packages: Packages, sources: SchemaChoice) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            for method in ("session/new", "no/such", "_ping"):
                error = (await peer.ask(method, method, {}))["error"]
                assert error == {"code": -32600, "message": "Invalid request: initialize must come first"}
            await peer.notify("_hello")
            await peer.notify("session/cancel", {"sessionId": "s"})
            assert "result" in await peer.ask(1, "initialize", params_for(sources))
            await peer.notify("_hello")
            assert await peer.ping() == []

    with acp_log() as records:
        run(main())
    assert heard[1:] == ["_hello"]
    assert "_hello" in texts(records, logging.DEBUG)
    assert "_hello" not in texts(records)


@EACH_BASE
def test_peers_need_not_wait_for_the_answer(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def main() -> None:
        answering = asyncio.Event()

        async def initialize(_: Any, params: Any) -> Any:
            await answering.wait()
            raise acp.InvalidParamsError

        async def ext_method(_: Any, method: str, params: Any) -> Any:
            return method

        kind = agent_of(acp, initialize=initialize, ext_method=ext_method)
        async with raw_peer(acp, kind) as peer:
            await peer.request(0, "initialize", params_for(sources))
            assert await is_open(peer)
            answering.set()
            assert (await peer.receive())["error"]["code"] == -32602
            assert not await is_open(peer)  # as if none had come

    run(main())


def test_an_invalid_request_opens_nothing_for_what_was_sent_along(packages: Packages) -> None:
    acp, heard = packages(V2), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            await peer.request(0, "initialize", {"protocolVersion": 1})
            await peer.request(1, "_now")
            assert [(await peer.receive())["error"]["code"] for _ in range(2)] == [-32022, -32600]

    run(main())


@EACH_BASE
def test_after_a_success_it_is_a_request_like_others(packages: Packages, sources: SchemaChoice) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard) as peer:
            for number in range(2):
                assert "result" in await peer.ask(number, "initialize", params_for(sources))
            assert "error" in await peer.ask(2, "initialize", {"protocolVersion": "1"})
            assert await is_open(peer)

    run(main())
    assert len(heard) == 2


def test_one_that_fails_takes_nothing_from_another(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        order: list[asyncio.Event] = []

        async def initialize(_: Any, params: Any) -> Any:
            order.append(asyncio.Event())
            is_first = len(order) == 1
            await order[-1].wait()
            if is_first:
                raise acp.InvalidParamsError
            return acp.InitializeResponse(protocol_version=1)

        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            for number in range(2):
                await peer.request(number, "initialize", {"protocolVersion": 1})
            assert (await peer.ask(2, "_x"))["error"]["code"] == -32601
            order[1].set()
            assert "result" in await peer.receive()
            order[0].set()
            assert "error" in await peer.receive()
            assert (await peer.ask(3, "_x"))["error"]["code"] == -32601

    run(main())


def test_one_that_fails_closes_nothing_while_another_runs(packages: Packages) -> None:
    """What is sent beside a handshake in progress is handled, although a second one has failed in the meantime."""
    acp = packages(V1)

    async def main() -> Any:
        may_answer = asyncio.Event()

        async def initialize(_: Any, params: Any) -> Any:
            await may_answer.wait()
            return acp.InitializeResponse(protocol_version=1)

        async def ext_method(_: Any, method: str, params: Any) -> Any:
            return method

        async with raw_peer(acp, agent_of(acp, initialize=initialize, ext_method=ext_method)) as peer:
            await peer.request(1, "initialize", params_for(V1))
            failed = await peer.ask(2, "initialize", {})
            open_meanwhile = await is_open(peer)
            may_answer.set()
            return failed["error"]["code"], open_meanwhile, "result" in await peer.receive()

    assert run(main()) == (-32602, True, True)


@EACH_BASE
def test_without_checks_there_is_no_handshake(packages: Packages, sources: SchemaChoice) -> None:
    acp, heard = packages(sources), []

    async def main() -> None:
        async with fresh(acp, heard, options=unchecked(acp)) as peer:
            assert await is_open(peer)

    run(main())


def test_a_client_waits_for_nothing(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            assert (await peer.ask(0, "_x"))["error"]["code"] == -32601

    run(main())


def test_a_schema_of_which_nothing_is_known_has_no_handshake(packages: Packages) -> None:
    halves = {part: {"type": "object", "x-side": "agent", "x-method": "wave"} for part in ("Request", "Response")}
    acp = packages.of({"$defs": {f"Wave{part}": node for part, node in halves.items()}})

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            assert (await peer.ask(0, "wave", {}))["error"]["code"] == -32601

    run(main())


# --- Mappings in a package of one version ----------------------------------------------------------------------------


@EACH_BASE
def test_a_mapping_with_the_only_version_is_that_factory(packages: Packages, sources: SchemaChoice) -> None:
    acp, version, heard = packages(sources), VERSION[sources], list[Any]()

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.create_task(acp.serve_agent({version: listening(acp, heard, version)}, near))
        line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params_for(sources)}
        await far.write(json.dumps(line).encode())
        answer = json.loads(await far.read() or b"null")
        assert (answer["result"]["protocolVersion"], len(heard)) == (version, 1)
        await far.close()
        await serving

    run(main())


@EACH_BASE
def test_a_mapping_with_another_version_is_refused(packages: Packages, sources: SchemaChoice) -> None:
    acp, version = packages(sources), VERSION[sources]
    agents = ({9: acp.Agent}, {version: acp.Agent, 9: acp.Agent}, {})

    async def main(factories: dict[int, type[Any]]) -> None:
        with pytest.raises(ValueError, match=f"version {version} of the protocol alone"):
            await acp.serve_agent(factories, acp.memory_transports()[0])

    for each in agents:
        run(main(each))
