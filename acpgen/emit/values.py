"""Values known at build time as Python source."""

from __future__ import annotations

from acpgen.emit.literals import Code, identifier, literal
from acpgen.ir.model import Construct, ListValue, Literal, MapValue, Value


def value(known: Value, *, module: str = "") -> Code:
    """The expression that makes `known` anew each time it is evaluated."""
    match known:
        case Literal(scalar):
            return literal(scalar)
        case ListValue(items):
            return Code(f"[{', '.join(value(item, module=module) for item in items)}]")
        case MapValue(items):
            members = (f"{literal(key)}: {value(item, module=module)}" for key, item in items)
            return Code("{" + ", ".join(members) + "}")
        case Construct(name, arguments):
            passed = (f"{identifier(key)}={value(item, module=module)}" for key, item in arguments)
            return Code(f"{identifier(module + name)}({', '.join(passed)})")


def is_immutable(known: Value) -> bool:
    """Whether one evaluation can serve every caller, as the default of a parameter does."""
    return isinstance(known, Literal)
