"""Expressions that decode: from a type to the call of the function that reads it."""

from __future__ import annotations

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
                definition = self._model.by_name[name]
                if isinstance(definition, Enum) and definition.open:  # one call less
                    return Code(f"{_READERS[definition.primitive]}({source})")
                return Code(f"{decoder(name)}({source})")

    def reader(self, expression: TypeExpr) -> Code:
        """A callable that decodes its argument."""
        call = self.read(expression, "value")
        if call == "value":
            return Code("anything")
        function, _, rest = call.partition("(")
        return Code(function) if rest == "value)" else Code(f"lambda value: {call}")

    def constants(self, name: str) -> Code | None:
        """The table of the constants of a closed enum; None for any other definition."""
        definition = self._model.by_name[name]
        if isinstance(definition, Enum) and not definition.open:
            return constant("_", name, "_VALUES")
        return None

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
        return Code(f"bounded_{read}({source}, {literal(scalar.minimum)}, {literal(scalar.maximum)})")
    return Code(f"{read}({source})")
