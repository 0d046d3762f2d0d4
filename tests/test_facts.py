"""The facts about releases: checked against schemas, and applied to schema files of the user's own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError, Severity
from acpgen.schema.bundled import list_releases, load_facts, load_release, newest_release
from acpgen.schema.data import data_folder
from acpgen.schema.facts import IntroductionFacts, NegotiationFacts, UnsupportedFacts, fitting_facts, read_facts
from acpgen.schema.session_facts import SessionFacts, TaskFacts, TurnFacts, Updates
from tests.command_line import build_package, run_acpgen
from tests.published import published
from tests.support import Packages, model_of

Node = dict[str, Any]
NEWEST = {protocol: newest_release(protocol) for protocol in (1, 2)}


def raw_schema(protocol: int) -> Node:
    release = NEWEST[protocol]
    assert release is not None
    return load_release(release).root


def own(folder: Path, root: Node) -> Path:
    path = folder / "own.json"
    path.write_text(json.dumps(root, indent=4), encoding="utf-8")
    return path


def gated(*arguments: str | Path, cwd: Path) -> dict[str, str | None]:
    """The capability of each method, as `acpgen methods` has it."""
    ran = run_acpgen("methods", "--role", "both", "--format", "json", *arguments, cwd=cwd)
    assert ran.code == 0, ran.stderr
    return {row["method"]: row["capability"] for row in json.loads(ran.stdout)}


@pytest.mark.parametrize(("protocol", "gates", "methods"), [(1, 16, 25), (2, 11, 18)])
def test_a_copy_of_a_bundled_schema_has_its_gates(tmp_path: Path, protocol: int, gates: int, methods: int) -> None:
    path = own(tmp_path, raw_schema(protocol))
    of_copy = gated("--schema", path, "--protocol", str(protocol), cwd=tmp_path)
    assert of_copy == gated("--protocol", str(protocol), cwd=tmp_path)
    assert (len([gate for gate in of_copy.values() if gate]), len(of_copy)) == (gates, methods)
    copied, bundled = (model_of(SchemaChoice(schema=each, protocol=protocol))[0] for each in (path, None))
    assert copied.negotiation == bundled.negotiation
    assert copied.gated_values == bundled.gated_values != ()
    assert copied.sessions == bundled.sessions is not None


@pytest.mark.parametrize(("protocol", "gates", "methods"), [(1, 16, 25), (2, 11, 18)])
def test_so_has_the_official_file(tmp_path: Path, protocol: int, gates: int, methods: int) -> None:
    path = published(f"v{protocol}/2026-11-02/schema.json")
    found = gated("--schema", path, "--protocol", str(protocol), cwd=tmp_path)
    assert (len([gate for gate in found.values() if gate]), len(found)) == (gates, methods)


def test_a_comparison_with_a_copy_finds_no_gates_that_are_gone(tmp_path: Path) -> None:
    own(tmp_path, raw_schema(1))
    ran = run_acpgen("diff", "v1/2026-11-02", "own.json", "--all", "--format", "json", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    assert "gate" not in ran.stdout


def test_a_path_that_is_not_there_leaves_its_methods_without_a_gate(tmp_path: Path) -> None:
    root = deepcopy(raw_schema(1))
    del root["$defs"]["SessionCapabilities"]["properties"]["list"]
    del root["$defs"]["ElicitationCapabilities"]["properties"]["url"]
    path = own(tmp_path, root)
    found = gated("--schema", path, cwd=tmp_path)
    assert found["session/list"] is None
    assert found["elicitation/create"] == "clientCapabilities.elicitation.form of InitializeRequest"
    _, diagnostics = model_of(SchemaChoice(schema=path))
    (note,) = [found for found in diagnostics if found.code == "no-gate"]
    assert note.severity is Severity.NOTE
    assert note.message.endswith(": elicitation/complete, session/list, 'url' in CreateElicitationRequest")


@pytest.mark.full
def test_the_note_is_shown_with_verbose(tmp_path: Path) -> None:
    root = deepcopy(raw_schema(1))
    del root["$defs"]["SessionCapabilities"]["properties"]["list"]
    path = own(tmp_path, root)
    arguments = ("build", "--schema", path, "--out", tmp_path / "acp", "--dry-run")
    assert "no gate" not in run_acpgen(*arguments, cwd=tmp_path).stderr
    assert "they are sent without a check" in run_acpgen(*arguments, "--verbose", cwd=tmp_path).stderr


def test_methods_of_ones_own_are_no_news(tmp_path: Path) -> None:
    small = {"$defs": {"WaveNotification": {"type": "object", "x-side": "agent", "x-method": "_wave"}}}
    _, diagnostics = model_of(SchemaChoice(schema=own(tmp_path, small)))
    assert diagnostics == ()


@pytest.mark.full
@pytest.mark.parametrize("method", [None, 1, ["a"], {}])
def test_a_method_that_is_no_string_is_an_error_at_its_place(tmp_path: Path, method: Any) -> None:
    root = deepcopy(raw_schema(1))
    root["$defs"]["PromptRequest"]["x-method"] = method
    with pytest.raises(InputError) as caught:
        model_of(SchemaChoice(schema=own(tmp_path, root)))
    assert [(found.code, found.pointer) for found in caught.value.diagnostics] == [
        ("bad-schema", "/$defs/PromptRequest/x-method")
    ]


def test_the_manifest_knows_the_facts(tmp_path: Path) -> None:
    path = own(tmp_path, raw_schema(1))
    lock = json.loads((build_package(tmp_path / "acp", "--schema", path) / "acpgen.lock").read_text())
    bundled = json.loads((build_package(tmp_path / "bundled") / "acpgen.lock").read_text())
    assert lock["schema"]["facts_sha256"] == bundled["schema"]["facts_sha256"]


def test_a_protocol_of_which_nothing_is_known(tmp_path: Path) -> None:
    model, _ = model_of(SchemaChoice(schema=own(tmp_path, raw_schema(1)), protocol=7))
    assert model.negotiation is None
    assert model.sessions is None
    assert {method.gate for method in model.methods} == {None}
    assert model.gated_values == ()


# --- What is negotiated ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", list_releases(), ids=lambda release: release.label)
def test_bundled_negotiations_hold_in_the_schema_of_their_release(release: Any) -> None:
    facts = load_facts(release)
    assert facts.negotiation is not None
    assert fitting_facts(load_release(release).root, facts).negotiation == facts.negotiation


def test_the_model_has_it_and_the_package_the_least_that_must_be_there(packages: Packages) -> None:
    model = model_of(SchemaChoice(protocol=2))[0]
    assert model.negotiation == NegotiationFacts(
        method="initialize",
        version="protocolVersion",
        params=IntroductionFacts(capabilities="capabilities", info="info"),
        result=IntroductionFacts(capabilities="capabilities", info="info"),
        unsupported=UnsupportedFacts(
            code=-32022,
            data="UnsupportedProtocolVersionErrorData",
            requested="requested",
            supported="supported",
        ),
    )
    record = packages(SchemaChoice(protocol=2)).methods.PROTOCOL_INFO.negotiation
    assert record.least == {"info": {"name": "", "version": ""}}
    assert vars(record.unsupported) == {"code": -32022, "requested": "requested", "supported": "supported"}


def test_the_least_values_of_every_type_can_be_read(tmp_path: Path) -> None:
    root = deepcopy(raw_schema(1))
    request = root["$defs"]["InitializeRequest"]
    types = {
        "text": {"type": "string", "minLength": 2},
        "whole": {"type": "integer", "minimum": 2.5},
        "below": {"type": "integer", "maximum": -4},
        "part": {"type": "number", "minimum": 0.5},
        "yes": {"type": "boolean"},
        "list": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/ContentBlock"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "maybe": {"type": ["string", "null"]},
        "any": {},
        "one": {"const": "this"},
        "reason": {"$ref": "#/$defs/StopReason"},
        "block": {"$ref": "#/$defs/ContentBlock"},
        "resource": {"$ref": "#/$defs/EmbeddedResourceResource"},
        "session": {"$ref": "#/$defs/SessionId"},
    }
    request["properties"] |= types
    request["required"] = [*request["required"], *types]
    package = build_package(tmp_path / "least_acp", "--schema", own(tmp_path, root))
    script = "import json, least_acp as acp; n = acp.methods.PROTOCOL_INFO.negotiation; " + (
        "acp.decode(acp.InitializeRequest, {'protocolVersion': 1, **n.least}); print(json.dumps(n.least))"
    )
    least = json.loads(python(script, cwd=package.parent))
    assert least.keys() == types.keys()
    assert (least["whole"], least["below"], least["part"], least["one"]) == (3, -4, 0.5, "this")


CHILD = {"$ref": "#/$defs/Child"}


@pytest.mark.full
@pytest.mark.parametrize(
    "child",
    [
        {"type": "string", "minLength": 10**13},
        {"type": "array", "minItems": 10**12, "items": {"type": "integer"}},
        {"type": "array", "minItems": 100, "items": {"type": "array", "minItems": 100, "items": {"type": "integer"}}},
        {"type": "object", "properties": {"child": CHILD}, "required": ["child"]},
        {"type": "object", "properties": {"a": {**CHILD}, "b": {**CHILD}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 1, "items": CHILD}}, "required": ["a"]},
    ],
    ids=["text", "array", "array of arrays", "no end", "no two ends", "array without end"],
)
def test_a_property_without_a_small_value_has_none(tmp_path: Path, child: Node) -> None:
    root = deepcopy(raw_schema(1))
    root["$defs"]["Child"] = child
    root["$defs"]["InitializeRequest"]["properties"] |= {"child": CHILD, "few": {"type": "boolean"}}
    root["$defs"]["InitializeRequest"]["required"] += ["child", "few"]
    package = build_package(tmp_path / "bounded_acp", "--schema", own(tmp_path, root))
    script = "from bounded_acp.methods import PROTOCOL_INFO; print(PROTOCOL_INFO.negotiation.least)"
    assert python(script, cwd=package.parent) == "{'few': False}\n"


def python(script: str, *, cwd: Path) -> str:
    """What a program prints that imports packages from `cwd`."""
    return subprocess.run([sys.executable, "-c", script], cwd=cwd, check=True, capture_output=True, text=True).stdout


def without_request(root: Node) -> None:
    del root["$defs"]["InitializeRequest"]["x-method"]


def without_version(root: Node) -> None:
    del root["$defs"]["InitializeRequest"]["properties"]["protocolVersion"]


def with_text_as_version(root: Node) -> None:
    root["$defs"]["InitializeRequest"]["properties"]["protocolVersion"] = {"type": "string"}


def without_data(root: Node) -> None:
    del root["$defs"]["UnsupportedProtocolVersionErrorData"]


def without_supported(root: Node) -> None:
    del root["$defs"]["UnsupportedProtocolVersionErrorData"]["properties"]["supported"]


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        (without_request, False),
        (without_version, False),
        (with_text_as_version, False),
        (without_data, True),
        (without_supported, True),
    ],
)
def test_what_the_schema_lacks_is_left_out(change: Callable[[Node], None], *, fits: bool) -> None:
    """Of a file of the user's own, the rest is taken."""
    root = deepcopy(raw_schema(2))
    change(root)
    stated = json.loads((data_folder() / "schema/v2/2026-11-02/facts.json").read_text())["negotiation"]
    found = fitting_facts(root, read_facts({"negotiation": stated})).negotiation
    assert (found is not None and found.unsupported is None) is fits


# --- Sessions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", list_releases(), ids=lambda release: release.label)
def test_bundled_sessions_hold_in_the_schema_of_their_release(release: Any) -> None:
    facts = load_facts(release)
    assert facts.sessions is not None
    assert fitting_facts(load_release(release).root, facts).sessions == facts.sessions


def test_bundled_sessions_of_all_versions_agree() -> None:
    """A message over HTTP does not say its version: its method says whether its connection knows the session."""
    known = [sessions for release in list_releases() if (sessions := load_facts(release).sessions)]
    assert len({each.key for each in known}) == 1
    assert {method for each in known for method in each.attach}.isdisjoint(
        method for each in known for method in each.scoped
    )


@pytest.mark.parametrize("release", list_releases(), ids=lambda release: release.label)
def test_bundled_sessions_name_every_method_with_the_id_of_a_session(release: Any) -> None:
    root, sessions = load_release(release).root, load_facts(release).sessions
    assert sessions is not None
    stated = {
        node["x-method"]
        for name, node in root["$defs"].items()
        if node.get("x-side") == "agent" and "Response" not in name and sessions.key in node.get("required", ())
    }
    assert stated == {method for part, method in sessions.uses() if part != "open"}


def test_a_file_keeps_the_methods_of_sessions_that_it_has(tmp_path: Path) -> None:
    model, _ = model_of(SchemaChoice(schema=published("v1/0.10.8/schema.json")))
    assert model.sessions == SessionFacts(
        key="sessionId",
        open=("session/new",),
        attach=("session/load",),
        scoped=("session/prompt", "session/cancel", "session/set_mode", "session/set_config_option"),
        end=(),
        updates=Updates(
            method="session/update",
            property="update",
            turn=TurnFacts(
                request="session/prompt",
                cancel="session/cancel",
                tags=("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"),
            ),
            tasks=TaskFacts(id="toolCallId", status="status", ended=("completed", "failed")),
        ),
    )


def test_a_file_without_any_of_them_has_no_sessions(tmp_path: Path) -> None:
    small = {"$defs": {"WaveNotification": {"type": "object", "x-side": "agent", "x-method": "_wave"}}}
    model, _ = model_of(SchemaChoice(schema=own(tmp_path, small)))
    assert model.sessions is None


def without_method(root: Node) -> None:
    del root["$defs"]["PromptRequest"]["x-method"]


def handled_by_the_client(root: Node) -> None:
    root["$defs"]["PromptRequest"]["x-side"] = "client"


def without_result(root: Node) -> None:
    del root["$defs"]["NewSessionResponse"]["x-method"]


def without_new_id(root: Node) -> None:
    del root["$defs"]["NewSessionResponse"]["properties"]["sessionId"]


def with_a_number_as_id(root: Node) -> None:
    root["$defs"]["PromptRequest"]["properties"]["sessionId"] = {"type": "integer"}


def as_a_notification(root: Node) -> None:
    root["$defs"]["NewSessionNotification"] = root["$defs"].pop("NewSessionRequest")


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (without_method, ("scoped", "session/prompt")),
        (handled_by_the_client, ("scoped", "session/prompt")),
        (with_a_number_as_id, ("scoped", "session/prompt")),
        (without_result, ("open", "session/new")),
        (without_new_id, ("open", "session/new")),
        (as_a_notification, ("open", "session/new")),
    ],
)
def test_a_method_that_the_schema_lacks_is_left_out(change: Callable[[Node], None], lost: tuple[str, str]) -> None:
    """Of a file of the user's own, the other methods are taken."""
    root = deepcopy(raw_schema(2))
    change(root)
    facts = read_facts(json.loads((data_folder() / "schema/v2/2026-11-02/facts.json").read_text()))
    assert facts.sessions is not None
    kept = fitting_facts(root, facts).sessions
    assert kept is not None
    assert [each for each in facts.sessions.uses() if each not in kept.uses()] == [lost]


def with_other_updates(root: Node) -> None:
    root["$defs"]["SessionNotification"]["x-method"] = "session/other"


def with_a_text_as_update(root: Node) -> None:
    root["$defs"]["SessionNotification"]["properties"]["update"] = {"type": "string"}


def without_tag(root: Node) -> None:
    members = root["$defs"]["SessionUpdate"]["oneOf"]
    members[:] = [each for each in members if each["properties"]["sessionUpdate"]["const"] != "plan"]


def with_a_property_of_any_value(root: Node) -> None:
    root["$defs"]["SessionInfoUpdate"]["properties"]["title"] = True


def with_a_list_as_constant(root: Node) -> None:
    root["$defs"]["SessionInfoUpdate"]["properties"]["title"] = {"const": ["a"]}


def without_status(root: Node) -> None:
    for name in ("ToolCall", "ToolCallUpdate"):
        del root["$defs"][name]["properties"]["status"]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (with_other_updates, None),
        (with_a_text_as_update, None),
        (without_method, (0, True)),
        (without_tag, (4, True)),
        (without_status, (5, False)),
        (with_a_property_of_any_value, (5, True)),
        (with_a_list_as_constant, (5, True)),
    ],
)
def test_an_update_that_the_schema_lacks_is_left_out(
    change: Callable[[Node], None], kept: tuple[int, bool] | None
) -> None:
    """What is left for a file of the user's own: tags of updates in a turn, and whether tasks can be followed."""
    root = deepcopy(raw_schema(1))
    facts = read_facts(json.loads((data_folder() / "schema/v1/2026-11-02/facts.json").read_text()))
    change(root)
    sessions = fitting_facts(root, facts).sessions
    assert sessions is not None
    found = sessions.updates
    assert (found and (len(found.turn.tags) if found.turn else 0, found.tasks is not None)) == kept


def test_a_fragment_that_takes_a_session_method_away_is_an_error(tmp_path: Path) -> None:
    root = deepcopy(raw_schema(2))["$defs"]["CancelTerminalRequest"]
    fragment = {
        "fragment": 1,
        "id": "other-id",
        "revision": "2026-01-01",
        "title": "Sessions with numbers",
        "rfd": None,
        "status": "vendor",
        "protocols": [2],
        "changes": {
            "CancelTerminalRequest": {
                "replace": {
                    "expect": root,
                    "with": {**root, "properties": {**root["properties"], "sessionId": {"type": "integer"}}},
                }
            }
        },
    }
    (tmp_path / "other.json").write_text(json.dumps(fragment), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        model_of(SchemaChoice(protocol=2, extensions=(str(tmp_path / "other.json"),)))
    assert [found.code for found in caught.value.diagnostics] == ["facts-lost"]
    assert "sessions" in str(caught.value)
