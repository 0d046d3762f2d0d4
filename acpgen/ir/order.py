"""Order definitions so that they can be read and executed, and list the parts of a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from acpgen.ir import model as ir
from acpgen.schema.walk import closure


def in_reading_order(definitions: Mapping[str, ir.Definition], first: Iterable[str]) -> tuple[ir.Definition, ...]:
    """The definitions that are named in `first`, each before what it uses, and then the others in schema order.

    Except that each comes after those that it needs at import.
    """
    ordered: dict[str, ir.Definition] = {}
    waiting = [*first, *definitions][::-1]  # a stack: definitions may be nested deeper than Python calls
    while waiting:
        placed = list(_place(waiting.pop(), definitions, ordered))
        waiting += [name for each in placed for name in parts(each)][::-1]
    return tuple(ordered.values())


def _place(
    name: str, definitions: Mapping[str, ir.Definition], ordered: dict[str, ir.Definition]
) -> Iterator[ir.Definition]:
    """Add a definition after those that it needs; yields what was added."""
    if name not in ordered:
        for each in needs(definitions[name]):
            yield from _place(each, definitions, ordered)
        ordered[name] = definitions[name]
        yield ordered[name]


def reachable(expressions: Iterable[ir.TypeExpr], model: ir.Model) -> frozenset[str]:
    """The definitions in values of `expressions`, at any depth."""
    return closure(references(*expressions), lambda name: references(*types_of(model.by_name[name])))


def needs(definition: ir.Definition) -> Iterable[str]:
    """The definitions that must exist before `definition` can: the base of a class, the members of a union or alias.

    Fields need nothing: annotations are not evaluated.
    """
    if isinstance(definition, ir.Struct):
        return (definition.base,) if definition.base else ()
    return references(*types_of(definition))


def members(union: ir.TaggedUnion | ir.UntaggedUnion) -> tuple[ir.TypeExpr, ...]:
    """The types that make up a union, each once, in the order in which they are tried."""
    if isinstance(union, ir.UntaggedUnion):
        found: list[ir.TypeExpr] = [candidate.type for candidate in union.members]
    else:
        found = [variant.type for variant in union.variants]
        found += [each.type for each in union.fallbacks]
    return tuple(dict.fromkeys(found))


def untagged(union: ir.TaggedUnion | ir.UntaggedUnion) -> tuple[ir.TypeExpr, ...]:
    """The types of the members without a tag, in the order in which they are tried."""
    return tuple(each.type for each in _candidates(union))


def untagged_for(struct: ir.Struct, union: ir.TaggedUnion | ir.UntaggedUnion) -> Iterator[ir.TypeExpr]:
    """Those of these members as which every object of a class is tried: it requires all that they require."""
    given = {each.wire for each in struct.fields if each.required}
    return (each.type for each in _candidates(union) if given.issuperset(each.required))


def _candidates(union: ir.TaggedUnion | ir.UntaggedUnion) -> tuple[ir.Candidate, ...]:
    return union.members if isinstance(union, ir.UntaggedUnion) else union.untagged


def parts(definition: ir.Definition) -> Iterator[str]:
    """The names of the definitions that `definition` refers to."""
    if isinstance(definition, ir.Struct) and definition.base:
        yield definition.base
    yield from references(*types_of(definition))


def types_of(definition: ir.Definition) -> Iterable[ir.TypeExpr]:
    """The types that the values of `definition` consist of; those of its properties for a class."""
    match definition:
        case ir.Struct(fields=fields):
            return (field.type for field in fields)
        case ir.Alias(type=expression):
            return (expression,)
        case ir.Enum():
            return ()
        case ir.TaggedUnion() | ir.UntaggedUnion():
            return members(definition)


def types_in(expression: ir.TypeExpr) -> Iterator[ir.TypeExpr]:
    """`expression` and the types inside it, from the outside; references are not followed."""
    yield expression
    match expression:
        case ir.ListOf(item=inner) | ir.MapOf(inner) | ir.Nullable(inner):
            yield from types_in(inner)


def references(*expressions: ir.TypeExpr) -> Iterator[str]:
    """The names of the definitions in `expressions`."""
    return (part.name for each in expressions for part in types_in(each) if isinstance(part, ir.Ref))
