"""Order definitions so that they can be read and executed, and list the parts of a type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from acpgen.ir import model as ir
from acpgen.roles import Side
from acpgen.schema.walk import closure


def in_reading_order(definitions: Mapping[str, ir.Definition], first: Iterable[str]) -> tuple[ir.Definition, ...]:
    """The definitions that are named in `first`, each before what it uses, and then the others in schema order.

    Except that each comes after those that it needs at import.
    """
    ordered: dict[str, ir.Definition] = {}
    recursive = find_recursive(definitions)
    waiting = [*first, *definitions][::-1]  # a stack: definitions may be nested deeper than Python calls
    while waiting:
        placed = list(_place(waiting.pop(), definitions, ordered, recursive))
        waiting += [name for each in placed for name in parts(each)][::-1]
    return tuple(ordered.values())


def _place(
    name: str, definitions: Mapping[str, ir.Definition], ordered: dict[str, ir.Definition], recursive: frozenset[str]
) -> Iterator[ir.Definition]:
    """Add a definition after those that it needs; yields what was added."""
    if name not in ordered:
        for each in needs(definitions[name], recursive):
            yield from _place(each, definitions, ordered, recursive)
        ordered[name] = definitions[name]
        yield ordered[name]


def reachable(expressions: Iterable[ir.TypeExpr], model: ir.Model) -> frozenset[str]:
    """The definitions in values of `expressions`, at any depth."""
    return closure(references(*expressions), lambda name: references(*types_of(model.by_name[name])))


def introducing(model: ir.Model) -> frozenset[str]:
    """The classes in which a side says what it can do."""
    found = (model.introduction(side)[0] for side in Side)
    return reachable([each.type for each in found if each is not None], model)


def needs(definition: ir.Definition, recursive: frozenset[str]) -> Iterable[str]:
    """The definitions that must exist before `definition` can: the base of a class, the members of a union or alias.

    Fields need nothing: annotations are not evaluated. In one of the `recursive` definitions, the items of arrays and
    maps that are of another such type are quoted, and need nothing, either.
    """
    if isinstance(definition, ir.Struct):
        return (definition.base,) if definition.base else ()
    quoted = recursive if definition.name in recursive else frozenset[str]()
    found = (each for expression in types_of(definition) for each in _places(expression))
    return (name for name, is_inside in found if not (is_inside and name in quoted))


def find_recursive(definitions: Mapping[str, ir.Definition]) -> frozenset[str]:
    """The unions and aliases whose arrays or maps contain themselves again, and those between two such types.

    Classes are not among them: they refer to others in annotations, which are not evaluated.
    """
    named = {name: each for name, each in definitions.items() if not isinstance(each, ir.Struct)}
    edges = {name: set(references(*types_of(each))) & named.keys() for name, each in named.items()}
    kept = _in_cycles(edges)
    backward = defaultdict[str, set[str]](set)
    for name in kept:
        for target in edges[name] & kept:
            backward[target].add(name)
    return frozenset(_in_cycles({name: backward[name] for name in kept}))


def _in_cycles(edges: Mapping[str, set[str]]) -> set[str]:
    """The names from which an endless path starts: all but those that lead nowhere, again and again."""
    users = defaultdict[str, list[str]](list)
    for name, targets in edges.items():
        for target in targets:
            users[target].append(name)
    left = {name: len(targets) for name, targets in edges.items()}
    ends = [name for name, number in left.items() if not number]
    while ends:
        end = ends.pop()
        del left[end]
        for user in users[end]:
            left[user] -= 1
            if not left[user]:
                ends.append(user)
    return set(left)


def _places(expression: ir.TypeExpr, *, is_inside: bool = False) -> Iterator[tuple[str, bool]]:
    """The definition in `expression`, and whether it is inside of an array or a map."""
    match expression:
        case ir.Ref(name):
            yield name, is_inside
        case ir.ListOf(item=inner) | ir.MapOf(inner):
            yield from _places(inner, is_inside=True)
        case ir.Nullable(inner):
            yield from _places(inner, is_inside=is_inside)


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
    return tuple(each.type for each in union.untagged)


def untagged_for(struct: ir.Struct, union: ir.TaggedUnion | ir.UntaggedUnion) -> Iterator[ir.TypeExpr]:
    """Those of these members as which every object of a class is tried: it requires all that they require."""
    given = {each.wire for each in struct.fields if each.required}
    return (each.type for each in union.untagged if given.issuperset(each.required))


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
