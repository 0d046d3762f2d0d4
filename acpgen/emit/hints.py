"""Type expressions as Python annotations."""

from __future__ import annotations

from acpgen.emit.literals import Code, identifier, literal
from acpgen.ir.model import (
    AnyJson,
    Choice,
    Const,
    Field,
    ListOf,
    MapOf,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    TypeExpr,
)

SCALARS = {
    Primitive.STRING: "str",
    Primitive.INTEGER: "int",
    Primitive.NUMBER: "float",
    Primitive.BOOLEAN: "bool",
    Primitive.NULL: "None",
}


def hint(expression: TypeExpr, *, module: str = "") -> Code:
    """The annotation for a value of `expression`; `module` is what definitions are qualified with ("types.")."""
    match expression:
        case Ref(name):
            return identifier(module + name)
        case Scalar(primitive=primitive):
            return Code(SCALARS[primitive])
        case Const(value):
            return Code(f"Literal[{literal(value)}]")
        case Choice():
            return _choice(expression)
        case ListOf(item=item):
            return Code(f"list[{hint(item, module=module)}]")
        case MapOf(value):
            return Code(f"dict[str, {hint(value, module=module)}]")
        case Nullable(AnyJson()) | AnyJson():
            return Code("Any")
        case Nullable(inner):
            return Code(f"{hint(inner, module=module)} | None")


def _choice(choice: Choice) -> Code:
    constants = ", ".join(map(literal, choice.values))
    rest = f" | {SCALARS[choice.primitive]}" if choice.open else ""
    return Code(f"Literal[{constants}]{rest}")


def field_hint(field: Field, *, module: str = "") -> Code:
    """The annotation for the attribute: UNSET is possible where the key may be absent."""
    known = hint(field.type, module=module)
    return Code(f"{known} | UnsetType") if field.may_be_unset else known
