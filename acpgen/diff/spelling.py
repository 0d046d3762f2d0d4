"""Types and values as text for messages, and types in a form in which two models can be compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from acpgen.emit.source import hint
from acpgen.ir import model as ir
from acpgen.text import cut


@dataclass(frozen=True, slots=True)
class Spelling:
    """A type in a form that is equal for equal types of two models: the type itself, its bounds and its annotations."""

    bare: tuple[object, ...]
    bounds: tuple[object, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def spelled(expression: ir.TypeExpr, name: Callable[[str], str]) -> Spelling:
    """The type in a comparable form; `name` gives the common name of a definition in both models."""
    match expression:
        case ir.Ref(target):
            return Spelling(("ref", name(target)))
        case ir.Scalar(primitive=primitive, annotations=annotations):
            bounds = (expression.minimum, expression.maximum, expression.min_length)
            return Spelling(("scalar", primitive), bounds, annotations)
        case ir.Const(value):
            return Spelling(("const", type(value).__name__, value))
        case ir.Choice(primitive=primitive, values=values, open=is_open):
            return Spelling(("choice", primitive, frozenset(values), is_open))
        case ir.ListOf(item=item, min_items=least):
            inner = spelled(item, name)
            return replace(inner, bare=("list", inner.bare), bounds=(least, *inner.bounds))
        case ir.MapOf(value) | ir.Nullable(value):
            inner = spelled(value, name)
            return replace(inner, bare=(type(expression).__name__, inner.bare))
        case _:
            return Spelling(("any",))


def shown(expression: ir.TypeExpr) -> str:
    """The type as in generated code, with its bounds."""
    return cut(str(hint(expression)) + _bounds(expression))


def _bounds(expression: ir.TypeExpr) -> str:
    match expression:
        case ir.Nullable(inner) | ir.MapOf(inner):
            return _bounds(inner)
        case ir.ListOf(item=item, min_items=least):
            return (f", {least} or more items" if least else "") + _bounds(item)
        case ir.Scalar():
            return _limits(expression)
        case _:
            return ""


def _limits(scalar: ir.Scalar) -> str:
    parts = [
        f"{text} {bound:g}" if isinstance(bound, float) else f"{text} {bound}"
        for text, bound in (
            ("at least", scalar.minimum),
            ("at most", scalar.maximum),
            ("of length at least", scalar.min_length),
        )
        if bound is not None
    ]
    return ", " + ", ".join(parts) if parts else ""


def shown_annotations(expression: ir.TypeExpr) -> str:
    """The `format`, `pattern` and the like of the type, or "none"."""
    return cut(", ".join(f"{key} {text}" for key, text in spelled(expression, str).annotations)) or "none"


def shown_value(value: ir.Value | None) -> str:
    """A default as text."""
    match value:
        case None:
            return "none"
        case ir.Literal(None):
            return "null"
        case ir.Literal(bool() as flag):
            return str(flag).lower()
        case ir.Literal(scalar):
            return cut(repr(scalar) if isinstance(scalar, str) else str(scalar), 40)
        case ir.ListValue(items):
            return "[]" if not items else "[…]"
        case ir.MapValue(items):
            return "{}" if not items else "{…}"
        case ir.Construct(name=name, arguments=arguments):
            given = ", ".join(f"{key}={shown_value(each)}" for key, each in arguments)
            return cut(f"{name}({given})", 80)


_LENIENCY = {
    "default_on_error": "replace invalid values",
    "skip_invalid_items": "skip invalid items",
    "default_on_null": "replace null by the default",
}


def shown_leniency(leniency: ir.Leniency) -> str:
    """The misfits that readers of a property forgive, in words."""
    return ", ".join(text for name, text in _LENIENCY.items() if getattr(leniency, name)) or "forgive nothing"
