"""The names in the modules of flavours: any property has one, and what is new renames nothing."""

from __future__ import annotations

import ast
import copy
import json
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.flavours.models import render_models
from acpgen.emit.flavours.pydantic_models import RESERVED_ATTRIBUTES
from acpgen.flavours import Flavour
from acpgen.schema.bundled import find_release
from tests.models_support import TEXT, Adapter, of
from tests.needs import need
from tests.support import DEEP, Packages, model_of
from tests.test_stability import SHAPES, new_member, node_at, root_of, unions_of

FLAVOURS = pytest.mark.parametrize("flavour", Flavour, ids=lambda flavour: flavour.value)


@pytest.fixture(autouse=True)
def _pydantic() -> None:
    need("pydantic")


ODD = [
    *("class", "json", "copy", "list", "str", "model_config", "a-b"),
    *("$ref", "from", "Thing", "Any", "__private", 'q"', "pydantic", "builtins", "classmethod", "isXyz"),
]


@FLAVOURS
def test_any_property_has_a_name(packages: Packages, flavour: Flavour) -> None:
    properties = {wire: {"type": "array", "items": TEXT} for wire in ODD}
    thing = {"type": "object", "properties": properties, "required": ODD[:7]}
    acp = of(packages, flavour, Thing=thing, User={"type": "object", "properties": {"it": {"$ref": "#/$defs/Thing"}}})
    raw = {"it": {wire: [wire] for wire in ODD}}
    user = Adapter(acp, "User")
    assert user.written(user.read(raw)) == raw


def test_no_attribute_hides_one_of_pydantic() -> None:
    from pydantic import BaseModel

    assert {name for name in dir(BaseModel) if not name.startswith("_")} <= RESERVED_ATTRIBUTES


@FLAVOURS
def test_texts_of_a_schema_are_no_code(packages: Packages, flavour: Flavour) -> None:
    evil = '"""\nraise SystemExit(1)\n"""\\'
    properties = {"a": {"type": "string", "description": evil}, evil + "a": {"const": evil}}
    acp = of(packages, flavour, Thing={"type": "object", "properties": properties, "description": evil})
    assert Adapter(acp, "Thing").accepts({evil + "a": evil})


@FLAVOURS
@pytest.mark.parametrize("protocol", [1, 2])
def test_insertions_rename_nothing(packages: Packages, flavour: Flavour, protocol: int) -> None:
    root = json.loads(find_release(protocol, "2026-11-02").schema.read_text(encoding="utf-8"))
    before = names_in(root, packages, flavour, protocol)
    after = names_in(with_insertions(root), packages, flavour, protocol)
    assert len(after) > len(before)
    assert {name: gone for name, had in before.items() if (gone := had - after.get(name, set()))} == {}
    assert before.keys() <= after.keys()


@pytest.mark.full
@pytest.mark.parametrize(
    "flavour",
    [Flavour.PYDANTIC, pytest.param(Flavour.TYPEDDICT, marks=pytest.mark.deep)],
    ids=lambda flavour: flavour.value,
)
def test_each_insertion_of_the_stability_tests_renames_nothing(packages: Packages, flavour: Flavour) -> None:
    """A member at the start, in the middle and at the end of unions of all kinds: only its own names are new."""
    root = root_of(1)
    before = names_in(root, packages, flavour, 1)
    places = [
        (pointer, key, at)
        for _, pointer, node, key in [each for each in unions_of(root) if DEEP or f"{each[0]} of v1" in SHAPES]
        for at in sorted({0, len(node[key]) // 2, len(node[key])})
    ]
    assert len(places) >= 4
    for pointer, key, at in places:
        changed = copy.deepcopy(root)
        members = node_at(changed, pointer)[key]
        members.insert(at, new_member(members))
        after = names_in(changed, packages, flavour, 1)
        added = {name for name in after if "ZzzInserted" in name}
        assert added, (pointer, at)
        assert {name: fields for name, fields in after.items() if name not in added} == before, (pointer, at)


def names_in(root: Any, packages: Packages, flavour: Flavour, protocol: int) -> dict[str, set[str]]:
    """The names of a module, with the attributes of its classes."""
    model, _ = model_of(SchemaChoice(protocol=protocol, schema=packages.write(root)))
    found: dict[str, set[str]] = {}
    for node in ast.parse(render_models(model, flavour)).body:
        match node:
            case ast.ClassDef(name=name, body=body):
                targets = [each.target for each in body if isinstance(each, ast.AnnAssign)]
                found[name] = {each.id for each in targets if isinstance(each, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = set()
    return found


def with_insertions(root: Any) -> Any:
    """The schema with a new definition, and a new first property and a new first member wherever there are some."""
    changed = copy.deepcopy(root)
    for at, node in enumerate(changed["$defs"].values()):
        if node.get("x-docs-ignore"):
            continue
        if "properties" in node:
            node["properties"] = {f"zzzInserted{at}": TEXT, **node["properties"]}
        members = node.get("oneOf", [])
        tags = [key for each in members for key, part in each.get("properties", {}).items() if "const" in part]
        if tags:
            tag = {"type": "string", "const": "zzz_inserted"}
            members.insert(0, {"type": "object", "properties": {tags[0]: tag}, "required": [tags[0]]})
    changed["$defs"] = {"AaaInserted": {"type": "object", "properties": {"a": TEXT}}, **changed["$defs"]}
    return changed
