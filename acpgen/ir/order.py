"""Order definitions so that Python can execute them, and list the parts of a type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from acpgen.ir.model import (
    Alias,
    AnyJson,
    Candidate,
    Choice,
    Const,
    Definition,
    Enum,
    ListOf,
    MapOf,
    Nullable,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)


def in_dependency_order(definitions: Mapping[str, Definition]) -> tuple[Definition, ...]:
    """The definitions in schema order, except that each comes after those that it needs at import.

    A class needs its base; a union or alias needs its members. Fields need nothing: annotations are not evaluated.
    """
    ordered: dict[str, Definition] = {}

    def place(definition: Definition) -> None:
        if definition.name in ordered:
            return
        for name in needs(definition):
            place(definitions[name])
        ordered[definition.name] = definition

    for definition in definitions.values():
        place(definition)
    return tuple(ordered.values())


def needs(definition: Definition) -> Iterable[str]:
    """The definitions that must exist before `definition` can."""
    match definition:
        case Struct(base=base):
            return (base,) if base else ()
        case Alias(type=expression):
            return references(expression)
        case Enum():
            return ()
        case TaggedUnion() | UntaggedUnion():
            return (name for expression in members(definition) for name in references(expression))


def members(union: TaggedUnion | UntaggedUnion) -> tuple[TypeExpr, ...]:
    """The types that make up a union, each once, in the order in which they are tried."""
    if isinstance(union, UntaggedUnion):
        found: list[TypeExpr] = [candidate.type for candidate in union.members]
    else:
        found = [Ref(variant.target) for variant in union.variants]
        found += [each.type if isinstance(each, Candidate) else Ref(each.target) for each in union.fallbacks]
    return tuple(dict.fromkeys(found))


def untagged(union: TaggedUnion | UntaggedUnion) -> tuple[TypeExpr, ...]:
    """The types of the members without a tag, in the order in which they are tried."""
    return tuple(each.type for each in _candidates(union))


def untagged_for(struct: Struct, union: TaggedUnion | UntaggedUnion) -> Iterator[TypeExpr]:
    """Those of these members as which every object of a class is tried: it requires all that they require."""
    given = {each.wire for each in struct.fields if each.required}
    return (each.type for each in _candidates(union) if given.issuperset(each.required))


def _candidates(union: TaggedUnion | UntaggedUnion) -> tuple[Candidate, ...]:
    return union.members if isinstance(union, UntaggedUnion) else union.untagged


def parts(definition: Definition) -> Iterator[str]:
    """The names of the definitions that `definition` refers to."""
    yield from needs(definition)
    if isinstance(definition, Struct):
        for field in definition.fields:
            yield from references(field.type)


def references(expression: TypeExpr) -> Iterator[str]:
    """The names of the definitions in `expression`."""
    match expression:
        case Ref(name):
            yield name
        case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
            yield from references(inner)
        case Scalar() | Const() | Choice() | AnyJson():
            return
