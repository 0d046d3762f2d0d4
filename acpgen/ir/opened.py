"""What the option `open` adds to a model, and where a value that only this admits must wait for other members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from acpgen.ir import model as ir
from acpgen.ir.order import reachable
from acpgen.ir.relations import Coverage


def as_written(definition: ir.Definition) -> ir.Definition:
    """The definition without what the option `open` adds to it."""
    match definition:
        case ir.Enum(opened=True):
            return replace(definition, open=False, opened=False)
        case ir.TaggedUnion(fallbacks=(*rest, ir.OtherVariant(opened=True))):
            return replace(definition, fallbacks=tuple(rest))
        case _:
            return definition


def watched(model: ir.Model) -> frozenset[str]:
    """The opened enums, and classes for other tags, in members of unions that come before others for the same values.

    What fits a member as the schema writes it goes there, so their decoders must report what the schema does not list.
    """
    opened = {name for each in model.definitions for name in _opened(each)}
    if not opened:
        return frozenset()
    coverage, found = Coverage(model.by_name), set[str]()
    for definition in model.definitions:
        for earlier, later in _rivals(definition):
            if not coverage.disjoint(earlier, later):
                found |= opened & reachable([earlier], model)
    return frozenset(found)


def _opened(definition: ir.Definition) -> Iterator[str]:
    match definition:
        case ir.Enum(name=name, opened=True):
            yield name
        case ir.TaggedUnion(fallbacks=(*_, ir.OtherVariant(target=target, opened=True))):
            yield target


def _rivals(definition: ir.Definition) -> Iterator[tuple[ir.TypeExpr, ir.TypeExpr]]:
    """The pairs of members that are tried one after the other, as the schema writes them."""
    match as_written(definition):
        case ir.UntaggedUnion(members=candidates):
            yield from combinations([each.type for each in candidates], 2)
        case ir.TaggedUnion(variants=variants, fallbacks=fallbacks):
            rest = [each.type for each in fallbacks]
            yield from product([each.type for each in variants], rest)
            yield from combinations(rest, 2)
