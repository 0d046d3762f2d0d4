"""Where messages have values that need a capability: places that look-ups of properties, items and tags lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from acpgen.ir import model as ir
from acpgen.ir.order import members, references
from acpgen.ir.relations import resolved

_MOST_TYPES = 8
"""The most types between a message and a value, one inside the other: recursive ones have no end."""
_MOST_PLACES = 200
"""The most places of a message: types that contain others in several ways have any number."""

Step: TypeAlias = str | tuple[str | None, str] | None
"""The property of this name; or a tag and its text, which the value itself has if the tag is None, and which leads no
further; or each item of an array or a map, for None."""
Place: TypeAlias = tuple[tuple[Step, ...], ir.GatedValue]
"""A gated value, and the steps to it."""


def gated_by_definition(model: ir.Model) -> Mapping[str, list[ir.GatedValue]]:
    """The gated values of each definition; a class has those of its base, too."""
    found = defaultdict[str, list[ir.GatedValue]](list)
    for gated in model.gated_values:
        found[gated.definition].append(gated)
    for definition in model.definitions:  # in an order in which each base precedes its use
        if isinstance(definition, ir.Struct) and definition.base is not None and definition.base in found:
            found[definition.name] += found[definition.base]
    return found


class GatedPlaces:
    """The places of the gated values of a model.

    Those that are told apart by more than tags, in unions whose members have none, are not among them.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._of = defaultdict[str, list[Place]](list)
        for name, each in gated_by_definition(model).items():
            self._of[name] += [(steps, gated) for gated in each if (steps := self._within(gated)) is not None]
        self._distance = _distances(model, [name for name, places in self._of.items() if places])

    def find(self, expression: ir.TypeExpr) -> list[Place]:
        """The places in a value of a type."""
        return [*islice(self._walk(expression, (), _MOST_TYPES), _MOST_PLACES)]

    def _walk(self, expression: ir.TypeExpr, steps: tuple[Step, ...], left: int) -> Iterator[Place]:
        """Only where there is a value within `left` types, so that none of many ways is walked in vain."""
        match expression:
            case ir.Nullable(inner):
                yield from self._walk(inner, steps, left)
            case ir.ListOf(item=inner) | ir.MapOf(inner):
                yield from self._walk(inner, (*steps, None), left)
            case ir.Ref(name) if self._distance.get(name, left) < left:
                yield from ((steps + more, gated) for more, gated in self._of.get(name, ()))
                for step, inner in _inside(self._model.by_name[name]):
                    yield from self._walk(inner, steps + step, left - 1)
            case _:
                pass

    def _within(self, gated: ir.GatedValue) -> tuple[Step, ...] | None:
        """The steps from a value of the definition of a gated value; None if the model lacks a property."""
        steps, (items, owner) = list[Step](), self._items(ir.Ref(gated.definition))
        for wire in gated.properties:
            steps += [*items, wire]
            if (inner := self._property(owner, wire)) is None:
                return None
            items, owner = self._items(inner)
        return (*steps, *items, (gated.key, gated.value)) if gated.value is not None else tuple(steps)

    def _property(self, owner: ir.TypeExpr, wire: str) -> ir.TypeExpr | None:
        """The type of a property of a class, or of the first member of a union that has it."""
        match self._model.definition(resolved(owner, self._model)):
            case ir.Struct(fields=fields):
                return next((field.type for field in fields if field.wire == wire), None)
            case ir.TaggedUnion() | ir.UntaggedUnion() as union:
                found = (self._property(each, wire) for each in members(union))
                return next((each for each in found if each is not None), None)
            case _:
                return None

    def _items(self, expression: ir.TypeExpr) -> tuple[list[Step], ir.TypeExpr]:
        """The type of the items of an array, of those of an array in it, and so on, with the steps to them."""
        steps = list[Step]()
        while isinstance(found := resolved(expression, self._model), (ir.Nullable, ir.ListOf)):
            steps += [None] if isinstance(found, ir.ListOf) else []
            expression = found.item if isinstance(found, ir.ListOf) else found.inner
        return steps, found


def _inside(definition: ir.Definition) -> Iterator[tuple[tuple[Step, ...], ir.TypeExpr]]:
    """The types in a definition, each with the step to it."""
    match definition:
        case ir.Alias(type=inner):
            yield (), inner
        case ir.Struct(fields=fields):
            yield from (((field.wire,), field.type) for field in fields)
        case ir.TaggedUnion(tag=tag, variants=variants):
            yield from ((((tag, variant.tag),), variant.type) for variant in variants)
        case ir.UntaggedUnion() | ir.Enum():
            pass


def _distances(model: ir.Model, gated: Collection[str]) -> Mapping[str, int]:
    """The definitions that lead to one of `gated`, each with the number of those on the way."""
    users = defaultdict[str, list[str]](list)
    for definition in model.definitions:
        for name in references(*(inner for _, inner in _inside(definition))):
            users[name].append(definition.name)
    found, reached = dict.fromkeys(gated, 0), list(gated)
    for name in reached:  # grows: the nearest come first
        for user in users[name]:
            if user not in found:
                found[user] = found[name] + 1
                reached.append(user)
    return found
