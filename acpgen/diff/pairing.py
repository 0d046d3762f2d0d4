"""Which definition and which method of the new model is which of the old one: by name, else by role and shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acpgen.diff.likeness import MOST_PAIRS, alike_methods, likeness, member_types
from acpgen.ir.model import (
    Alias,
    Definition,
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

NEAR = 0.6
"""From this likeness on, two definitions in the same role are one that was renamed."""
NEAR_METHOD = 0.75
"""The same for methods, which have no role but their own to be known by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """What belongs together. `forward` maps the names of old definitions to new ones, `backward` the reverse.

    `methods` are pairs of an old and a new method, which differ in name (and in that alone) or in kind where they are
    renamed or of a new kind; `removed` and `added` are the methods without a counterpart.
    """

    forward: Mapping[str, str]
    backward: Mapping[str, str]
    methods: tuple[tuple[Method, Method], ...]
    removed: tuple[Method, ...]
    added: tuple[Method, ...]


def pair(old: Model, new: Model) -> Pairs:
    """The pairs of two models."""
    methods = _pair_methods(old, new)
    pairing = _Pairing(old, new)
    pairing.run(methods)
    kept, matched = ({id(each) for each in column} for column in (zip(*methods, strict=True) if methods else ((), ())))
    return Pairs(
        forward=pairing.forward,
        backward={name: known for known, name in pairing.forward.items()},
        methods=tuple(methods),
        removed=tuple(each for each in old.methods if id(each) not in kept),
        added=tuple(each for each in new.methods if id(each) not in matched),
    )


def _pair_methods(old: Model, new: Model) -> list[tuple[Method, Method]]:
    known = {(each.wire, each.kind): each for each in new.methods}
    found = [(each, known[each.wire, each.kind]) for each in old.methods if (each.wire, each.kind) in known]
    taken = {(one.wire, one.kind) for one, _ in found}
    removed = [each for each in old.methods if (each.wire, each.kind) not in taken]
    added = [each for each in new.methods if (each.wire, each.kind) not in taken]
    for by_score in (_by_wire, _by_likeness):
        if len(removed) * len(added) > MOST_PAIRS:
            break
        scored = [(by_score(one, old, other, new), one, other) for one in removed for other in added]
        for score, one, other in sorted(scored, key=lambda each: (-each[0], each[1].wire, each[2].wire)):
            if score >= NEAR_METHOD and one in removed and other in added:
                found.append((one, other))
                removed.remove(one)
                added.remove(other)
    return found


def _by_wire(one: Method, _old: Model, other: Method, _new: Model) -> float:
    """A request that has become a notification, or the reverse."""
    return 1.0 if one.wire == other.wire else 0.0


def _by_likeness(one: Method, old: Model, other: Method, new: Model) -> float:
    names = {each.wire for each in old.methods} & {each.wire for each in new.methods}
    return 0.0 if {one.wire, other.wire} & names else alike_methods(one, old, other, new)


@dataclass(slots=True)
class _Pairing:
    """Finds pairs from those known already: what stands in the same place of paired definitions is looked at."""

    old: Model
    new: Model
    forward: dict[str, str] = field(default_factory=dict)
    _open: list[tuple[str, str]] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def run(self, methods: list[tuple[Method, Method]]) -> None:
        for name in self.old.by_name:
            if name in self.new.by_name:
                self._put(name, name)
        for one, other in methods:
            self._expressions(one.params, other.params)
            if one.result is not None and other.result is not None:
                self._expressions(one.result, other.result)
        while self._open:
            name, known = self._open.pop(0)
            self._inside(self.old.by_name[name], self.new.by_name[known])

    def _put(self, name: str, known: str) -> None:
        self.forward[name] = known
        self._taken.add(known)
        self._open.append((name, known))

    def _is_free(self, name: str, known: str) -> bool:
        return name not in self.forward and known not in self._taken

    def _try(self, name: str, known: str, *, least: float = NEAR) -> None:
        """Pair two definitions that stand in the same place, where each is only there."""
        if not self._is_free(name, known):
            return
        if self._likeness(name, known) >= least:
            self._put(name, known)

    def _likeness(self, name: str, known: str) -> float:
        return likeness(self.old.by_name[name], self.old, self.new.by_name[known], self.new)

    def _expressions(self, one: TypeExpr, other: TypeExpr, *, least: float = NEAR) -> None:
        one, other = _core(one), _core(other)
        if isinstance(one, Ref) and isinstance(other, Ref):
            self._try(one.name, other.name, least=least)

    def _inside(self, one: Definition, other: Definition) -> None:
        match one, other:
            case Struct(), Struct():
                theirs = {each.wire: each for each in other.fields}
                for each in one.fields:
                    if each.wire in theirs:
                        self._expressions(each.type, theirs[each.wire].type)
                if one.base is not None and other.base is not None:
                    self._try(one.base, other.base)
            case Alias(), Alias():
                self._expressions(one.type, other.type)
            case (TaggedUnion() | UntaggedUnion()), (TaggedUnion() | UntaggedUnion()):
                self._members(one, other)

    def _members(self, one: TaggedUnion | UntaggedUnion, other: TaggedUnion | UntaggedUnion) -> None:
        """Members of the same tag belong together, whatever their names; the others, where they are alike."""
        if isinstance(one, TaggedUnion) and isinstance(other, TaggedUnion):
            targets = {each.tag: each.target for each in other.variants}
            for variant in one.variants:
                if variant.tag in targets:
                    self._try(variant.target, targets[variant.tag], least=0.0)
            if one.other is not None and other.other is not None:
                self._try(one.other.target, other.other.target, least=0.0)
        self._untagged(one, other)

    def _untagged(self, one: TaggedUnion | UntaggedUnion, other: TaggedUnion | UntaggedUnion) -> None:
        """Pair the members that are most alike; one without a tag may have got one, and the reverse."""
        loose = {each.name for union in (one, other) for each in member_types(union) if isinstance(each, Ref)}
        mine, theirs = ([each.name for each in members(union) if isinstance(each, Ref)] for union in (one, other))
        mine = [each for each in mine if each not in self.forward]
        theirs = [each for each in theirs if each not in self._taken]
        if len(mine) * len(theirs) > MOST_PAIRS:
            return
        scored = [
            (self._likeness(name, known), name, known)
            for name in mine
            for known in theirs
            if name in loose or known in loose
        ]
        for score, name, known in sorted(scored, key=lambda each: -each[0]):
            if score >= NEAR and self._is_free(name, known):
                self._put(name, known)


def _core(expression: TypeExpr) -> TypeExpr:
    """The type inside of arrays, maps and "or null"."""
    match expression:
        case Nullable(inner) | MapOf(inner) | ListOf(item=inner):
            return _core(inner)
        case _:
            return expression
