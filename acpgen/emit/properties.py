"""Expressions that decode the properties of an object."""

from __future__ import annotations

from types import NoneType

from acpgen.emit.conversions import TYPES, DecodeExpressions, integer_test
from acpgen.emit.source import Code, identifier, literal, value
from acpgen.ir import model as ir
from acpgen.ir.leniency import fallback, replaces_misfits
from acpgen.ir.relations import without_null


class Properties:
    """Build decode expressions for the properties of the object `data`."""

    def __init__(self, reading: DecodeExpressions) -> None:
        self._reading = reading
        self._model = reading.model

    def read(self, field: ir.Field, fetched: str = "value") -> Code:
        """The expression that decodes the property `field`, or its value, `fetched`, if there is a `fetch` for that."""
        if (test := self._usual(field)) is None:
            return self._required(field) if field.required else self._optional(field)
        start = f"value if {fetched} is UNSET or value" if field.may_be_unset else f"value if {fetched}"
        return Code(f"{start}{test} else {self._present(field)}")

    def whole(self, field: ir.Field) -> Code | None:
        """The expression that fetches and decodes a required property of a common kind; None for others."""
        fetch = self.fetch(field) if field.required else None
        return None if fetch is None else self.read(field, f"(value := {fetch})")

    def fetch(self, field: ir.Field) -> Code | None:
        """The expression for the value of a property of a common kind; None for others."""
        if self._usual(field) is None:
            return None
        absent = "" if field.required else ", UNSET" if field.default is None else f", {value(field.default)}"
        return Code(f"data.get({literal(field.wire)}{absent})")

    def _usual(self, field: ir.Field) -> Code | None:
        """The test for usual values of a property of a common kind: those are taken as they are, without a call."""
        if field.leniency.default_on_null or not isinstance(field.default, (ir.Literal, NoneType)):
            return None
        match without_null(field.type, self._model):
            case ir.Scalar(primitive=ir.Primitive.STRING, min_length=None):
                return Code(".__class__ is str")
            case ir.Scalar(primitive=ir.Primitive.BOOLEAN):
                return Code(".__class__ is bool")
            case ir.Scalar(primitive=ir.Primitive.INTEGER) as scalar:
                return Code(integer_test(scalar))
            case ir.Const(str(only)):
                return Code(f" == {literal(only)}")
            case ir.Ref(name) if texts := self._reading.known_texts(name):
                return Code(f" in {texts}")
            case ir.Ref() as known if self._reading.primitive(known) is ir.Primitive.STRING:
                return Code(".__class__ is str")
            case _:
                return None

    def _required(self, field: ir.Field) -> Code:
        present, replacement = self._present(field), fallback(field, self._model)
        if replacement is not None and field.leniency.default_on_null:
            key = literal(field.wire)
            return Code(f"{value(replacement, module=TYPES)} if data.get({key}, UNSET) is None else {present}")
        return present

    def _optional(self, field: ir.Field) -> Code:
        key = literal(field.wire)
        takes_anything = isinstance(self._reading.resolved(field.type), ir.AnyJson)
        present = Code(f"data[{key}]") if takes_anything else self._present(field)
        if self._is_made_if_absent(field) and not field.leniency.default_on_null:
            return present
        test = f"data.get({key}) is not None" if field.leniency.default_on_null else f"{key} in data"
        absent = "UNSET" if field.default is None else value(field.default, module=TYPES)
        return Code(f"{present} if {test} else {absent}")

    def _present(self, field: ir.Field) -> Code:
        """The expression for a property that is present."""
        return self._lenient(field) if replaces_misfits(field, self._model) else self._strict(field)

    def _is_made_if_absent(self, field: ir.Field) -> bool:
        """True if `lenient_or_made` decodes the property; it is the only reader that accepts an absent one."""
        if field.required or not replaces_misfits(field, self._model):
            return False
        match field.default, self._reading.resolved(field.type):
            case (None | ir.Literal(), _):
                return False
            case ir.ListValue(()), ir.ListOf(min_items=0) if field.leniency.skip_invalid_items:
                return False
            case _:
                return True

    def _strict(self, field: ir.Field) -> Code:
        """The call for a property that must fit."""
        key, skips = literal(field.wire), field.leniency.skip_invalid_items
        read = self._item_reader(field.type, skips=skips)
        match self._reading.resolved(field.type):
            case ir.Ref(name) if known := self._reading.tag_table(name):
                tag, table = known
                return Code(f"tagged_at(data, {key}, {tag}, {table}, {read})")
            case ir.Const(str(only)):
                return Code(f"constant_at(data, {key}, {literal(only)})")
            case _ if self._reading.primitive(field.type) is ir.Primitive.STRING:
                return Code(f"string_at(data, {key})")
            case ir.ListOf(item=item, min_items=0) if not skips:
                return Code(f"array_at(data, {key}, {self._reading.reader(item)})")
            case ir.Nullable(ir.ListOf(item=item, min_items=0)) if not skips:
                return Code(f"nullable_array_at(data, {key}, {self._reading.reader(item)})")
            case ir.Nullable(inner):
                return Code(f"nullable_at(data, {key}, {self._item_reader(inner, skips=skips)})")
            case _:
                return Code(f"at(data, {key}, {read})")

    def _lenient(self, field: ir.Field) -> Code:
        """The call for a property that becomes another value, or UNSET, if it does not fit."""
        key, skips = literal(field.wire), field.leniency.skip_invalid_items
        read, replacement = self._item_reader(field.type, skips=skips), fallback(field, self._model)
        match replacement, self._reading.resolved(field.type):
            case None, ir.Nullable(ir.ListOf(item=item, min_items=0)) if skips:
                return Code(f"lenient_items(data, {key}, {self._reading.reader(item)})")
            case None, ir.Nullable(ir.MapOf(ir.AnyJson())):
                return Code(f"lenient_object(data, {key})")
            case None, ir.Nullable(inner):
                return Code(f"lenient(data, {key}, {self._item_reader(inner, skips=skips)})")
            case None, ir.ListOf(item=item, min_items=0) if skips:
                return Code(f"lenient_array(data, {key}, {self._reading.reader(item)})")
            case None, _:
                return Code(f"lenient_or(data, {key}, {read}, UNSET)")
            case ir.ListValue(()), ir.ListOf(item=item, min_items=0) if skips:
                return Code(f"lenient_list(data, {key}, {self._reading.reader(item)})")
            case ir.Literal(), _:
                return Code(f"lenient_or(data, {key}, {read}, {value(replacement)})")
            case _ if self._is_made_if_absent(field):
                return Code(f"lenient_or_made(data, {key}, {read}, {_maker(replacement)})")
            case _:
                return Code(f"lenient_or(data, {key}, {read}, {_made(replacement)})")

    def _item_reader(self, expression: ir.TypeExpr, *, skips: bool) -> Code:
        """A callable that decodes its argument; with `skips`, it leaves out items that do not fit."""
        match self._reading.resolved(expression):
            case ir.Nullable(inner) if skips:
                return Code(f"lambda value: nullable(value, {self._item_reader(inner, skips=True)})")
            case ir.ListOf(item=item, min_items=min_items) if skips:
                least = f", {min_items}" if min_items else ""
                return Code(f"lambda value: valid_items(value, {self._reading.reader(item)}{least})")
            case ir.MapOf(inner) if skips:
                return Code(f"lambda value: valid_members(value, {self._reading.reader(inner)})")
            case _:
                return self._reading.reader(expression)


def _maker(fallback: ir.Value) -> Code:
    """A callable that returns a new `fallback`."""
    match fallback:
        case ir.ListValue(()):
            return Code("list")
        case ir.MapValue(()):
            return Code("dict")
        case ir.Construct(name, ()):
            return identifier(TYPES + name)
        case _:
            return Code(f"lambda: {value(fallback, module=TYPES)}")


def _made(fallback: ir.Value) -> Code:
    """The expression that creates a new `fallback`. Type checkers cannot infer the type of an empty literal."""
    match fallback:
        case ir.ListValue(()):
            return Code("list[Any]()")
        case ir.MapValue(()):
            return Code("dict[str, Any]()")
        case _:
            return value(fallback, module=TYPES)
