"""Views for `errors.py`: the properties of the error object, and an exception for each error code."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.emit.fields import TYPES, decoder, encoder
from acpgen.emit.source import Code, field_hint, identifier
from acpgen.ir.model import EXTRA_FIELD, Field, Model, Struct

_OWN = ("code", "message", "data")
"""The members of the error object that JSON-RPC 2.0 defines (section 5.1)."""


@dataclass(frozen=True, slots=True)
class ExtraView:
    """A property of the error object beyond JSON-RPC: the parameter, its default, and the assigned expression."""

    name: Code
    hint: Code
    default: Code
    assigned: Code


class ErrorsView:
    """The errors of a model."""

    def __init__(self, model: Model) -> None:
        self.codes = model.errors.codes
        found = model.errors.object
        self._struct: Struct | None = model.struct(found) if found else None

    @property
    def object(self) -> Code | None:
        """The class of the error object, if the schema defines one."""
        return identifier(self._struct.name) if self._struct else None

    @property
    def encoder(self) -> Code:
        """The encoder of the error object."""
        return encoder(self._struct.name if self._struct else "")

    @property
    def decoder(self) -> Code:
        """The decoder of the error object."""
        return decoder(self._struct.name if self._struct else "")

    @property
    def data_hint(self) -> Code:
        """The annotation of `data`."""
        found = [field for field in self._fields if field.wire == "data"]
        return field_hint(found[0], module=TYPES) if found else Code("Any")

    @property
    def extras(self) -> list[ExtraView]:
        """The properties that JSON-RPC does not define."""
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
        """True if an annotation contains `UnsetType`."""
        return any("UnsetType" in annotation for annotation in (self.data_hint, *(each.hint for each in self.extras)))

    @property
    def _fields(self) -> tuple[Field, ...]:
        return self._struct.fields if self._struct else ()
