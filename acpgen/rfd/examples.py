"""Conclude from example values, where a text has nothing better: variants of a type that the schema has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acpgen.ir.names import pascal
from acpgen.rfd.base import Base, error_object, properties_of, required_of
from acpgen.rfd.entries import Entry
from acpgen.rfd.jsonblocks import Piece
from acpgen.rfd.messages import Message, MessageKind
from acpgen.rfd.source import Findings, Source
from acpgen.rfd.style import reference, styled, without_prose
from acpgen.schema.alternatives import find_union, type_of_constant
from acpgen.schema.document import join
from acpgen.schema.equality import json_text
from acpgen.schema.fragment import mark
from acpgen.schema.walk import layers, schema_list, schema_map

_OPTIONAL = re.compile(r"\boptional\b", re.IGNORECASE)
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
_MAX_PROPERTIES = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inferred:
    """The entries that follow from examples, and the examples that were used for them."""

    entries: tuple[Entry, ...]
    used: frozenset[Piece]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The properties of a type that examples are compared with, and those that a value must have."""

    properties: Mapping[str, Any]
    required: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Variant:
    """An example of a variant of the type `owner`: the value of its tag, and whether the tag may be absent."""

    owner: str
    piece: Piece
    tag: str
    value: str
    is_optional: bool

    @property
    def name(self) -> str:
        """The definition of the variant, named like those of the schemas."""
        return self.owner + pascal(self.value)


def infer(
    values: Sequence[Piece], messages: Iterable[Message], *, base: Base, source: Source, findings: Findings
) -> Inferred:
    """What follows from values for types that the text speaks of, and from errors for the error object."""
    found = list(_variants(values, base, source))
    variants = [variant for variant in found if not _is_there(variant, base)]
    for variant in found:
        if variant not in variants:
            message = f"an example of {variant.owner}: the schema has {variant.value!r} already"
            findings.note("rfd-example", message, variant.piece.location(""))
    entries: list[Entry] = []
    for owner in dict.fromkeys(variant.owner for variant in variants):
        entries += _variant_entries([each for each in variants if each.owner == owner], base, findings)
    entries += _error_entries(messages, base, findings)
    return Inferred(entries=tuple(entries), used=frozenset(variant.piece for variant in found))


def _variants(values: Sequence[Piece], base: Base, source: Source) -> Iterator[_Variant]:
    """The values that are of a type that the schema has and the text names, but for a tag that tells them apart."""
    spoken = set(re.findall(r"(?<!\w)[A-Z]\w{1,100}", "\n".join(source.lines)))
    named = [name for name in base.definitions if name in spoken or f"{name}s" in spoken]
    by_owner: dict[str, list[Piece]] = {}
    for piece in values:
        if len(piece.root) <= _MAX_PROPERTIES and (owner := _owner(piece.root, named, base)):
            by_owner.setdefault(owner, []).append(piece)
    for owner, pieces in by_owner.items():
        tag = _tag(pieces, set(_shape(owner, base).properties))
        if tag is None:
            continue
        for piece in pieces:
            is_optional = bool(_OPTIONAL.search(piece.comment(join("", tag))))
            yield _Variant(owner=owner, piece=piece, tag=tag, value=piece.root[tag], is_optional=is_optional)


def _owner(value: Mapping[str, Any], named: list[str], base: Base) -> str | None:
    """The one type among `named` whose required properties the value has; None where there is none or a choice."""
    scores = {}
    for name in named:
        shape = _shape(name, base)
        if shape.required and shape.required <= value.keys():
            scores[name] = len(value.keys() & shape.properties.keys())
    best = [name for name, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None


def _shape(name: str, base: Base) -> _Shape:
    """What all values of a definition have: of a union, what its members have in common, but for the tag."""
    node, definitions = base.definitions[name], base.definitions
    union = find_union(node, {}, definitions)
    if union is None:
        properties = {wire: child for _, wire, child in properties_of(name, definitions)}
        return _Shape(properties, frozenset(required_of(name, definitions)))
    members = [[layer for _, layer in layers(member, "", definitions)] for member in union.members]
    wires = [{wire for layer in member for wire in schema_map(layer, "properties")} for member in members]
    required = [
        {wire for layer in member for wire in schema_list(layer, "required") if isinstance(wire, str)}
        for member in members
    ]
    common = set.intersection(*wires) - {union.tag}
    first = {wire: child for layer in members[0] for wire, child in schema_map(layer, "properties").items()}
    properties = {wire: child for wire, child in first.items() if wire in common}
    return _Shape(properties, frozenset(set.intersection(*required) & common))


def _is_there(variant: _Variant, base: Base) -> bool:
    """Whether the schema has the variant: its definition, or a member with its tag."""
    union = find_union(base.definitions[variant.owner], {}, base.definitions)
    kinds = [union.identity(member) for member in union.members] if union else []
    return variant.name in base.definitions or ("value", json_text(variant.value)) in kinds


def _tag(pieces: list[Piece], known: set[str]) -> str | None:
    """The one property, unknown to the schema, that has a different text in each of the values."""
    found = [
        wire
        for wire in pieces[0].root
        if wire not in known
        and all(isinstance(piece.root.get(wire), str) and pascal(piece.root[wire]) for piece in pieces)
        and len({piece.root[wire] for piece in pieces}) == len(pieces)
    ]
    return found[0] if len(found) == 1 and len(pieces) > 1 else None


def _variant_entries(variants: list[_Variant], base: Base, findings: Findings) -> Iterator[Entry]:
    owner = variants[0].owner
    present = base.definitions[owner]
    for variant in variants:
        findings.warn(
            "rfd-inferred",
            f"{variant.name} is concluded from this example of {owner}: check types, and what may be absent",
            variant.piece.location(""),
        )
        yield _as_entry(variant.name, _variant_schema(variant, base), variant.piece, is_change=False)
    # those without a tag accept everything: they come last
    members = [_member(variant) for variant in sorted(variants, key=lambda variant: variant.is_optional)]
    is_union = bool(schema_list(present, "anyOf") or schema_list(present, "oneOf"))
    change = {"members": members} if is_union else {"replace": _replacement(present, members)}
    yield _as_entry(owner, change, variants[0].piece, is_change=True)


def _replacement(present: Any, members: list[Any]) -> dict[str, Any]:
    return {"expect": without_prose(present), "with": {"anyOf": members}}


def _as_entry(name: str, node: Any, piece: Piece, *, is_change: bool) -> Entry:
    return Entry(name=name, node=node, is_change=is_change, location=piece.location(""), lines=piece.lines(""))


def _variant_schema(variant: _Variant, base: Base) -> dict[str, Any]:
    """The definition of a variant: what its type has, and what the example has besides, in the order of the example."""
    shape = _shape(variant.owner, base)
    inherited = {wire: without_prose(node) for wire, node in shape.properties.items()}
    properties: dict[str, Any] = {}
    unsure = []
    for wire, value in variant.piece.root.items():
        if wire in inherited:
            properties[wire] = inherited[wire]
        elif wire != variant.tag:
            properties[wire], is_optional = _property(variant.piece, wire)
            unsure += [] if is_optional else [wire]
        elif variant.is_optional:
            properties[wire] = {"type": "string", "const": value, "default": value}
    properties = {**properties, **{wire: node for wire, node in inherited.items() if wire not in properties}}
    order = {wire: index for index, wire in enumerate(properties)}
    required = sorted(shape.required, key=lambda wire: (order.get(wire, len(order)), wire))
    if unsure:
        required.append(mark(f"those of {', '.join(unsure)} that are never absent"))
    return dict(styled({"type": "object", "properties": properties, "required": required}))


def _property(piece: Piece, wire: str) -> tuple[Any, bool]:
    """The schema of a property of an example, and whether the example says that it is optional."""
    value = piece.root[wire]
    is_optional = bool(_OPTIONAL.search(piece.comment(join("", wire)))) or (
        isinstance(value, str) and bool(_OPTIONAL.match(value))
    )
    schema = _schema_of(value)
    return (_or_null(schema) if is_optional else schema), is_optional


def _or_null(schema: Any) -> Any:
    if isinstance(schema, dict) and isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return schema


def _schema_of(value: Any, depth: int = 0) -> Any:
    """The schema of an example, or a mark where an example does not tell."""
    match value:
        case bool() | int() | str():
            return {"type": type_of_constant(value)}
        case float():
            return {"type": "number"}
        case list() if value and depth < 3:
            items = [_schema_of(item, depth + 1) for item in value]
            if all(item == items[0] for item in items) and isinstance(items[0], dict):
                return {"type": "array", "items": items[0]}
        case dict() if value and all(map(_CONSTANT_NAME.fullmatch, value)) and depth < 3:
            # names such as those of environment variables are data, so this is a map
            values = [_schema_of(item, depth + 1) for item in value.values()]
            if all(item == values[0] for item in values) and isinstance(values[0], dict):
                return {"type": "object", "additionalProperties": values[0]}
    return mark("a schema: an example does not tell")


def _member(variant: _Variant) -> dict[str, Any]:
    rest = [reference(variant.name)]
    if variant.is_optional:
        return {"title": variant.value, "allOf": rest}
    tag = {variant.tag: {"type": "string", "const": variant.value}}
    return {"type": "object", "properties": tag, "required": [variant.tag], "allOf": rest}


def _error_entries(messages: Iterable[Message], base: Base, findings: Findings) -> Iterator[Entry]:
    """The properties that errors have in examples, and not in the schema."""
    target = error_object(base.definitions)
    known = {wire for _, wire, _ in properties_of(target, base.definitions)} if target else set()
    for message in messages:
        error = message.piece.root.get("error")
        if message.kind is not MessageKind.ERROR or target is None or not isinstance(error, dict):
            continue
        added = {wire: _like_elsewhere(wire, value, base) for wire, value in error.items() if wire not in known}
        if added and len(error) <= _MAX_PROPERTIES:
            findings.warn(
                "rfd-inferred",
                f"{', '.join(added)} of {target}: concluded from this example of an error",
                message.piece.location("/error"),
            )
            known |= added.keys()
            yield Entry(
                name=target,
                node={"properties": added},
                is_change=True,
                location=message.location,
                lines=message.piece.lines(""),
            )


def _like_elsewhere(wire: str, value: Any, base: Base) -> Any:
    """The schema that the property has where the schema has one of that name; else what the example tells."""
    shapes: list[Any] = []
    for name in base.definitions:
        for holder, other, node in properties_of(name, base.definitions):
            if other == wire and holder == name and isinstance(node, dict):
                shape = {key: part for key, part in without_prose(node).items() if key != "default"}
                shapes += [shape] if shape not in shapes else []
    return shapes[0] if len(shapes) == 1 else _schema_of(value)
