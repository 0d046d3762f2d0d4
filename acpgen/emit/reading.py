"""Expressions that decode and encode: from a type to the call of the function that reads or writes it."""

from __future__ import annotations

from acpgen.emit.literals import Code, identifier, literal
from acpgen.emit.values import is_immutable, value
from acpgen.ir import names
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
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TypeExpr,
    Value,
)
from acpgen.ir.order import members

_READERS = {
    Primitive.STRING: "string",
    Primitive.INTEGER: "integer",
    Primitive.NUMBER: "number",
    Primitive.BOOLEAN: "boolean",
    Primitive.NULL: "null",
}
TYPES = "types."
"""How generated modules qualify what `types.py` defines."""


def decoder(name: str) -> Code:
    """The function that decodes the definition `name`."""
    return identifier(f"decode_{names.snake(name)}")


def encoder(name: str) -> Code:
    """The function that encodes the definition `name`."""
    return identifier(f"encode_{names.snake(name)}")


def constant(prefix: str, name: str, suffix: str = "") -> Code:
    """The name of a module constant about the definition `name`."""
    return identifier(f"{prefix}{names.snake(name).upper()}{suffix}")


class Reading:
    """Builds decode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def read(self, expression: TypeExpr, source: str) -> Code:
        """The expression that decodes `source`."""
        match self.resolved(expression):
            case AnyJson() | Nullable(AnyJson()):
                return Code(source)
            case Scalar() as scalar:
                return _read_scalar(scalar, source)
            case Const(only):
                return Code(f"constant({source}, {literal(only)})")
            case Choice(open=True, primitive=primitive):
                return Code(f"{_READERS[primitive]}({source})")
            case Choice(values=values):
                known = ", ".join(f"{literal(each)}: {literal(each)}" for each in values)
                return Code(f"choice({source}, {{{known}}})")
            case ListOf(item=item, min_items=0):
                return Code(f"array({source}, {self.reader(item)})")
            case ListOf(item=item, min_items=min_items):
                return Code(f"long_array({source}, {self.reader(item)}, {min_items})")
            case MapOf(AnyJson()):
                return Code(f"json_object({source})")
            case MapOf(inner):
                return Code(f"mapping({source}, {self.reader(inner)})")
            case Nullable(inner):
                return Code(f"nullable({source}, {self.reader(inner)})")
            case Ref(name):
                return Code(f"{decoder(name)}({source})")

    def reader(self, expression: TypeExpr) -> Code:
        """A callable that decodes its argument."""
        call = self.read(expression, "value")
        if call == "value":
            return Code("anything")
        function, _, rest = call.partition("(")
        return Code(function) if rest == "value)" else Code(f"lambda value: {call}")

    def resolved(self, expression: TypeExpr) -> TypeExpr:
        """The type behind aliases."""
        while isinstance(expression, Ref):
            definition = self._model.by_name[expression.name]
            if not isinstance(definition, Alias):
                break
            expression = definition.type
        return expression

    def field(self, field: Field) -> Code:
        """The expression that decodes the property `field` of the object `data`.

        Where that can raise, it leaves the name of the property in `key`, for the error.
        """
        return self._required(field) if field.required else self._optional(field)

    def _required(self, field: Field) -> Code:
        fallback = self._fallback(field)
        key = f"key := {literal(field.wire)}"
        if fallback is not None and field.leniency.default_on_null:
            return Code(f"{fallback} if data[{key}] is None else {self._present(field, 'key', fallback)}")
        return self._present(field, key, fallback)

    def _optional(self, field: Field) -> Code:
        wire = literal(field.wire)
        is_strict = self.is_strict(field)
        present = self._present(field, "key" if is_strict else wire, self._fallback(field))
        if field.leniency.default_on_null:
            test = f"data.get({f'key := {wire}' if is_strict else wire}) is not None"
        else:
            test = f"(key := {wire}) in data" if is_strict else f"{wire} in data"
        return Code(f"{present} if {test} else {_absent(field)}")

    def is_strict(self, field: Field) -> bool:
        """Whether decoding the property can raise."""
        never_raises = isinstance(self.resolved(field.type), AnyJson) or self._is_lenient(field)
        return field.required or not never_raises

    def _fallback(self, field: Field) -> Code | None:
        """What stands in for a value that does not fit, where the property may be lenient at all."""
        if not field.required:
            return _absent(field)
        if field.default is not None:
            return value(field.default, module=TYPES)
        empty: dict[type, Value] = {ListOf: ListValue(()), MapOf: MapValue(()), Nullable: Literal(None)}
        known = empty.get(type(self.resolved(field.type)))
        return value(known) if known is not None else None

    def _is_lenient(self, field: Field) -> bool:
        return field.leniency.default_on_error and not isinstance(self.resolved(field.type), AnyJson)

    def _present(self, field: Field, key: str, fallback: Code | None) -> Code:
        """The expression for a property that is there; a lenient one falls back to `fallback`, where there is one."""
        expression = self.resolved(field.type)
        skips = field.leniency.skip_invalid_items
        if fallback is None or not self._is_lenient(field):
            return self._skipping(expression, f"data[{key}]") if skips else self.read(expression, f"data[{key}]")
        name = "lenient"
        if isinstance(expression, Nullable):
            name, expression = "lenient_nullable", self.resolved(expression.inner)
        read = self._item_reader(expression, skips=skips)
        if fallback == "UNSET":
            return Code(f"{name}_or_unset(data, {key}, {read})")
        return Code(f"{name}(data, {key}, {read}, {fallback})")

    def _item_reader(self, expression: TypeExpr, *, skips: bool) -> Code:
        if skips and isinstance(expression, (ListOf, MapOf)):
            return Code(f"lambda value: {self._skipping(expression, 'value')}")
        return self.reader(expression)

    def _skipping(self, expression: TypeExpr, source: str) -> Code:
        match expression:
            case Nullable(inner):
                return Code(f"nullable({source}, {self._item_reader(self.resolved(inner), skips=True)})")
            case ListOf(item=item, min_items=min_items):
                least = f", {min_items}" if min_items else ""
                return Code(f"valid_items({source}, {self.reader(item)}{least})")
            case MapOf(inner):
                return Code(f"valid_members({source}, {self.reader(inner)})")
            case _:
                return self.read(expression, source)


def _absent(field: Field) -> Code:
    """What the constructor is given for an absent key; a default that must not be shared, it makes itself."""
    if field.default is not None and is_immutable(field.default):
        return value(field.default)
    return Code("UNSET")


def _read_scalar(scalar: Scalar, source: str) -> Code:
    read = _READERS[scalar.primitive]
    if scalar.primitive is Primitive.STRING and scalar.min_length:
        return Code(f"long_string({source}, {scalar.min_length})")
    if (scalar.minimum, scalar.maximum) != (None, None) and scalar.primitive in (Primitive.INTEGER, Primitive.NUMBER):
        return Code(f"bounded_{read}({source}, {literal(scalar.minimum)}, {literal(scalar.maximum)})")
    return Code(f"{read}({source})")


class Writing:
    """Builds encode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._plain: dict[str, bool] = {}

    def write(self, expression: TypeExpr, source: str) -> Code:
        """The expression that encodes `source`; the same object where its JSON is itself."""
        if self.is_plain(expression):
            return Code(source)
        match expression:
            case Ref(name):
                definition = self._model.by_name[name]
                if isinstance(definition, Alias):
                    return self.write(definition.type, source)
                return Code(f"{encoder(name)}({source})")
            case ListOf(item=item):
                return Code(f"[{self.write(item, 'item')} for item in {source}]")
            case MapOf(inner):
                return Code(f"{{name: {self.write(inner, 'item')} for name, item in {source}.items()}}")
            case Nullable(inner):
                return Code(f"None if {source} is None else {self.write(inner, source)}")
            case _:
                return Code(source)

    def is_plain(self, expression: TypeExpr) -> bool:
        """Whether values of the type are JSON as they are."""
        match expression:
            case Ref(name):
                if name not in self._plain:  # unions may lead to one another on more ways than can be counted
                    self._plain[name] = self._is_plain_definition(self._model.by_name[name])
                return self._plain[name]
            case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
                return self.is_plain(inner)
            case _:
                return True

    def _is_plain_definition(self, definition: Definition) -> bool:
        match definition:
            case Alias(type=target):
                return self.is_plain(target)
            case Enum():
                return True
            case Struct():
                return False
            case _:
                return all(self.is_plain(member) for member in members(definition))
