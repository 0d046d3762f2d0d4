"""Types of two models: in a form in which both compare, as text for messages, and as type checkers see them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from acpgen.diff.findings import SOURCE_OK, SourceEffect, Use, breaks
from acpgen.emit.source import hint
from acpgen.ir import model as ir
from acpgen.ir.order import members, types_in
from acpgen.text import cut


@dataclass(frozen=True, slots=True)
class Spelling:
    """A type in a form that is equal for equal types of two models: the type itself, its bounds and its annotations."""

    bare: tuple[object, ...]
    bounds: tuple[object, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def spelled(expression: ir.TypeExpr, name: Callable[[str], str]) -> Spelling:
    """The type in a comparable form; `name` gives the common name of a definition in both models."""
    match expression:
        case ir.Ref(target):
            return Spelling(("ref", name(target)))
        case ir.Scalar(primitive=primitive, annotations=annotations):
            return Spelling(("scalar", primitive), (*expression.bounds.items(),), annotations)
        case ir.Const(value):
            return Spelling(("const", type(value).__name__, value))
        case ir.InlineEnum(primitive=primitive, values=values, open=is_open):
            return Spelling(("choice", primitive, frozenset(values), is_open))
        case ir.ListOf(item=item, min_items=least):
            inner = spelled(item, name)
            return replace(inner, bare=("list", inner.bare), bounds=(least, *inner.bounds))
        case ir.MapOf(value) | ir.Nullable(value):
            inner = spelled(value, name)
            return replace(inner, bare=(type(expression).__name__, inner.bare))
        case _:
            return Spelling(("any",))


# --- Text -------------------------------------------------------------------------------------------------------------


def shown(expression: ir.TypeExpr) -> str:
    """The type as in generated code, with its bounds."""
    return cut(", ".join([str(hint(expression)), *_bounds(expression)]))


_BOUNDS = {"minimum": "at least", "maximum": "at most", "min_length": "of length at least"}


def _bounds(expression: ir.TypeExpr) -> Iterator[str]:
    for part in types_in(expression):
        match part:
            case ir.Scalar(bounds=bounds):
                for name, bound in bounds.items():
                    yield f"{_BOUNDS[name]} {f'{bound:g}' if isinstance(bound, float) else bound}"
            case ir.ListOf(min_items=least) if least:
                yield f"{least} or more items"


def shown_annotations(expression: ir.TypeExpr) -> str:
    """The `format`, `pattern` and the like of the type, or "none"."""
    return cut(", ".join(f"{key} {text}" for key, text in spelled(expression, str).annotations)) or "none"


def shown_value(value: ir.Value | None) -> str:
    """A default as text."""
    match value:
        case None:
            return "none"
        case ir.Literal(None):
            return "null"
        case ir.Literal(bool() as flag):
            return str(flag).lower()
        case ir.Literal(scalar):
            return cut(repr(scalar) if isinstance(scalar, str) else str(scalar), 40)
        case ir.ListValue(items):
            return "[]" if not items else "[…]"
        case ir.MapValue(items):
            return "{}" if not items else "{…}"
        case ir.Construct(name=name, arguments=arguments):
            given = ", ".join(f"{key}={shown_value(each)}" for key, each in arguments)
            return cut(f"{name}({given})", 80)


_LENIENCY = {
    "default_on_error": "replace invalid values",
    "skip_invalid_items": "skip invalid items",
    "default_on_null": "replace null by the default",
}


def shown_leniency(leniency: ir.Leniency) -> str:
    """The misfits that readers of a property forgive, in words."""
    return ", ".join(text for name, text in _LENIENCY.items() if getattr(leniency, name)) or "forgive nothing"


# --- Python -----------------------------------------------------------------------------------------------------------

Atoms: TypeAlias = frozenset[tuple[object, ...]]
"""The members of a Python union, in a comparable form."""

_ANY = ("any",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTypes:
    """Reads the types of one model; `shared` gives the common name of a paired definition in both models."""

    model: ir.Model
    shared: Callable[[str], str | None]

    def atoms(self, expression: ir.TypeExpr, *, is_inside: bool = False) -> Atoms:
        """The members of the Python union for the type; `is_inside` of an array or a map."""
        match expression:
            case ir.Scalar(primitive=primitive):
                return frozenset({("scalar", primitive)})
            case ir.Const(value):
                return frozenset({("literal", ir.Primitive.of(value), value)})
            case ir.InlineEnum(primitive=primitive, values=values, open=is_open):
                literals = {("literal", primitive, value) for value in values}
                return frozenset(literals | ({("scalar", primitive)} if is_open else set()))
            case ir.ListOf(item=item):
                return frozenset({("list", self.atoms(item, is_inside=True))})
            case ir.MapOf(inner):
                return frozenset({("map", self.atoms(inner, is_inside=True))})
            case ir.AnyJson() | ir.Nullable(ir.AnyJson()):
                return frozenset({_ANY})
            case ir.Nullable(inner):
                return self.atoms(inner, is_inside=is_inside) | {("scalar", ir.Primitive.NULL)}
            case ir.Ref(name):
                return self._named(name, is_inside=is_inside)

    def _named(self, name: str, *, is_inside: bool) -> Atoms:
        shared = self.shared(name)
        match self.model.by_name[name]:
            case _ if is_inside and name in self.model.recursive:  # it would have no end
                return frozenset({("only here", id(self.model), name) if shared is None else ("definition", shared)})
            case ir.Alias(type=target):
                return self.atoms(target, is_inside=is_inside)
            case ir.Struct() | ir.TaggedUnion() | ir.UntaggedUnion() if shared is not None:
                return frozenset({("definition", shared)})
            case ir.Enum(primitive=primitive, members=constants, open=is_open):
                values = tuple(each.value for each in constants)
                known = self.atoms(ir.InlineEnum(primitive=primitive, values=values, open=is_open))
                return known if shared is None else frozenset({("enum", shared, known)})
            case ir.TaggedUnion() | ir.UntaggedUnion() as union:
                return frozenset(atom for each in members(union) for atom in self.atoms(each, is_inside=is_inside))
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


def _covers(known: tuple[object, ...], atom: tuple[object, ...], *, is_any_known: bool) -> bool:
    match known, atom:
        case ("scalar", ir.Primitive() as primitive), ("scalar" | "literal", ir.Primitive() as kind, *_):
            return primitive.admits(kind)
        case ("list" | "map" as one, frozenset() as wanted), ("list" | "map" as other, frozenset() as given):
            # lists and dicts are invariant: their items must fit in both directions
            fits = _fits(given, wanted, is_any_known=is_any_known) and _fits(wanted, given, is_any_known=True)
            return one == other and fits
        case _:
            return known == atom
