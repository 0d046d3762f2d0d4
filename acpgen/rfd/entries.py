"""Collect the definitions of an RFD: each name once, as something new or as a change of what the schema has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Location
from acpgen.ir.names import class_name, words
from acpgen.rfd.base import Base, properties_of
from acpgen.rfd.blocks import Block
from acpgen.rfd.jsonblocks import Piece
from acpgen.rfd.looks import looks_like_schema
from acpgen.rfd.messages import is_message
from acpgen.rfd.source import Findings
from acpgen.rfd.style import styled
from acpgen.schema.document import join
from acpgen.schema.equality import same_shape
from acpgen.schema.walk import schema_list, schema_map, walk

_BESIDE = frozenset({"$schema", "$id", "$comment", "title", "description"})
_NAME = re.compile(r"[A-Z][A-Za-z0-9]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """What the text says under one name.

    `node` is the whole schema; of a change, what it adds to the definition that the schema has already:
    `properties`, `required` and `members` as a fragment has them.
    """

    name: str
    node: Any
    is_change: bool
    location: Location
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sorted:
    """The JSON objects of a text by what they are."""

    entries: tuple[Entry, ...]
    messages: tuple[Piece, ...]
    values: tuple[Piece, ...]


def sort_pieces(pieces: Iterable[Piece], base: Base, findings: Findings) -> Sorted:
    """Tell schemas, messages and other values apart."""
    entries: list[Entry] = []
    messages: list[Piece] = []
    values: list[Piece] = []
    for piece in pieces:
        if is_message(piece.root):
            messages.append(piece)
            continue
        said = len(findings.found)
        found = list(_definitions(piece, findings))
        entries += [_entry(piece, pointer, name, base=base, findings=findings) for name, pointer in found]
        if not found and len(findings.found) == said:
            values.append(piece)
    return Sorted(entries=tuple(entries), messages=tuple(messages), values=tuple(values))


def _definitions(piece: Piece, findings: Findings) -> Iterator[tuple[str, str]]:
    """The names and pointers of the schemas in a JSON object."""
    root = piece.root
    if isinstance(root.get("$defs"), dict):
        for key in root.keys() - _BESIDE - {"$defs"}:
            findings.warn("rfd-schema", f"`{key}` beside `$defs` is not read", piece.location(join("", key)))
        for name, node in root["$defs"].items():
            pointer = join("", "$defs", name)
            if isinstance(node, dict | bool):
                yield name, pointer
            else:
                findings.warn("rfd-schema", f"the definition {name} is no schema", piece.location(pointer))
    elif root and all(_NAME.fullmatch(name) and looks_like_schema(node) for name, node in root.items()):
        yield from ((name, join("", name)) for name in root)
    elif looks_like_schema(root) and {"properties", "anyOf", "oneOf"} & root.keys():
        name = _name_of(piece)
        if name:
            yield name, ""
        else:
            findings.warn(
                "rfd-schema",
                "a schema without a name",
                piece.location(""),
                hint="give it a `title`, or put it under its name into `$defs` of the draft",
            )


def _name_of(piece: Piece) -> str | None:
    """The name of a schema that stands alone: its title, or the line before it where that is nothing but a name."""
    title = piece.root.get("title")
    if isinstance(title, str) and _NAME.fullmatch(title):
        return title
    intro = piece.block.intro[:200]
    name = intro.strip("#*`: \t")
    # a single word that is neither a heading nor code introduces rather than names: "Example:"
    is_name = intro.startswith(("#", "`")) or len(words(name)) > 1
    return name if is_name and _NAME.fullmatch(name) else None


def _entry(piece: Piece, pointer: str, name: str, *, base: Base, findings: Findings) -> Entry:
    node: Any = piece.root
    for token in pointer.split("/")[1:]:
        node = node[token.replace("~1", "/").replace("~0", "~")]
    added = None
    if isinstance(node, dict) and not piece.is_added(pointer):
        added = {wire for wire in schema_map(node, "properties") if piece.is_added(join(pointer, "properties", wire))}
        known = [join(pointer, "properties", wire) for wire in added]
        known += [join(pointer, "required")] if "required" in node else []
        covered = {line for each in known for line in _range(piece.lines(each))}
        report_left_over(piece.block, _range(piece.lines(pointer)), covered, findings)
    change = _change(name, node, added=added, base=base)
    return Entry(
        name=name,
        node=styled(node) if change is None else change,
        is_change=change is not None,
        location=piece.location(pointer),
        lines=piece.lines(pointer),
    )


def _range(lines: tuple[int, int]) -> range:
    return range(lines[0], lines[1] + 1)


def report_left_over(block: Block, lines: range, covered: set[int], findings: Findings) -> None:
    """Report lines that a patch adds to a definition, and that are part of no property which it adds."""
    for line in lines:
        text = block.source.lines[line - 1][1:].strip()
        is_prose = text.startswith(("/", "*"))
        if line in (block.added or ()) and line not in covered and not is_prose and any(map(str.isalnum, text)):
            findings.warn(
                "rfd-patch",
                "the patch adds this line, which is no new property",
                block.source.location(line),
                hint="state the old and the new shape of the definition under `changes`, `replace`",
            )


def _change(name: str, node: Any, *, added: set[str] | None, base: Base) -> dict[str, Any] | None:
    """What a schema adds to the definition of the same name; None where it is a definition of its own.

    `added` are the properties that a patch adds. Without a patch, a schema that repeats all properties of the present
    definition and has others is taken for its new state.
    """
    properties = schema_map(node, "properties")
    present = present_properties(name, base)
    if added is None:
        if not present or not present < properties.keys():
            return None
        added = properties.keys() - present
    added = added - present
    required = [wire for wire in schema_list(node, "required") if isinstance(wire, str) and wire in added]
    return change_of({wire: properties[wire] for wire in properties if wire in added}, required)


def change_of(properties: Mapping[str, Any], required: list[Any]) -> dict[str, Any]:
    """A change that adds properties, in the notation of fragments."""
    change: dict[str, Any] = {}
    if properties:
        change["properties"] = {wire: styled(node) for wire, node in properties.items()}
    if required:
        change["required"] = required
    return change


def present_properties(name: str, base: Base) -> set[str]:
    """The properties that the base has for a definition, if it has the definition."""
    if name not in base.definitions:
        return set()
    return {wire for _, wire, _ in properties_of(name, base.definitions)}


def unite(entries: Iterable[Entry], findings: Findings) -> dict[str, Entry]:
    """One entry for each name: the first, with what later ones add to a change; what disagrees is reported."""
    found: dict[str, Entry] = {}
    for entry in entries:
        first = found.setdefault(entry.name, entry)
        if first is entry:
            continue
        if first.is_change and entry.is_change:
            found[entry.name] = _merged(first, entry, findings)
        elif first.is_change != entry.is_change:
            findings.warn(
                "rfd-twice",
                (
                    f"{entry.name} is a definition here, and a change of one in line {first.location.line}"
                    if first.is_change
                    else f"{entry.name} is a change here, and a definition in line {first.location.line}"
                ),
                entry.location,
                hint="the draft has what stands first",
            )
        elif disagreement := _disagreement(first.node, entry.node):
            findings.warn(
                "rfd-twice",
                f"{entry.name} is defined in line {first.location.line} already, and differently: {disagreement}",
                entry.location,
                hint="the draft has what stands in the JSON Schema, or else what stands first",
            )
    return found


def _merged(first: Entry, second: Entry, findings: Findings) -> Entry:
    properties = dict(schema_map(first.node, "properties"))
    for wire, node in schema_map(second.node, "properties").items():
        if wire in properties and not same_shape(properties[wire], node):
            findings.warn(
                "rfd-twice",
                f"the property {wire} of {first.name} is added in line {first.location.line} already, and differently",
                second.location,
                hint="the draft has what stands first",
            )
        properties.setdefault(wire, node)
    required = [*schema_list(first.node, "required"), *schema_list(second.node, "required")]
    rest = {key: value for key, value in first.node.items() if key not in ("properties", "required")}
    members = [*rest.pop("members", []), *second.node.get("members", [])]
    node = change_of(properties, list(dict.fromkeys(required))) | rest | ({"members": members} if members else {})
    return Entry(name=first.name, node=node, is_change=True, location=first.location, lines=first.lines)


def _disagreement(one: Any, other: Any) -> str:
    """How two descriptions of one type differ in what both notations can say: properties, and which are required."""
    for key, what in (("properties", "properties"), ("required", "required properties")):
        first, second = _names(one, key), _names(other, key)
        only_first, only_second = sorted(first - second), sorted(second - first)
        if only_first or only_second:
            return f"{what} {', '.join(only_first) or '-'} there, {', '.join(only_second) or '-'} here"
    return ""


def _names(node: Any, key: str) -> set[str]:
    return set(map(str, [*schema_map(node, key), *schema_list(node, key)]))


def check_names(entries: Mapping[str, Entry], base: Base, findings: Findings) -> None:
    """Report definitions whose name the base has for something else, names of no use, and references to nowhere."""
    known = base.definitions.keys() | entries.keys()
    for name, entry in entries.items():
        if class_name(name) != name:
            findings.warn("rfd-name", f"{name!r} is no name of a type", entry.location, hint="use PascalCase")
        if not entry.is_change and name in base.definitions and not same_shape(entry.node, base.definitions[name]):
            findings.warn(
                "rfd-name-taken",
                f"{base.origin} has a definition {name} already, and it differs",
                entry.location,
                hint="for the one that is there, move what is new to `changes`; for another one, choose another name,"
                " or the release that the text was written for (--release)",
            )
        if entry.is_change and name not in base.definitions:
            findings.warn(
                "rfd-not-there",
                f"{name} is changed here, and {base.origin} does not have it",
                entry.location,
                hint="choose the release that the text was written for (--release)",
            )
        for _, node in _schemas(entry):
            target = node.get("$ref") if isinstance(node, dict) else None
            if target is not None and not (isinstance(target, str) and target.removeprefix("#/$defs/") in known):
                findings.warn("rfd-reference", f"{name} refers to {target!s}, which nothing defines", entry.location)


def _schemas(entry: Entry) -> Iterator[tuple[str, Any]]:
    if not entry.is_change:
        yield from walk(entry.node)
        return
    for node in [*schema_map(entry.node, "properties").values(), *schema_list(entry.node, "members")]:
        yield from walk(node)
