"""Rules about two types in the same place, for properties and for aliases: each way in which they differ has one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from acpgen.diff.findings import FINE, ChangePlace, DiffFinding, Effect, Found, Rule, Shown
from acpgen.diff.rules import BY_TYPE, DOCS, UNCHECKED, ModelPair, mirrored
from acpgen.diff.type_forms import alike, shown, shown_annotations, spelled
from acpgen.ir import model as ir


class TypeChange(Enum):
    """The way in which two types in the same place differ; the end of a rule's id."""

    ANNOTATION = "annotation-changed"
    BOUNDS = "bounds-changed"
    NULL_ADDED = "null-added"
    NULL_REMOVED = "null-removed"
    RESPELLED = "type-respelled"
    TYPE = "type-changed"


_NULL = "new to old breaks; loses if old readers replace null by a default"
_TEXTS: Mapping[TypeChange, tuple[str, str, str]] = {
    TypeChange.ANNOTATION: ("has another `format`, `pattern` or the like", "ok: unchecked", DOCS),
    TypeChange.BOUNDS: (
        "has other bounds (of its value or length)",
        "breaks towards readers with narrower bounds",
        UNCHECKED,
    ),
    TypeChange.NULL_ADDED: ("may be null", _NULL, "breaks: values may be None (read)"),
    TypeChange.NULL_REMOVED: ("may no longer be null", mirrored(_NULL), "breaks: None is no value (construct)"),
    TypeChange.RESPELLED: ("names its type differently, and admits the same values", "ok", "ok"),
    TypeChange.TYPE: ("has another type", BY_TYPE, "breaks if values no longer fit; else ok"),
}
"""The meaning of each rule, and its texts about the wire and the source."""
_REVERSES = {TypeChange.NULL_ADDED: TypeChange.NULL_REMOVED, TypeChange.NULL_REMOVED: TypeChange.NULL_ADDED}


def type_rules(kind: str, subject: str) -> Mapping[TypeChange, Rule]:
    """The rules for the type of `subject`."""
    return {
        change: Rule(
            id=f"{kind}-{change.value}",
            meaning=f"{subject} {meaning}",
            wire=wire,
            source=source,
            reverse=f"{kind}-{_REVERSES.get(change, change).value}",
            shown=Shown.COUNTED if change in (TypeChange.RESPELLED, TypeChange.ANNOTATION) else Shown.EACH,
        )
        for change, (meaning, wire, source) in _TEXTS.items()
    }


def type_finding(
    rules: Mapping[TypeChange, Rule],
    models: ModelPair,
    types: tuple[ir.TypeExpr, ir.TypeExpr],
    *,
    place: ChangePlace,
    effect: Effect,
) -> DiffFinding:
    """The finding about an old and a new type in the same place that do not agree."""
    change = type_change(models, *types)
    return Found(place, _message(change, *types), effect, models.source(*types)).by(rules[change])


def type_change(models: ModelPair, old: ir.TypeExpr, new: ir.TypeExpr) -> TypeChange:
    """The way in which two types differ that do not agree."""
    before, after = spelled(old, models.old_name), spelled(new, str)
    if before.bare == after.bare:
        return TypeChange.ANNOTATION if before.bounds == after.bounds else TypeChange.BOUNDS
    match old, new:
        case (ir.Nullable(), ir.Nullable()) | (ir.AnyJson(), _) | (_, ir.AnyJson()):
            pass
        case (_, ir.Nullable(inner)) if _are_equivalent(models, old, inner):
            return TypeChange.NULL_ADDED
        case (ir.Nullable(inner), _) if _are_equivalent(models, inner, new):
            return TypeChange.NULL_REMOVED
    return TypeChange.RESPELLED if _are_equivalent(models, old, new) else TypeChange.TYPE


def _are_equivalent(models: ModelPair, old: ir.TypeExpr, new: ir.TypeExpr) -> bool:
    return models.effect(old, new) == FINE and alike(models.old_types.atoms(old), models.new_types.atoms(new))


def _message(change: TypeChange, old: ir.TypeExpr, new: ir.TypeExpr) -> str:
    match change:
        case TypeChange.ANNOTATION:
            return f"annotated with {shown_annotations(new)} now; before: {shown_annotations(old)}"
        case TypeChange.NULL_ADDED:
            return f"may be null now: {shown(new)}"
        case TypeChange.NULL_REMOVED:
            return f"may no longer be null: {shown(new)}"
        case TypeChange.RESPELLED:
            return f"is named {shown(new)} now, which admits the same values as {shown(old)}"
        case _:
            return f"is {shown(new)} now; before: {shown(old)}"
