"""Gates against schemas: small ones for each rule, and the bundled facts against the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.diagnostics import Report
from acpgen.schema.data import data_folder
from acpgen.schema.gates import Gate, check_gates, gated_twice, read_gates
from tests.published import published

pytestmark = pytest.mark.every_python

ROOT: dict[str, Any] = {
    "$defs": {
        "InitializeResponse": {
            "properties": {
                "capabilities": {"allOf": [{"$ref": "#/$defs/Capabilities"}], "default": {}},
                "methods": {"type": "array", "items": {}},
                "version": {"type": "integer"},
            }
        },
        "Capabilities": {
            "type": "object",
            "properties": {
                "wave": {"type": ["boolean", "null"]},
                "session": {"anyOf": [{"$ref": "#/$defs/Session"}, {"type": "null"}]},
                "lost": {"$ref": "#/$defs/Nowhere"},
            },
        },
        "Session": {"type": "object", "properties": {"bow": {"anyOf": [{"$ref": "#/$defs/Empty"}, {"type": "null"}]}}},
        "Empty": {"type": "object"},
        "WaveRequest": {"type": "object", "x-method": "wave"},
    }
}


def findings(*paths: str, root: str = "InitializeResponse", method: str = "wave") -> list[tuple[str, str | None]]:
    report = Report()
    check_gates(ROOT, {method: Gate(root, tuple(tuple(path.split(".")) for path in paths))}, report)
    return [(found.code, found.hint) for found in report.found]


@pytest.mark.parametrize("path", ["capabilities.wave", "capabilities.session", "capabilities.session.bow", "methods"])
def test_a_gate_may_be_a_boolean_an_object_or_an_array(path: str) -> None:
    assert findings(path) == []


def test_a_gate_that_leads_nowhere_is_an_error_at_the_place_where_it_fails() -> None:
    report = Report()
    check_gates(ROOT, {"wave": Gate("InitializeResponse", (("capabilities", "sesion", "bow"),))}, report)
    (found,) = report.errors
    assert (found.code, found.hint) == ("gate-path", "did you mean 'session'?")
    assert found.pointer == "/$defs/InitializeResponse/properties/capabilities"
    assert "'wave'" in found.message
    assert "capabilities.sesion.bow" in found.message


def test_each_kind_of_broken_gate_has_its_code() -> None:
    assert findings("version") == [("gate-leaf", "a gate is a boolean, an object or an array")]
    assert [code for code, _ in findings("capabilities.lost")] == ["gate-leaf"]
    assert [code for code, _ in findings("methods", root="Nothing")] == ["gate-root"]
    assert findings("methods", method="wav") == [("gate-method", "did you mean 'wave'?")]
    assert [code for code, _ in findings("methods", "no", "version")] == ["gate-path", "gate-leaf"]
    assert findings("methods.x") == [("gate-path", "there are: none")]


def test_a_gate_of_a_fragment_is_reported_where_the_fragment_states_it() -> None:
    report = Report()
    check_gates(ROOT, read_gates({"InitializeResponse": {"wave": "no"}}, section="gates"), report)
    assert [found.pointer for found in report.found] == ["/gates/InitializeResponse/wave"]


def test_reading_gates() -> None:
    gates = read_gates({"R": {"a/b": ["z", "x.y"], "c": "x"}, "S": {"d": "x"}})
    assert gates == {"a/b": Gate("R", (("x", "y"), ("z",))), "c": Gate("R", (("x",),)), "d": Gate("S", (("x",),))}
    assert gates == read_gates({"S": {"d": "x"}, "R": {"a/b": ["x.y", "z"], "c": "x"}})
    assert str(gates["a/b"]) == "x.y or z of R"
    assert gated_twice({"R": {"a": "x", "b": "x"}, "S": {"b": "x"}}) == [("S", "b")]


FACTS = sorted(data_folder().glob("schema/v*/*/facts.json"))


@pytest.mark.parametrize("path", FACTS, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_bundled_facts_hold_in_the_schema_of_their_release(path: Path) -> None:
    facts = json.loads(path.read_text())
    assert path.parts[-3:-1] == (f"v{facts['protocol']}", facts["release"])
    assert gated_twice(facts["gates"]) == []
    root = json.loads(published(f"v{facts['protocol']}/{facts['release']}/schema.json").read_text())
    report = Report()
    check_gates(root, read_gates(facts["gates"]), report)
    assert report.found == []


@pytest.mark.parametrize(
    ("release", "baseline"),
    [
        ("v1/0.10.8", "initialize session/cancel session/new session/prompt session/request_permission"
         " session/set_config_option session/set_mode session/update"),
        ("v1/2026-11-02", "$/cancel_request initialize session/cancel session/new session/prompt"
         " session/request_permission session/set_config_option session/set_mode session/update"),
        ("v2/2026-11-02", "$/cancel_request initialize session/request_permission session/set_config_option"
         " session/update terminal/cancel tool_call/cancel"),
    ],
)  # fmt: skip
def test_only_methods_that_need_no_capability_have_no_gate(release: str, baseline: str) -> None:
    definitions = json.loads(published(f"{release}/schema.json").read_text())["$defs"].values()
    gates = read_gates(json.loads((data_folder() / "schema" / release / "facts.json").read_text())["gates"])
    methods = {node["x-method"] for node in definitions if "x-method" in node}
    assert sorted(methods - gates.keys()) == baseline.split()
