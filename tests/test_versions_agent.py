"""Agents of several versions: which one answers `initialize`, and what happens before."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages

INFO = {"name": "editor", "version": "1.2"}
LATEST = 2


@dataclass
class Agents:
    """The agents that one connection makes; each notes in `heard` what it gets, with its version."""

    acp: ModuleType
    heard: list[tuple[int, str]] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    def factories(self) -> dict[int, type[Any]]:
        """A class of agents for each version."""
        return {1: self._class(1), 2: self._class(2)}

    def _class(self, version: int) -> type[Any]:
        agents, acp = self, getattr(self.acp, f"v{version}")

        async def initialize(_: Any, params: Any) -> Any:
            agents.heard.append((version, "initialize"))
            plan = params.meta or {}
            if "hold" in plan:
                await agents.release.wait()
            if plan.get("end") == "error":
                raise acp.AuthenticationRequiredError
            if plan.get("end") == "crash":
                raise RuntimeError("on purpose")
            more = {"info": acp.Implementation(name="a", version="1")} if version == 2 else {}
            return acp.InitializeResponse(protocol_version=version, **more)

        async def ext_method(_: Any, method: str, params: Any) -> Any:
            if method != "_fence":
                agents.heard.append((version, method))
            return version

        async def ext_notification(_: Any, method: str, params: Any) -> None:
            agents.heard.append((version, method))

        async def connection_closed(_: Any, reason: Exception) -> None:
            agents.heard.append((version, "closed"))

        def begin(self: Any, client: Any) -> None:
            acp.Agent.__init__(self, client)
            agents.made.append(version)

        methods = (initialize, ext_method, ext_notification, connection_closed)
        return type(f"Agent{version}", (acp.Agent,), {"__init__": begin, **{each.__name__: each for each in methods}})


@dataclass
class Wire:
    """The client's end of the connection, by hand."""

    transport: Any
    answers: dict[Any, Any] = field(default_factory=dict)

    async def send(self, method: str, params: Any = None, **number: Any) -> None:
        """Send a request with this `id`, or a notification."""
        message = {"jsonrpc": "2.0", **number, "method": method, "params": params}
        await self.transport.write(json.dumps(message).encode())

    async def answer(self, number: Any) -> Any:
        """The response to a request; each id has one."""
        while number not in self.answers:
            message = json.loads(await self.transport.read())
            assert message["id"] not in self.answers, "answered twice"
            self.answers[message["id"]] = message
        return self.answers[number]

    async def ask(self, number: Any, method: str, params: Any = None) -> Any:
        """Send a request; its response."""
        await self.send(method, params, id=number)
        return await self.answer(number)


@asynccontextmanager
async def serving(acp: ModuleType, factory: Any) -> AsyncGenerator[Wire, None]:
    """The wire to an agent that is served in the background; afterwards the connection is closed."""
    near, far = acp.memory_transports()
    task = asyncio.create_task(acp.serve_agent(factory, near))
    try:
        yield Wire(far)
    finally:
        await far.close()
        await task


# --- Which version --------------------------------------------------------------------------------------------------

V1_PARAMS = {"clientCapabilities": {"terminal": True}, "clientInfo": INFO}
V2_PARAMS = {"info": INFO, "capabilities": {}}
FORMS = {"of v1": V1_PARAMS, "of v2": V2_PARAMS, "of both": {**V1_PARAMS, **V2_PARAMS}}
NO_VERSION = ["1", None, 1.5, True, -1, 65536, [], {}]


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize(("asked", "chosen"), [(0, 1), (1, 1), (2, 2), (3, 2), (9, 2), (65535, 2)])
def test_the_version_asked_for_or_the_highest_below(
    packages: Packages, form: dict[str, Any], asked: int, chosen: int
) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agents = Agents(acp)
        async with serving(acp, agents.factories()) as wire:
            answer = await wire.ask(0, "initialize", {"protocolVersion": asked, **form})
            if asked == 2 and form is V1_PARAMS:  # what version 2 requires is only forgiven for a later one
                assert answer["error"]["code"] == -32602
                assert (await wire.ask(1, "_open"))["error"]["code"] == -32600
            else:
                assert answer["result"]["protocolVersion"] == chosen
                assert (await wire.ask(1, "_open"))["result"] == chosen
        assert agents.made == [chosen]
        assert agents.heard[-1] == (chosen, "closed")

    run(main())


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("asked", [*NO_VERSION, "absent"])
def test_what_is_no_version_is_an_error_in_the_params(packages: Packages, form: dict[str, Any], asked: Any) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        async with serving(acp, Agents(acp).factories()) as wire:
            params = form if asked == "absent" else {"protocolVersion": asked, **form}
            error = (await wire.ask(0, "initialize", params))["error"]
            assert (error["code"], error["data"]["path"]) == (-32602, "$.protocolVersion")
            assert (await wire.ask(1, "initialize", {"protocolVersion": 1}))["result"]["protocolVersion"] == 1

    run(main())


@pytest.mark.parametrize(("asked", "outcome"), [(1, 1), (2, -32600), (9, -32600)])
def test_null_is_an_id_for_version_1_only(packages: Packages, asked: int, outcome: int) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agents = Agents(acp)
        async with serving(acp, agents.factories()) as wire:
            answer = await wire.ask(None, "initialize", {"protocolVersion": asked, **V2_PARAMS})
            assert outcome_of(answer) == outcome
            assert agents.heard == ([(1, "initialize")] if outcome == 1 else [])
            assert outcome_of(await wire.ask(1, "initialize", {"protocolVersion": 1})) == 1

    run(main())


@pytest.mark.parametrize("params", [None, [], 5])
def test_params_that_are_no_object(packages: Packages, params: Any) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        async with serving(acp, Agents(acp).factories()) as wire:
            assert (await wire.ask(0, "initialize", params))["error"]["code"] == -32602

    run(main())


@pytest.mark.parametrize(("version", "asked", "outcome"), [(1, 0, 1), (1, 2, 1), (2, 3, 2), (2, 1, -32022)])
def test_a_mapping_may_have_fewer_versions_than_the_package(
    packages: Packages, version: int, asked: int, outcome: int
) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agents = Agents(acp)
        async with serving(acp, {version: agents.factories()[version]}) as wire:
            answer = await wire.ask(0, "initialize", {"protocolVersion": asked, **FORMS["of both"]})
            if outcome < 0:
                data = {"requested": asked, "supported": [version]}
                assert (answer["error"]["code"], answer["error"]["data"]) == (outcome, data)
                assert agents.made == []
            else:
                assert answer["result"]["protocolVersion"] == outcome

    run(main())


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_a_package_of_one_version_takes_a_mapping_too(packages: Packages, sources: Any) -> None:
    acp, version = packages(sources), sources.protocol

    class Agent(acp.Agent):
        async def initialize(self, params: Any) -> Any:
            more = {"info": acp.Implementation(name="a", version="1")} if version == 2 else {}
            return acp.InitializeResponse(protocol_version=version, **more)

    async def main() -> None:
        async with serving(acp, {version: Agent}) as wire:
            assert (await wire.ask(0, "_early"))["error"]["code"] == -32600
            answer = await wire.ask(1, "initialize", {"protocolVersion": 9})
            assert answer["result"]["protocolVersion"] == version

    run(main())


# --- Conversations --------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """What an agent of versions 1 and 2 answers: for each request the version that answers, or the code of an error.

    Requests for `initialize` may be held; then they all end at once.
    """

    tentative: int | None = None
    settled: bool = False
    held: dict[int, int] = field(default_factory=dict)
    """The outcome of each running `initialize`, by id."""
    heard: list[tuple[int, str]] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether other messages reach an agent."""
        return self.settled or bool(self.held)

    def other(self, method: str) -> int:
        """The outcome of another request."""
        if not self.is_open or self.tentative is None:
            return -32600
        self.heard.append((self.tentative, method))
        return self.tentative

    def notify(self, method: str) -> None:
        """A notification."""
        if self.is_open and self.tentative is not None:
            self.heard.append((self.tentative, method))

    def initialize(self, number: int, params: dict[str, Any]) -> int | None:
        """The outcome of `initialize`; None while it is held."""
        if self.held and not self.settled:
            return -32600
        outcome = self._outcome(params)
        if outcome > 0 and self._is_held(params):
            self.held[number] = self._end(params, outcome)
            return None
        if outcome > 0:
            outcome = self._end(params, outcome)
        self._settle(outcome)
        return outcome

    def _outcome(self, params: dict[str, Any]) -> int:
        asked = params.get("protocolVersion")
        if type(asked) is not int:
            return -32602
        if not self.is_open:
            self.tentative = LATEST if asked >= LATEST else 1
        assert self.tentative is not None
        if not 0 <= asked < 65536:
            return -32602
        if self.tentative == 2 and asked < 2:
            return -32022
        if self.tentative == 2 and asked == 2 and "info" not in params:
            return -32602
        self.heard.append((self.tentative, "initialize"))
        return self.tentative

    @staticmethod
    def _is_held(params: dict[str, Any]) -> bool:
        return "hold" in params.get("_meta", {})

    @staticmethod
    def _end(params: dict[str, Any], version: int) -> int:
        return {"error": -32000, "crash": -32603}.get(params.get("_meta", {}).get("end"), version)

    def _settle(self, outcome: int) -> None:
        self.settled = self.settled or outcome > 0

    def release(self) -> dict[int, int]:
        """The outcomes of all that was held."""
        outcomes, self.held = self.held, {}
        for outcome in outcomes.values():
            self._settle(outcome)
        return outcomes


def initialize_params(choice: random.Random) -> dict[str, Any]:
    """Params of `initialize`, valid or not."""
    asked = choice.choice([0, 1, 1, 2, 2, 3, 9, 65535, *NO_VERSION])
    plan = choice.choice([{}, {}, {"end": "error"}, {"end": "crash"}])
    hold = {"hold": 1} if choice.random() < 0.3 else {}
    return {"protocolVersion": asked, "_meta": {**plan, **hold}, **choice.choice([{}, *FORMS.values()])}


def outcome_of(answer: Any) -> int:
    """The version that an answer is of, or the code of its error."""
    if "error" in answer:
        return int(answer["error"]["code"])
    result = answer["result"]
    return int(result["protocolVersion"] if isinstance(result, dict) else result)


async def converse(acp: ModuleType, choice: random.Random) -> None:
    """Play a random conversation, and compare each outcome with the model."""
    agents, model = Agents(acp), Model()
    async with serving(acp, agents.factories()) as wire:
        for number in range(choice.randrange(1, 12)):
            kind = choice.choice(["initialize", "initialize", "request", "notification", "release"])
            if kind == "initialize":
                params = initialize_params(choice)
                await wire.send("initialize", params, id=number)
                expected = model.initialize(number, params)
                if expected is not None:
                    assert outcome_of(await wire.answer(number)) == expected, (params, model)
            elif kind == "request":
                assert outcome_of(await wire.ask(number, "_request")) == model.other("_request")
            elif kind == "notification":
                await wire.send("_note")
                await wire.ask(f"fence {number}", "_fence")
                model.notify("_note")
            else:
                await release(agents, wire, model)
        await release(agents, wire, model)
    assert [entry for entry in agents.heard if entry[1] != "closed"] == model.heard
    assert len(agents.made) == len(set(agents.made)) == sum(entry[1] == "closed" for entry in agents.heard)


async def release(agents: Agents, wire: Wire, model: Model) -> None:
    """Let all that is held end."""
    agents.release.set()
    for number, expected in model.release().items():
        assert outcome_of(await wire.answer(number)) == expected
    await asyncio.sleep(0)
    agents.release.clear()


# a hundred conversations each: enough to meet each pair of steps often; more of them are luck
SEEDS = [
    0,
    *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 5)),
    *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(5, 10)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_conversations(packages: Packages, seed: int) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        for part in range(100):
            await converse(acp, random.Random(1000 * seed + part))

    with acp_log(logging.CRITICAL):
        run(main())


# --- Mistakes -------------------------------------------------------------------------------------------------------


def test_a_single_class_serves_its_version_alone(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agents = Agents(acp)
        async with serving(acp, agents.factories()[2]) as wire:
            error = (await wire.ask(0, "initialize", {"protocolVersion": 1}))["error"]
            assert (error["code"], error["data"]["supported"]) == (-32022, [2])
            assert (await wire.ask(1, "initialize", {"protocolVersion": 9}))["result"]["protocolVersion"] == 2

    run(main())


def test_mistakes_in_the_mapping(packages: Packages) -> None:
    acp = packages(V1, V2)
    classes = Agents(acp).factories()

    def serve(factory: Any) -> None:
        run(acp.serve_agent(factory, acp.memory_transports()[0]))

    with pytest.raises(ValueError, match="at least one version"):
        serve({})
    with pytest.raises(ValueError, match="no version 3 of the protocol: it has 1 and 2"):
        serve({3: classes[1]})
    with pytest.raises(TypeError, match="Agent1 does not handle version 2 of the protocol, but 1"):
        serve({2: classes[1]})
    with pytest.raises(TypeError, match=r"name it, as in {2: factory}"):
        serve(partial(classes[1]))


def test_a_factory_that_fails_or_makes_another_version(packages: Packages) -> None:
    acp = packages(V1, V2)
    classes = Agents(acp).factories()

    def failing(client: Any) -> Any:
        raise RuntimeError("no model is configured")

    async def main() -> None:
        async with serving(acp, {1: failing, 2: partial(classes[1])}) as wire:
            for number, asked in enumerate((1, 2)):
                answer = await wire.ask(number, "initialize", {"protocolVersion": asked, "info": INFO})
                assert answer["error"] == {"code": -32603, "message": "Internal error"}

    with acp_log() as records:
        run(main())
    assert "no model is configured" in texts(records)
    assert "Agent1 does not handle version 2" in texts(records)


# --- After an `initialize` that fails -----------------------------------------------------------------------------


def test_a_response_that_cannot_be_sent_chooses_nothing(packages: Packages) -> None:
    acp = packages(V1, V2)

    class Unsendable(acp.v2.Agent):
        async def initialize(self, params: Any) -> Any:
            info = acp.v2.Implementation(name="a", version="1")
            return acp.v2.InitializeResponse(protocol_version=2, info=info, meta={"a set": {1}})

    async def main() -> None:
        async with serving(acp, {1: Agents(acp).factories()[1], 2: Unsendable}) as wire:
            answer = await wire.ask(0, "initialize", {"protocolVersion": 2, "info": INFO})
            assert answer["error"] == {"code": -32603, "message": "Internal error"}
            assert (await wire.ask(1, "_open"))["error"]["code"] == -32600
            assert (await wire.ask(2, "initialize", {"protocolVersion": 1}))["result"]["protocolVersion"] == 1

    with acp_log() as records:
        run(main())
    assert "Unsendable.initialize returned a result that cannot be sent: $._meta['a set']: " in texts(records)


def test_a_second_one_waits_for_its_turn(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        agents = Agents(acp)
        async with serving(acp, agents.factories()) as wire:
            held = {"protocolVersion": 2, "info": INFO, "_meta": {"hold": 1, "end": "error"}}
            await wire.send("initialize", held, id=0)
            error = (await wire.ask(1, "initialize", {"protocolVersion": 1}))["error"]
            assert error == {"code": -32600, "message": "Invalid request: initialize is running"}
            agents.release.set()
            assert (await wire.answer(0))["error"]["code"] == -32000
            assert (await wire.ask(2, "initialize", {"protocolVersion": 1}))["result"]["protocolVersion"] == 1

    run(main())


def test_a_failed_version_leaves_its_rule_for_ids_behind(packages: Packages) -> None:
    acp = packages(V1, V2)

    async def main() -> None:
        async with serving(acp, Agents(acp).factories()) as wire:
            failing = {"protocolVersion": 2, "info": INFO, "_meta": {"end": "error"}}
            assert (await wire.ask(0, "initialize", failing))["error"]["code"] == -32000
            answer = await wire.ask(None, "initialize", {"protocolVersion": 1})
            assert answer["result"]["protocolVersion"] == 1

    run(main())


def test_the_stub_of_a_failed_version_is_closed(packages: Packages) -> None:
    acp = packages(V1, V2)
    made: list[Any] = []

    class Failing(acp.v2.Agent):
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            made.append(client)

        async def initialize(self, params: Any) -> Any:
            raise acp.AuthenticationRequiredError

    async def main() -> None:
        async with serving(acp, {1: Agents(acp).factories()[1], 2: Failing}) as wire:
            await wire.ask(0, "initialize", {"protocolVersion": 2, "info": INFO})
            await wire.ask(1, "initialize", {"protocolVersion": 1})
            [client] = made
            with pytest.raises(acp.ConnectionClosed, match="has another version of the protocol than 2"):
                await client.ext_method("_late", None)
            with pytest.raises(acp.ConnectionClosed, match="another version"):
                await client.ext_notification("_late", None)
            assert not client.supports("session/update")

    run(main())


@pytest.mark.parametrize("sources", [(V1,), (V1, V2)], ids=["v1", "both"])
def test_an_agent_that_echoes_the_version_of_the_client(packages: Packages, sources: tuple[Any, ...]) -> None:
    acp = packages(*sources)
    part = acp if len(sources) == 1 else acp.v1

    class Echo(part.Agent):
        async def initialize(self, params: Any) -> Any:
            return part.InitializeResponse(protocol_version=params.protocol_version)

    async def main() -> None:
        async with serving(acp, {1: Echo}) as wire:
            assert (await wire.ask(0, "initialize", {"protocolVersion": 7}))["result"]["protocolVersion"] == 1

    with acp_log() as records:
        run(main())
    assert "Echo answered initialize with version 7, and handles version 1, which is sent" in texts(records)
