"""How alike two definitions are, from 0 to 1, for telling a rename from a removal and an addition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from acpgen.diff.wire import resolved
from acpgen.ir import names
from acpgen.ir.model import (
    Alias,
    Choice,
    Definition,
    Enum,
    ListOf,
    MapOf,
    Method,
    Model,
    Nullable,
    Ref,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members

MOST_PAIRS = 10_000
"""Where more pairs than this had to be looked at, none is: that is no rename, but another schema."""
_LEAST_PREFIX = 4
"""From this many letters on, words that start alike are taken for related ("auth" and "authenticate")."""


def likeness(one: Definition, old: Model, other: Definition, new: Model) -> float:
    """How much of either definition has its like in the other."""
    match one, other:
        case Struct(), Struct():
            return _structs(one, old, other, new)
        case (TaggedUnion() | UntaggedUnion()), (TaggedUnion() | UntaggedUnion()):
            return max(_dice(_tags(one), _tags(other)), _dice(_wires(one, old), _wires(other, new)))
        case Enum(), Enum():
            return _dice((each.value for each in one.members), (each.value for each in other.members))
        case Alias(), Alias():
            return 1.0 if sketch(one.type, old) == sketch(other.type, new) else 0.0
        case (Struct(), (TaggedUnion() | UntaggedUnion())) | ((TaggedUnion() | UntaggedUnion()), Struct()):
            return _dice(_wires(one, old), _wires(other, new))
        case _:
            return 0.0


def _structs(one: Struct, old: Model, other: Struct, new: Model) -> float:
    mine, theirs = ({each.wire: each for each in struct.fields} for struct in (one, other))
    if not mine and not theirs:
        return 1.0
    shared = [
        1.0 if sketch(field.type, old) == sketch(theirs[wire].type, new) else 0.5
        for wire, field in mine.items()
        if wire in theirs
    ]
    return 2 * sum(shared) / (len(mine) + len(theirs))


def _tags(union: TaggedUnion | UntaggedUnion) -> list[str]:
    return [each.tag for each in union.variants] if isinstance(union, TaggedUnion) else []


def _wires(definition: Definition, model: Model) -> list[str]:
    """The properties of a class, or of all the classes of a union, each as often as it stands there."""
    match definition:
        case Struct(fields=fields):
            return [each.wire for each in fields]
        case TaggedUnion() | UntaggedUnion():
            inner = [model.by_name[each.name] for each in members(definition) if isinstance(each, Ref)]
            return [wire for each in inner for wire in _wires(each, model)]
        case _:
            return []


def _dice(one: Iterable[object], other: Iterable[object]) -> float:
    mine, theirs = Counter(one), Counter(other)
    total = mine.total() + theirs.total()
    return 2 * (mine & theirs).total() / total if total else 0.0


def sketch(expression: TypeExpr, model: Model) -> str:
    """The type without names: what a rename does not change."""
    match resolved(expression, model):
        case Ref():
            return "object"
        case Nullable(inner):
            return f"{sketch(inner, model)} or null"
        case ListOf(item=item):
            return f"array of {sketch(item, model)}"
        case MapOf(inner):
            return f"map of {sketch(inner, model)}"
        case Choice(primitive=primitive):
            return primitive.value
        case other:
            return str(other)


def alike_methods(one: Method, old: Model, other: Method, new: Model) -> float:
    """How alike two methods of different names are; 0 where side, kind or words have nothing in common.

    Words do not matter where the types have kept their names: these are the types of one method only.
    """
    if (one.side, one.kind) != (other.side, other.kind):
        return 0.0
    if (one.params, one.result) != (other.params, other.result) and not _related(one.wire, other.wire):
        return 0.0
    found = [_alike(one.params, old, other.params, new)]
    if one.result is not None and other.result is not None:
        found.append(_alike(one.result, old, other.result, new))
    return sum(found) / len(found)


def _alike(one: TypeExpr, old: Model, other: TypeExpr, new: Model) -> float:
    if isinstance(one, Ref) and isinstance(other, Ref):
        return likeness(old.by_name[one.name], old, new.by_name[other.name], new)
    return 1.0 if sketch(one, old) == sketch(other, new) else 0.0


def _related(one: str, other: str) -> bool:
    """Whether the last part of either name shares a word with the other name, or has one that starts alike."""
    return _names(one.rpartition("/")[2], other) or _names(other.rpartition("/")[2], one)


def _names(part: str, name: str) -> bool:
    mine, theirs = ({word.lower() for word in names.words(text)} for text in (part, name))
    return any(
        word == like
        or (min(len(word), len(like)) >= _LEAST_PREFIX and (word.startswith(like) or like.startswith(word)))
        for word in mine
        for like in theirs
    )


def same_words(one: str, other: str) -> bool:
    """Whether all words of one property name stand in the other (`id` and `methodId`)."""
    mine, theirs = ({word.lower() for word in names.words(text)} for text in (one, other))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def member_types(union: TaggedUnion | UntaggedUnion) -> list[TypeExpr]:
    """The types of the members without a tag, in order."""
    found = union.members if isinstance(union, UntaggedUnion) else union.untagged
    return [each.type for each in found]
