"""Collect the definitions of an RFD: one entry for each name, either new or a change of a definition in the schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Location, Report
from acpgen.rfd.base import Base, reference, single_reference, styled
from acpgen.rfd.values import Piece
from acpgen.schema.document import join
from acpgen.schema.equality import same_shape
from acpgen.schema.walk import schema_list, schema_map

_BESIDE = frozenset({"$schema", "$id", "$comment", "$defs", "title", "description"})
_OF_CHANGES = frozenset({"type", "title", "description", "properties", "required", "x-side", "x-method"})
_MAX_DEFAULT = 2_000
"""The limit for the default of a capability, in characters: many properties may refer to one definition."""
_RELEASE = "choose the release that the text was written for (--release)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """The part of the draft under one name: a whole definition, or a change in the notation of fragments.

    As read from the text, a change is a definition of which the text shows only a part.
    """

    name: str
    node: Any
    is_change: bool
    location: Location
    lines: range


def find_definitions(piece: Piece, report: Report) -> Iterator[Entry]:
    """The definitions in a JSON object with `$defs`."""
    root = piece.root
    for key in root:
        if key not in _BESIDE:
            report.warning("rfd-schema", f"`{key}` next to `$defs` is not read", at=piece.location(join("", key)))
    for name, node in root["$defs"].items():
        pointer = join("", "$defs", name)
        yield Entry(
            name=name,
            node=styled(node),
            is_change=False,
            location=piece.location(pointer),
            lines=piece.lines(pointer),
        )


def unite(entries: Iterable[Entry], base: Base, report: Report) -> dict[str, Entry]:
    """The first entry of each name in the order of the text; report others that differ.

    An entry is a change if the text shows a part of its definition, or all of what the schema has and more.
    """
    found: dict[str, Entry] = {}
    for entry in (_compared(each, base, report) for each in entries):
        first = found.setdefault(entry.name, entry)
        if _names(first) != _names(entry):
            message = f"{entry.name} is already stated in line {first.location.line}, with other properties"
            hint = "the draft has the first one; JSON Schema comes before TypeScript"
            report.warning("rfd-twice", message, at=entry.location, hint=hint)
    for name, entry in list(found.items()):
        if entry.is_change and not entry.node:
            report.note("rfd-value", f"{name} is the same in {base.origin}", at=entry.location)
            del found[name]
    return dict(sorted(found.items(), key=lambda item: (item[1].location, item[0])))


def _compared(entry: Entry, base: Base, report: Report) -> Entry:
    """The entry; a change has only what the schema lacks."""
    node, name, present = entry.node, entry.name, base.properties(entry.name)
    wires = schema_map(node, "properties")
    if not (entry.is_change or (present and present < wires.keys())):
        return entry
    known = schema_map(base.definitions, name)
    if lost := [key for key in node if key not in _OF_CHANGES and node[key] != known.get(key)]:
        message = f"{', '.join(lost)} of {name} is not read: the text changes {name}, and only adds properties to it"
        hint = "state the old and the new shape of the definition under `changes`, `replace`"
        report.warning("rfd-type", message, at=entry.location, hint=hint)
    added = {wire: child for wire, child in wires.items() if wire not in present}
    required = [wire for wire in schema_list(node, "required") if isinstance(wire, str) and wire in added]
    change = {"properties": added, "required": required}
    return replace(entry, node={key: part for key, part in change.items() if part}, is_change=True)


def _names(entry: Entry) -> tuple[bool, set[str], set[str]]:
    """The parts of an entry that JSON Schema and TypeScript both express."""
    return entry.is_change, {*schema_map(entry.node, "properties")}, {*map(str, schema_list(entry.node, "required"))}


def with_defaults(entry: Entry, definitions: Mapping[str, Any]) -> Entry:
    """An entry that holds capabilities, with a default for each that is optional: an absent one is not supported."""
    properties, required = schema_map(entry.node, "properties"), schema_list(entry.node, "required")
    new = {wire: node if wire in required else _with_default(node, definitions) for wire, node in properties.items()}
    return replace(entry, node={**entry.node, "properties": new}) if new else entry


def _with_default(node: Any, definitions: Mapping[str, Any]) -> Any:
    doc = {key: node[key] for key in ("description",) if key in node} if isinstance(node, dict) else {}
    if isinstance(node, dict) and node.get("type") == ["boolean", "null"]:
        return {**doc, "type": "boolean", "default": False}
    target = single_reference(node)
    children = schema_map(definitions.get(target or ""), "properties").items()
    default = {wire: child["default"] for wire, child in children if isinstance(child, dict) and "default" in child}
    if default and len(json.dumps(default)) <= _MAX_DEFAULT:
        return {**doc, "allOf": [reference(str(target))], "default": default}
    return node


def check_names(entries: Iterable[Entry], base: Base, report: Report) -> None:
    """Report definitions that the schema has in another form, and changes of those that it does not have."""
    for entry in entries:
        present = base.definitions.get(entry.name)
        if entry.is_change and present is None:
            message = f"the text changes {entry.name}, but {base.origin} does not define it"
            report.warning("rfd-not-there", message, at=entry.location, hint=_RELEASE)
        if not entry.is_change and present is not None and not same_shape(entry.node, present):
            message = f"{base.origin} already has a different definition {entry.name}"
            hint = f"move the additions to `changes`, rename the new definition, or {_RELEASE}"
            report.warning("rfd-name-taken", message, at=entry.location, hint=hint)
