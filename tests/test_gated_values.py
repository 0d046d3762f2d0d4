"""Values that need a capability: what is sent without it is refused or logged, with its place; with it, it passes.

The cases are those of the facts about the schemas, for the newest releases with all bundled extensions.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from types import ModuleType, NoneType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir import model as ir
from acpgen.roles import Role
from acpgen.schema.bundled import newest_release
from acpgen.schema.gates import Gate
from tests.remote_support import Client, Server
from tests.runtime_support import acp_log, agent_of, raw_peer, run, texts
from tests.support import Packages, fitting_fragments
from tests.test_trace_capabilities import messages, model_with_all, opened

pytestmark = pytest.mark.every_python

Json = Any
PROTOCOLS = (1, 2)
LOGIN = {"type": "terminal", "id": "t", "methodId": "t", "name": "T"}


def all_of(protocol: int) -> SchemaChoice:
    """The newest release, with all extensions that fit it."""
    release = newest_release(protocol)
    assert release is not None
    return SchemaChoice(protocol=protocol, release=release.name, extensions=fitting_fragments(release))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A gated value, and a message that has it: its method, the raw params or result, and the place there."""

    gated: ir.GatedValue
    method: str
    is_result: bool
    raw: Json
    pointer: str

    def text(self, begins: str = "") -> str:
        """What the error says, after the beginning."""
        steps = self.pointer.split("/")[2:]
        path = "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps)
        key = "value " if self.gated.key is None else f"{self.gated.key} "
        tag = "" if self.gated.value is None else f" with the {key}{self.gated.value!r}"
        paths = " or ".join(".".join(each) for each in self.gated.gate.paths)
        place = f": ${path}" if steps else ""
        what, lacking = f"{begins or self.method}{place}{tag}", f"not advertised in {self.gated.gate.root}"
        return f"{what} needs {paths}, which the peer has {lacking}"


def cases(protocol: int) -> dict[str, Case]:
    """A case for each gated value of the model: without one, this raises `KeyError`."""
    model, table, found = model_with_all(protocol), messages(protocol), dict[str, Case]()
    for gated in model.gated_values:
        if gated.definition == "AuthMethod":
            found[str(gated)] = Case(
                gated=gated, method="initialize", is_result=True, raw=None, pointer="/result/authMethods/0"
            )
            continue
        lines, pointer = table[str(gated)]
        is_result = pointer.startswith("/result")
        raw = lines[1]["result"] if is_result else lines[0]["params"]
        found[str(gated)] = Case(gated=gated, method=lines[0]["method"], is_result=is_result, raw=raw, pointer=pointer)
    return found


# --- Two ends: one of the package, one by hand ------------------------------------------------------------------------


def handshake(protocol: int, without: Gate | None) -> tuple[Json, Json]:
    """The params and the result of `initialize`, with all capabilities but that of a gate."""
    asked, answered = opened(model_with_all(protocol), without=without)
    return asked["params"], answered["result"]


async def read(wire: Any) -> Json:
    line = await wire.read()
    assert line is not None
    return json.loads(line)


async def write(wire: Any, **message: Json) -> None:
    await wire.write(json.dumps({"jsonrpc": "2.0", **message}).encode())


def class_of(base: type[Any], part: ModuleType, results: Mapping[str, Json]) -> type[Any]:
    """A class of handlers that answer these methods with typed results, from their raw ones."""

    def answering(method: str) -> Any:
        async def handler(self: Any, params: Any) -> Any:
            return part.decode(base.METHODS[method].result, results[method])

        return handler

    handlers = {base.METHODS[method].handler: answering(method) for method in results}
    return type("Typed", (base,), handlers)


@asynccontextmanager
async def agent(
    acp: ModuleType, protocol: int, *, without: Gate | None, results: Mapping[str, Json], options: Any = None
) -> AsyncGenerator[tuple[Any, Any, Json], None]:
    """An agent that is served to a client by hand, after the handshake: its handler, the wire, and the answer."""
    params, result = handshake(protocol, without)
    made: list[Any] = []
    parts = {each: getattr(acp, f"v{each}", acp) for each in PROTOCOLS}
    factory = class_of(parts[protocol].Agent, parts[protocol], {"initialize": result, **results})

    def making(stub: Any) -> Any:
        made.append(factory(stub))
        return made[-1]

    other = 3 - protocol
    factories: Any = {protocol: making, other: parts[other].Agent} if hasattr(acp, "v1") else making
    near, far = acp.memory_transports()
    serving = asyncio.create_task(acp.serve_agent(factories, near, options=options))
    try:
        await write(far, id=0, method="initialize", params=params)
        yield made, far, await read(far)
    finally:
        await far.close()
        await serving


@asynccontextmanager
async def client(acp: ModuleType, protocol: int, *, without: Gate | None) -> AsyncGenerator[tuple[Any, Any], None]:
    """The stub of a client of an agent by hand, after the handshake, and the wire."""
    params, result = handshake(protocol, without)
    near, far = acp.memory_transports()

    async def answer() -> None:
        await write(far, id=(await read(far))["id"], result=result)

    answering = asyncio.create_task(answer())
    part = getattr(acp, f"v{protocol}", acp)
    typed = part.decode(part.InitializeRequest, params)
    if hasattr(acp, "v1"):
        connecting = acp.connect({protocol: part.Client}, near, params={protocol: typed})
    else:
        connecting = acp.connect(part.Client, near)
    async with connecting as stub:
        if not hasattr(acp, "v1"):
            await stub.initialize(typed)
        await answering
        yield stub, far
    await far.close()


async def sent(acp: ModuleType, protocol: int, case: Case, *, without: Gate | None) -> Json:
    """What goes over the wire for the message of a case; an error if it is refused."""
    part = getattr(acp, f"v{protocol}", acp)
    if case.method in part.CLIENT_METHODS:
        async with agent(acp, protocol, without=without, results={}) as (made, far, _):
            return await outcome(part, made[0].client, far, case)
    async with client(acp, protocol, without=without) as (stub, far):
        return await outcome(part, stub, far, case)


async def outcome(part: ModuleType, stub: Any, far: Any, case: Case) -> Json:
    """The params that arrive when the message of a case is sent, typed; or the error that is raised instead."""
    record = type(stub).METHODS[case.method]
    calling = asyncio.ensure_future(getattr(stub, record.handler)(part.decode(record.params, case.raw)))
    arriving = asyncio.ensure_future(read(far))
    await asyncio.wait([calling, arriving], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(0)
    calling.cancel()
    arriving.cancel()
    ended: list[Any] = await asyncio.gather(calling, arriving, return_exceptions=True)
    return ended[1]["params"] if isinstance(ended[1], dict) else ended[0]


@pytest.fixture(name="packages_by_protocol", params=["one", "both"], scope="module")
def packages_of(request: pytest.FixtureRequest, packages: Packages) -> Mapping[int, ModuleType]:
    """A package for each protocol; or one package for both."""
    if request.param == "both":
        return dict.fromkeys(PROTOCOLS, packages(*map(all_of, PROTOCOLS)))
    return {protocol: packages(all_of(protocol)) for protocol in PROTOCOLS}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_params_are_refused_before_they_are_sent(packages_by_protocol: Mapping[int, ModuleType], protocol: int) -> None:
    acp, found = packages_by_protocol[protocol], {}
    chosen = {name: each for name, each in cases(protocol).items() if not each.is_result}
    assert len(chosen) > 15

    async def main() -> None:
        for name, case in chosen.items():
            error = await sent(acp, protocol, case, without=case.gated.gate)
            assert isinstance(error, acp.CapabilityError), f"{name}: {error}"
            assert "".join(f"/{step}" for step in ("params", *error.path)) == case.pointer
            found[name] = str(error)
            passed = await sent(acp, protocol, case, without=None)
            assert isinstance(passed, dict), f"{name}: {passed!r}"

    run(main())
    assert found == {name: case.text() for name, case in chosen.items()}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_are_refused_over_the_network(packages: Packages, protocol: int) -> None:
    acp = packages(all_of(protocol), roles=(Role.AGENT,), remote=True)
    chosen = [each for each in cases(protocol).values() if each.method in acp.CLIENT_METHODS]
    assert len(chosen) >= 2

    async def sending(case: Case, *, without: Gate | None) -> BaseException | None:
        """What ends the call when an agent on a server sends the message of a case, and gives up waiting at once."""
        params, result = handshake(protocol, without)
        factory, made = class_of(acp.Agent, acp, {"initialize": result}), list[Any]()

        def making(stub: Any) -> Any:
            made.append(factory(stub))
            return made[-1]

        async with Server.of(acp, making) as server:
            await Client(server.app).initialize(params)
            record = acp.CLIENT_METHODS[case.method]
            calling = asyncio.ensure_future(
                getattr(made[0].client, record.handler)(acp.decode(record.params, case.raw))
            )
            await asyncio.sleep(0)
            calling.cancel()
            (ended,) = await asyncio.gather(calling, return_exceptions=True)
            return ended

    async def main() -> None:
        for case in chosen:
            error = await sending(case, without=case.gated.gate)
            assert isinstance(error, acp.CapabilityError)
            assert str(error) == case.text()
            assert isinstance(await sending(case, without=None), (NoneType, asyncio.CancelledError))

    run(main())


def test_types_that_contain_others_in_many_ways_have_so_many_places(packages: Packages, tmp_path: Path) -> None:
    """A schema is untrusted: one of a few lines may have a gated value at any number of places, or without end."""
    forks = {key: {"$ref": "#/$defs/Tree"} for key in ascii_lowercase}
    head = {"fragment": 1, "id": "trees", "revision": "1", "title": "Trees", "status": "vendor", "protocols": [1]}
    extension = {
        **head,
        "$defs": {
            "Tree": {"type": "object", "properties": {"leaf": {"type": "string"}, **forks}},
            "PlantNotification": {**forks["a"], "x-side": "client", "x-method": "_trees/plant"},
        },
        "values": {"InitializeRequest": {"Tree.leaf": {"needs": "clientCapabilities.terminal"}}},
    }
    path = tmp_path / "trees.json"
    path.write_text(json.dumps(extension), encoding="utf-8")
    acp = packages(SchemaChoice(extensions=(str(path),)))
    table = importlib.import_module(f"{acp.__name__}.methods").GATED_VALUES
    places = [steps for each in table for _, method, steps in each.places if method == "_trees/plant"]
    assert 100 <= len(places) <= 200
    assert max(map(len, places)) <= 8
    refused: list[str] = []

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            await peer.ask(1, "initialize", {"protocolVersion": 1})
            for tree in (acp.Tree(leaf="x"), acp.Tree(a=acp.Tree(leaf="x"))):
                with pytest.raises(acp.CapabilityError) as caught:
                    await peer.stub.trees_plant(tree)
                refused.append(str(caught.value))

    run(main())
    assert [text.partition(" needs ")[0] for text in refused] == ["_trees/plant: $.leaf", "_trees/plant: $.a.leaf"]


def result_of(case: Case, protocol: int, without: Gate | None) -> Json:
    """The raw result of a case."""
    if case.method != "initialize":
        return case.raw
    return {**handshake(protocol, without)[1], "authMethods": [LOGIN]}


async def answered(acp: ModuleType, protocol: int, case: Case, *, without: Gate | None, options: Any = None) -> Json:
    """The response of an agent with the result of a case."""
    results = {case.method: result_of(case, protocol, without)}
    async with agent(acp, protocol, without=without, results=results, options=options) as (_, far, first):
        if case.method == "initialize":
            return first
        request = next(lines[0] for name, (lines, _) in messages(protocol).items() if name == str(case.gated))
        await write(far, id=2, method=case.method, params=request["params"])
        return await read(far)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_results_are_logged_or_refused_where_what_is_sent_is_checked(
    packages_by_protocol: Mapping[int, ModuleType], protocol: int
) -> None:
    acp = packages_by_protocol[protocol]
    chosen = [each for each in cases(protocol).values() if each.is_result]
    assert len(chosen) > 3
    checked = acp.ConnectionOptions(check_sent=True)

    def log_of(case: Case, *, without: Gate | None, options: Any = None) -> tuple[Json, str]:
        with acp_log() as records:
            response = run(answered(acp, protocol, case, without=without, options=options))
        return response, texts(records, logging.ERROR)

    for case in chosen:
        gate = case.gated.gate
        text = case.text(f"Typed.{handler_of(acp, protocol, case.method)} returned a result")
        response, log = log_of(case, without=gate, options=acp.ConnectionOptions(check_sent=False))
        assert "result" in response
        assert log == f"ERROR acp {text}; it is sent nevertheless"
        response, log = log_of(case, without=gate, options=checked)
        assert response["error"]["code"] == -32603
        assert text in log
        response, log = log_of(case, without=None, options=checked)
        assert "result" in response
        assert log == ""


def handler_of(acp: ModuleType, protocol: int, method: str) -> str:
    """The handler of a method of an agent."""
    handler: str = getattr(acp, f"v{protocol}", acp).AGENT_METHODS[method].handler
    return handler
