"""Mistakes in extensions: each is reported with its place, and with what was probably meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Outcome, run_acpgen

ROUTED = {"x-method": "_acme/wave", "x-side": "agent"}
CAPABILITY = {"changes": {"AgentCapabilities": {"properties": {"wave": {"type": "boolean"}}}}}


def half(properties: dict[str, Any] | None = None, **keywords: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties or {}, **ROUTED, **keywords}


def build(folder: Path, definitions: dict[str, Any], **more: Any) -> Outcome:
    head = {"fragment": 1, "id": "wave", "revision": "2026-05-01", "title": "Waving", "protocols": [1]}
    fragment = {"status": "vendor", **head, "$defs": definitions, **more}
    (folder / "wave.json").write_text(json.dumps(fragment, indent=2), encoding="utf-8")
    return run_acpgen("build", "--extension", "./wave.json", "--out", "acp", "--no-runtime", cwd=folder)


def test_an_extension_without_mistakes_is_built_without_a_word(tmp_path: Path) -> None:
    gates = {"InitializeResponse": {"_acme/wave": "agentCapabilities.wave"}}
    ran = build(tmp_path, {"WaveRequest": half(), "WaveResponse": half()}, gates=gates, **CAPABILITY)
    assert (ran.code, ran.stderr.count("\n")) == (0, 1)  # the line about what was written


@pytest.mark.parametrize(
    ("definitions", "code", "hint"),
    [
        (
            {"Hands": {"type": "array", "items": {"type": "string"}, "minItmes": 1}},
            "unknown-keyword",
            "did you mean 'minItems'?",
        ),
        (
            {"WaveRequest": {"type": "object", "x-methd": "_acme/wave", "x-side": "agent"}},
            "unknown-x-keyword",
            "did you mean 'x-method'?",
        ),
        ({"Hands": {"type": "string", "x-colour": "red"}}, "unknown-x-keyword", "correct or remove it"),
        ({"Hands": {"$ref": "#/defs/SessionId"}}, "remote-ref", "did you mean '#/$defs/SessionId'?"),
    ],
)
def test_an_unknown_word_is_an_error(tmp_path: Path, definitions: dict[str, Any], code: str, hint: str) -> None:
    ran = build(tmp_path, definitions)
    assert ran.code == 2
    assert f"[{code}]" in ran.stderr
    assert ran.stderr.startswith("wave.json:") or ran.stderr.startswith("./wave.json:")
    assert f"hint: {hint}" in ran.stderr


def test_a_word_in_a_change_is_the_extensions_own(tmp_path: Path) -> None:
    change = {"AgentCapabilities": {"properties": {"wave": {"type": "boolean", "defualt": False}}}}
    ran = build(tmp_path, {}, changes=change)
    assert ran.code == 2
    assert "hint: did you mean 'default'?" in ran.stderr


def test_a_method_of_a_vendor_without_the_mark_of_one_is_a_warning(tmp_path: Path) -> None:
    plain = {"x-method": "acme/wave"}
    ran = build(tmp_path, {"WaveRequest": half(**plain), "WaveResponse": half(**plain)})
    assert ran.code == 0
    assert "warning: 'acme/wave' is a vendor method" in ran.stderr
    assert "name it '_acme/wave'" in ran.stderr


def test_halves_that_both_name_the_sender_are_a_warning(tmp_path: Path) -> None:
    wrong = {"x-side": "client"}
    gates = {"InitializeResponse": {"_acme/wave": "agentCapabilities.wave"}}
    ran = build(tmp_path, {"WaveRequest": half(**wrong), "WaveResponse": half(**wrong)}, gates=gates, **CAPABILITY)
    assert ran.code == 0
    assert "handled by the client, and waits for a capability that the agent announces" in ran.stderr


def test_halves_that_disagree_are_an_error(tmp_path: Path) -> None:
    ran = build(tmp_path, {"WaveRequest": half(), "WaveResponse": half(**{"x-side": "client"})})
    assert ran.code == 2
    assert "[side-clash]" in ran.stderr
