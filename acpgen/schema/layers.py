"""Read a schema node together with everything that holds for the same value: `$ref`, `allOf`, "or null"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acpgen.schema.pointer import join
from acpgen.schema.walk import definition_pointer, referenced_definition


def schema_map(node: Any, key: str) -> Mapping[str, Any]:
    """The object at `node[key]`; an empty one where there is none, as schemas are not checked yet at this stage."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def schema_list(node: Any, key: str) -> list[Any]:
    """The array at `node[key]`; an empty one where there is none."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, list) else []


def layers(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """`node` and every schema that its value satisfies besides, each with its pointer.

    `$ref` and `allOf` are followed, and the other member of a union with null. A reference to nowhere ends there.
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
        rest = [(index, member) for index, member in members if not _is_null(member)]
        if len(members) == 2 and len(rest) == 1:
            yield join(pointer, key, rest[0][0]), rest[0][1]


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"


def find_property(node: Any, pointer: str, wire: str, definitions: Mapping[str, Any]) -> tuple[str, Any] | None:
    """The pointer and schema of the property `wire` of `node`, its own or an inherited one; None if there is none."""
    for layer_pointer, layer in layers(node, pointer, definitions):
        properties = schema_map(layer, "properties")
        if wire in properties:
            return join(layer_pointer, "properties", wire), properties[wire]
    return None
