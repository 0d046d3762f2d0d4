"""Add new properties to the default literals of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acpgen.schema.document import join
from acpgen.schema.walk import layers, schema_map, walk

Addition = tuple[str, str]
"""A new property: the pointer of its definition, and its wire name."""


def grown_defaults(
    root: dict[str, Any], added: Mapping[Addition, Any]
) -> Iterator[tuple[str, Any, list[tuple[str, Addition]]]]:
    """The default literals of `root` that lack a property of `added`, which has the default of each property.

    Each comes with its pointer, its new value, and the pointer and the property of each added part.
    For example, a default for all capabilities spells out every flag, so a new flag must be added to it.
    """
    definitions = schema_map(root, "$defs")
    for pointer, node in walk(root) if added else ():
        if isinstance(node, dict) and isinstance(node.get("default"), (dict, list)):
            at = join(pointer, "default")
            grower = _Grower(definitions=definitions, added=added)
            value = grower.grow(node["default"], node, node_pointer=pointer, at=at)
            if grower.entries:
                yield at, value, grower.entries


@dataclass(slots=True, kw_only=True)
class _Grower:
    definitions: Mapping[str, Any]
    added: Mapping[Addition, Any]
    entries: list[tuple[str, Addition]] = field(default_factory=list)
    busy: list[Addition] = field(default_factory=list)

    def grow(self, literal: Any, node: Any, *, node_pointer: str, at: str) -> Any:
        """Add the new properties at every depth of `literal`, a value of the type `node`."""
        if not isinstance(literal, (dict, list)):
            return literal
        grown: Any = literal.copy()
        for pointer, layer in layers(node, node_pointer, self.definitions):
            if isinstance(literal, list):
                items = join(pointer, "items")
                grown = [
                    self.grow(item, layer.get("items"), node_pointer=items, at=join(at, index))
                    for index, item in enumerate(grown)
                ]
            else:
                self._grow_object(grown, layer, pointer=pointer, at=at)
        return grown

    def _grow_object(self, grown: dict[str, Any], layer: dict[str, Any], *, pointer: str, at: str) -> None:
        for wire, child in schema_map(layer, "properties").items():
            place = {"node_pointer": join(pointer, "properties", wire), "at": join(at, wire)}
            addition = (pointer, wire)
            if wire in grown:
                grown[wire] = self.grow(grown[wire], child, **place)
            elif addition in self.added and addition not in self.busy:
                self.entries.append((place["at"], addition))
                self.busy.append(addition)  # otherwise, the default of a recursive type grows for ever
                grown[wire] = self.grow(self.added[addition], child, **place)
                self.busy.pop()
