"""Conclude from example messages and values: variants of a type in the schema, and properties of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Report
from acpgen.ir.names import pascal
from acpgen.rfd.base import Base, nullable, reference, styled, without_prose
from acpgen.rfd.blocks import Source
from acpgen.rfd.entries import DraftEntry
from acpgen.rfd.pieces import Piece
from acpgen.schema.alternatives import find_union
from acpgen.schema.document import join
from acpgen.schema.fragment import mark
from acpgen.schema.walk import definition_pointer, layers, schema_list, schema_map

_OPTIONAL = re.compile(r"\boptional\b", re.IGNORECASE)
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


@dataclass(frozen=True, slots=True)
class _Shape:
    """The properties that all values of a type have, and the required ones among them."""

    properties: Mapping[str, Any]
    required: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Variant:
    """An example of a variant, with the name of its definition and the value of its tag."""

    name: str
    piece: Piece
    tag: str
    value: str
    is_optional: bool


def infer_variants(
    values: Sequence[Piece], *, base: Base, source: Source, report: Report
) -> tuple[list[DraftEntry], set[Piece]]:
    """The entries for examples of variants, and the examples that were used.

    They are values of a type that the schema has and the text names, each with another value of a new tag.
    """
    mentioned = set(re.findall(r"(?<!\w)[A-Z]\w{1,100}", "\n".join(source.lines)))
    shapes = {name: _shape(name, base) for name in base.definitions if {name, f"{name}s"} & mentioned}
    pieces: dict[str, list[Piece]] = {}
    for piece in values:
        owners = [name for name, shape in shapes.items() if shape.required and shape.required <= piece.root.keys()]
        if len(owners) == 1:
            pieces.setdefault(owners[0], []).append(piece)
    entries: list[DraftEntry] = []
    used: set[Piece] = set()
    for owner, examples in pieces.items():
        if tag := _tag(examples, shapes[owner]):
            variants = [_variant(owner, piece, tag) for piece in examples]
            entries += _variant_entries(owner, variants, shapes[owner], base=base, report=report)
            used |= set(examples)
    return entries, used


def _variant(owner: str, piece: Piece, tag: str) -> _Variant:
    value = piece.root[tag]
    is_optional = _OPTIONAL.search(piece.comment(join("", tag))) is not None
    return _Variant(name=owner + pascal(value), piece=piece, tag=tag, value=value, is_optional=is_optional)


def _shape(name: str, base: Base) -> _Shape:
    """The shape of a definition; of a union, that which all its members share apart from the tag."""
    node, definitions = base.definitions[name], base.definitions
    union = find_union(node, {}, definitions)
    members = union.members if union else [node]
    parts = [[layer for _, layer in layers(each, definition_pointer(name), definitions)] for each in members]
    wires = [{wire: node for layer in part for wire, node in schema_map(layer, "properties").items()} for part in parts]
    required = [{wire for layer in part for wire in map(str, schema_list(layer, "required"))} for part in parts]
    common = set.intersection(*map(set, wires)) - {union.tag if union else None}
    properties = {wire: child for wire, child in wires[0].items() if wire in common}
    return _Shape(properties, frozenset(set.intersection(*required) & common))


def _tag(pieces: list[Piece], shape: _Shape) -> str | None:
    """The one new property that has a different text in each of the values."""
    found = [
        wire
        for wire in pieces[0].root
        if wire not in shape.properties
        and all(isinstance(piece.root.get(wire), str) and pascal(piece.root[wire]) for piece in pieces)
        and len({piece.root[wire] for piece in pieces}) == len(pieces)
    ]
    return found[0] if len(found) == 1 and len(pieces) > 1 else None


def _variant_entries(
    owner: str, variants: list[_Variant], shape: _Shape, *, base: Base, report: Report
) -> Iterator[DraftEntry]:
    """An entry for each variant that the schema lacks, and one for the change of their type."""
    new = []
    for variant in variants:
        place = variant.piece.location("")
        if variant.name in base.definitions:
            message = f"an example of {owner}: the schema has {variant.value!r} already"
            report.note("rfd-example", message, at=place)
            continue
        message = f"{variant.name} is inferred from this example of {owner}: check types and required properties"
        report.warning("rfd-inferred", message, at=place)
        new.append(variant)
        yield _entry(variant.name, _variant_schema(variant, shape), variant.piece, is_change=False)
    if not new:
        return
    present = base.definitions[owner]
    # a member without a tag accepts every value, so it comes last
    members = [_member(variant) for variant in sorted(new, key=lambda variant: variant.is_optional)]
    replacement = {"expect": without_prose(present), "with": {"anyOf": members}}
    change = {"members": members} if find_union(present, {}, base.definitions) else {"replace": replacement}
    yield _entry(owner, change, new[0].piece, is_change=True)


def _entry(name: str, node: Any, piece: Piece, *, is_change: bool) -> DraftEntry:
    return DraftEntry(name=name, node=node, is_change=is_change, location=piece.location(""), lines=piece.lines(""))


def _variant_schema(variant: _Variant, shape: _Shape) -> dict[str, Any]:
    """The properties of the type and those of the example, in the order of the example."""
    inherited = {wire: without_prose(node) for wire, node in shape.properties.items()}
    properties: dict[str, Any] = {}
    unsure = []
    for wire, value in variant.piece.root.items():
        if wire in inherited:
            properties[wire] = inherited[wire]
        elif wire != variant.tag:
            comment = variant.piece.comment(join("", wire))
            is_optional = bool(_OPTIONAL.search(comment) or (isinstance(value, str) and _OPTIONAL.match(value)))
            schema = _schema_of(value)
            properties[wire] = nullable(schema) if is_optional and isinstance(schema, dict) else schema
            unsure += [] if is_optional else [wire]
        elif variant.is_optional:
            properties[wire] = {"type": "string", "const": value, "default": value}
    properties |= {wire: node for wire, node in inherited.items() if wire not in properties}
    required = sorted(shape.required, key=lambda wire: (list(properties).index(wire), wire))
    if unsure:
        required.append(mark(f"those of {', '.join(unsure)} that are never absent"))
    return dict(styled({"type": "object", "properties": properties, "required": required}))


def _schema_of(value: Any) -> Any:
    """The schema of an example; a mark for a value that does not determine one."""
    if kind := _common_type([value]):
        return {"type": kind}
    if isinstance(value, list) and (kind := _common_type(value)):
        return {"type": "array", "items": {"type": kind}}
    # constant-like names, as those of environment variables, are data: the object is a map
    if isinstance(value, dict) and all(map(_CONSTANT_NAME.fullmatch, value)) and (kind := _common_type(value.values())):
        return {"type": "object", "additionalProperties": {"type": kind}}
    return mark("a schema: the example does not determine one")


def _common_type(values: Iterable[Any]) -> str | None:
    """The JSON type that all values have; None for no values, and for null, arrays and objects."""
    kinds = {type(value) for value in values}
    return _TYPES.get(kinds.pop()) if len(kinds) == 1 else None


def _member(variant: _Variant) -> dict[str, Any]:
    rest = [reference(variant.name)]
    if variant.is_optional:
        return {"title": variant.value, "allOf": rest}
    tag = {variant.tag: {"type": "string", "const": variant.value}}
    return {"type": "object", "properties": tag, "required": [variant.tag], "allOf": rest}


def infer_errors(messages: Iterable[Piece], *, base: Base, report: Report) -> Iterator[DraftEntry]:
    """The properties of errors in examples that the schema does not have."""
    target = next((name for name in base.definitions if {"code", "message"} <= base.properties(name)), None)
    known = base.properties(target) if target else set()
    for piece in messages:
        error = piece.root.get("error")
        if target is None or not isinstance(error, dict):
            continue
        added = {wire: _like_elsewhere(wire, value, base) for wire, value in error.items() if wire not in known}
        if added:
            text = f"{', '.join(added)} of {target}: inferred from this example of an error"
            report.warning("rfd-inferred", text, at=piece.location("/error"))
            known |= added.keys()
            yield _entry(target, {"properties": added}, piece, is_change=True)


def _like_elsewhere(wire: str, value: Any, base: Base) -> Any:
    """The schema of the property of that name if there is just one in the schema, else that of the example."""
    shapes: list[Any] = []
    for node in base.definitions.values():
        property_ = schema_map(node, "properties").get(wire)
        if isinstance(property_, dict):
            shape = {key: part for key, part in without_prose(property_).items() if key != "default"}
            shapes += [shape] if shape not in shapes else []
    return shapes[0] if len(shapes) == 1 else _schema_of(value)
