"""The smallest values of types: they replace properties that a peer of another version does not send.

`Least` is also the base of what builds examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from acpgen.ir import model as ir
from acpgen.ir.order import members

MAX_PARTS = 200
"""The largest number of values and characters in such a value; those of published schemas have three."""


class TooLargeError(Exception):
    """A value has too many parts."""


def least_members(model: ir.Model, method: str, but: str) -> ir.MapValue:
    """The required properties of the params of `method`, except `but`, each with its smallest value.

    A property whose smallest value is infinite or has more than `MAX_PARTS` parts is left out.
    """
    requests = [each for each in model.methods if each.wire == method and each.kind is ir.MethodKind.REQUEST]
    fields = _fields(requests[0].params, model.by_name) if requests else ()
    found = ((field.wire, _bounded(field.type, model.by_name)) for field in fields if field.required)
    return ir.MapValue(tuple((wire, value) for wire, value in found if value is not None and wire != but))


def _fields(expression: ir.TypeExpr, known: Mapping[str, ir.Definition]) -> tuple[ir.Field, ...]:
    match known[expression.name] if isinstance(expression, ir.Ref) else None:
        case ir.Struct(fields=fields):
            return fields
        case ir.Alias(type=target):
            return _fields(target, known)
        case ir.TaggedUnion() | ir.UntaggedUnion() as union:
            return _fields(members(union)[0], known)
        case _:
            return ()


def _bounded(expression: ir.TypeExpr, known: Mapping[str, ir.Definition]) -> ir.Value | None:
    try:
        return Least(known).of(expression)
    except TooLargeError:
        return None


class Least:
    """Build the smallest JSON value of a type; raises `TooLargeError` if it has more than `MAX_PARTS` parts."""

    def __init__(self, known: Mapping[str, ir.Definition]) -> None:
        self._known = known
        self._left = MAX_PARTS

    def of(self, expression: ir.TypeExpr) -> ir.Value:
        """The smallest value of `expression`."""
        self._spend(1)
        match expression:
            case ir.Scalar():
                self._spend(expression.min_length or 0)
                return ir.Literal(_least_scalar(expression))
            case ir.Const(value=value) | ir.InlineEnum(values=(value, *_)):
                return ir.Literal(value)
            case ir.ListOf(item=item, min_items=count):
                self._spend(count)
                return ir.ListValue(tuple(self.of(item) for _ in range(count)))
            case ir.MapOf():
                return ir.MapValue(())
            case ir.Ref(name):
                return self._defined(self._known[name])
            case ir.Nullable() | ir.AnyJson() | ir.InlineEnum():
                return ir.Literal(None)

    def _defined(self, definition: ir.Definition) -> ir.Value:
        match definition:
            case ir.Alias(type=expression):
                return self.of(expression)
            case ir.Enum(members=values):
                return ir.Literal(values[0].value)
            case ir.Struct():
                return self.struct(definition)
            case ir.TaggedUnion() | ir.UntaggedUnion():
                return self.of(members(definition)[0])

    def struct(self, struct: ir.Struct) -> ir.Value:
        """The smallest value of a struct."""
        return ir.MapValue(tuple((field.wire, self.of(field.type)) for field in struct.fields if field.required))

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLargeError


def _least_scalar(scalar: ir.Scalar) -> str | float | bool | None:
    match scalar.primitive:
        case ir.Primitive.STRING:
            return " " * (scalar.min_length or 0)
        case ir.Primitive.BOOLEAN:
            return False
        case ir.Primitive.NULL:
            return None
        case ir.Primitive.INTEGER | ir.Primitive.NUMBER:
            least = max(0, scalar.minimum or 0)
            bounded = least if scalar.maximum is None else min(least, scalar.maximum)
            return math.ceil(bounded) if scalar.primitive is ir.Primitive.INTEGER else bounded
