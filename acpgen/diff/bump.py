"""The shared state of a comparison: two models, their pairs, and the readers and Python types of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acpgen.diff.findings import FINE, DiffFinding, Effect, Place, SourceEffect
from acpgen.diff.pairing import Pairs, pair
from acpgen.diff.python_types import PythonTypes, alike, source_of
from acpgen.diff.rules import Rule, TypeChange
from acpgen.diff.spelling import shown, shown_annotations, spelled
from acpgen.diff.wire import Acceptance
from acpgen.ir import model as ir


@dataclass(frozen=True, slots=True, kw_only=True)
class Bump:
    """Two models to compare. `forward` judges old senders and new readers, `backward` the reverse."""

    old: ir.Model
    new: ir.Model
    pairs: Pairs
    forward: Acceptance
    backward: Acceptance
    old_types: PythonTypes
    new_types: PythonTypes

    @staticmethod
    def of(old: ir.Model, new: ir.Model) -> Bump:
        """Pair two models and prepare their comparison."""
        pairs = pair(old, new)
        return Bump(
            old=old,
            new=new,
            pairs=pairs,
            forward=Acceptance(old, new, pairs.forward),
            backward=Acceptance(new, old, pairs.backward),
            old_types=PythonTypes(model=old, shared=pairs.forward.get),
            new_types=PythonTypes(model=new, shared=lambda name: name if name in pairs.backward else None),
        )

    def old_name(self, name: str) -> str:
        """The name that an old definition has in NEW; a name that NEW cannot have, if it is gone."""
        return self.pairs.forward.get(name, f"old {name}")

    def agree(self, old: ir.TypeExpr, new: ir.TypeExpr) -> bool:
        """Whether two types are the same, apart from renames and from changes inside of paired definitions."""
        return spelled(old, self.old_name) == spelled(new, str)

    def effect(self, old: ir.TypeExpr, new: ir.TypeExpr) -> Effect:
        """The wire verdicts on two types in the same place."""
        return Effect(self.forward.accepts(old, new), self.backward.accepts(new, old))

    def effect_inside(self, old: str, new: str) -> Effect:
        """The wire verdicts on two definitions, even if they are paired."""
        return Effect(self.forward.afresh(old, new), self.backward.afresh(new, old))

    def source(self, old: ir.TypeExpr, new: ir.TypeExpr) -> SourceEffect:
        """The source verdict on two types in the same place."""
        return source_of(self.old_types.atoms(old), self.new_types.atoms(new))

    def type_finding(
        self, table: Mapping[TypeChange, Rule], place: Place, types: tuple[ir.TypeExpr, ir.TypeExpr], *, effect: Effect
    ) -> DiffFinding:
        """The finding about an old and a new type in the same place that do not agree."""
        kind = self.type_change(*types)
        return DiffFinding(table[kind], place, _type_message(kind, *types), effect, self.source(*types))

    def type_change(self, old: ir.TypeExpr, new: ir.TypeExpr) -> TypeChange:
        """The way in which two types differ that do not agree."""
        before, after = spelled(old, self.old_name), spelled(new, str)
        if before.bare == after.bare:
            return TypeChange.ANNOTATION if before.bounds == after.bounds else TypeChange.BOUNDS
        match old, new:
            case (ir.Nullable(), ir.Nullable()) | (ir.AnyJson(), _) | (_, ir.AnyJson()):
                pass
            case (_, ir.Nullable(inner)) if self._is_equivalent(old, inner):
                return TypeChange.NULL_ADDED
            case (ir.Nullable(inner), _) if self._is_equivalent(inner, new):
                return TypeChange.NULL_REMOVED
        return TypeChange.RESPELLED if self._is_equivalent(old, new) else TypeChange.TYPE

    def _is_equivalent(self, old: ir.TypeExpr, new: ir.TypeExpr) -> bool:
        return self.effect(old, new) == FINE and alike(self.old_types.atoms(old), self.new_types.atoms(new))


def _type_message(kind: TypeChange, old: ir.TypeExpr, new: ir.TypeExpr) -> str:
    match kind:
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
