"""What the unstable schemas have and the stable ones of the same date lack, as bundled extensions."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import Severity
from acpgen.ir.model import Enum, Model
from acpgen.schema.bundled import Release, bundled_fragments, find_release, load_facts, load_release
from acpgen.schema.compose import Composed, compose
from acpgen.schema.document import read_document
from acpgen.schema.facts import Facts
from acpgen.schema.fitting import FitResult, fit
from acpgen.schema.fragment import Fragment
from acpgen.schema.walk import referenced_definition, schema_list, schema_map, walk
from tests.published import published
from tests.runtime_support import agent_of, client_of, pair, run
from tests.support import DEEP, Packages, errors_of, model_of, package_files
from tests.test_compose_upstream import unordered, without_prose
from tests.test_upstream_builds import imported

pytestmark = pytest.mark.full

DATE = "2026-11-02"
PROTOCOLS = (1, 2)
EITHER = pytest.mark.parametrize("protocol", PROTOCOLS)

METHODS: dict[str, tuple[tuple[str, ...], str]] = {
    "auth-state": (("auth/status", "auth/status_update"), "auth.status"),
    "mcp-over-acp": (("mcp/message",), "mcp.acp"),
    "plan-operations": ((), ""),
    "providers": (("providers/disable", "providers/list", "providers/set"), "providers"),
    "proxy-chains": ((), ""),
    "session-archive": (("session/archive", "session/unarchive"), "session.archive"),
    "session-fork": (("session/fork",), "session.fork"),
    "session-status": (("session/status",), "session.status"),
    "session-title": (("session/set_title",), "session.title"),
    "subagents": ((), ""),
    "system-prompt": ((), ""),
    "token-usage": ((), ""),
    "unknown-state": ((), ""),
}
"""The methods that each extension brings, and the capability of the agent that opens them."""
PLACES = {
    1: {"session": "agentCapabilities.sessionCapabilities", "mcp": "agentCapabilities.mcpCapabilities"},
    2: {"session": "capabilities.session", "mcp": "capabilities.session.mcp"},
}
"""Where the capabilities of that kind stand in the `initialize` response."""
OTHERS = {1: "agentCapabilities", 2: "capabilities"}
"""Where those of other kinds do."""


def release_of(protocol: int) -> Release:
    return find_release(protocol, DATE)


@cache
def extensions(protocol: int) -> tuple[Fragment, ...]:
    """The extensions in the form of the unstable schema, which has their revision; withdrawn ones have left it."""
    return tuple(
        found for found in bundled_fragments(protocol) if found.revision == DATE and found.status != "withdrawn"
    )


def put(protocol: int, *fragments: Fragment) -> Composed:
    release = release_of(protocol)
    base, facts = load_release(release), load_facts(release)
    return compose(base, fragments, protocol=protocol, release=DATE, facts=facts)


def fine(protocol: int, *fragments: Fragment) -> Composed:
    """The composition, in which nothing is wrong and every reference leads somewhere."""
    composed = put(protocol, *fragments)
    assert errors_of(composed) == []
    definitions = composed.root["$defs"]
    named = {name for _, node in walk(composed.root) if (name := referenced_definition(node)) is not None}
    assert named <= definitions.keys()
    return composed


def sources(protocol: int, *fragments: Fragment) -> SchemaChoice:
    return SchemaChoice(protocol=protocol, release=DATE, extensions=tuple(each.spec for each in fragments))


EACH = pytest.mark.parametrize(
    ("protocol", "extension"),
    [(protocol, each) for protocol in PROTOCOLS for each in extensions(protocol)],
    ids=lambda value: value.id if isinstance(value, Fragment) else f"v{value}",
)


def test_which_extensions_there_are() -> None:
    assert [each.id for each in extensions(2)] == list(METHODS)
    # in protocol 1 states of sessions came with subagents
    assert [each.id for each in extensions(1)] == [name for name in METHODS if name != "unknown-state"]
    assert all(each.status == "landed" for protocol in PROTOCOLS for each in extensions(protocol))


# --- Stable and extensions make unstable --------------------------------------------------------------------------


@cache
def upstream_file(name: str) -> Any:
    """A published schema."""
    return json.loads(published(name).read_text(encoding="utf-8"))


def upstream(protocol: int, kind: str) -> Any:
    return upstream_file(f"v{protocol}/{DATE}/{kind}.json")


def comparable(root: Any) -> dict[str, str]:
    """The definitions as JSON text, to which `1` and `true` differ, without what makes no difference:

    - descriptions: ours are in words of our own;
    - the order of names in objects and of items in lists, of which the one that matters has a test below;
    - the envelopes of JSON-RPC, which have a test below: they list the messages, and acpgen goes by the messages.
    """
    definitions = without_prose(root)["$defs"]
    return {
        name: json.dumps(unordered(node), sort_keys=True)
        for name, node in definitions.items()
        if not node.get("x-docs-ignore")
    }


@EITHER
def test_stable_and_extensions_make_unstable(protocol: int) -> None:
    stable, unstable = (comparable(upstream(protocol, kind)) for kind in ("schema", "schema.unstable"))
    composed = fine(protocol, *extensions(protocol))
    assert composed.diagnostics == ()
    found = comparable(composed.root)
    assert sorted(found) == sorted(unstable)
    assert {name for name in found if found[name] != unstable[name]} == set()
    changed = {name for name in stable if stable[name] != unstable[name]}
    assert len(unstable) > len(stable) + 50
    assert len(changed) >= 10


@EACH
def test_each_is_superseded_by_the_unstable_schema(protocol: int, extension: Fragment) -> None:
    path = published(f"v{protocol}/{DATE}/schema.unstable.json")
    document = read_document(path, label=path.name, origin="unstable")
    known = load_facts(release_of(protocol))
    facts = Facts(gates={**known.gates, **extension.gates}, values={**known.values, **extension.values})
    found = fit(document, extension, protocol=protocol, facts=facts)
    filled_in = {name for each in extensions(protocol) for name, change in each.changes.items() if change.optional}
    if filled_in & extension.definitions.keys():
        # a definition to which another extension adds is a larger one there, and that is said
        assert found.verdict is FitResult.CONFLICTS
        assert "disagree on the definition" in found.reasons[0]
    else:
        assert (found.verdict, len(found.reasons)) == (FitResult.SUPERSEDED, 1)


@EITHER
def test_no_extension_can_be_spared(protocol: int) -> None:
    unstable = comparable(upstream(protocol, "schema.unstable"))
    for left_out in extensions(protocol):
        rest = [each for each in extensions(protocol) if each is not left_out]
        assert comparable(fine(protocol, *rest).root) != unstable, left_out.id


@EITHER
def test_members_for_values_of_the_future_and_those_without_tag_stay_last(protocol: int) -> None:
    """Where no tag decides, members are tried in their order: that order matters, and no other."""
    unstable = upstream(protocol, "schema.unstable")["$defs"]
    composed = fine(protocol, *extensions(protocol)).root["$defs"]
    grown = 0
    for name, key in itertools.product(comparable({"$defs": composed}), ("anyOf", "oneOf")):
        ours, theirs = ([untagged(each) for each in schema_list(root[name], key)] for root in (composed, unstable))
        assert [each for each in ours if each] == [each for each in theirs if each], name
        last = len(list(itertools.takewhile(bool, reversed(theirs))))
        assert ours[len(ours) - last :] == theirs[len(theirs) - last :], name
        grown += bool(last and len(ours) > last)
    assert grown > 10


@EITHER
def test_the_models_are_the_same(protocol: int) -> None:
    """What packages are made of: the one of the unstable schema as published, the other of extensions."""
    path = published(f"v{protocol}/{DATE}/schema.unstable.json")
    theirs, _ = model_of(SchemaChoice(protocol=protocol, schema=path))
    ours = compiled(protocol, *extensions(protocol))
    assert len(ours.definitions) > 250
    assert {each.name: meaning(each) for each in ours.definitions} == {
        each.name: meaning(each) for each in theirs.definitions
    }
    assert {meaning(each) for each in ours.methods} == {meaning(each) for each in theirs.methods}
    assert (meaning(ours.errors), ours.envelope) == (meaning(theirs.errors), theirs.envelope)


WHERE_AND_WHY = {"doc", "pointer", "origin", "gate", "omits_null"}
"""The parts of a model that say in which words and in which file something stands, or that facts beside it decide."""


def meaning(node: Any) -> str:
    """A part of a model as text, whatever the order of its parts."""
    if dataclasses.is_dataclass(node):
        parts = {each.name: getattr(node, each.name) for each in dataclasses.fields(node)}
        texts = sorted(f"{name}={meaning(part)}" for name, part in parts.items() if name not in WHERE_AND_WHY)
        return f"{type(node).__name__}({', '.join(texts)})"
    if isinstance(node, (tuple, list)):
        return f"[{', '.join(sorted(map(meaning, node)))}]"
    return repr(node)


def untagged(member: Any) -> str:
    """A member without a value of its own, as text; nothing for one that has a `const`."""
    has_value = "const" in member or any("const" in each for each in schema_map(member, "properties").values())
    return "" if has_value else json.dumps(unordered(without_prose(member)), sort_keys=True)


@EITHER
def test_the_envelopes_gain_the_messages_of_the_extensions_and_nothing_else(protocol: int) -> None:
    stable, unstable = (mentioned_in_envelopes(upstream(protocol, kind)) for kind in ("schema", "schema.unstable"))
    messages = {name for each in extensions(protocol) for name, node in each.definitions.items() if "x-method" in node}
    assert unstable - stable == messages
    assert stable <= unstable


def mentioned_in_envelopes(root: Any) -> set[str]:
    envelopes = [node for node in root["$defs"].values() if node.get("x-docs-ignore")]
    mentioned = {referenced_definition(node) for envelope in envelopes for _, node in walk(envelope)}
    return {name for name in mentioned if name is not None}


@EACH
def test_everything_is_described_that_upstream_describes(protocol: int, extension: Fragment) -> None:
    described_alike(extension, upstream(protocol, "schema.unstable")["$defs"])


def described_alike(extension: Fragment, unstable: Any) -> None:
    """Fail where an extension lacks a description that the definitions of upstream have."""
    for name, definition in extension.definitions.items():
        theirs = dict(walk(unstable[name]))
        for pointer, node in walk(definition):
            if isinstance(node, dict):
                assert ("description" in node) == ("description" in theirs[pointer]), (name, pointer)
    for change in extension.changes.values():
        assert all(node.get("description") for node in change.added)


# --- In any combination -------------------------------------------------------------------------------------------


@EITHER
def test_in_any_order(protocol: int) -> None:
    expected = fine(protocol, *extensions(protocol))
    generator = random.Random(0)
    for _ in range(20 if DEEP else 3):
        shuffled = generator.sample(extensions(protocol), k=len(extensions(protocol)))
        found = fine(protocol, *shuffled)
        assert json.dumps(found.root) == json.dumps(expected.root)
        assert found.facts == expected.facts


def some_combinations(protocol: int) -> Iterator[list[Fragment]]:
    """Every pair, and larger ones at random."""
    known, generator = extensions(protocol), random.Random(0)
    yield from (list(pair) for pair in itertools.combinations(known, 2))
    yield from (generator.sample(known, k=generator.randrange(3, len(known))) for _ in range(50 if DEEP else 5))


@EITHER
def test_in_any_combination(protocol: int) -> None:
    """Each leaves the definitions of the others and those of the base as they are, but for what it adds."""
    for chosen in some_combinations(protocol):
        composed = fine(protocol, *chosen)
        assert {found.code for found in composed.diagnostics} <= {"left-out"}
        brought = {name for each in chosen for name in each.definitions}
        assert composed.root["$defs"].keys() == load_release(release_of(protocol)).root["$defs"].keys() | brought


def test_the_one_fills_in_what_the_other_brings() -> None:
    """Some properties need two extensions: the one that has the type, and the one that has the definition."""
    crossings = [
        (1, "session-fork", "system-prompt"),
        (1, "subagents", "token-usage"),
        (2, "session-fork", "system-prompt"),
    ]
    found = [
        (protocol, other.id, each.id)
        for protocol in PROTOCOLS
        for each, other in itertools.permutations(extensions(protocol), 2)
        if any(change.optional and name in other.definitions for name, change in each.changes.items())
    ]
    assert found == crossings
    for protocol, one, other in crossings:
        by_id = {each.id: each for each in extensions(protocol)}
        apart = {each: fine(protocol, by_id[each]) for each in (one, other)}
        together = fine(protocol, by_id[one], by_id[other])
        assert [len(each.diagnostics) for each in (apart[one], apart[other], together)] == [0, 1, 0]
        (name,) = (name for name, change in by_id[other].changes.items() if change.optional)
        assert name not in apart[other].root["$defs"]
        (gained,) = (
            together.root["$defs"][name]["properties"].keys() - apart[one].root["$defs"][name]["properties"].keys()
        )
        assert together.origin(f"/$defs/{name}/properties/{gained}") == by_id[other].origin


# --- As packages --------------------------------------------------------------------------------------------------


def compiled(protocol: int, *fragments: Fragment) -> Model:
    return _compiled(sources(protocol, *fragments))


@cache
def _compiled(chosen: SchemaChoice) -> Model:
    """The model, of which nothing has to be said."""
    model, diagnostics = model_of(chosen)
    assert [found.code for found in diagnostics if found.severity is not Severity.NOTE] == []
    return model


@EACH
def test_each_brings_its_methods_with_their_gates(protocol: int, extension: Fragment) -> None:
    known = {method.wire for method in compiled(protocol).methods}
    new = {method.wire for method in compiled(protocol, extension).methods} - known
    wires, capability = METHODS[extension.id]
    assert new == set(wires)
    kind, _, name = capability.partition(".")
    place = PLACES[protocol].get(kind)
    path = f"{place}.{name}" if place else f"{OTHERS[protocol]}.{capability}"
    gates = fine(protocol, extension).facts.gates
    assert {wire: str(gates[wire]) for wire in new} == dict.fromkeys(wires, f"{path} of InitializeResponse")
    assert gates.keys() - load_facts(release_of(protocol)).gates.keys() == new


@pytest.mark.deep
@EACH
def test_each_alone_makes_a_package(protocol: int, extension: Fragment, tmp_path: Path) -> None:
    name = f"unstable_{extension.id.replace('-', '_')}_{protocol}"
    with imported(package_files(sources(protocol, extension)), tmp_path / name) as package:
        assert all(hasattr(package, each) for each in package.__all__)
        names = {each.name for each in compiled(protocol, extension).definitions}
        new = names - {each.name for each in compiled(protocol).definitions}
        assert new
        assert new <= set(package.__all__)


@EITHER
def test_all_of_them_make_a_package_in_which_everything_is_described(protocol: int, tmp_path: Path) -> None:
    model = compiled(protocol, *extensions(protocol))
    assert [each.name for each in model.definitions if not each.doc] == []
    assert [method.wire for method in model.methods if not method.doc] == []
    members = [(each.name, member) for each in model.definitions if isinstance(each, Enum) for member in each.members]
    assert [(name, member.value) for name, member in members if not member.doc] == []
    files = package_files(sources(protocol, *extensions(protocol)))
    with imported(files, tmp_path / f"unstable_all_{protocol}") as package:
        handled = package.Agent.REQUESTS.keys() | package.Agent.NOTIFICATIONS.keys()
        handled |= package.Client.REQUESTS.keys() | package.Client.NOTIFICATIONS.keys()
        assert {wire for wires, _ in METHODS.values() for wire in wires} <= handled


@EITHER
def test_a_fork_with_a_prompt_reaches_a_server_of_the_client(packages: Packages, protocol: int) -> None:
    """Three extensions in one exchange; `mcp/message` is a request one way, and a notification the other."""
    acp = packages(sources(protocol, *extensions(protocol)))
    seen: list[str] = []

    async def initialize(self: Any, params: Any) -> Any:
        told = acp.decode(acp.InitializeResponse, {"protocolVersion": protocol, "info": INFO, **CAPABILITIES[protocol]})
        return acp.advertise(type(self), told)

    async def fork(self: Any, params: Any) -> Any:
        seen.append(params.system_prompt.mode)
        request = acp.MessageMcpRequest(server_id="files", request_id="1", method="tools/list")
        answer = await self.client.mcp_message(request)
        assert answer == acp.MessageMcpResponseResult(result=None)
        return acp.ForkSessionResponse(session_id="copy")

    async def on_mcp_notification(self: Any, params: Any) -> None:
        seen.append(params.method)

    async def on_mcp_request(self: Any, params: Any) -> Any:
        news = acp.MessageMcpNotification(server_id=params.server_id, request_id="1", method="notifications/progress")
        await self.agent.mcp_message_notification(news)
        return acp.MessageMcpResponseResult(result=None)

    handlers = {"session_fork": fork, "mcp_message_notification": on_mcp_notification}
    agent, client = agent_of(acp, initialize=initialize, **handlers), client_of(acp, mcp_message=on_mcp_request)
    prompt = acp.SystemPrompt(mode="append", content=[acp.ContentBlockText(text="Be brief.")])
    request = acp.ForkSessionRequest(session_id="first", cwd="/", mcp_servers=[], system_prompt=prompt)

    async def main() -> str:
        async with pair(acp, agent, client) as both:
            with pytest.raises(acp.CapabilityError, match="session/fork"):
                await both.agent.session_fork(request)
            hello = {"protocolVersion": protocol, "info": INFO, "capabilities": {}}
            await both.agent.initialize(acp.decode(acp.InitializeRequest, hello))
            assert both.agent.supports("session/fork")
            assert not both.agent.supports("session/archive")
            forked = await both.agent.session_fork(request)
            return str(forked.session_id)

    assert run(main()) == "copy"
    assert seen == ["append", "notifications/progress"]


INFO = {"name": "test", "version": "1"}
CAPABILITIES: dict[int, dict[str, Any]] = {
    1: {"agentCapabilities": {"sessionCapabilities": {"systemPrompt": {}}}},
    2: {"capabilities": {"session": {"systemPrompt": {}}}},
}
