"""Collect the definitions of an RFD: one entry for each name, either new or a change of a definition in the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acpgen.diagnostics import Location
from acpgen.ir.names import class_name
from acpgen.rfd.base import Base, capability_owners, reference, single_reference, styled
from acpgen.rfd.blocks import Block, Findings
from acpgen.rfd.values import Piece, looks_like_schema
from acpgen.schema.document import join, resolve
from acpgen.schema.equality import same_shape
from acpgen.schema.walk import schema_list, schema_map, walk

_BESIDE = frozenset({"$schema", "$id", "$comment", "title", "description"})
_OF_CHANGES = frozenset({"type", "title", "description", "properties", "required", "anyOf", "x-side", "x-method"})
_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,99}")
_MAX_DEFAULT = 2_000
"""The limit for a default, in characters: each level of capabilities multiplies the size of the one below."""
_PASSES = 5
"""The default of a capability contains those of the capabilities in it; this is the limit for their nesting."""
_FIRST_COUNTS = "the draft has the first one; JSON Schema comes before TypeScript"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Definition:
    """A schema in the text. `properties` has the lines of each property, `required` those of the required names.

    `is_elided` says that the text leaves a part out, with `...` for example.
    """

    name: str
    node: Any
    block: Block
    location: Location
    lines: range
    properties: Mapping[str, range] = field(default_factory=dict)
    required: range = range(0)
    is_elided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """The part of the draft under one name: a whole definition, or a change in the notation of fragments."""

    name: str
    node: Any
    is_change: bool
    location: Location
    lines: range


# --- Definitions in JSON ---------------------------------------------------------------------------------------------


def find_definitions(piece: Piece, findings: Findings) -> Iterator[Definition]:
    """The named schemas in a JSON object."""
    root = piece.root
    if isinstance(root.get("$defs"), dict):
        for key in root.keys() - _BESIDE - {"$defs"}:
            findings.warn("rfd-schema", f"`{key}` next to `$defs` is not read", piece.location(join("", key)))
        for name, node in root["$defs"].items():
            pointer = join("", "$defs", name)
            if isinstance(node, dict | bool):
                yield _definition(piece, pointer, name)
            else:
                findings.warn("rfd-schema", f"the definition {name} is not a schema", piece.location(pointer))
    elif root and all(_NAME.fullmatch(name) and looks_like_schema(node) for name, node in root.items()):
        yield from (_definition(piece, join("", name), name) for name in root)
    elif looks_like_schema(root) and {"properties", "anyOf", "oneOf"} & root.keys():
        title = root.get("title")
        if isinstance(title, str) and _NAME.fullmatch(title):
            yield _definition(piece, "", title)
        else:
            hint = "give it a `title`, or put it under its name into `$defs` of the draft"
            findings.warn("rfd-schema", "a schema without a name", piece.location(""), hint=hint)


def _definition(piece: Piece, pointer: str, name: str) -> Definition:
    node = resolve(piece.root, pointer)
    # only patches need the lines of each property
    wires = schema_map(node, "properties") if piece.block.added is not None else ()
    return Definition(
        name=name,
        node=styled(node),
        block=piece.block,
        location=piece.location(pointer),
        lines=piece.lines(pointer),
        properties={wire: piece.lines(join(pointer, "properties", wire)) for wire in wires},
        required=piece.lines(join(pointer, "required")) if wires and "required" in node else range(0),
    )


# --- Entries ---------------------------------------------------------------------------------------------------------


def to_entry(definition: Definition, base: Base, findings: Findings) -> Entry:
    """The entry for a definition.

    It is a change if the text leaves a part out, if a patch adds only some of its lines, and if it repeats
    everything that the definition has in the schema and adds to it.
    """
    node, name = definition.node, definition.name
    present = base.properties(name)
    wires = dict.fromkeys(schema_map(node, "properties"))
    known, stated = _constants(base.definitions.get(name)), _constants(node)
    is_patch = not definition.block.is_added(definition.lines.start)
    repeats = present < wires.keys() if present else bool(known) and known < stated
    is_change = is_patch or definition.is_elided or repeats
    if is_change:
        added = [wire for wire in wires if wire not in present and _is_added(definition, wire)]
        _report_lost(definition, added, base, findings, is_patch=is_patch)
        members = [each for each in schema_list(node, "anyOf") if not _constants({"anyOf": [each]}) & known]
        node = {
            "properties": {wire: node["properties"][wire] for wire in added},
            "required": [wire for wire in schema_list(node, "required") if wire in added],
            "members": members,
        }
        node = {key: part for key, part in node.items() if part}
    return Entry(name=name, node=node, is_change=is_change, location=definition.location, lines=definition.lines)


def _is_added(definition: Definition, wire: str) -> bool:
    lines = definition.properties.get(wire)
    return lines is None or definition.block.is_added(lines.start)


def _report_lost(definition: Definition, added: list[str], base: Base, findings: Findings, *, is_patch: bool) -> None:
    """Report the parts of a change that the draft does not take over."""
    block, name = definition.block, definition.name
    hint = "state the old and the new shape of the definition under `changes`, `replace`"
    if not is_patch:
        present = schema_map(base.definitions, name)
        lost = [key for key in definition.node if key not in _OF_CHANGES and definition.node[key] != present.get(key)]
        if lost:
            message = (
                f"{', '.join(lost)} of {name} is not read: the text changes {name}, and only adds properties to it"
            )
            findings.warn("rfd-type", message, definition.location, hint=hint)
        return
    taken = {line for wire in added for line in definition.properties.get(wire, ())} | set(definition.required)
    for line in definition.lines:
        text = block.source.lines[line - 1][1:].strip()
        is_comment = text.startswith(("/", "*"))
        if line in (block.added or ()) and line not in taken and not is_comment and any(map(str.isalnum, text)):
            message = "the patch adds this line, which is not a new property"
            findings.warn("rfd-patch", message, block.source.location(line), hint=hint)


def _constants(node: Any) -> set[str]:
    members = [*schema_list(node, "anyOf"), *schema_list(node, "oneOf")]
    values = [member.get("const") for member in members if isinstance(member, dict)]
    return {value for value in [*values, *schema_list(node, "enum")] if isinstance(value, str)}


def unite(entries: Iterable[Entry], findings: Findings) -> dict[str, Entry]:
    """Reduce the entries to one for each name: changes are merged, otherwise the first counts. Report conflicts."""
    found: dict[str, Entry] = {}
    for entry in entries:
        first = found.setdefault(entry.name, entry)
        if first is entry:
            continue
        line = first.location.line
        if first.is_change and entry.is_change:
            found[entry.name] = _merged(first, entry, findings)
            continue
        if first.is_change != entry.is_change:
            one, other = ("change", "definition") if first.is_change else ("definition", "change")
            message = f"{entry.name} is a {other} here and a {one} in line {line}"
        elif differences := _differences(first.node, entry.node):
            message = f"{entry.name} is already defined in line {line}, with other {differences}"
        else:
            continue
        findings.warn("rfd-twice", message, entry.location, hint=_FIRST_COUNTS)
    return found


def _merged(first: Entry, second: Entry, findings: Findings) -> Entry:
    properties = dict(schema_map(first.node, "properties"))
    for wire, node in schema_map(second.node, "properties").items():
        if not same_shape(properties.setdefault(wire, node), node):
            message = f"line {first.location.line} already adds the property {wire} to {first.name}, with another type"
            findings.warn("rfd-twice", message, second.location, hint=_FIRST_COUNTS)
    node = {"properties": properties}
    for key in ("required", "members"):
        both = [*schema_list(first.node, key), *schema_list(second.node, key)]
        node[key] = [each for index, each in enumerate(both) if each not in both[:index]]
    return replace(first, node={key: part for key, part in node.items() if part})


def _differences(one: Any, other: Any) -> str:
    """The difference between two descriptions of one type, in what JSON Schema and TypeScript both express."""
    for key, what in (("properties", "properties"), ("required", "required properties")):
        first, second = ({*map(str, schema_map(node, key)), *map(str, schema_list(node, key))} for node in (one, other))
        if first != second:
            there, here = (", ".join(sorted(names)) or "-" for names in (first - second, second - first))
            return f"{what}: {there} there, {here} here"
    return ""


# --- Capabilities ----------------------------------------------------------------------------------------------------


def with_defaults(definitions: list[Definition], schemas: Mapping[str, Any], base: Base) -> list[Definition]:
    """The definitions with a default for every optional capability; `schemas` are other definitions of the text."""
    capabilities = _capabilities(definitions, capability_owners(base.definitions))
    for _ in range(_PASSES):
        known = {**{each.name: each.node for each in definitions}, **base.definitions, **schemas}
        before = [each.node for each in definitions]
        definitions = [_with_defaults(each, known) if each.name in capabilities else each for each in definitions]
        if [each.node for each in definitions] == before:
            break
    return definitions


def _capabilities(definitions: list[Definition], owners: Collection[str]) -> set[str]:
    """The names of capability types: those in the schema, and all types that their properties refer to."""
    nodes = {each.name: each.node for each in definitions}
    found: set[str] = set()
    waiting = list(owners)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            properties = schema_map(nodes.get(name), "properties").values()
            waiting += [target for target in map(single_reference, properties) if target]
    return found


def _with_defaults(definition: Definition, definitions: Mapping[str, Any]) -> Definition:
    """The definition with defaults: an absent capability is not supported."""
    properties, required = schema_map(definition.node, "properties"), schema_list(definition.node, "required")
    new = {wire: node if wire in required else _with_default(node, definitions) for wire, node in properties.items()}
    return replace(definition, node={**definition.node, "properties": new}) if new else definition


def _with_default(node: Any, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    doc = {key: node[key] for key in ("description",) if key in node}
    if node.get("type") == ["boolean", "null"]:
        return {**doc, "type": "boolean", "default": False}
    target = single_reference(node)
    children = schema_map(definitions.get(target or ""), "properties").items()
    default = {wire: child["default"] for wire, child in children if isinstance(child, dict) and "default" in child}
    if default and len(json.dumps(default)) <= _MAX_DEFAULT:
        return {**doc, "allOf": [reference(str(target))], "default": default}
    return node


# --- Checks ----------------------------------------------------------------------------------------------------------


def check_names(entries: Mapping[str, Entry], base: Base, findings: Findings) -> None:
    """Report names that are no type names, names that the schema has already, and references to missing names."""
    known = base.definitions.keys() | entries.keys()
    choose = "choose the release that the text was written for (--release)"
    for name, entry in entries.items():
        if class_name(name) != name:
            findings.warn("rfd-name", f"{name!r} is not a type name", entry.location, hint="use PascalCase")
        if not entry.is_change and name in base.definitions and not same_shape(entry.node, base.definitions[name]):
            message = f"{base.origin} already has a different definition {name}"
            hint = f"move the additions to `changes`, rename the new definition, or {choose}"
            findings.warn("rfd-name-taken", message, entry.location, hint=hint)
        if entry.is_change and name not in base.definitions:
            message = f"the text changes {name}, but {base.origin} does not define it"
            findings.warn("rfd-not-there", message, entry.location, hint=choose)
        for target in dict.fromkeys(_references(entry)):
            if not (isinstance(target, str) and target.removeprefix("#/$defs/") in known):
                findings.warn("rfd-reference", f"{name} refers to {target!s}, which is not defined", entry.location)


def _references(entry: Entry) -> Iterator[Any]:
    roots = [entry.node]
    if entry.is_change:
        roots = [*schema_map(entry.node, "properties").values(), *schema_list(entry.node, "members")]
    for root in roots:
        for _, node in walk(root):
            if isinstance(node, dict) and (target := node.get("$ref")) is not None:
                # a malformed one may be any JSON value
                yield target if isinstance(target, str) else repr(target)
