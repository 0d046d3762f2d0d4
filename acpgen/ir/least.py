"""The least values of types: they stand for what a peer of another version left out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from acpgen.ir.model import (
    Alias,
    AnyJson,
    Choice,
    Const,
    Definition,
    Enum,
    Kind,
    ListOf,
    ListValue,
    Literal,
    MapOf,
    MapValue,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
    Value,
)


def least_members(model: Model, method: str, but: str) -> MapValue:
    """The properties that the params of the request `method` must have, without `but`: each with its least value."""
    params = next((each.params for each in model.methods if each.wire == method and each.kind is Kind.REQUEST), None)
    found = _least(params, model.by_name) if params is not None else None
    members = found.items if isinstance(found, MapValue) else ()
    return MapValue(tuple((wire, value) for wire, value in members if wire != but))


def _least(expression: TypeExpr, known: Mapping[str, Definition]) -> Value:
    """The value of `expression` that says as little as possible, as JSON."""
    match expression:
        case Scalar():
            return Literal(_least_scalar(expression))
        case Const(value=value) | Choice(values=(value, *_)):
            return Literal(value)
        case ListOf(item=item, min_items=count):
            return ListValue((_least(item, known),) * count)
        case MapOf():
            return MapValue(())
        case Ref(name):
            return _least_defined(known[name], known)
        case Nullable() | AnyJson() | Choice():
            return Literal(None)


def _least_scalar(scalar: Scalar) -> str | float | bool | None:
    match scalar.primitive:
        case Primitive.STRING:
            return " " * (scalar.min_length or 0)
        case Primitive.BOOLEAN:
            return False
        case Primitive.NULL:
            return None
        case Primitive.INTEGER | Primitive.NUMBER:
            least = max(0, scalar.minimum or 0)
            bounded = least if scalar.maximum is None else min(least, scalar.maximum)
            return math.ceil(bounded) if scalar.primitive is Primitive.INTEGER else bounded


def _least_defined(definition: Definition, known: Mapping[str, Definition]) -> Value:
    match definition:
        case Alias(type=expression):
            return _least(expression, known)
        case Enum(members=members):
            return Literal(members[0].value)
        case Struct(fields=fields):
            return MapValue(tuple((field.wire, _least(field.type, known)) for field in fields if field.required))
        case TaggedUnion(variants=variants):
            return _least(Ref(variants[0].target), known)
        case UntaggedUnion(members=members):
            return _least(members[0].type, known)
