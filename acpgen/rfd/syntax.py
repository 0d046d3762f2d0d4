"""The part of TypeScript that describes data: what the parser makes of interfaces, type aliases and enums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Keyword:
    """A built-in type: `string`, `null`, `unknown` and so on."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A type with one value."""

    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Reference:
    """A type by name, with its arguments."""

    name: str
    arguments: tuple[TypeNode, ...]
    start: int


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array."""

    item: TypeNode


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union; `is_elided` where a comment or `...` stands for more members. `docs` has a comment for each."""

    members: tuple[TypeNode, ...]
    docs: tuple[str, ...]
    is_elided: bool


@dataclass(frozen=True, slots=True)
class AllOf:
    """An intersection."""

    parts: tuple[TypeNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A property of an object type."""

    name: str
    type: TypeNode
    is_optional: bool
    doc: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """An object type; `values` is the type of an index signature, `is_elided` says that it goes on elsewhere."""

    members: tuple[Member, ...]
    values: TypeNode | None
    is_elided: bool


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A type that the parser does not know, as it is written."""

    text: str
    start: int


TypeNode: TypeAlias = Keyword | Constant | Reference | ArrayOf | OneOf | AllOf | Record | NotUnderstood


def nests_deeper(node: TypeNode, bound: int) -> bool:
    """Whether types stand in one another more than `bound` deep."""
    level: list[TypeNode] = [node]
    for _ in range(bound + 1):
        level = [child for each in level for child in _children(each)]
        if not level:
            return False
    return True


def _children(node: TypeNode) -> tuple[TypeNode, ...]:
    match node:
        case ArrayOf(item):
            return (item,)
        case OneOf(members=inner) | AllOf(inner) | Reference(arguments=inner):
            return inner
        case Record(members=members, values=values):
            return (*(member.type for member in members), *([values] if values else []))
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """An interface, a type alias or an enum; `bases` are the types that an interface extends."""

    name: str
    type: TypeNode
    bases: tuple[str, ...]
    doc: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that the parser did not understand, and where it stands.

    `skipped` is from where to where the text was passed over to go on; None where what is there has its place in a
    declaration.
    """

    message: str
    start: int
    skipped: tuple[int, int] | None = None
