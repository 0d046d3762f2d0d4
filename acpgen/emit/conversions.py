"""Expressions that decode and encode values of any type."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from acpgen.emit.source import Code, hint, identifier, literal
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.opened import watched
from acpgen.ir.order import members, references, types_of
from acpgen.ir.relations import may_send_null, resolved
from acpgen.schema.walk import closure

READERS = {
    ir.Primitive.STRING: "string",
    ir.Primitive.INTEGER: "integer",
    ir.Primitive.NUMBER: "number",
    ir.Primitive.BOOLEAN: "boolean",
    ir.Primitive.NULL: "null",
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


class DecodeExpressions:
    """Build decode expressions for the types of one model."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model

    @cached_property
    def watched(self) -> frozenset[str]:
        """The opened definitions whose decoders report values that the schema does not list."""
        return watched(self.model)

    def read(self, expression: ir.TypeExpr, source: str) -> Code:
        """The expression that decodes `source`."""
        match self.resolved(expression):
            case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
                return Code(source)
            case ir.Scalar() as scalar:
                return _read_scalar(scalar, source)
            case ir.Const(only):
                return Code(f"constant({source}, {literal(only)})")
            case ir.InlineEnum(open=True, primitive=primitive):
                return Code(f"{READERS[primitive]}({source})")
            case ir.InlineEnum(values=values):
                return Code(f"choice({source}, constants({', '.join(map(literal, values))}))")
            case ir.ListOf(item=item, min_items=0):
                return Code(f"array({source}, {self.reader(item)})")
            case ir.ListOf(item=item, min_items=min_items):
                return Code(f"long_array({source}, {self.reader(item)}, {min_items})")
            case ir.MapOf(ir.AnyJson()):
                return Code(f"json_object({source})")
            case ir.MapOf(inner):
                return Code(f"mapping({source}, {self.reader(inner)})")
            case ir.Nullable(inner):
                return Code(f"nullable({source}, {self.reader(inner)})")
            case ir.Ref():
                return Code(f"{self.reader(expression)}({source})")

    def reader(self, expression: ir.TypeExpr) -> Code:
        """A callable that decodes its argument: a function if there is one, else a lambda."""
        if (primitive := self.primitive(expression)) is not None:
            return Code(READERS[primitive])
        if (name := self.decoded_by(expression)) is not None:
            return decoder(name)
        match self.resolved(expression):
            case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
                return Code("anything")
            case ir.MapOf(ir.AnyJson()):
                return Code("json_object")
            case ir.Scalar() as scalar if named := named_reader(scalar):
                return named.name
            case ir.ListOf(item=item, min_items=0) if self.model.recursive.isdisjoint(references(item)):
                return Code(f"array_of({self.reader(item)})")
            case ir.Nullable(ir.Ref(name) as inner) if name in self.model.recursive:  # with fewer calls for each level
                return Code(f"lambda value: None if value is None else {self.reader(inner)}(value)")
            case _:
                return Code(f"lambda value: {self.read(expression, 'value')}")

    def primitive(self, expression: ir.TypeExpr) -> ir.Primitive | None:
        """The primitive of which the type has all values, and none to report; None for other types."""
        match self.resolved(expression):
            case ir.Scalar() as scalar if named_reader(scalar) is None:
                return scalar.primitive
            case ir.InlineEnum(open=True, primitive=primitive):
                return primitive
            case ir.Ref(name) if name not in self.watched:
                definition = self.model.by_name[name]
                return definition.primitive if isinstance(definition, ir.Enum) and definition.open else None
            case _:
                return None

    def decoded_by(self, expression: ir.TypeExpr) -> str | None:
        """The definition whose decoder decodes the type; None where functions of `_decode` are enough."""
        if not isinstance(expression, ir.Ref) or self.primitive(expression) is not None:
            return None
        match self.resolved(expression):
            case ir.Ref(name):
                return name
            case ir.AnyJson() | ir.Nullable(ir.AnyJson()) | ir.MapOf(ir.AnyJson()):
                return None
            case _:
                return self._last_alias(expression.name)

    def known_texts(self, name: str) -> Code | None:
        """The name of the tuple with the constants of a closed enum of strings; None for other definitions."""
        match self.model.by_name[name]:
            case ir.Enum(primitive=ir.Primitive.STRING, open=False):
                return identifier(names.snake(name).upper())
            case _:
                return None

    def tag_table(self, name: str) -> tuple[Code, Code] | None:
        """The property with the tag of a union, and the table of decoders by its values, if the tag alone decides."""
        match self.model.by_name[name]:
            case ir.TaggedUnion(tag=tag) as union if not tries_on(union):
                return literal(tag), identifier(f"{names.snake(name).upper()}_TAGS")
            case _:
                return None

    def has_decoder(self, name: str) -> bool:
        """True if the definition `name` needs a decoder of its own."""
        return self.decoded_by(ir.Ref(name)) == name

    def _last_alias(self, name: str) -> str:
        """The last alias in the chain that starts at `name`."""
        definition = self.model.by_name[name]
        while isinstance(definition, ir.Alias) and isinstance(definition.type, ir.Ref):
            definition = self.model.by_name[definition.type.name]
        return definition.name

    def resolved(self, expression: ir.TypeExpr) -> ir.TypeExpr:
        """The type behind aliases."""
        return resolved(expression, self.model)


def _read_scalar(scalar: ir.Scalar, source: str) -> Code:
    read = READERS[scalar.primitive]
    if scalar.primitive is ir.Primitive.STRING and scalar.min_length:
        return Code(f"long_string({source}, {scalar.min_length})")
    if (scalar.minimum, scalar.maximum) != (None, None) and scalar.primitive in (
        ir.Primitive.INTEGER,
        ir.Primitive.NUMBER,
    ):
        return Code(f"bounded({read}({source}), {literal(scalar.minimum)}, {literal(scalar.maximum)})")
    return Code(f"{read}({source})")


def named_reader(scalar: ir.Scalar) -> NamedReader | None:
    """The decoder of a scalar with bounds; None if that of its primitive is enough."""
    call = _read_scalar(scalar, "value")
    if call == _read_scalar(ir.Scalar(primitive=scalar.primitive), "value"):
        return None
    low, high = map(_word, (scalar.minimum if scalar.min_length is None else scalar.min_length, scalar.maximum))
    limits = f"{low}_to_{high}" if low and high else f"from_{low}" if low else f"up_to_{high}"
    if scalar.primitive is ir.Primitive.INTEGER:
        call = Code(f"value if value{integer_test(scalar)} else {call}")
    return NamedReader(identifier(f"{scalar.primitive.value}_{limits}"), hint(scalar), call)


def integer_test(scalar: ir.Scalar) -> str:
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


def tries_on(union: ir.TaggedUnion) -> bool:
    """True if a value that does not fit the member of its tag may still fit another member."""
    known = {variant.tag for variant in union.variants}
    return bool(union.untagged) or (union.other is not None and not known <= set(union.other.excluded))


class Writing:
    """Build encode expressions for the types of one model."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model

    @cached_property
    def _with_classes(self) -> frozenset[str]:
        """The definitions whose values have instances of classes in them."""
        users = defaultdict[str, list[str]](list)
        for each in self._model.definitions:
            for name in () if isinstance(each, ir.Struct) else references(*types_of(each)):
                users[name].append(each.name)
        classes = (each.name for each in self._model.definitions if isinstance(each, ir.Struct))
        return closure(classes, lambda name: users[name])

    def write(self, expression: ir.TypeExpr, source: str) -> Code:
        """The expression that encodes `source`; `source` itself if its value is JSON already."""
        if self.is_plain(expression):
            return Code(source)
        match expression:
            case ir.Ref(name):
                return self._write_definition(self._model.by_name[name], source)
            case ir.ListOf(item=item):
                return Code(f"[{self.write(item, 'item')} for item in {source}]")
            case ir.MapOf(inner):
                return Code(f"{{name: {self.write(inner, 'item')} for name, item in {source}.items()}}")
            case ir.Nullable(inner):
                return Code(f"None if {source} is None else {self.write(inner, source)}")
            case _:
                return Code(source)

    def _write_definition(self, definition: ir.Definition, source: str) -> Code:
        match definition:
            case ir.Struct():
                return Code(f"{encoder(definition.name)}({source})")
            case ir.Alias():
                return self.write(definition.type, source)
            case _ if self.has_class(definition):
                return Code(f"ENCODERS[{source}.__class__]({source})")
            case ir.UntaggedUnion() if all(self._is_list_of_instances(each) for each in members(definition)):
                return Code(f"[ENCODERS[item.__class__](item) for item in {source}]")
            case _:
                return Code(f"encode({source})")

    def leaves_out_null(self, field: ir.Field) -> bool:
        """True for a property that is not written if its value is null."""
        return field.omits_null and may_send_null(field, self._model)

    def is_plain(self, expression: ir.TypeExpr) -> bool:
        """True if values of the type are JSON already."""
        return self._with_classes.isdisjoint(references(expression))

    def has_class(self, definition: ir.Definition) -> bool:
        """True if every value is an instance of a class."""
        if isinstance(definition, ir.UntaggedUnion):
            found = [self._model.by_name[each.name] for each in members(definition) if isinstance(each, ir.Ref)]
            return len(found) == len(members(definition)) and all(map(self.has_class, found))
        return isinstance(definition, (ir.Struct, ir.TaggedUnion))

    def _is_list_of_instances(self, expression: ir.TypeExpr) -> bool:
        match expression:
            case ir.ListOf(item=ir.Ref(name)):
                return self.has_class(self._model.by_name[name])
            case _:
                return False
