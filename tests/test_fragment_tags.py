"""Union members that a fragment adds: where all others have a tag, a new one has it, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Outcome, run_acpgen
from tests.support import schema_of

TAG = {"type": "string", "const": "done"}
DONE = {"type": "integer"}


def member(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"title": "done", "type": "object", "properties": properties, "required": list(required), **more}


def update(tag: str) -> dict[str, Any]:
    kind = {"type": "string", "const": tag}
    return {"title": tag, "type": "object", "properties": {"kind": kind}, "required": ["kind"]}


OTHER = {
    "title": "other",
    "type": "object",
    "properties": {"kind": {"type": "string"}},
    "required": ["kind"],
    "not": {"anyOf": [{"properties": {"kind": {"const": each}}, "required": ["kind"]} for each in ("a", "b")]},
}
BARE = {"title": "bare", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def composed(folder: Path, union: list[Any], added: dict[str, Any], **definitions: Any) -> Outcome:
    schema = schema_of(
        Update={"oneOf": union}, Holder={"type": "object", "properties": {"u": {"$ref": "#/$defs/Update"}}}
    )
    fragment = {
        "fragment": 1,
        "id": "x",
        "revision": "1",
        "title": "t",
        "status": "vendor",
        "protocols": [1],
        "$defs": definitions,
        "changes": {"Update": {"members": [added]}},
    }
    (folder / "schema.json").write_text(json.dumps(schema))
    (folder / "x.json").write_text(json.dumps(fragment, indent=1))
    return run_acpgen("build", "--schema", "schema.json", "-e", "./x.json", "--out", "acp", cwd=folder)


UNIONS = pytest.mark.parametrize(
    "others",
    [[update("a"), update("b")], [update("a"), update("b"), OTHER], [update("a"), update("b"), {"type": "null"}]],
    ids=["tagged", "other", "null"],
)


@UNIONS
@pytest.mark.parametrize(
    "added",
    [
        member({"kind": TAG, "done": DONE}, "done"),
        member({"done": DONE}, "done"),
        member({"kind": {"type": "string"}, "done": DONE}, "done"),
        member({"kind": {"enum": ["done", "gone"]}, "done": DONE}, "kind", "done"),
        member({"kind": {"type": "integer", "const": 1}, "done": DONE}, "kind", "done"),
        {"title": "text", "type": "string"},
        {"$ref": "#/$defs/Done"},
        {"title": "done", "allOf": [{"$ref": "#/$defs/Done"}]},
    ],
)
def test_a_member_without_the_tag_is_refused_at_its_place(tmp_path: Path, others: list[Any], added: Any) -> None:
    ran = composed(tmp_path, others, added, Done=member({"kind": TAG, "done": DONE}, "done"))
    assert ran.code == 2
    first, *rest = ran.stderr.splitlines()
    assert first.startswith("./x.json:")
    assert first.endswith("require the property 'kind', each with a constant [fragment-untagged]")
    assert "  at /changes/Update/members/0" in rest
    assert any(line.startswith('  hint: add "kind"') for line in rest)


@UNIONS
@pytest.mark.parametrize(
    "added",
    [
        member({"kind": TAG, "done": DONE}, "kind"),
        member({"kind": TAG}, "kind", allOf=[{"$ref": "#/$defs/Done"}]),
        {"title": "done", "allOf": [{"$ref": "#/$defs/Tagged"}]},
    ],
)
def test_a_member_with_the_tag_is_taken(tmp_path: Path, others: list[Any], added: Any) -> None:
    ran = composed(
        tmp_path, others, added, Done=member({"done": DONE}, "done"), Tagged=member({"kind": TAG, "done": DONE}, "kind")
    )
    assert ran.code == 0, ran.stderr


def test_a_union_with_members_without_a_tag_may_get_more(tmp_path: Path) -> None:
    ran = composed(tmp_path, [update("a"), update("b"), BARE], member({"done": DONE}, "done"))
    assert ran.code == 0, ran.stderr
