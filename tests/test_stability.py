"""Names come from what a thing is, never from where it stands; and the same input gives the same bytes."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Model, Struct
from acpgen.schema.bundled import find_release
from acpgen.schema.document import join
from acpgen.schema.walk import referenced_definition, walk
from tests.support import deep_except, model_of, schema_of

PROTOCOLS = (1, 2)
BOTH = pytest.mark.parametrize("protocol", PROTOCOLS)
RELEASE = "2026-11-02"

NEW = "zzzInserted"
"""A name that no schema has; `ZzzInserted` in classes."""


@cache
def text_of(protocol: int) -> str:
    return find_release(protocol, RELEASE).schema.read_text(encoding="utf-8")


def root_of(protocol: int) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(text_of(protocol))
    return root


class Compiler:
    """Compiles schemas given as data."""

    def __init__(self, folder: Path, protocol: int) -> None:
        self._path = folder / "schema.json"
        self._protocol = protocol

    def __call__(self, root: Mapping[str, Any]) -> Model:
        self._path.write_text(json.dumps(root), encoding="utf-8")
        return model_of(SchemaChoice(protocol=self._protocol, schema=self._path))[0]


def names_of(model: Model) -> dict[str, list[str]]:
    """The definitions, with the attributes of those that have any."""
    return {
        definition.name: [field.name for field in definition.fields] if isinstance(definition, Struct) else []
        for definition in model.definitions
    }


def unions_of(root: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any], str]]:
    """Every union of objects or values outside of the envelopes: definition, pointer, node, and `oneOf` or `anyOf`."""
    for name, definition in root["$defs"].items():
        if definition.get("x-docs-ignore"):
            continue
        for pointer, node in walk(definition, join("", "$defs", name)):
            for key in ("oneOf", "anyOf"):
                if isinstance(node, dict) and key in node and "/not" not in pointer and any(map(is_object, node[key])):
                    yield name, pointer, node, key


def is_object(member: Any) -> bool:
    return isinstance(member, dict) and ("properties" in member or "allOf" in member)


def tag_of(members: list[Any]) -> str | None:
    """The property that has a constant in the first member that has one."""
    for member in members:
        for wire, node in member.get("properties", {}).items():
            if "const" in node:
                return str(wire)
    return None


def new_member(members: list[Any]) -> dict[str, Any]:
    tag = tag_of(members)
    own = {f"{NEW}Value": {"type": "string"}}
    if tag is None:
        return {"title": NEW, "type": "object", "properties": own, "required": [*own]}
    return {"type": "object", "properties": {tag: {"type": "string", "const": NEW}, **own}, "required": [tag, *own]}


def node_at(root: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        root = root[int(step)] if isinstance(root, list) else root[step.replace("~1", "/").replace("~0", "~")]
    return root


@cache
def names_before(protocol: int) -> dict[str, list[str]]:
    """The names of a schema as it is."""
    return names_of(model_of(SchemaChoice(protocol=protocol, schema=find_release(protocol, RELEASE).schema))[0])


Union = tuple[int, str]
"""A protocol, and a definition in which there are unions."""

UNIONS: dict[str, Union] = {
    f"{name} of v{protocol}": (protocol, name)
    for protocol in PROTOCOLS
    for name in dict.fromkeys(name for name, _, _, _ in unions_of(root_of(protocol)))
}
SHAPES = {
    "ToolCallContent of v1",  # each member has a tag
    "McpServer of v1",  # the last one has none
    "EmbeddedResourceResource of v1",  # none has one
    "CreateElicitationRequest of v1",  # with properties beside the members, and a union in a member
    "RequestPermissionOutcome of v2",  # with a member for tags of the future
    "IdleStateUpdate of v2",  # with one for null beside it
}
"""One union of each shape."""
EACH_UNION = pytest.mark.parametrize("union", deep_except(SHAPES, UNIONS))


def unions_in(union: Union) -> Iterator[tuple[dict[str, Any], str, str]]:
    """The unions in a definition: the root of the schema, the pointer, and `oneOf` or `anyOf`."""
    protocol, name = union
    root = root_of(protocol)
    yield from ((root, pointer, key) for owner, pointer, _, key in unions_of(root) if owner == name)


@pytest.mark.full
@EACH_UNION
def test_a_new_member_changes_no_other_name(union: Union, tmp_path: Path) -> None:
    compile_, before = Compiler(tmp_path, union[0]), names_before(union[0])
    for root, pointer, key in unions_in(union):
        node = node_at(root, pointer)
        for position in sorted({0, len(node[key]) // 2, len(node[key])}):
            changed = copy.deepcopy(root)
            members = node_at(changed, pointer)[key]
            members.insert(position, new_member(members))
            after = names_of(compile_(changed))
            added = {name: fields for name, fields in after.items() if name not in before}
            assert added, (pointer, position)
            assert all("ZzzInserted" in name for name in added), (pointer, position)
            assert {name: fields for name, fields in after.items() if name not in added} == before


@EACH_UNION
def test_the_order_of_members_changes_no_name(union: Union, tmp_path: Path) -> None:
    compile_, before = Compiler(tmp_path, union[0]), names_before(union[0])
    for root, pointer, key in unions_in(union):
        members = node_at(root, pointer)[key]
        for order in (members[::-1], [*members[1:], members[0]]):
            changed = copy.deepcopy(root)
            node_at(changed, pointer)[key] = order
            assert names_of(compile_(changed)) == before, pointer


@pytest.mark.full
@EACH_UNION
def test_a_member_that_goes_takes_no_other_name_with_it(union: Union, tmp_path: Path) -> None:
    """What only this member used may become a class of its own, and what two members shared may cease to be one."""
    compile_, before = Compiler(tmp_path, union[0]), names_before(union[0])
    for root, pointer, key in unions_in(union):
        members = node_at(root, pointer)[key]
        for position in range(len(members) if len(members) > 1 else 0):
            changed = copy.deepcopy(root)
            removed = node_at(changed, pointer)[key].pop(position)
            after = names_of(compile_(changed))
            payloads = {target for _, child in walk(removed) if (target := referenced_definition(child))}
            common = {name for name in before.keys() & after.keys() if name not in payloads}
            assert {name: sorted(before[name]) for name in common} == {name: sorted(after[name]) for name in common}
            added, lost = after.keys() - before.keys(), before.keys() - after.keys()
            assert all(name.startswith(tuple(payloads)) for name in added), (pointer, position, added)
            assert is_one_family(lost - payloads), (pointer, position, lost)


def is_one_family(names: set[str]) -> bool:
    """Whether all names begin with the shortest of them: a member, and the members of the union that it was."""
    shortest = min(names, key=len, default="")
    return all(name.startswith(shortest) for name in names)


# --- Order of keys --------------------------------------------------------------------------------------------------


def shuffled(node: Any, chance: random.Random, *, is_map: bool = False) -> Any:
    """The same schema with the names in `$defs` and `properties`, `required` and all other keys in another order."""
    match node:
        case dict():
            keys = list(node)
            chance.shuffle(keys)
            return {
                key: (
                    shuffled_required(node[key], chance)
                    if key == "required" and not is_map
                    else shuffled(node[key], chance, is_map=key in ("properties", "$defs") and not is_map)
                )
                for key in keys
            }
        case list():
            return [shuffled(item, chance) for item in node]
    return node


def shuffled_required(names: list[str], chance: random.Random) -> list[str]:
    return chance.sample(names, len(names))


@pytest.mark.full
@BOTH
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 5))])
def test_the_order_of_keys_changes_no_name(protocol: int, seed: int, tmp_path: Path) -> None:
    compile_, root = Compiler(tmp_path, protocol), root_of(protocol)
    mixed = shuffled(root, random.Random(seed))
    assert list(mixed["$defs"]) != list(root["$defs"])
    before, after = compile_(root), compile_(mixed)
    assert sorted_names(after) == sorted_names(before)
    assert routes(after) == routes(before)
    assert shapes(after) == shapes(before)


def sorted_names(model: Model) -> dict[str, list[str]]:
    return {name: sorted(fields) for name, fields in names_of(model).items()}


def routes(model: Model) -> set[tuple[Any, ...]]:
    return {
        (method.wire, method.name, method.kind, repr(method.params), repr(method.result)) for method in model.methods
    }


def shapes(model: Model) -> dict[str, Any]:
    """The types of all attributes, and the bases."""
    return {
        definition.name: (
            definition.base,
            definition.keeps_extra,
            {field.name: (repr(field.type), field.required, repr(field.default)) for field in definition.fields},
        )
        for definition in model.definitions
        if isinstance(definition, Struct)
    }


# --- Bytes ----------------------------------------------------------------------------------------------------------


def test_the_first_description_of_a_method_counts(tmp_path: Path) -> None:
    """The order of the schema decides, not that of a set of names: twenty envelopes describe the same method."""
    asked = {"type": "object", "x-method": "ask", "x-side": "agent"}
    envelopes = {
        f"Envelope{number}": {
            "x-docs-ignore": True,
            "anyOf": [{"allOf": [{"$ref": "#/$defs/AskRequest"}], "description": f"Text {number}."}],
        }
        for number in range(20)
    }
    model = Compiler(tmp_path, 1)(schema_of(AskRequest=asked, AskResponse=asked, **envelopes))
    assert [method.doc for method in model.methods] == ["Text 0."]


@pytest.mark.full
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--protocol", "1", "--extension", "auth-state"), id="v1"),
        pytest.param(("--protocol", "2", "--open", "--keep-unknown"), id="v2", marks=pytest.mark.deep),
    ],
)
def test_the_same_input_gives_the_same_bytes(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Whatever the hash seed, the folder that acpgen runs in, and the one that it writes to."""
    outputs = []
    for seed in ("1", "4242"):
        folder = tmp_path / f"seed{seed}" / ("deeper/" * (seed != "1"))
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "acpgen", "build", "--role", "both", "--out", str(folder / "acp"), *arguments]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append({path.name: path.read_bytes() for path in (folder / "acp").iterdir() if path.is_file()})
    assert outputs[0].keys() >= {"types.py", "codec.py", "acpgen.lock"}
    assert outputs[0] == outputs[1]
    assert not any(str(tmp_path).encode() in content for content in outputs[0].values())
