"""The texts that a schema allows as constants: of a value, and of the properties of the members of a union."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acpgen.schema.document import join
from acpgen.schema.walk import layers, schema_list, schema_map


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
        for key in ("oneOf", "anyOf"):
            for index, member in enumerate(schema_list(layer, key)):
                for _, inner in layers(member, join(place, key, index), definitions):
                    yield from ((None, value) for value in _texts(inner))
                    for wire, each in schema_map(inner, "properties").items():
                        yield from ((wire, value) for value in _texts(each))


def _texts(node: Any) -> Iterator[str]:
    """The texts that a schema lists itself."""
    if isinstance(node, dict):
        yield from (each for each in (node.get("const"), *schema_list(node, "enum")) if isinstance(each, str))
