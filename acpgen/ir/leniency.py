"""The meaning of leniency for values that do not fit (keywords: `schema/keywords`). Decoders and verdicts follow it."""

from __future__ import annotations

from typing import Any

from acpgen.ir import model as ir
from acpgen.ir.relations import resolved, without_null


def fallback(field: ir.Field, model: ir.Model) -> ir.Value | None:
    """The value that leniency puts in the place of one that does not fit.

    None means that an optional property counts as left out, and that a required one is decoded strictly.
    """
    if field.default is not None or not field.required:
        return field.default
    match resolved(field.type, model):
        case ir.ListOf():
            return ir.ListValue(())
        case ir.MapOf():
            return ir.MapValue(())
        case ir.Nullable():
            return ir.Literal(None)
        case _:
            return None


def can_fall_back(field: ir.Field, model: ir.Model) -> bool:
    """True if there is a value to fall back to, or if the property may be left out."""
    return not field.required or fallback(field, model) is not None


def replaces_misfits(field: ir.Field, model: ir.Model) -> bool:
    """True if readers replace a value of the property that does not fit, instead of refusing the message."""
    is_lenient = field.leniency.default_on_error and not isinstance(resolved(field.type, model), ir.AnyJson)
    return is_lenient and can_fall_back(field, model)


def skips_misfits(field: ir.Field, model: ir.Model) -> bool:
    """True if readers skip items of the property that do not fit, however many."""
    inner = without_null(field.type, model)
    collects = isinstance(inner, ir.MapOf) or (isinstance(inner, ir.ListOf) and not inner.min_items)
    return field.leniency.skip_invalid_items and collects


def repairs(field: ir.Field, value: Any, model: ir.Model) -> bool:
    """True if readers replace `value`, which does not fit the property, or skip the items of it that do not fit."""
    replaces = replaces_misfits(field, model) or (value is None and field.leniency.default_on_null)
    return replaces or (isinstance(value, (list, dict)) and skips_misfits(field, model))
