"""What every part of a comparison shares: the two models, what belongs together in them, and how either reads."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.diff.findings import Change, Effect, Place, Source, Use, Wire
from acpgen.diff.pairing import Pairs
from acpgen.diff.python_types import PythonTypes, alike
from acpgen.diff.spelling import shown, shown_annotations, spelled
from acpgen.diff.wire import Acceptance
from acpgen.ir.model import AnyJson, Model, Nullable, TypeExpr

FINE = Effect(forward=Wire.OK, backward=Wire.OK)
"""Nothing happens to any message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Two models, ready to be compared. `forward` judges old senders and new readers, `backward` the reverse."""

    old: Model
    new: Model
    pairs: Pairs
    forward: Acceptance
    backward: Acceptance
    old_types: PythonTypes
    new_types: PythonTypes

    @staticmethod
    def of(old: Model, new: Model, pairs: Pairs) -> Context:
        """The context of two models whose pairs are known."""
        return Context(
            old=old,
            new=new,
            pairs=pairs,
            forward=Acceptance(old, new, pairs.forward),
            backward=Acceptance(new, old, pairs.backward),
            old_types=PythonTypes(model=old, shared=pairs.forward.get),
            new_types=PythonTypes(model=new, shared=lambda name: name if name in pairs.backward else None),
        )

    def old_name(self, name: str) -> str:
        """The name that an old definition has in NEW, or one that nothing has there."""
        return self.pairs.forward.get(name, f"old {name}")

    def agree(self, old: TypeExpr, new: TypeExpr) -> bool:
        """Whether two types are the same but for renames and for findings of the definitions in them."""
        return spelled(old, self.old_name) == spelled(new, str)

    def effect(self, old: TypeExpr, new: TypeExpr) -> Effect:
        """The wire verdicts on two types in the same place."""
        return Effect(forward=self.forward.accepts(old, new), backward=self.backward.accepts(new, old))

    def kind_of_difference(self, old: TypeExpr, new: TypeExpr) -> str:
        """How two types differ that do not agree: the end of a rule id."""
        if spelled(old, self.old_name, annotations=False) == spelled(new, str, annotations=False):
            return "annotation-changed"
        bare_old = spelled(old, self.old_name, annotations=False, bounds=False)
        if bare_old == spelled(new, str, annotations=False, bounds=False):
            return "bounds-changed"
        match old, new:
            case (Nullable(), Nullable()) | (AnyJson(), _) | (_, AnyJson()):
                pass
            case (_, Nullable(inner)) if self._comes_to_the_same(old, inner):
                return "null-added"
            case (Nullable(inner), _) if self._comes_to_the_same(inner, new):
                return "null-removed"
        return "type-respelled" if self._comes_to_the_same(old, new) else "type-changed"

    def _comes_to_the_same(self, old: TypeExpr, new: TypeExpr) -> bool:
        return self.effect(old, new) == FINE and alike(self.old_types.atoms(old), self.new_types.atoms(new))


def type_message(kind: str, old: TypeExpr, new: TypeExpr) -> str:
    """What is said about two types that differ in the way `kind`."""
    match kind:
        case "annotation-changed":
            return f"annotated with {shown_annotations(new)}; before: {shown_annotations(old)}"
        case "null-added":
            return f"may be null now: {shown(new)}"
        case "null-removed":
            return f"may be null no more: {shown(new)}"
        case "type-respelled":
            return f"is called {shown(new)} now, which comes to the same as {shown(old)}"
        case _:
            return f"is {shown(new)} now; before: {shown(old)}"


def change(
    rule: str,
    place: Place,
    message: str,
    *,
    effect: Effect | None = None,
    source: tuple[Source, tuple[Use, ...]] = (Source.OK, ()),
) -> Change:
    """A change, with its source verdict and uses as one."""
    verdict, uses = source
    return Change(rule=rule, place=place, message=message, effect=effect, source=verdict, uses=uses)
