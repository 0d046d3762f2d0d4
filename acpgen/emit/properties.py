"""Expressions that decode a property of an object: required or not, strict or lenient, with or without a default."""

from __future__ import annotations

from acpgen.emit.literals import Code, identifier, literal
from acpgen.emit.reading import TYPES, Reading
from acpgen.emit.values import value
from acpgen.ir.defaults import stand_in
from acpgen.ir.model import (
    AnyJson,
    Const,
    Construct,
    Field,
    ListOf,
    ListValue,
    Literal,
    MapOf,
    MapValue,
    Nullable,
    Ref,
    TypeExpr,
    Value,
)

class Properties:
    """Builds the expressions for the properties of the object `data`, for the types of one model."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading

    def read(self, field: Field) -> Code:
        """The expression that decodes the property `field`."""
        return self._required(field) if field.required else self._optional(field)

    def _required(self, field: Field) -> Code:
        expression, key = self._reading.resolved(field.type), literal(field.wire)
        fallback = stand_in(field, expression)
        present = self._present(field, fallback)
        if fallback is not None and field.leniency.default_on_null:
            return Code(f"{value(fallback, module=TYPES)} if data.get({key}, UNSET) is None else {present}")
        return present

    def _optional(self, field: Field) -> Code:
        key = literal(field.wire)
        present = Code(f"data[{key}]") if self._takes_anything(field) else self._present(field, field.default)
        if self._is_made_if_absent(field) and not field.leniency.default_on_null:
            return present
        test = f"data.get({key}) is not None" if field.leniency.default_on_null else f"{key} in data"
        absent = "UNSET" if field.default is None else value(field.default, module=TYPES)
        return Code(f"{present} if {test} else {absent}")

    def _present(self, field: Field, fallback: Value | None) -> Code:
        """The expression for a property that is there; where it does not fit, a lenient one is `fallback`."""
        skips = field.leniency.skip_invalid_items
        if self._is_lenient(field, fallback):
            return self._lenient(field, fallback, skips=skips)
        return self._strict(field.type, literal(field.wire), skips=skips)

    def _is_lenient(self, field: Field, fallback: Value | None) -> bool:
        """Whether a property that does not fit is dropped."""
        has_fallback = fallback is not None or not field.required
        return field.leniency.default_on_error and has_fallback and not self._takes_anything(field)

    def _is_made_if_absent(self, field: Field) -> bool:
        """Whether `lenient_or_made` reads the property, the one reader that takes an absent one."""
        if field.required or not self._is_lenient(field, field.default):
            return False
        match field.default, self._reading.resolved(field.type):
            case (None | Literal(), _):
                return False
            case ListValue(()), ListOf(min_items=0) if field.leniency.skip_invalid_items:
                return False
            case _:
                return True

    def _takes_anything(self, field: Field) -> bool:
        return isinstance(self._reading.resolved(field.type), AnyJson)

    def _strict(self, expression: TypeExpr, key: str, *, skips: bool) -> Code:
        """The call for a property that has to fit."""
        read = self._item_reader(expression, skips=skips)
        match self._reading.resolved(expression):
            case Const(str(only)):
                return Code(f"constant_at(data, {key}, {literal(only)})")
            case _ if read == "string":
                return Code(f"string_at(data, {key})")
            case ListOf(item=item, min_items=0) if not skips:
                return Code(f"array_at(data, {key}, {self._reading.reader(item)})")
            case Nullable(inner):
                return Code(f"nullable_at(data, {key}, {self._item_reader(inner, skips=skips)})")
            case _:
                return Code(f"at(data, {key}, {read})")

    def _lenient(self, field: Field, fallback: Value | None, *, skips: bool) -> Code:
        """The call for a property that may not fit, and is `fallback`, or UNSET, then."""
        key, read = literal(field.wire), self._item_reader(field.type, skips=skips)
        match fallback, self._reading.resolved(field.type):
            case None, Nullable(ListOf(item=item, min_items=0)) if skips:
                return Code(f"lenient_items(data, {key}, {self._reading.reader(item)})")
            case None, Nullable(inner):
                return Code(f"lenient(data, {key}, {self._item_reader(inner, skips=skips)})")
            case None, _:
                return Code(f"lenient_or(data, {key}, {read}, UNSET)")
            case ListValue(()), ListOf(item=item, min_items=0) if skips:
                return Code(f"lenient_list(data, {key}, {self._reading.reader(item)})")
            case Literal(), _:
                return Code(f"lenient_or(data, {key}, {read}, {value(fallback)})")
            case _ if self._is_made_if_absent(field):
                return Code(f"lenient_or_made(data, {key}, {read}, {_maker(fallback)})")
            case _:
                return Code(f"lenient_or(data, {key}, {read}, {_made(fallback)})")

    def _item_reader(self, expression: TypeExpr, *, skips: bool) -> Code:
        """A callable that decodes its argument, without the items that do not fit if it `skips` these."""
        found = self._reading.resolved(expression)
        if skips and isinstance(found, (ListOf, MapOf, Nullable)):
            return Code(f"lambda value: {self._skipping(found, 'value')}")
        return self._reading.reader(expression)

    def _skipping(self, expression: TypeExpr, source: str) -> Code:
        match expression:
            case Nullable(inner):
                reader = self._item_reader(inner, skips=True)
                return Code(f"nullable({source}, {reader})")
            case ListOf(item=item, min_items=min_items):
                least = f", {min_items}" if min_items else ""
                return Code(f"valid_items({source}, {self._reading.reader(item)}{least})")
            case MapOf(inner):
                return Code(f"valid_members({source}, {self._reading.reader(inner)})")
            case _:
                return self._reading.read(expression, source)


def _maker(fallback: Value) -> Code:
    """A callable that makes `fallback` anew."""
    match fallback:
        case ListValue(()):
            return Code("list")
        case MapValue(()):
            return Code("dict")
        case Construct(name, ()):
            return identifier(TYPES + name)
        case _:
            return Code(f"lambda: {value(fallback, module=TYPES)}")


def _made(fallback: Value) -> Code:
    """The expression that makes `fallback` anew; type checkers infer nothing from an empty literal."""
    match fallback:
        case ListValue(()):
            return Code("list[Any]()")
        case MapValue(()):
            return Code("dict[str, Any]()")
        case _:
            return value(fallback, module=TYPES)
