"""What `errors.py.jinja` prints: the error object's own properties, and an exception for each named code."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.emit.fields import TYPES, decoder, encoder
from acpgen.emit.source import Code, docstring, field_hint, identifier, literal
from acpgen.ir.model import EXTRA_FIELD, Field, Model, Struct

_OWN = ("code", "message", "data")
"""The members of the error object that JSON-RPC 2.0 defines (section 5.1)."""


@dataclass(frozen=True, slots=True)
class ExtraView:
    """A member of the error object that JSON-RPC does not know: a parameter, its default, and what is assigned."""

    name: Code
    hint: Code
    default: Code
    assigned: Code


@dataclass(frozen=True, slots=True)
class CodeView:
    """An error code that has an exception."""

    name: Code
    code: Code
    title: Code
    doc: Code


class ErrorsView:
    """The errors of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        found = model.errors.object
        self._struct: Struct | None = model.struct(found) if found else None

    @property
    def object(self) -> Code | None:
        """The class of the error object, where the schema has one."""
        return identifier(self._struct.name) if self._struct else None

    @property
    def encoder(self) -> Code:
        """The function that writes it."""
        return encoder(self._struct.name if self._struct else "")

    @property
    def decoder(self) -> Code:
        """The function that reads it."""
        return decoder(self._struct.name if self._struct else "")

    @property
    def data_hint(self) -> Code:
        """The annotation of `data`."""
        found = [field for field in self._fields if field.wire == "data"]
        return field_hint(found[0], module=TYPES) if found else Code("Any")

    @property
    def extras(self) -> list[ExtraView]:
        """The members that come on top of JSON-RPC's."""
        own = [
            ExtraView(name := identifier(field.name), field_hint(field, module=TYPES), Code("UNSET"), name)
            for field in self._fields
            if field.wire not in _OWN
        ]
        if self._struct is not None and self._struct.keeps_extra:
            made = Code(f"{{}} if {EXTRA_FIELD} is None else {EXTRA_FIELD}")
            own.append(ExtraView(identifier(EXTRA_FIELD), Code("dict[str, Any] | None"), Code("None"), made))
        return own

    @property
    def uses_unset_type(self) -> bool:
        """Whether an annotation says `UnsetType`."""
        return any("UnsetType" in annotation for annotation in (self.data_hint, *(each.hint for each in self.extras)))

    @property
    def codes(self) -> list[CodeView]:
        """The codes with an exception each."""
        return [
            CodeView(identifier(each.name), literal(each.code), literal(each.title), docstring(each.doc or each.title))
            for each in self._model.errors.codes
        ]

    @property
    def _fields(self) -> tuple[Field, ...]:
        return self._struct.fields if self._struct else ()
