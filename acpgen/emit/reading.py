"""Expressions that decode: from a type to the call of the function that reads it."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.emit.hints import hint
from acpgen.emit.literals import Code, identifier, literal
from acpgen.ir import names
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Choice,
    Const,
    Enum,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    TypeExpr,
)

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


@dataclass(frozen=True, slots=True)
class NamedReader:
    """A function that decodes a scalar within bounds: its name, what it returns, and its expression for `value`."""

    name: Code
    hint: Code
    call: Code


class Reading:
    """Builds decode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.named: dict[Code, NamedReader] = {}
        """The functions for scalars within bounds that were asked for, by their names."""

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
                definition = self._model.by_name[name]
                if isinstance(definition, Enum) and definition.open:  # one call less
                    return Code(f"{_READERS[definition.primitive]}({source})")
                return Code(f"{decoder(name)}({source})")

    def reader(self, expression: TypeExpr) -> Code:
        """A callable that decodes its argument: a function where there is one, else a lambda."""
        call = self.read(expression, "value")
        function, _, rest = call.partition("(")
        if not rest:
            return Code("anything")
        if rest == "value)":
            return Code(function)
        match expression:
            case Ref(name):
                return decoder(self._last_alias(name))
            case Scalar():
                return self._named(expression, call)
            case _:
                return Code(f"lambda value: {call}")

    def has_decoder(self, name: str) -> bool:
        """Whether the definition `name` needs a function: not where that of another type does the same."""
        return self.reader(Ref(name)) == decoder(name)

    def _last_alias(self, name: str) -> str:
        """The alias that `name` leads to and whose type has no name."""
        definition = self._model.by_name[name]
        while isinstance(definition, Alias) and isinstance(definition.type, Ref):
            definition = self._model.by_name[definition.type.name]
        return definition.name

    def _named(self, scalar: Scalar, call: Code) -> Code:
        """The function for a scalar within bounds; it has to be printed, as `named` says."""
        low, high = map(_word, (scalar.minimum if scalar.min_length is None else scalar.min_length, scalar.maximum))
        limits = f"{low}_to_{high}" if low and high else f"from_{low}" if low else f"up_to_{high}"
        name = identifier(f"{scalar.primitive.value}_{limits}")
        self.named[name] = NamedReader(name, hint(scalar), call)
        return name

    def resolved(self, expression: TypeExpr) -> TypeExpr:
        """The type behind aliases."""
        while isinstance(expression, Ref):
            definition = self._model.by_name[expression.name]
            if not isinstance(definition, Alias):
                break
            expression = definition.type
        return expression


def _read_scalar(scalar: Scalar, source: str) -> Code:
    read = _READERS[scalar.primitive]
    if scalar.primitive is Primitive.STRING and scalar.min_length:
        return Code(f"long_string({source}, {scalar.min_length})")
    if (scalar.minimum, scalar.maximum) != (None, None) and scalar.primitive in (Primitive.INTEGER, Primitive.NUMBER):
        return Code(f"bounded({read}({source}), {literal(scalar.minimum)}, {literal(scalar.maximum)})")
    return Code(f"{read}({source})")


def _word(limit: float | None) -> str:
    """A limit as part of a name; empty where there is none."""
    text = "" if limit is None else literal(limit)
    return text.replace("-", "minus_").replace("+", "").replace(".", "_point_")
