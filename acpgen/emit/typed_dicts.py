"""Views of the flavour typeddict: JSON objects as dictionaries, with the names on the wire."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from dataclasses import dataclass

from acpgen.emit.flavour import Context, alias_statement, annotation, attribute_doc
from acpgen.emit.source import Code, docstring, hint, identifier, literal
from acpgen.emit.types import GeneratedField, alias_target, definition_text, field_text, needs_own_hint, qualified
from acpgen.ir import model as ir

_IMPORTED = frozenset({"Annotated", "Any", "Literal", "NotRequired", "TypeAlias", "TypedDict", "builtins", "sys"})


@dataclass(frozen=True, slots=True)
class Key:
    """A key: its name, or the literal of it in the functional form, with its annotation and docstring."""

    name: Code
    annotation: Code
    doc: Code


class TypedDictClass:
    """One dictionary, for `TypedDict.jinja2`: a class, or a call where a key cannot be the name of an attribute."""

    def __init__(self, struct: ir.Struct, context: Context) -> None:
        self._struct = struct
        self._context = context
        self._fields = {field.name: field for field in context.own_fields(struct)}
        self.is_class = all(self._is_attribute(field.wire) for field in self._fields.values())
        self.name = identifier(struct.name)
        self.base = identifier(context.classes.base(struct) or "TypedDict")
        self.doc = context.doc(struct, 4) if self.is_class else self._doc_with_keys()

    def _is_attribute(self, wire: str) -> bool:
        is_name = wire.isidentifier() and wire.isascii() and not keyword.iskeyword(wire) and not wire.startswith("__")
        return is_name and wire not in self._context.definition_names and wire not in _IMPORTED

    def _doc_with_keys(self) -> Code:
        """The docstring with the keys, which have none of their own in the functional form."""
        texts = [
            f"- {field.wire}: {text}" for field in self._struct.fields if (text := field_text(field, self._struct))
        ]
        parts = [definition_text(self._struct, self._context.model), "\n".join(texts)]
        return docstring("\n\n".join(part for part in parts if part), 0)

    def keys(self, generated: Iterable[GeneratedField]) -> list[Key]:
        """The keys of the class, in schema order."""
        named = {str(each.original_name): each for each in generated}
        hidden = {field.wire for field in self._struct.fields}
        return [
            Key(
                name=identifier(field.wire),
                annotation=_with_presence(field, qualified(annotation(field, named[name], hint), hidden)),
                doc=attribute_doc(field, self._struct),
            )
            for name, field in self._fields.items()
        ]

    @property
    def quoted(self) -> tuple[Code, ...]:
        """The annotations of the functional form: it is evaluated at once, so they are strings there."""
        fields = () if self.is_class else self._struct.fields
        return tuple(_with_presence(field, hint(field.type)) for field in fields)

    @property
    def all_keys(self) -> list[Key]:
        """The keys of the functional form, inherited ones too."""
        wires = [literal(field.wire) for field in self._struct.fields]
        return [Key(wire, literal(each), Code("")) for wire, each in zip(wires, self.quoted, strict=True)]


def _with_presence(field: ir.Field, known: Code) -> Code:
    return known if field.required else Code(f"NotRequired[{known}]")


class TypedDictAlias:
    """One union, enum or alias, for `TypeAliasAnnotation.jinja2`."""

    def __init__(self, definition: ir.Definition, context: Context) -> None:
        self._definition = definition
        self.doc = context.doc(definition, 0)

    def statement(self, rendered: str) -> Code:
        """The statement that defines the alias."""
        match self._definition:
            case ir.Alias(type=target) if not needs_own_hint(target):
                return alias_statement(self._definition, rendered)
            case _:
                return alias_statement(self._definition, " | ".join(map(hint, alias_target(self._definition))))
