"""What the views of all flavours share: annotations and aliases as datamodel-code-generator hands them to templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from acpgen.emit.source import Code, assigned, hint, identifier
from acpgen.emit.types import AliasView, alias_target
from acpgen.ir import model as ir
from acpgen.ir.order import types_in


class GeneratedField(Protocol):
    """A field as the generator passes it to templates. It may rename one that hides an import."""

    original_name: str | None
    type_hint: str


def annotation(field: ir.Field, generated: GeneratedField, written: Callable[[ir.TypeExpr], Code]) -> str:
    """The rendered type hint if it can be used, with limits; else the one that `written` writes."""
    return written(field.type) if needs_own_hint(field.type) or is_limited(field.type) else generated.type_hint


def is_limited(expression: ir.TypeExpr) -> bool:
    """True if a limit of the schema is part of the type itself, and not of a definition that it refers to."""
    scalars = [each for each in types_in(expression) if isinstance(each, ir.Scalar)]
    lists = [each for each in types_in(expression) if isinstance(each, ir.ListOf)]
    return any(each.bounds for each in scalars) or any(each.min_items for each in lists)


def needs_own_hint(expression: ir.TypeExpr) -> bool:
    """True if acpgen must write the annotation: for constants, choices and "any JSON".

    The generator uses single quotes, types an alias of one constant as `Any`, does not show that an enum is open, and
    does not know that "any JSON" includes null.
    """
    return any(isinstance(each, (ir.Const, ir.Choice, ir.AnyJson)) for each in types_in(expression))


class RenderedAlias(AliasView):
    """One union, enum or alias, for `flavours/TypeAliasAnnotation.jinja2`."""

    def rendered(self, generated: str) -> Code:
        """The statement that defines the alias. `generated` is the type that the generator has for it."""
        return assigned(f"{identifier(self._definition.name)}: TypeAlias", self._rendered_target(generated), indent=0)

    def _rendered_target(self, generated: str) -> Code:
        """The generated type if it can be used, else one of our own."""
        match self._definition:
            case ir.Alias(type=target) if not (needs_own_hint(target) or self._quoted):
                return Code(generated)
            case _:
                return Code(" | ".join(hint(each, quoted=self._quoted) for each in alias_target(self._definition)))
