"""Types as type checkers see them in generated packages: the source verdict on two types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from acpgen.diff.findings import SOURCE_OK, SourceEffect, Use, breaks
from acpgen.ir import model as ir
from acpgen.ir.order import members

Atoms: TypeAlias = frozenset[tuple[object, ...]]
"""The members of a Python union, in a comparable form."""

_ANY = ("any",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTypes:
    """Reads the types of one model; `shared` gives the common name of a paired definition in both models."""

    model: ir.Model
    shared: Callable[[str], str | None]

    def atoms(self, expression: ir.TypeExpr) -> Atoms:
        """The members of the Python union for the type."""
        match expression:
            case ir.Scalar(primitive=primitive):
                return frozenset({("scalar", primitive)})
            case ir.Const(value):
                return frozenset({("literal", type(value).__name__, value)})
            case ir.Choice(primitive=primitive, values=values, open=is_open):
                literals = {("literal", type(value).__name__, value) for value in values}
                return frozenset(literals | ({("scalar", primitive)} if is_open else set()))
            case ir.ListOf(item=item):
                return frozenset({("list", self.atoms(item))})
            case ir.MapOf(inner):
                return frozenset({("map", self.atoms(inner))})
            case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
                return frozenset({_ANY})
            case ir.Nullable(inner):
                return self.atoms(inner) | {("scalar", ir.Primitive.NULL)}
            case ir.Ref(name):
                return self._named(name)

    def _named(self, name: str) -> Atoms:
        shared = self.shared(name)
        match self.model.by_name[name]:
            case ir.Alias(type=target):
                return self.atoms(target)
            case ir.Struct() | ir.TaggedUnion() | ir.UntaggedUnion() if shared is not None:
                return frozenset({("definition", shared)})
            case ir.Enum(primitive=primitive, members=constants, open=is_open):
                values = tuple(each.value for each in constants)
                known = self.atoms(ir.Choice(primitive=primitive, values=values, open=is_open))
                return known if shared is None else frozenset({("enum", shared, known)})
            case ir.TaggedUnion() | ir.UntaggedUnion() as union:
                return frozenset(atom for each in members(union) for atom in self.atoms(each))
            case _:
                return frozenset({("only here", id(self.model), name)})


def alike(one: Atoms, other: Atoms) -> bool:
    """Whether each type may be used for the other."""
    return _fits(one, other) and _fits(other, one)


def source_of(old: Atoms, new: Atoms) -> SourceEffect:
    """The verdict on code that makes and reads values of the type `old`, if the type is `new` now."""
    # an attribute that is `Any` type-checks as every type
    fits = ((Use.CONSTRUCT, _fits(old, new)), (Use.READ, _fits(new, old, is_any_known=True)))
    uses = [use for use, still_fits in fits if not still_fits]
    return breaks(*uses) if uses else SOURCE_OK


def _fits(given: Atoms, wanted: Atoms, *, is_any_known: bool = False) -> bool:
    """Whether every member of `given` is assignable to `wanted`; with `is_any_known`, `Any` is, too."""
    if _ANY in wanted or (is_any_known and _ANY in given):
        return True
    enums = frozenset(atom[1] for atom in wanted if atom[0] == "enum")
    known, rest = _without_enums(wanted, but=frozenset()), _without_enums(given, but=enums)
    return all(any(_covers(each, atom, is_any_known=is_any_known) for each in known) for atom in rest)


def _without_enums(atoms: Atoms, *, but: frozenset[object]) -> Atoms:
    """The atoms with enums replaced by their values, and without the enums `but`.

    An enum is a name for its values. Two paired enums are assumed to agree: their differences are findings of theirs.
    """
    found: set[tuple[object, ...]] = set()
    for atom in atoms:
        match atom:
            case ("enum", name, frozenset() as values):
                found |= values if name not in but else frozenset()
            case _:
                found.add(atom)
    return frozenset(found)


_LITERALS = {"str": ir.Primitive.STRING, "int": ir.Primitive.INTEGER, "bool": ir.Primitive.BOOLEAN}


def _covers(known: tuple[object, ...], atom: tuple[object, ...], *, is_any_known: bool) -> bool:
    match known, atom:
        case ("scalar", ir.Primitive.NUMBER), ("scalar", ir.Primitive.INTEGER) | ("literal", "int", _):
            return True
        case ("scalar", primitive), ("literal", str(kind), _):
            return primitive is _LITERALS[kind]
        case ("list" | "map" as one, frozenset() as wanted), ("list" | "map" as other, frozenset() as given):
            # lists and dicts are invariant: their items must fit in both directions
            fits = _fits(given, wanted, is_any_known=is_any_known) and _fits(wanted, given, is_any_known=True)
            return one == other and fits
        case _:
            return known == atom
