"""Leniency: the effect of the `x-deserialize-…` keywords on values that do not fit. Decoders and verdicts follow it."""

from __future__ import annotations

from acpgen.ir.model import AnyJson, Field, ListOf, ListValue, Literal, MapOf, MapValue, Model, Nullable, Value
from acpgen.ir.relations import resolved


def fallback(field: Field, model: Model) -> Value | None:
    """The value that leniency puts in the place of one that does not fit.

    None means that an optional property counts as left out, and that a required one is decoded strictly.
    """
    if field.default is not None or not field.required:
        return field.default
    match resolved(field.type, model):
        case ListOf():
            return ListValue(())
        case MapOf():
            return MapValue(())
        case Nullable():
            return Literal(None)
        case _:
            return None


def can_fall_back(field: Field, model: Model) -> bool:
    """True if there is a value to fall back to, or if the property may be left out."""
    return not field.required or fallback(field, model) is not None


def replaces_misfits(field: Field, model: Model) -> bool:
    """True if readers replace a value of the property that does not fit, instead of refusing the message."""
    is_lenient = field.leniency.default_on_error and not isinstance(resolved(field.type, model), AnyJson)
    return is_lenient and can_fall_back(field, model)


def skips_misfits(field: Field, model: Model) -> bool:
    """True if readers skip items of the property that do not fit, however many."""
    found = resolved(field.type, model)
    inner = resolved(found.inner, model) if isinstance(found, Nullable) else found
    collects = isinstance(inner, MapOf) or (isinstance(inner, ListOf) and not inner.min_items)
    return field.leniency.skip_invalid_items and collects
