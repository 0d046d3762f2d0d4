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
    match definition:
        case ir.Struct(base=base):
            return (base,) if base else ()
        case ir.Alias(type=expression):
            return references(expression)
        case ir.Enum():
            return ()
        case ir.TaggedUnion() | ir.UntaggedUnion():
            return (name for expression in members(definition) for name in references(expression))


def members(union: ir.TaggedUnion | ir.UntaggedUnion) -> tuple[ir.TypeExpr, ...]:
    """The types that make up a union, each once, in the order in which they are tried."""
    if isinstance(union, ir.UntaggedUnion):
        found: list[ir.TypeExpr] = [candidate.type for candidate in union.members]
    else:
        found = [ir.Ref(variant.target) for variant in union.variants]
        found += [each.type if isinstance(each, ir.Candidate) else ir.Ref(each.target) for each in union.fallbacks]
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
    yield from needs(definition)
    if isinstance(definition, ir.Struct):
        for field in definition.fields:
            yield from references(field.type)


def references(expression: ir.TypeExpr) -> Iterator[str]:
    """The names of the definitions in `expression`."""
    match expression:
        case ir.Ref(name):
            yield name
        case ir.ListOf(item=inner) | ir.MapOf(inner) | ir.Nullable(inner):
            yield from references(inner)
        case ir.Scalar() | ir.Const() | ir.Choice() | ir.AnyJson():
            return
