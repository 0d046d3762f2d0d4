"""Expressions that decode and encode values: any type, and the properties of an object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import NoneType

from acpgen.emit.source import Code, hint, identifier, literal, value
from acpgen.ir import names
from acpgen.ir.leniency import fallback, replaces_misfits
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Choice,
    Const,
    Construct,
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
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
    Value,
)
from acpgen.ir.opened import watched
from acpgen.ir.order import members
from acpgen.ir.relations import resolved

READERS = {
    Primitive.STRING: "string",
    Primitive.INTEGER: "integer",
    Primitive.NUMBER: "number",
    Primitive.BOOLEAN: "boolean",
    Primitive.NULL: "null",
}
"""The decoders of primitives."""
TYPES = "types."
"""The prefix for names of `types.py` in the other generated modules."""


def decoder(name: str) -> Code:
    """The name of the decoder of the definition `name`."""
    return identifier(f"decode_{names.snake(name)}")


def encoder(name: str) -> Code:
    """The name of the encoder of the definition `name`."""
    return identifier(f"encode_{names.snake(name)}")


@dataclass(frozen=True, slots=True)
class NamedReader:
    """A decoder of a bounded scalar: its name, its return type, and its expression for `value`."""

    name: Code
    hint: Code
    call: Code


@dataclass(frozen=True, slots=True)
class TagTable:
    """The table of decoders by the values of a union's tag: its name, and the property that has the tag."""

    name: Code
    tag: Code


class Reading:
    """Build decode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def watched(self) -> frozenset[str]:
        """The opened definitions whose decoders report values that the schema does not list."""
        return watched(self.model)

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
                return Code(f"{READERS[primitive]}({source})")
            case Choice(values=values):
                return Code(f"choice({source}, constants({', '.join(map(literal, values))}))")
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
                definition = self.model.by_name[name]
                if isinstance(definition, Enum) and definition.open and name not in self.watched:  # one call less
                    return Code(f"{READERS[definition.primitive]}({source})")
                return Code(f"{decoder(name)}({source})")

    def reader(self, expression: TypeExpr) -> Code:
        """A callable that decodes its argument: a function if there is one, else a lambda."""
        if isinstance(expression, Scalar) and (named := named_reader(expression)):
            return named.name
        call = self.read(expression, "value")
        function, _, rest = call.partition("(")
        if not rest:
            return Code("anything")
        if rest == "value)":
            return Code(function)
        match expression:
            case Ref(name):
                return decoder(self._last_alias(name))
            case ListOf(item=item, min_items=0):
                return Code(f"array_of({self.reader(item)})")
            case _:
                return Code(f"lambda value: {call}")

    def known_texts(self, name: str) -> Code | None:
        """The name of the tuple with the constants of a closed enum of strings; None for other definitions."""
        match self.model.by_name[name]:
            case Enum(primitive=Primitive.STRING, open=False):
                return identifier(names.snake(name).upper())
            case _:
                return None

    def tag_table(self, name: str) -> TagTable | None:
        """The table of the decoders of a union's members, if the tag alone decides."""
        match self.model.by_name[name]:
            case TaggedUnion(tag=tag) as union if not tries_on(union):
                return TagTable(identifier(f"{names.snake(name).upper()}_TAGS"), literal(tag))
            case _:
                return None

    def has_decoder(self, name: str) -> bool:
        """True if the definition `name` needs a decoder of its own."""
        return self.reader(Ref(name)) == decoder(name)

    def _last_alias(self, name: str) -> str:
        """The last alias in the chain that starts at `name`."""
        definition = self.model.by_name[name]
        while isinstance(definition, Alias) and isinstance(definition.type, Ref):
            definition = self.model.by_name[definition.type.name]
        return definition.name

    def resolved(self, expression: TypeExpr) -> TypeExpr:
        """The type behind aliases."""
        return resolved(expression, self.model)


def _read_scalar(scalar: Scalar, source: str) -> Code:
    read = READERS[scalar.primitive]
    if scalar.primitive is Primitive.STRING and scalar.min_length:
        return Code(f"long_string({source}, {scalar.min_length})")
    if (scalar.minimum, scalar.maximum) != (None, None) and scalar.primitive in (Primitive.INTEGER, Primitive.NUMBER):
        return Code(f"bounded({read}({source}), {literal(scalar.minimum)}, {literal(scalar.maximum)})")
    return Code(f"{read}({source})")


def named_reader(scalar: Scalar) -> NamedReader | None:
    """The decoder of a scalar with bounds; None if that of its primitive is enough."""
    call = _read_scalar(scalar, "value")
    if call == _read_scalar(Scalar(primitive=scalar.primitive), "value"):
        return None
    low, high = map(_word, (scalar.minimum if scalar.min_length is None else scalar.min_length, scalar.maximum))
    limits = f"{low}_to_{high}" if low and high else f"from_{low}" if low else f"up_to_{high}"
    if scalar.primitive is Primitive.INTEGER:
        call = Code(f"value if value{_integer_test(scalar)} else {call}")
    return NamedReader(identifier(f"{scalar.primitive.value}_{limits}"), hint(scalar), call)


def _integer_test(scalar: Scalar) -> str:
    """What follows `value` in the test for integers within the bounds."""
    match scalar.minimum, scalar.maximum:
        case None, None:
            return ".__class__ is int"
        case minimum, None:
            return f".__class__ is int and value >= {literal(minimum)}"
        case None, maximum:
            return f".__class__ is int and value <= {literal(maximum)}"
        case minimum, maximum:
            return f".__class__ is int and {literal(minimum)} <= value <= {literal(maximum)}"


def _word(limit: float | None) -> str:
    """A limit as part of a name; empty for no limit."""
    text = "" if limit is None else literal(limit)
    return text.replace("-", "minus_").replace("+", "").replace(".", "_point_")


def tries_on(union: TaggedUnion) -> bool:
    """True if a value that does not fit the member of its tag may still fit another member."""
    known = {variant.tag for variant in union.variants}
    return bool(union.untagged) or (union.other is not None and not known <= set(union.other.excluded))


class Writing:
    """Build encode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._plain: dict[str, bool] = {}

    def write(self, expression: TypeExpr, source: str) -> Code:
        """The expression that encodes `source`; `source` itself if its value is JSON already."""
        if self.is_plain(expression):
            return Code(source)
        match expression:
            case Ref(name):
                return self._write_definition(self._model.by_name[name], source)
            case ListOf(item=item):
                return Code(f"[{self.write(item, 'item')} for item in {source}]")
            case MapOf(inner):
                return Code(f"{{name: {self.write(inner, 'item')} for name, item in {source}.items()}}")
            case Nullable(inner):
                return Code(f"None if {source} is None else {self.write(inner, source)}")
            case _:
                return Code(source)

    def _write_definition(self, definition: Definition, source: str) -> Code:
        match definition:
            case Struct():
                return Code(f"{encoder(definition.name)}({source})")
            case Alias():
                return self.write(definition.type, source)
            case _ if self.has_class(definition):
                return Code(f"ENCODERS[{source}.__class__]({source})")
            case UntaggedUnion() if all(self._is_list_of_instances(each) for each in members(definition)):
                return Code(f"[ENCODERS[item.__class__](item) for item in {source}]")
            case _:
                return Code(f"encode({source})")

    def is_plain(self, expression: TypeExpr) -> bool:
        """True if values of the type are JSON already."""
        match expression:
            case Ref(name):
                if name not in self._plain:  # memoised: the number of paths is exponential
                    self._plain[name] = self._is_plain_definition(self._model.by_name[name])
                return self._plain[name]
            case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
                return self.is_plain(inner)
            case _:
                return True

    def has_class(self, definition: Definition) -> bool:
        """True if every value is an instance of a class."""
        if isinstance(definition, UntaggedUnion):
            found = [self._model.by_name[each.name] for each in members(definition) if isinstance(each, Ref)]
            return len(found) == len(members(definition)) and all(map(self.has_class, found))
        return isinstance(definition, (Struct, TaggedUnion))

    def _is_list_of_instances(self, expression: TypeExpr) -> bool:
        match expression:
            case ListOf(item=Ref(name)):
                return self.has_class(self._model.by_name[name])
            case _:
                return False

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


class Properties:
    """Build decode expressions for the properties of the object `data`."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._model = reading.model

    def read(self, field: Field) -> Code:
        """The expression that decodes the property `field`."""
        test = self._usual(field)
        if test is not None and field.required:
            return Code(f"value if (value := data.get({literal(field.wire)})){test} else {self._present(field)}")
        if test is not None:
            start = "value if value is UNSET or value" if field.may_be_unset else "value if value"
            return Code(f"{start}{test} else {self._present(field)}")
        return self._required(field) if field.required else self._optional(field)

    def fetch(self, field: Field) -> Code | None:
        """The expression for the `value` that `read` tests; None if it fetches the value itself."""
        if field.required or self._usual(field) is None:
            return None
        absent = "UNSET" if field.default is None else value(field.default)
        return Code(f"data.get({literal(field.wire)}, {absent})")

    def _usual(self, field: Field) -> Code | None:
        """The test for usual values of a property of a common kind: those are taken as they are, without a call."""
        if field.leniency.default_on_null or not isinstance(field.default, (Literal, NoneType)):
            return None
        found = self._reading.resolved(field.type)
        match self._reading.resolved(found.inner) if isinstance(found, Nullable) else found:
            case Scalar(primitive=Primitive.STRING, min_length=None):
                return Code(".__class__ is str")
            case Scalar(primitive=Primitive.BOOLEAN):
                return Code(".__class__ is bool")
            case Scalar(primitive=Primitive.INTEGER) as scalar:
                return Code(_integer_test(scalar))
            case Ref(name) if texts := self._reading.known_texts(name):
                return Code(f" in {texts}")
            case Ref(name) if self._reading.read(Ref(name), "raw") == "string(raw)":
                return Code(".__class__ is str")
            case _:
                return None

    def _required(self, field: Field) -> Code:
        present, replacement = self._present(field), fallback(field, self._model)
        if replacement is not None and field.leniency.default_on_null:
            key = literal(field.wire)
            return Code(f"{value(replacement, module=TYPES)} if data.get({key}, UNSET) is None else {present}")
        return present

    def _optional(self, field: Field) -> Code:
        key = literal(field.wire)
        present = Code(f"data[{key}]") if self._takes_anything(field) else self._present(field)
        if self._is_made_if_absent(field) and not field.leniency.default_on_null:
            return present
        test = f"data.get({key}) is not None" if field.leniency.default_on_null else f"{key} in data"
        absent = "UNSET" if field.default is None else value(field.default, module=TYPES)
        return Code(f"{present} if {test} else {absent}")

    def _present(self, field: Field) -> Code:
        """The expression for a property that is present."""
        skips = field.leniency.skip_invalid_items
        if replaces_misfits(field, self._model):
            return self._lenient(field, fallback(field, self._model), skips=skips)
        return self._strict(field.type, literal(field.wire), skips=skips)

    def _is_made_if_absent(self, field: Field) -> bool:
        """True if `lenient_or_made` decodes the property; it is the only reader that accepts an absent one."""
        if field.required or not replaces_misfits(field, self._model):
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
        """The call for a property that must fit."""
        read = self._item_reader(expression, skips=skips)
        match self._reading.resolved(expression):
            case Ref(name) if table := self._reading.tag_table(name):
                return Code(f"tagged_at(data, {key}, {table.tag}, {table.name}, {read})")
            case Const(str(only)):
                text = literal(only)
                return Code(f"{text} if data.get({key}) == {text} else constant_at(data, {key}, {text})")
            case _ if read == "string":
                return Code(f"string_at(data, {key})")
            case ListOf(item=item, min_items=0) if not skips:
                return Code(f"array_at(data, {key}, {self._reading.reader(item)})")
            case Nullable(ListOf(item=item, min_items=0)) if not skips:
                return Code(f"nullable_array_at(data, {key}, {self._reading.reader(item)})")
            case Nullable(inner):
                return Code(f"nullable_at(data, {key}, {self._item_reader(inner, skips=skips)})")
            case _:
                return Code(f"at(data, {key}, {read})")

    def _lenient(self, field: Field, replacement: Value | None, *, skips: bool) -> Code:
        """The call for a property that becomes `replacement`, or UNSET, if it does not fit."""
        key, read = literal(field.wire), self._item_reader(field.type, skips=skips)
        match replacement, self._reading.resolved(field.type):
            case None, Nullable(ListOf(item=item, min_items=0)) if skips:
                return Code(f"lenient_items(data, {key}, {self._reading.reader(item)})")
            case None, Nullable(MapOf(AnyJson())):
                return Code(f"lenient_object(data, {key})")
            case None, Nullable(inner):
                return Code(f"lenient(data, {key}, {self._item_reader(inner, skips=skips)})")
            case None, ListOf(item=item, min_items=0) if skips:
                return Code(f"lenient_array(data, {key}, {self._reading.reader(item)})")
            case None, _:
                return Code(f"lenient_or(data, {key}, {read}, UNSET)")
            case ListValue(()), ListOf(item=item, min_items=0) if skips:
                return Code(f"lenient_list(data, {key}, {self._reading.reader(item)})")
            case Literal(), _:
                return Code(f"lenient_or(data, {key}, {read}, {value(replacement)})")
            case _ if self._is_made_if_absent(field):
                return Code(f"lenient_or_made(data, {key}, {read}, {_maker(replacement)})")
            case _:
                return Code(f"lenient_or(data, {key}, {read}, {_made(replacement)})")

    def _item_reader(self, expression: TypeExpr, *, skips: bool) -> Code:
        """A callable that decodes its argument; with `skips`, it leaves out items that do not fit."""
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
    """A callable that returns a new `fallback`."""
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
    """The expression that creates a new `fallback`. Type checkers cannot infer the type of an empty literal."""
    match fallback:
        case ListValue(()):
            return Code("list[Any]()")
        case MapValue(()):
            return Code("dict[str, Any]()")
        case _:
            return value(fallback, module=TYPES)
