"""The parts that the views of all flavours share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from acpgen.emit.classes import Classes
from acpgen.emit.source import Code, assigned, docstring, identifier
from acpgen.emit.types import GeneratedField, definition_text, field_text, needs_own_hint
from acpgen.ir import model as ir
from acpgen.ir.order import types_in

Hint = Callable[[ir.TypeExpr], Code]
"""Writes the annotation for a value of a type."""


class Context:
    """A model, and its classes."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.classes = Classes(model)

    @cached_property
    def definition_names(self) -> frozenset[str]:
        """The names of all definitions."""
        return frozenset(self.model.by_name)

    def own_fields(self, struct: ir.Struct) -> list[ir.Field]:
        """The fields that the class declares itself, in schema order."""
        own = {name for name, _ in self.classes.own_fields(struct)}
        return [field for field in struct.fields if field.name in own]

    def adds_extra(self, struct: ir.Struct) -> bool:
        """True if the class keeps unnamed properties, and its base does not."""
        inherits = struct.base is not None and self.model.struct(struct.base).keeps_extra
        return struct.keeps_extra and not inherits

    def doc(self, definition: ir.Definition, indent: int) -> Code:
        """The docstring of a definition."""
        return docstring(definition_text(definition, self.model), indent)


def attribute_doc(field: ir.Field, owner: ir.Struct) -> Code:
    """The docstring of an attribute; empty if there is nothing to say."""
    text = field_text(field, owner)
    return docstring(text, 4) if text else Code("")


def annotation(field: ir.Field, generated: GeneratedField, hint: Hint) -> str:
    """The rendered type hint if it can be used, with bounds; else one of our own."""
    return hint(field.type) if needs_own_hint(field.type) or is_limited(field.type) else generated.type_hint


def is_limited(expression: ir.TypeExpr) -> bool:
    """True if a limit of the schema is part of the type itself, and not of a definition that it refers to."""
    scalars = [each for each in types_in(expression) if isinstance(each, ir.Scalar)]
    lists = [each for each in types_in(expression) if isinstance(each, ir.ListOf)]
    return any(each.is_bounded for each in scalars) or any(each.min_items for each in lists)


def alias_statement(definition: ir.Definition, target: str) -> Code:
    """The statement that defines an alias."""
    return assigned(f"{identifier(definition.name)}: TypeAlias", target, indent=0)
