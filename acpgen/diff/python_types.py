"""Types as type checkers see them in generated packages, to tell what still fits where it is written and read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from acpgen.diff.findings import Source, Use
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Choice,
    Const,
    Construct,
    Enum,
    Field,
    ListOf,
    ListValue,
    MapOf,
    MapValue,
    Model,
    Nullable,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members

Atoms: TypeAlias = frozenset[tuple[object, ...]]
"""The members of a Python union, each in a form in which equal ones are equal."""

_ANY = ("any",)
_UNSET = ("unset",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTypes:
    """Reads the types of one model; `shared` gives the name that a paired definition goes by in both models."""

    model: Model
    shared: Callable[[str], str | None]

    def atoms(self, expression: TypeExpr) -> Atoms:
        """What a value of the type can be."""
        match expression:
            case Scalar(primitive=primitive):
                return frozenset({("scalar", primitive)})
            case Const(value):
                return frozenset({("literal", type(value).__name__, value)})
            case Choice(primitive=primitive, values=values, open=is_open):
                literals = {("literal", type(value).__name__, value) for value in values}
                return frozenset(literals | ({("scalar", primitive)} if is_open else set()))
            case ListOf(item=item):
                return frozenset({("list", self.atoms(item))})
            case MapOf(inner):
                return frozenset({("map", self.atoms(inner))})
            case AnyJson() | Nullable(AnyJson()):
                return frozenset({_ANY})
            case Nullable(inner):
                return self.atoms(inner) | {("scalar", Primitive.NULL)}
            case Ref(name):
                return self._named(name)

    def _named(self, name: str) -> Atoms:
        shared = self.shared(name)
        match self.model.by_name[name]:
            case Alias(type=target):
                return self.atoms(target)
            case Struct() | TaggedUnion() | UntaggedUnion() if shared is not None:
                return frozenset({("definition", shared)})
            case Enum(primitive=primitive, members=constants, open=is_open):
                values = tuple(each.value for each in constants)
                known = self.atoms(Choice(primitive=primitive, values=values, open=is_open))
                return known if shared is None else frozenset({("enum", shared, known)})
            case TaggedUnion() | UntaggedUnion() as union:
                return frozenset(atom for each in members(union) for atom in self.atoms(each))
            case _:
                return frozenset({("only here", id(self.model), name)})

    def attribute(self, field: Field) -> Atoms:
        """What the attribute of the property can be."""
        known = self.atoms(field.type)
        return known | {_UNSET} if field.may_be_unset else known

    def parameter(self, field: Field) -> Atoms:
        """What the constructor takes: it gets UNSET for a default that must not be shared, and makes one."""
        is_made = isinstance(field.default, (Construct, ListValue, MapValue))
        return self.attribute(field) | {_UNSET} if is_made else self.attribute(field)


def takes(wanted: Atoms, given: Atoms) -> bool:
    """Whether whatever was written for `given` may be written for `wanted`: for any JSON, that is any value."""
    return _fits(given, wanted, is_any_known=False)


def reads(wanted: Atoms, given: Atoms) -> bool:
    """Whether an attribute of the type `given` may be used as one of `wanted`: `Any` type-checks as everything."""
    return _fits(given, wanted, is_any_known=True)


def _fits(given: Atoms, wanted: Atoms, *, is_any_known: bool) -> bool:
    """Whether every member of `given` may stand where `wanted` is expected; with `is_any_known`, `Any` may, too."""
    if _ANY in wanted or (is_any_known and _ANY in given):
        return True
    known = _without_enums(wanted, but=frozenset())
    rest = _without_enums(given, but=_enums(wanted))
    return all(any(_covers(each, atom, is_any_known=is_any_known) for each in known) for atom in rest)


def _enums(atoms: Atoms) -> frozenset[object]:
    return frozenset(atom[1] for atom in atoms if atom[0] == "enum")


def _without_enums(atoms: Atoms, *, but: frozenset[object]) -> Atoms:
    """The atoms with the values of enums instead of these, and without the enums `but`.

    An enum is but a name for its values; for the enum of the same name in the other model, their differences are
    findings of its own.
    """
    found: set[tuple[object, ...]] = set()
    for atom in atoms:
        match atom:
            case ("enum", name, frozenset() as values):
                found |= values if name not in but else frozenset()
            case _:
                found.add(atom)
    return frozenset(found)


_NUMBERS: Mapping[object, Primitive] = {
    ("scalar", Primitive.INTEGER): Primitive.NUMBER,
}
_LITERALS = {"str": Primitive.STRING, "int": Primitive.INTEGER, "bool": Primitive.BOOLEAN}


def _covers(known: tuple[object, ...], atom: tuple[object, ...], *, is_any_known: bool) -> bool:
    if known == atom:
        return True
    match known, atom:
        case ("scalar", primitive), ("literal", str(kind), _):
            return primitive is _LITERALS[kind] or (primitive is Primitive.NUMBER and kind == "int")
        case ("scalar", primitive), ("scalar", _):
            return primitive is _NUMBERS.get(atom)
        case (("list", frozenset() as wanted), ("list", frozenset() as given)) | (
            ("map", frozenset() as wanted),
            ("map", frozenset() as given),
        ):
            # lists and dicts are invariant: their items must be the same both ways
            return _fits(given, wanted, is_any_known=is_any_known) and _fits(wanted, given, is_any_known=True)
        case _:
            return False


def alike(one: Atoms, other: Atoms) -> bool:
    """Whether either type may be written and read for the other."""
    return takes(one, other) and takes(other, one)


def source_of(old: Atoms, new: Atoms) -> tuple[Source, tuple[Use, ...]]:
    """The verdict on code that makes values of the type `old` and uses such, where it is `new` now."""
    return broken(constructs=takes(new, old), reads=reads(old, new))


def broken(*, constructs: bool, reads: bool) -> tuple[Source, tuple[Use, ...]]:
    """The verdict from whether old code that makes values, and old code that uses them, still fits."""
    uses = tuple(use for use, still_fits in ((Use.CONSTRUCT, constructs), (Use.READ, reads)) if not still_fits)
    return (Source.BREAKS if uses else Source.OK), uses
