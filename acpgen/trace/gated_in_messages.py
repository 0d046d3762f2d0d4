"""Find the values in messages that need a capability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

from acpgen.ir import model as ir
from acpgen.ir.gated_places import gated_by_definition
from acpgen.ir.order import parts
from acpgen.schema.document import join
from acpgen.schema.walk import closure
from acpgen.trace.values import fits

Found: TypeAlias = tuple[str, ir.GatedValue]
"""A gated value, and its pointer in a message."""


class GatedFinder:
    """Finds the gated values of a model in messages."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._of = gated_by_definition(model)
        users = defaultdict[str, set[str]](set)
        for definition in model.definitions:
            for name in parts(definition):
                users[name].add(definition.name)
        self._leading = closure(self._of, lambda name: users[name])

    def find(self, expression: ir.TypeExpr, value: Any, *, at: str) -> Iterator[Found]:
        """The gated values in a `value` of a type, which is at the pointer `at`."""
        match expression:
            case ir.Nullable(inner):
                yield from self.find(inner, value, at=at)
            case ir.ListOf(item=item) if isinstance(value, list):
                for index, each in enumerate(value):
                    yield from self.find(item, each, at=join(at, index))
            case ir.MapOf(inner) if isinstance(value, dict):
                for key, each in value.items():
                    yield from self.find(inner, each, at=join(at, key))
            case ir.Ref(name) if name in self._leading:
                for gated in self._of.get(name, ()):
                    yield from ((pointer, gated) for pointer in _places(gated, value, at))
                yield from self._inside(self._model.by_name[name], value, at=at)

    def _inside(self, definition: ir.Definition, value: Any, *, at: str) -> Iterator[Found]:
        match definition:
            case ir.Alias(type=inner):
                yield from self.find(inner, value, at=at)
            case ir.Struct(fields=fields) if isinstance(value, dict):
                for field in fields:
                    if field.wire in value:
                        yield from self.find(field.type, value[field.wire], at=join(at, field.wire))
            case ir.TaggedUnion() | ir.UntaggedUnion() as union:
                if (member := _member(union, value, self._model)) is not None:
                    yield from self.find(member, value, at=at)


def _member(union: ir.TaggedUnion | ir.UntaggedUnion, value: Any, model: ir.Model) -> ir.TypeExpr | None:
    """The member that a value is read as: that of its tag, or else the first that it fits."""
    if isinstance(union, ir.UntaggedUnion):
        return next((each.type for each in union.members if fits(each.type, value, model)), None)
    tag = value.get(union.tag) if isinstance(value, dict) else None
    variant = next((each.type for each in union.variants if each.tag == tag), None)
    return variant or next((each.type for each in union.fallbacks if fits(each.type, value, model)), None)


def _places(gated: ir.GatedValue, value: Any, at: str) -> Iterator[str]:
    """Where in a value of its definition the gated value is."""
    places = [(at, value)]
    for wire in gated.properties:
        owners = [(place, each) for place, each in _items(places) if isinstance(each, dict) and wire in each]
        places = [(join(place, wire), each[wire]) for place, each in owners]
    if gated.value is None:
        yield from (place for place, each in places if each is not None and each != [])
    else:
        yield from (place for place, each in _items(places) if _stated(each, gated.key) == gated.value)


def _items(places: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The values, each array among them as its items."""
    for at, value in places:
        yield from (
            ((join(at, index), each) for index, each in enumerate(value)) if isinstance(value, list) else [(at, value)]
        )


def _stated(value: Any, key: str | None) -> Any:
    return value if key is None else value.get(key) if isinstance(value, dict) else None
