"""Views for `errors.py`: the properties of the error object, and an exception for each error code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.diagnostics import Report
from acpgen.emit.conversions import TYPES
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
        struct = models[0].struct(errors.object) if errors.object else None
        fields = struct.fields if struct else ()
        data = next((field for field in fields if field.wire == "data"), None)
        more = [field for field in fields if field.wire not in _OWN]
        self.codes = errors.codes
        self.object = errors.object
        """The class of the error object, if the schema defines one."""
        self.data_hint = field_hint(data, module=TYPES) if data else Code("Any")
        self.extras = [_extra(field) for field in more]
        """The properties that JSON-RPC does not define."""
        if struct is not None and struct.keeps_extra:
            made = Code(f"{{}} if {ir.EXTRA_FIELD} is None else {ir.EXTRA_FIELD}")
            hint = Code("dict[str, Any] | None")
            self.extras.append(ExtraView(identifier(ir.EXTRA_FIELD), hint, Code("None"), made))
        self.uses_unset_type = any(field.may_be_unset for field in more) or (data is not None and data.may_be_unset)
        """True if an annotation contains `UnsetType`."""


def _extra(field: ir.Field) -> ExtraView:
    name = identifier(field.name)
    return ExtraView(name, field_hint(field, module=TYPES), Code("UNSET"), name)
