"""Views of the flavour typeddict: JSON objects as dictionaries, with the names on the wire."""

from __future__ import annotations

import keyword

from acpgen.emit.classes import Classes
from acpgen.emit.source import Code, docstring, hint, identifier, literal
from acpgen.emit.types import AliasView, Attribute, alias_target, definition_text, field_text, qualified
from acpgen.ir import model as ir

_IMPORTED = frozenset({"Annotated", "Any", "Literal", "NotRequired", "TypeAlias", "TypedDict", "builtins", "sys"})


class TypedDictClass:
    """One dictionary, for `TypedDict.jinja2`: a class, or a call where a key cannot be the name of an attribute."""

    def __init__(self, struct: ir.Struct, classes: Classes) -> None:
        self._struct = struct
        self._model = classes.model
        self._fields = classes.own_fields(struct)
        self.is_class = all(self._is_attribute(field.wire) for field in self._fields)
        self.name = identifier(struct.name)
        self.base = identifier(classes.base(struct) or "TypedDict")
        self.doc = docstring(definition_text(struct, self._model), 4) if self.is_class else self._doc_with_keys()

    def _is_attribute(self, wire: str) -> bool:
        is_name = wire.isidentifier() and wire.isascii() and not keyword.iskeyword(wire) and not wire.startswith("__")
        return is_name and wire not in self._model.by_name and wire not in _IMPORTED

    def _doc_with_keys(self) -> Code:
        """The docstring with the keys, which have none of their own in the functional form."""
        texts = [
            f"- {field.wire}: {text}" for field in self._struct.fields if (text := field_text(field, self._struct))
        ]
        parts = [definition_text(self._struct, self._model), "\n".join(texts)]
        return docstring("\n\n".join(part for part in parts if part), 0)

    @property
    def keys(self) -> list[Attribute]:
        """The keys of the class, in schema order."""
        hidden = {field.wire for field in self._struct.fields}
        return [
            Attribute(
                name=identifier(field.wire),
                annotation=_with_presence(field, qualified(hint(field.type), hidden)),
                doc=docstring(field_text(field, self._struct), 4),
            )
            for field in self._fields
        ]

    @property
    def quoted(self) -> tuple[Code, ...]:
        """The annotations of the functional form: it is evaluated at once, so they are strings there."""
        fields = () if self.is_class else self._struct.fields
        return tuple(_with_presence(field, hint(field.type)) for field in fields)

    @property
    def all_keys(self) -> list[Attribute]:
        """The keys of the functional form, inherited ones too."""
        wires = [literal(field.wire) for field in self._struct.fields]
        return [Attribute(wire, literal(each)) for wire, each in zip(wires, self.quoted, strict=True)]


class TypedDictAlias(AliasView):
    """One union, enum or alias, for `TypeAliasAnnotation.jinja2`: without bounds, which nothing would check."""

    @property
    def target(self) -> Code:
        """The type that the alias stands for."""
        return Code(" | ".join(hint(each, quoted=self._quoted) for each in alias_target(self._definition)))


def _with_presence(field: ir.Field, known: Code) -> Code:
    return known if field.required else Code(f"NotRequired[{known}]")
