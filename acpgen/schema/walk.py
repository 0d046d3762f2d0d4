"""Walk a JSON Schema: subschemas, references, and all schemas that hold for one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from acpgen.schema.document import join, split

MAPS_OF_SCHEMAS = ("$defs", "properties")
LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")
SINGLE_SCHEMAS = ("items", "additionalProperties", "unevaluatedProperties", "not")

DEFINITION_PREFIX = "#/$defs/"


def description(node: Any) -> str:
    """The description of `node`; empty if it has none."""
    return str(node.get("description", "")) if isinstance(node, dict) else ""


def _subschemas(node: Any) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The direct subschemas of `node`, each with the way to it; malformed parts are skipped."""
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in MAPS_OF_SCHEMAS and isinstance(value, dict):
            for name, child in value.items():
                yield (key, name), child
        elif key in LISTS_OF_SCHEMAS and isinstance(value, list):
            for index, child in enumerate(value):
                yield (key, index), child
        elif key in SINGLE_SCHEMAS:
            yield (key,), value


def children(node: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """The direct subschemas of `node` with their pointers; malformed parts are skipped."""
    return ((join(pointer, *way), child) for way, child in _subschemas(node))


def walk(node: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """`node` and all its subschemas, depth first in document order."""
    yield pointer, node
    for child_pointer, child in children(node, pointer):
        yield from walk(child, child_pointer)


def referenced_definition(node: Any) -> str | None:
    """The name of the definition that the `$ref` of `node` points to; None if it has none."""
    if not isinstance(node, dict):
        return None
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith(DEFINITION_PREFIX):
        return target.removeprefix(DEFINITION_PREFIX).replace("~1", "/").replace("~0", "~")
    return None


def references(node: Any) -> Iterator[str]:
    """The definitions that `node` and its subschemas refer to, once for each `$ref`."""
    if (name := referenced_definition(node)) is not None:
        yield name
    for _, child in _subschemas(node):
        yield from references(child)


def own_references(node: Any) -> Iterator[str]:
    """The definitions that `node` refers to, itself or in its `allOf`."""
    for part in (node, *schema_list(node, "allOf")):
        if (name := referenced_definition(part)) is not None:
            yield name


def closure(start: Iterable[str], edges: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """The names in `start`, and all to which `edges` lead from them."""
    found, todo = set[str](), list(start)
    while todo:
        if (name := todo.pop()) not in found:
            found.add(name)
            todo += edges(name)
    return frozenset(found)


def methods_of(definitions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The definitions that have an `x-method`, each with that method."""
    for name, node in definitions.items():
        if isinstance(node, dict) and isinstance(node.get("x-method"), str):
            yield name, node["x-method"]


def definition_pointer(name: str) -> str:
    """The JSON pointer of the definition `name`."""
    return join("", "$defs", name)


def definition_at(pointer: str) -> str:
    """The name of the definition that `pointer`, a place below `$defs`, leads into."""
    return split(pointer)[1]


def schema_map(node: Any, key: str) -> Mapping[str, Any]:
    """The object at `node[key]`, or an empty one: schemas are not checked yet at this stage."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def schema_list(node: Any, key: str) -> list[Any]:
    """The array at `node[key]`, or an empty one."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, list) else []


def union_members(node: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """The members of the unions that `node` itself has, each with its pointer."""
    for key in ("oneOf", "anyOf"):
        for index, member in enumerate(schema_list(node, key)):
            yield join(pointer, key, index), member


def layers(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """`node` and all other schemas that hold for its value, each with its pointer.

    Follows `$ref`, `allOf`, and the other member of a union with null. A reference to nowhere ends the walk.
    """
    entered: set[str] = set()

    def enter(node: Any, pointer: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if not isinstance(node, dict):
            return
        yield pointer, node
        name = referenced_definition(node)
        if name is not None and name in definitions and name not in entered:
            entered.add(name)
            yield from enter(definitions[name], definition_pointer(name))
        for part_pointer, part in _parts(node, pointer):
            yield from enter(part, part_pointer)

    yield from enter(node, pointer)


def _parts(node: dict[str, Any], pointer: str) -> Iterator[tuple[str, Any]]:
    for index, part in enumerate(schema_list(node, "allOf")):
        yield join(pointer, "allOf", index), part
    for key in ("anyOf", "oneOf"):
        members = list(enumerate(schema_list(node, key)))
        rest = [(index, member) for index, member in members if not is_null(member)]
        if len(members) == 2 and len(rest) == 1:
            yield join(pointer, key, rest[0][0]), rest[0][1]


def is_null(node: Any) -> bool:
    """Whether a schema is for null alone, by its type."""
    return isinstance(node, dict) and node.get("type") == "null"


def find_property(node: Any, pointer: str, wire: str, definitions: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The pointer and schema of the property `wire` of `node`, its own or an inherited one; None if there is none."""
    for layer_pointer, layer in layers(node, pointer, definitions):
        properties = schema_map(layer, "properties")
        if wire in properties:
            return join(layer_pointer, "properties", wire), properties[wire]
    return None


def has_property(owner: str, wire: str, kind: str, definitions: Mapping[str, Any]) -> bool:
    """Whether the definition `owner` has the property `wire`, of the JSON type `kind`."""
    found = find_property(definitions[owner], definition_pointer(owner), wire, definitions)
    return found is not None and any(layer.get("type") == kind for _, layer in layers(found[1], found[0], definitions))


def item_of(pointer: str, node: Any, definitions: Mapping[str, Any]) -> tuple[str, Any]:
    """The schema of the items of an array; that of any other value."""
    items = [
        (join(place, "items"), layer["items"])
        for place, layer in layers(node, pointer, definitions)
        if "items" in layer
    ]
    return items[0] if items else (pointer, node)


def constants_in(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    """The texts that a value, or a property of it, may have as a constant: each with that property."""
    for place, layer in layers(node, pointer, definitions):
        yield from ((None, value) for value in _texts(layer))
        for where, member in union_members(layer, place):
            for _, inner in layers(member, where, definitions):
                yield from ((None, value) for value in _texts(inner))
                for wire, each in schema_map(inner, "properties").items():
                    yield from ((wire, value) for value in _texts(each))


def _texts(node: Any) -> Iterator[str]:
    """The texts that a schema lists itself."""
    if isinstance(node, dict):
        yield from (each for each in (node.get("const"), *schema_list(node, "enum")) if isinstance(each, str))
