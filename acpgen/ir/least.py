"""The smallest values of types: they replace properties that a peer of another version does not send.

`Least` is also the base of what builds examples.
"""

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
    Field,
    ListOf,
    ListValue,
    Literal,
    MapOf,
    MapValue,
    MethodKind,
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
from acpgen.ir.order import members

MAX_PARTS = 200
"""The largest number of values and characters in such a value; those of published schemas have three."""


class TooLargeError(Exception):
    """A value has too many parts."""


def least_members(model: Model, method: str, but: str) -> MapValue:
    """The required properties of the params of `method`, except `but`, each with its smallest value.

    A property whose smallest value is infinite or has more than `MAX_PARTS` parts is left out.
    """
    requests = [each for each in model.methods if each.wire == method and each.kind is MethodKind.REQUEST]
    fields = _fields(requests[0].params, model.by_name) if requests else ()
    found = ((field.wire, _bounded(field.type, model.by_name)) for field in fields if field.required)
    return MapValue(tuple((wire, value) for wire, value in found if value is not None and wire != but))


def _fields(expression: TypeExpr, known: Mapping[str, Definition]) -> tuple[Field, ...]:
    match known[expression.name] if isinstance(expression, Ref) else None:
        case Struct(fields=fields):
            return fields
        case Alias(type=target):
            return _fields(target, known)
        case TaggedUnion(variants=(first, *_)):
            return _fields(Ref(first.target), known)
        case UntaggedUnion(members=(first, *_)):
            return _fields(first.type, known)
        case _:
            return ()


def _bounded(expression: TypeExpr, known: Mapping[str, Definition]) -> Value | None:
    try:
        return Least(known).of(expression)
    except TooLargeError:
        return None


class Least:
    """Build the smallest JSON value of a type; raises `TooLargeError` if it has more than `MAX_PARTS` parts."""

    def __init__(self, known: Mapping[str, Definition]) -> None:
        self._known = known
        self._left = MAX_PARTS

    def of(self, expression: TypeExpr) -> Value:
        """The smallest value of `expression`."""
        self._spend(1)
        match expression:
            case Scalar():
                self._spend(expression.min_length or 0)
                return Literal(_least_scalar(expression))
            case Const(value=value) | Choice(values=(value, *_)):
                return Literal(value)
            case ListOf(item=item, min_items=count):
                self._spend(count)
                return ListValue(tuple(self.of(item) for _ in range(count)))
            case MapOf():
                return MapValue(())
            case Ref(name):
                return self._defined(self._known[name])
            case Nullable() | AnyJson() | Choice():
                return Literal(None)

    def _defined(self, definition: Definition) -> Value:
        match definition:
            case Alias(type=expression):
                return self.of(expression)
            case Enum(members=values):
                return Literal(values[0].value)
            case Struct():
                return self.struct(definition)
            case TaggedUnion() | UntaggedUnion():
                return self.of(members(definition)[0])

    def struct(self, struct: Struct) -> Value:
        """The smallest value of a struct."""
        return MapValue(tuple((field.wire, self.of(field.type)) for field in struct.fields if field.required))

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLargeError


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
