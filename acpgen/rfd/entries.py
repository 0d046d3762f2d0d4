"""Collect what an RFD adds: definitions, changes of definitions in the schema, and methods."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Location, Report
from acpgen.rfd.base import Base, Slot, capability_slots, lower_words, reference, single_reference, styled
from acpgen.rfd.pieces import ExampleMessage, Piece
from acpgen.schema.document import join
from acpgen.schema.equality import same_shape
from acpgen.schema.walk import schema_list, schema_map

_BESIDE = frozenset({"$schema", "$id", "$comment", "$defs", "title", "description"})
_OF_CHANGES = frozenset({"type", "title", "description", "properties", "required", "x-side", "x-method"})
_MAX_DEFAULT = 2_000
"""The limit for the default of a capability, in characters: many properties may refer to one definition."""
_RELEASE = "choose the release that the text was written for (--release)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftEntry:
    """The part of the draft under one name: a whole definition, or a change in the notation of fragments.

    As read from the text, a change is a definition of which the text shows only a part.
    """

    name: str
    node: Any
    is_change: bool
    location: Location
    lines: range


def find_definitions(piece: Piece, report: Report) -> Iterator[DraftEntry]:
    """The definitions in a JSON object with `$defs`."""
    root = piece.root
    for key in root:
        if key not in _BESIDE:
            report.warning("rfd-schema", f"`{key}` next to `$defs` is not read", at=piece.location(join("", key)))
    for name, node in root["$defs"].items():
        pointer = join("", "$defs", name)
        yield DraftEntry(
            name=name,
            node=styled(node),
            is_change=False,
            location=piece.location(pointer),
            lines=piece.lines(pointer),
        )


def unite(entries: Iterable[DraftEntry], base: Base, report: Report) -> dict[str, DraftEntry]:
    """The first entry of each name in the order of the text; report others that differ.

    An entry is a change if the text shows a part of its definition, or all of what the schema has and more.
    """
    found: dict[str, DraftEntry] = {}
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


def _compared(entry: DraftEntry, base: Base, report: Report) -> DraftEntry:
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


def _names(entry: DraftEntry) -> tuple[bool, set[str], set[str]]:
    """The parts of an entry that JSON Schema and TypeScript both express."""
    return entry.is_change, {*schema_map(entry.node, "properties")}, {*map(str, schema_list(entry.node, "required"))}


def with_defaults(entry: DraftEntry, definitions: Mapping[str, Any]) -> DraftEntry:
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


def check_names(entries: Iterable[DraftEntry], base: Base, report: Report) -> None:
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


ENDINGS = {"Request": "params", "Response": "result", "Notification": "params"}
"""The endings of the names of definitions, with the part of a method that each defines."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftMethod:
    """A method that the text adds. `definitions` has its types by ending, `gate` the capability that has its name."""

    name: str
    location: Location
    is_notification: bool
    definitions: Mapping[str, str]
    gate: Slot | None

    @property
    def side(self) -> str | None:
        """The side that handles it: the one that advertises its capability. A notification may go either way."""
        return self.gate.sender if self.gate and not self.is_notification else None

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the definitions that it needs."""
        return ("Notification",) if self.is_notification else ("Request", "Response")


def find_methods(entries: Mapping[str, DraftEntry], calls: Iterable[ExampleMessage], base: Base) -> list[DraftMethod]:
    """The new methods in the order of the text."""
    places: dict[str, Location] = {}
    kinds: dict[str, set[bool]] = {}
    for entry in entries.values():
        if method := _stated_method(entry):
            places.setdefault(method, entry.location)
    for call in calls:
        kinds.setdefault(call.method, set()).add(call.is_request)
        if call.method not in base.methods:
            places.setdefault(call.method, call.location)
    owners = _owners(entries, list(places))
    # a capability enables the method whose name has the words of an end of its path
    gates = [
        (slot, {lower_words(".".join(slot.path[start:])) for start in range(len(slot.path))})
        for slot in _new_capabilities(entries, base)
    ]
    found = []
    for name, location in sorted(places.items(), key=lambda item: (item[1], item[0])):
        words, definitions = lower_words(name), owners.get(name, {})
        named = [slot for slot, names in gates if words in names]
        are_requests = {*kinds.get(name, ()), *(ending != "Notification" for ending in definitions)}
        found.append(
            DraftMethod(
                name=name,
                location=location,
                is_notification=are_requests == {False},
                definitions=definitions,
                gate=named[0] if len(named) == 1 else None,
            )
        )
    return found


def _stated_method(entry: DraftEntry) -> str | None:
    stated = entry.node.get("x-method") if isinstance(entry.node, dict) else None
    return stated if isinstance(stated, str) else None


def _owners(entries: Mapping[str, DraftEntry], methods: list[str]) -> dict[str, dict[str, str]]:
    """The new definitions by method and ending."""
    found: dict[str, dict[str, str]] = {}
    for name, entry in entries.items():
        ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
        if ending is None or entry.is_change:
            continue
        if method := _stated_method(entry) or method_of(name.removesuffix(ending), methods):
            found.setdefault(method, {}).setdefault(ending, name)
    return found


def method_of(stem: str, methods: Iterable[str]) -> str | None:
    """The one method whose name ends with the words of `stem`, in any order.

    `NewSession` and `SessionNew` both belong to `session/new` or `_vendor/session/new`.
    """
    wanted = sorted(lower_words(stem))
    found = [method for method in methods if wanted and sorted(lower_words(method)[-len(wanted) :]) == wanted]
    return found[0] if len(found) == 1 else None


def _new_capabilities(entries: Mapping[str, DraftEntry], base: Base) -> list[Slot]:
    """The capabilities that the text adds."""
    known = {(slot.root, slot.path) for slot in capability_slots(base.definitions)}
    slots = capability_slots(_composed(entries, base))
    return [slot for slot in slots if (slot.root, slot.path) not in known]


def _composed(entries: Mapping[str, DraftEntry], base: Base) -> dict[str, Any]:
    """The definitions of the base and of the text. A change adds only its properties."""
    found = dict(base.definitions)
    for name, entry in entries.items():
        if not entry.is_change:
            found[name] = entry.node
        elif isinstance(found.get(name), dict):
            properties = {**schema_map(found[name], "properties"), **schema_map(entry.node, "properties")}
            found[name] = {**found[name], "properties": properties}
    return found
