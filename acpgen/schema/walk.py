"""Walk JSON Schema nodes: `properties` is a map from names to schemas, never a schema itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acpgen.schema.pointer import join

MAPS_OF_SCHEMAS = ("$defs", "properties")
LISTS_OF_SCHEMAS = ("allOf", "anyOf", "oneOf")
SINGLE_SCHEMAS = ("items", "additionalProperties", "unevaluatedProperties", "not")

DEFINITION_PREFIX = "#/$defs/"


def description(node: Any) -> str:
    """What `node` says that it is for; nothing where it says nothing."""
    return str(node.get("description", "")) if isinstance(node, dict) else ""


def children(node: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """The direct subschemas of `node` with their pointers; what is malformed is passed over."""
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in MAPS_OF_SCHEMAS and isinstance(value, dict):
            for name, child in value.items():
                yield join(pointer, key, name), child
        elif key in LISTS_OF_SCHEMAS and isinstance(value, list):
            for index, child in enumerate(value):
                yield join(pointer, key, index), child
        elif key in SINGLE_SCHEMAS:
            yield join(pointer, key), value


def walk(node: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """`node` and all its subschemas, depth first in document order."""
    yield pointer, node
    for child_pointer, child in children(node, pointer):
        yield from walk(child, child_pointer)


def referenced_definition(node: Any) -> str | None:
    """The name of the definition that the `$ref` of `node` points to; None where there is no such `$ref`."""
    if not isinstance(node, dict):
        return None
    target = node.get("$ref")
    if isinstance(target, str) and target.startswith(DEFINITION_PREFIX):
        return target.removeprefix(DEFINITION_PREFIX).replace("~1", "/").replace("~0", "~")
    return None


def definition_pointer(name: str) -> str:
    """The JSON pointer of the definition `name`."""
    return join("", "$defs", name)
