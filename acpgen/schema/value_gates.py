"""Gates of values: the capability that must be advertised before a property, a union member or a constant is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.gates import Gates, check_capability
from acpgen.schema.walk import constants_in, definition_pointer, find_property, item_of, layers, schema_map
from acpgen.text import did_you_mean, some_of

_NOTATION = re.compile(r"([^.=]+)((?:\.[^.=]+)*)(?:=(.*))?", re.DOTALL)
_MOST_NAMES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedPart:
    """What has a gate: what `properties`, one inside the other, lead to from a `definition`; itself if there are none.

    With a `value`, only the constant of that text, or the member of a union that has it as its tag; in an array, each
    item that is one. Without, whatever is there, except for null and an empty array, which say nothing. The notation
    is `Definition.property=value`.
    """

    definition: str
    properties: tuple[str, ...]
    value: str | None

    @property
    def place(self) -> str:
        """The definition and the properties, joined by dots."""
        return ".".join((self.definition, *self.properties))

    def __str__(self) -> str:
        return self.place if self.value is None else f"{self.value!r} in {self.place}"


def read_gated_part(text: str) -> GatedPart:
    """Read the notation."""
    match = _NOTATION.fullmatch(text)
    definition, properties, value = match.groups() if match is not None else (text, "", None)
    return GatedPart(definition=definition, properties=tuple(properties.split(".")[1:]), value=value)


def check_value_gates(root: dict[str, Any], gates: Gates, report: Report) -> None:
    """Report every gate whose value or capability the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    for text, gate in sorted(gates.items()):
        problem = _problem(read_gated_part(text), definitions)
        if problem is None:
            check_capability(text, gate, definitions, report)
        else:
            message, hint = problem
            report.error("gate-value", f"the gate of the value {text!r} fails: {message}", at=gate.pointer, hint=hint)


def stated_values(root: dict[str, Any], texts: Iterable[str]) -> Iterator[GatedPart]:
    """Those of the values that the schema has, with their capability or without."""
    definitions = schema_map(root, "$defs")
    return (part for part in map(read_gated_part, texts) if _problem(part, definitions) is None)


def tag_property(part: GatedPart, definitions: Mapping[str, Any]) -> str | None:
    """The property that has the value of a part, which holds: the tag of a union; None for a constant."""
    pointer, node = _reach(part, definitions)[0]
    return next((key for key, value in constants_in(node, pointer, definitions) if value == part.value), None)


def _problem(part: GatedPart, definitions: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a part is not there, and a hint; None if it is."""
    if part.definition not in definitions:
        hint = did_you_mean(part.definition, definitions) or "name a definition: Definition.property=value"
        return f"the schema has no definition {part.definition!r}", hint
    (pointer, node), missing = _reach(part, definitions)
    if missing is not None:
        names = sorted(
            {name for _, layer in layers(node, pointer, definitions) for name in schema_map(layer, "properties")}
        )
        hint = did_you_mean(missing, names) or f"there are: {some_of(names, _MOST_NAMES) or 'none'}"
        return f"{pointer} has no property {missing!r}", hint
    known = [value for _, value in constants_in(node, pointer, definitions)]
    if part.value is not None and part.value not in known:
        hint = did_you_mean(part.value, known) or f"there are: {some_of(known, _MOST_NAMES) or 'none'}"
        return f"{pointer} has no member or constant {part.value!r}", hint
    return None


def _reach(part: GatedPart, definitions: Mapping[str, Any]) -> tuple[tuple[str, Any], str | None]:
    """The schema at the end of the properties, or of its items if it is an array; or the first that is missing."""
    place: tuple[str, Any] = definition_pointer(part.definition), definitions[part.definition]
    for wire in part.properties:
        place = item_of(*place, definitions)
        found = find_property(place[1], place[0], wire, definitions)
        if found is None:
            return place, wire
        place = found
    return item_of(*place, definitions), None
