"""Order definitions so that Python can execute them, and list the parts of a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from acpgen.ir import model as ir


def in_dependency_order(definitions: Mapping[str, ir.Definition]) -> tuple[ir.Definition, ...]:
    """The definitions in schema order, except that each comes after those that it needs at import.

    A class needs its base; a union or alias needs its members. Fields need nothing: annotations are not evaluated.
    """
    ordered: dict[str, ir.Definition] = {}

    def place(definition: ir.Definition) -> None:
        if definition.name in ordered:
            return
        for name in needs(definition):
            place(definitions[name])
        ordered[definition.name] = definition

    for definition in definitions.values():
        place(definition)
    return tuple(ordered.values())


def needs(definition: ir.Definition) -> Iterable[str]:
    """The definitions that must exist before `definition` can."""
    if isinstance(definition, ir.Struct):
        return (definition.base,) if definition.base else ()
    return (name for each in types_of(definition) for name in references(each))


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
    for each in types_of(definition):
        yield from references(each)


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


def references(expression: ir.TypeExpr) -> Iterator[str]:
    """The names of the definitions in `expression`."""
    return (each.name for each in types_in(expression) if isinstance(each, ir.Ref))
