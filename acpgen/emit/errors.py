"""Views for `errors.py`: the properties of the error object, and an exception for each error code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.diagnostics import Report
from acpgen.emit.conversions import TYPES, decoder, encoder
from acpgen.emit.source import Code, field_hint, identifier
from acpgen.ir import model as ir

_OWN = ("code", "message", "data")
"""The members of the error object that JSON-RPC 2.0 defines (section 5.1)."""
_APART = "build each version as a package of its own"


@dataclass(frozen=True, slots=True)
class ExtraView:
    """A property of the error object beyond JSON-RPC: the parameter, its default, and the assigned expression."""

    name: Code
    hint: Code
    default: Code
    assigned: Code


def merged_errors(models: Sequence[ir.Model]) -> ir.Errors:
    """The errors of a package: those of its one version, or the codes of all versions, named as in the last.

    Raises `InputError` if the error object of one of several versions has properties beyond JSON-RPC, and for codes
    that would get the same name.
    """
    if len(models) == 1:
        return models[0].errors
    report = Report()
    for model in models:
        struct = model.struct(model.errors.object) if model.errors.object else None
        if struct is not None and (more := [each.wire for each in struct.fields if each.wire not in _OWN]):
            what = f"the error object of version {model.protocol} has {', '.join(more)}"
            message = f"{what}, for which a package of several versions has no place"
            report.error("protocols-errors", message, at="", hint=_APART)
    codes = {each.code: each for model in models for each in model.errors.codes}
    names = [each.name for each in codes.values()]
    taken = {definition.name for model in models for definition in model.definitions}
    for name in sorted({name for name in names if names.count(name) > 1 or name in taken}):
        message = f"the versions use the name {name} for different things"
        report.error("protocols-errors", message, at="", hint=_APART)
    report.raise_errors()
    return ir.Errors(object=None, codes=tuple(codes.values()))


class ErrorsView:
    """The errors of a package."""

    def __init__(self, errors: ir.Errors, models: Sequence[ir.Model]) -> None:
        self.codes = errors.codes
        self._struct: ir.Struct | None = models[0].struct(errors.object) if errors.object else None

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
            made = Code(f"{{}} if {ir.EXTRA_FIELD} is None else {ir.EXTRA_FIELD}")
            own.append(ExtraView(identifier(ir.EXTRA_FIELD), Code("dict[str, Any] | None"), Code("None"), made))
        return own

    @property
    def uses_unset_type(self) -> bool:
        """True if an annotation contains `UnsetType`."""
        return any(field.may_be_unset for field in self._fields if field.wire == "data" or field.wire not in _OWN)

    @property
    def _fields(self) -> tuple[ir.Field, ...]:
        return self._struct.fields if self._struct else ()
