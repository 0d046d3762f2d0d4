"""Compare types by their values: does one cover the other, are they disjoint? In doubt, the answer is no."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

from acpgen.ir import model as ir
from acpgen.ir.order import members

Resolved = ir.Struct | ir.TaggedUnion | ir.UntaggedUnion | ir.TypeExpr

Attribute = tuple[str, str]
"""A class, and the name of an attribute of it."""

_DEPTH = 12
"""The depth limit of a comparison: recursive types have no end."""


def resolved(expression: ir.TypeExpr, model: ir.Model) -> ir.TypeExpr:
    """The type behind aliases."""
    while isinstance(definition := model.definition(expression), ir.Alias):
        expression = definition.type
    return expression


def without_null(expression: ir.TypeExpr, model: ir.Model) -> ir.TypeExpr:
    """The type behind aliases, of values other than the null that it admits."""
    found = resolved(expression, model)
    return resolved(found.inner, model) if isinstance(found, ir.Nullable) else found


def may_send_null(field: ir.Field, model: ir.Model) -> bool:
    """True for an optional property that may be null beside values of its type; where any JSON may be, null is one."""
    kind = resolved(field.type, model)
    return field.may_be_unset and isinstance(kind, ir.Nullable) and kind.inner != ir.AnyJson()


def omits_default(struct: ir.Struct, field: ir.Field, model: ir.Model, introducing: Collection[str]) -> bool:
    """True for a property that is left out where it is as by default: false, or an object without any other.

    That is so where a side says what it can do: some peers take a capability that is false for one that is there.
    """
    if struct.name not in introducing or field.required or struct.keeps_extra:
        return False
    match field.default:
        case ir.Literal(False):
            return True
        case ir.Construct(name=name, arguments=arguments):
            inner = model.struct(name)
            known = {each.name: each for each in inner.fields}
            is_as_by_default = all(known[key].default == item for key, item in arguments if key in known)
            left = (each.may_be_unset or omits_default(inner, each, model, introducing) for each in inner.fields)
            return is_as_by_default and all(left)
        case _:
            return False


def follow(expression: ir.TypeExpr, path: tuple[str, ...], model: ir.Model) -> tuple[Attribute | None, ir.TypeExpr]:
    """The attribute at the end of `path`, starting from a value of the type, and its type."""
    attribute = None
    for wire in path:
        definition = model.definition(without_null(expression, model))
        fields = definition.fields if isinstance(definition, ir.Struct) else ()
        field = next((each for each in fields if each.wire == wire), None)
        if definition is None or field is None:
            return None, expression
        attribute, expression = (definition.name, field.name), field.type
    return attribute, expression


def concrete(expression: ir.TypeExpr, model: ir.Model) -> ir.TypeExpr:
    """The type behind aliases; an enum becomes an enum without a name."""
    found = resolved(expression, model)
    definition = model.definition(found)
    return definition.inline if isinstance(definition, ir.Enum) else found


class Coverage:
    """Relations between types. A reference to a type that is not among `definitions` stands for itself only.

    With `named_only`, objects have no properties but those that their types name.
    """

    def __init__(self, definitions: Mapping[str, ir.Definition], *, named_only: bool = False) -> None:
        self._definitions = definitions
        self._named_only = named_only
        # cached: the number of paths is exponential
        self._covers = cache(self._finds_cover)
        self._disjoint = cache(self._finds_disjoint)

    def resolve(self, expression: ir.TypeExpr) -> Resolved:
        """The type behind aliases; a class or union as its definition, an enum as an enum without a name."""
        if not isinstance(expression, ir.Ref) or expression.name not in self._definitions:
            return expression
        match self._definitions[expression.name]:
            case ir.Alias(type=target):
                return self.resolve(target)
            case ir.Enum() as enum:
                return enum.inline
            case definition:
                return definition

    def covers(self, wide: ir.TypeExpr, narrow: ir.TypeExpr, depth: int = _DEPTH) -> bool:
        """True if every value of `narrow` certainly is one of `wide`."""
        return wide == narrow or (depth > 0 and self._covers(wide, narrow, depth))

    def _finds_cover(self, wide: ir.TypeExpr, narrow: ir.TypeExpr, depth: int) -> bool:
        one, other = self.resolve(wide), self.resolve(narrow)
        if isinstance(other, (ir.TaggedUnion, ir.UntaggedUnion)):
            return all(self.covers(wide, member, depth - 1) for member in members(other))
        if isinstance(other, ir.Nullable):
            null = ir.Scalar(primitive=ir.Primitive.NULL)
            return self.covers(wide, null, depth - 1) and self.covers(wide, other.inner, depth - 1)
        match one:
            case ir.AnyJson():
                return True
            case ir.Nullable(inner):
                return self.covers(inner, narrow, depth - 1) or other == ir.Scalar(primitive=ir.Primitive.NULL)
            case ir.TaggedUnion() | ir.UntaggedUnion():
                return any(self.covers(member, narrow, depth - 1) for member in members(one))
            case ir.ListOf():
                return (
                    isinstance(other, ir.ListOf)
                    and one.min_items <= other.min_items
                    and self.covers(one.item, other.item, depth - 1)
                )
            case ir.MapOf(value):
                is_object = isinstance(other, ir.Struct) and isinstance(self.resolve(value), ir.AnyJson)
                return is_object or (isinstance(other, ir.MapOf) and self.covers(value, other.value, depth - 1))
            case ir.Struct():
                return isinstance(other, ir.Struct) and self._covers_struct(one, other, depth)
            case ir.Scalar() | ir.Const() | ir.InlineEnum():
                return covers_scalar(one, other)
            case ir.Ref():
                return False

    def _covers_struct(self, wide: ir.Struct, narrow: ir.Struct, depth: int) -> bool:
        theirs = {field.wire: field for field in narrow.fields}
        return wide.rejects is None and all(
            self._covers_field(field, theirs.get(field.wire), depth) for field in wide.fields
        )

    def _covers_field(self, wide: ir.Field, narrow: ir.Field | None, depth: int) -> bool:
        if wide.required and (narrow is None or not narrow.required):
            return False
        if wide.leniency.default_on_error or isinstance(self.resolve(wide.type), ir.AnyJson):
            return True
        if narrow is None:
            return self._named_only
        return self.covers(wide.type, narrow.type, depth - 1)

    def disjoint(self, one: ir.TypeExpr, other: ir.TypeExpr, depth: int = _DEPTH) -> bool:
        """True if certainly no value is of both types."""
        return depth > 0 and self._disjoint(one, other, depth)

    def _finds_disjoint(self, one: ir.TypeExpr, other: ir.TypeExpr, depth: int) -> bool:
        left, right = self.resolve(one), self.resolve(other)
        for first, second in ((left, other), (right, one)):
            match first:
                case ir.TaggedUnion() | ir.UntaggedUnion():
                    return all(self.disjoint(member, second, depth - 1) for member in members(first))
                case ir.Nullable(inner):
                    null = ir.Scalar(primitive=ir.Primitive.NULL)
                    return self.disjoint(inner, second, depth - 1) and self.disjoint(null, second, depth - 1)
        if isinstance(left, (ir.AnyJson, ir.Ref)) or isinstance(right, (ir.AnyJson, ir.Ref)):
            return False
        if _json_kind(left) != _json_kind(right):
            return True
        if isinstance(left, ir.Struct) and isinstance(right, ir.Struct):
            return self._disjoint_structs(left, right, depth)
        return _values_disjoint(left, right)

    def _disjoint_structs(self, one: ir.Struct, other: ir.Struct, depth: int) -> bool:
        theirs = {field.wire: field for field in other.fields}
        return any(
            (field.required or theirs[field.wire].required)
            and not field.leniency.default_on_error
            and not theirs[field.wire].leniency.default_on_error
            and self.disjoint(field.type, theirs[field.wire].type, depth - 1)
            for field in one.fields
            if field.wire in theirs
        )


def covers_scalar(wide: ir.Scalar | ir.Const | ir.InlineEnum, narrow: object) -> bool:
    """Whether every value of `narrow`, which may be any type but a reference, is one of the scalar type `wide`."""
    values = _closed_values(narrow)
    if values is not None:
        return all(_admits(wide, value) for value in values)
    match wide, narrow:
        case ir.Scalar(), ir.Scalar():
            return wide.primitive.admits(narrow.primitive) and _is_within(narrow, wide)
        case ir.Scalar(), ir.InlineEnum(primitive=primitive):
            return wide.primitive.admits(primitive) and _is_within(ir.Scalar(primitive=primitive), wide)
        case ir.InlineEnum(open=True), ir.Scalar() | ir.InlineEnum():
            return wide.primitive.admits(narrow.primitive)
        case _:
            return False


def _admits(wide: ir.Scalar | ir.Const | ir.InlineEnum, value: str | int | bool) -> bool:
    match wide:
        case ir.Const(known):
            return _is_same(value, known)
        case ir.InlineEnum(values=known, open=False):
            return any(_is_same(value, each) for each in known)
        case ir.InlineEnum(primitive=primitive):
            return primitive.admits(ir.Primitive.of(value))
        case ir.Scalar(primitive=primitive):
            return primitive.admits(ir.Primitive.of(value)) and _is_in_bounds(value, wide)


def _is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other  # in Python, True equals 1; in JSON, it does not


def _is_in_bounds(value: str | int | bool, wide: ir.Scalar) -> bool:
    if isinstance(value, str):
        return len(value) >= (wide.min_length or 0)
    return (wide.minimum is None or value >= wide.minimum) and (wide.maximum is None or value <= wide.maximum)


def _is_within(narrow: ir.Scalar, wide: ir.Scalar) -> bool:
    """True if every value within the bounds of `narrow` is within those of `wide`."""
    above = wide.minimum is None or (narrow.minimum is not None and narrow.minimum >= wide.minimum)
    below = wide.maximum is None or (narrow.maximum is not None and narrow.maximum <= wide.maximum)
    return above and below and (narrow.min_length or 0) >= (wide.min_length or 0)


def _json_kind(found: Resolved) -> str:
    match found:
        case ir.Scalar(primitive=primitive) | ir.InlineEnum(primitive=primitive):
            # an integral number is an integer (JSON Schema 2020-12, section 4.2.3)
            return "number" if ir.Primitive.NUMBER.admits(primitive) else primitive.value
        case ir.Const(value):
            return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
        case ir.ListOf():
            return "array"
        case _:
            return "object"


def _values_disjoint(one: Resolved, other: Resolved) -> bool:
    left, right = _closed_values(one), _closed_values(other)
    return left is not None and right is not None and set(left).isdisjoint(right)


def _closed_values(found: object) -> tuple[str | int | bool, ...] | None:
    """All values of a constant or closed enum; None for other types."""
    match found:
        case ir.Const(value):
            return (value,)
        case ir.InlineEnum(values=values, open=False):
            return values
        case _:
            return None
