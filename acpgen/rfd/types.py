"""Turn TypeScript declarations into JSON Schema, with the idioms of ACP's schemas."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.rfd.blocks import Block
from acpgen.rfd.source import Findings
from acpgen.rfd.style import described, nullable, reference, styled
from acpgen.rfd.syntax import (
    AllOf,
    ArrayOf,
    Constant,
    Declaration,
    Keyword,
    Member,
    NotUnderstood,
    OneOf,
    Record,
    Reference,
    TypeNode,
)
from acpgen.schema.alternatives import type_of_constant
from acpgen.schema.fragment import mark
from acpgen.schema.walk import schema_map

_SIMPLE: Mapping[str, dict[str, Any]] = {
    **{name: {"type": name} for name in ("string", "number", "boolean", "null", "object")},
    "unknown": {},
    "any": {},
}
_LONGEST_DEFAULT = 2_000
"""Capabilities that hold many others get no default: each level would multiply what the one below has."""
_LISTS = frozenset({"Array", "ReadonlyArray"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """What the conversion of a declaration has to know.

    `start` is where the declaration begins, `known` are the names that can be referred to, `definitions` the schemas of
    those that are there already. `is_capability` says that the type tells what a peer can do, where an absent boolean
    means false.
    """

    block: Block
    start: int
    findings: Findings
    known: Collection[str]
    definitions: Mapping[str, Any]
    is_capability: bool


def convert(declaration: Declaration, context: Conversion) -> Any:
    """The schema of a declaration; what has no counterpart in a schema is marked in it, and reported."""
    node = _definition(declaration.type, context)
    if isinstance(node, str):
        return node
    if declaration.bases:
        bases = [_reference(Reference(base, (), declaration.start), context) for base in declaration.bases]
        node = {**node, "allOf": bases}
    return styled(described(node, declaration.doc))


def convert_member(member: Member, context: Conversion) -> Any:
    """The schema of a property of an object type."""
    inner, has_null = _without_null(member.type)
    if isinstance(inner, NotUnderstood):
        return mark(f"a schema for: {inner.text}")
    node = _schema(inner, context)
    if isinstance(node, str):
        return node
    if member.is_optional and context.is_capability:
        node = _capability(node, inner, context)
    elif member.is_optional or has_null:
        node = nullable(node)
    return styled(described(node, member.doc))


def is_required(member: Member) -> bool:
    """Whether a value must have the property."""
    return not member.is_optional and not (
        isinstance(member.type, OneOf) and Keyword("undefined") in member.type.members
    )


def _capability(node: dict[str, Any], type_: TypeNode, context: Conversion) -> dict[str, Any]:
    """An optional capability: where it is absent, it has the value that says no."""
    if type_ == Keyword("boolean"):
        return {**node, "default": False}
    if isinstance(type_, Reference):
        target = schema_map(context.definitions.get(type_.name), "properties")
        defaults = {
            wire: child["default"] for wire, child in target.items() if isinstance(child, dict) and "default" in child
        }
        if defaults and len(json.dumps(defaults)) <= _LONGEST_DEFAULT:
            return {"allOf": [node], "default": defaults}
    return nullable(node)


def _definition(type_: TypeNode, context: Conversion) -> dict[str, Any] | str:
    """The schema of what stands behind a name: a union of constants keeps one schema a value there."""
    if not isinstance(type_, OneOf):
        return _schema(type_, context)
    members = []
    for member, doc in zip(type_.members, type_.docs, strict=True):
        node = _schema(member, context)
        members.append(node if isinstance(node, str) else styled(described(node, doc)))
    return {"anyOf": members}


def _schema(type_: TypeNode, context: Conversion) -> dict[str, Any] | str:
    """The schema of a type, or a mark in its place."""
    match type_:
        case Keyword(name) if name in _SIMPLE:
            return dict(_SIMPLE[name])
        case Keyword(name):
            return mark(f"a schema for: {name}")
        case Constant(value):
            return {"type": type_of_constant(value), "const": value}
        case Reference():
            return _reference(type_, context)
        case ArrayOf(item):
            return {"type": "array", "items": _schema(item, context)}
        case OneOf():
            return _union(type_, context)
        case AllOf(parts):
            return _intersection(parts, context)
        case Record():
            return _record(type_, context)
        case NotUnderstood(text):
            return mark(f"a schema for: {text}")


def _reference(type_: Reference, context: Conversion) -> dict[str, Any] | str:
    if type_.name in _LISTS and len(type_.arguments) == 1:
        return {"type": "array", "items": _schema(type_.arguments[0], context)}
    if type_.name == "Record" and len(type_.arguments) == 2 and type_.arguments[0] == Keyword("string"):
        values = _schema(type_.arguments[1], context)
        return {"type": "object", "additionalProperties": True if values == {} else values}
    if not type_.arguments and type_.name in context.known:
        return reference(type_.name)
    what = f"{type_.name}<…>" if type_.arguments else type_.name
    _warn(context, f"the type {what} is defined neither in the text nor in the schema that it extends", type_.start)
    return mark(f"a schema for: {what}")


def _union(type_: OneOf, context: Conversion) -> dict[str, Any] | str:
    inner, has_null = _without_null(type_)
    if not isinstance(inner, OneOf):
        node = _schema(inner, context)
        return nullable(node) if has_null and isinstance(node, dict) else node
    if inner.is_elided:
        _warn(context, "a union goes on with `...`: what is left out is not in the draft", context.start)
    node = _definition(inner, context)
    return nullable(node) if has_null and isinstance(node, dict) else node


def _without_null(type_: TypeNode) -> tuple[TypeNode, bool]:
    """The type without null and undefined, and whether null was there."""
    if not isinstance(type_, OneOf):
        return type_, False
    absent = (Keyword("null"), Keyword("undefined"))
    kept = [(member, doc) for member, doc in zip(type_.members, type_.docs, strict=True) if member not in absent]
    if not kept:
        return Keyword("null"), True
    has_null = Keyword("null") in type_.members
    if len(kept) == 1 and not type_.is_elided:
        return kept[0][0], has_null
    return OneOf(tuple(member for member, _ in kept), tuple(doc for _, doc in kept), type_.is_elided), has_null


def _intersection(parts: tuple[TypeNode, ...], context: Conversion) -> dict[str, Any]:
    """`{ type: "a" } & A` as the schemas have it: the object itself, and `allOf` for the rest."""
    records = [part for part in parts if isinstance(part, Record)]
    rest = [_schema(part, context) for part in parts if not isinstance(part, Record)]
    merged = Record(
        members=tuple(member for record in records for member in record.members),
        values=None,
        is_elided=any(record.is_elided for record in records),
    )
    node = _record(merged, context) if records else {}
    return {**node, "allOf": rest} if rest else node


def _record(type_: Record, context: Conversion) -> dict[str, Any]:
    if type_.is_elided:
        _warn(context, "an object goes on with `...`: what is left out is not in the draft", context.start)
    node: dict[str, Any] = {"type": "object"}
    if type_.members or type_.values is None:
        node["properties"] = {member.name: convert_member(member, context) for member in type_.members}
    required = [member.name for member in type_.members if is_required(member)]
    if required:
        node["required"] = list(dict.fromkeys(required))
    if type_.values is not None:
        values = _schema(type_.values, context)
        node["additionalProperties"] = True if values == {} else values
    return node


def _warn(context: Conversion, message: str, start: int) -> None:
    context.findings.warn("rfd-type", message, context.block.location(start))
