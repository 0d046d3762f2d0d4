"""Pairs of definitions and methods of two models: equal names first, then renames.

A rename keeps something that identifies the thing: its tag, its message, or its shape in the same place. Nothing is
scored; with two possible counterparts, nothing is paired.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members, references, untagged
from acpgen.ir.relations import concrete

_STEM = 4
"""Words that share this many first letters are related ("auth" and "authenticate")."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """The pairs of two models. `forward` maps the names of old definitions to new ones, `backward` the reverse.

    `methods` are pairs of an old and a new method, some with another name or kind; `removed` and `added` are the
    methods without a counterpart.
    """

    forward: Mapping[str, str]
    backward: Mapping[str, str]
    methods: Sequence[tuple[ir.Method, ir.Method]]
    removed: Sequence[ir.Method]
    added: Sequence[ir.Method]


def pair(old: ir.Model, new: ir.Model) -> Pairs:
    """The pairs of two models."""
    methods, removed, added = _pair_methods(old, new)
    pairing = _Pairing(old, new)
    pairing.run(methods)
    backward = {known: name for name, known in pairing.forward.items()}
    return Pairs(forward=pairing.forward, backward=backward, methods=methods, removed=removed, added=added)


def _pair_methods(
    old: ir.Model, new: ir.Model
) -> tuple[list[tuple[ir.Method, ir.Method]], list[ir.Method], list[ir.Method]]:
    """Pair in passes: by wire name and kind; by wire name; by types; by shapes of types, if the names are related."""
    pairs, removed, added = [], list(old.methods), list(new.methods)
    passes: tuple[Callable[[ir.Method, ir.Model], Hashable], ...] = (
        lambda method, _: (method.wire, method.kind),
        lambda method, _: method.wire,
        lambda method, _: (method.side, method.kind, method.params, method.result),
        lambda method, model: (method.side, method.kind, *_message_shapes(method, model)),
    )
    for key in passes:
        found = list(_matches([(key(each, old), each) for each in removed], [(key(each, new), each) for each in added]))
        for one, other in found:
            if key is not passes[-1] or _are_related(one.wire, other.wire):
                pairs.append((one, other))
                removed.remove(one)
                added.remove(other)
    return pairs, removed, added


_Keyed: TypeAlias = Sequence[tuple[Hashable, _Item]]


def _matches(mine: _Keyed[_Item], theirs: _Keyed[_Item]) -> Iterator[tuple[_Item, _Item]]:
    """Pairs of items with equal keys. A key that one side has twice pairs nothing."""
    my_counts, their_counts = Counter(key for key, _ in mine), Counter(key for key, _ in theirs)
    known = dict(theirs)
    for key, item in mine:
        if (my_counts[key], their_counts[key]) == (1, 1):
            yield item, known[key]


def _message_shapes(method: ir.Method, model: ir.Model) -> tuple[Hashable, ...]:
    parts = (method.params, method.result)
    return tuple(
        shape(model.by_name[part.name], model) if isinstance(part, ir.Ref) else part and sketch(part, model)
        for part in parts
    )


def _are_related(one: str, other: str) -> bool:
    """True if the last part of one name and the other name have words with equal first letters."""
    return any(_stems(part.rpartition("/")[2]) & _stems(name) for part, name in ((one, other), (other, one)))


def _stems(name: str) -> set[str]:
    return {word.lower()[:_STEM] for word in names.words(name)}


def shape(definition: ir.Definition, model: ir.Model, *, tag: str | None = None) -> tuple[str, frozenset[Hashable]]:
    """The kind and the parts of the definition without the names of types; `tag` is a property to ignore."""
    match definition:
        case ir.Struct(fields=fields):
            return "class", frozenset((each.wire, sketch(each.type, model)) for each in fields if each.wire != tag)
        case ir.TaggedUnion(variants=variants):
            return "union", frozenset(each.tag for each in variants)
        case ir.UntaggedUnion():
            return "union", frozenset(sketch(each, model) for each in members(definition))
        case ir.Enum(members=constants):
            return "enum", frozenset(each.value for each in constants)
        case ir.Alias(type=target):
            return "alias", frozenset({sketch(target, model)})


def _are_alike(one: ir.Definition, old: ir.Model, other: ir.Definition, new: ir.Model) -> bool:
    """Whether two definitions in the same place have the same shape, or one class has all properties of the other."""
    if isinstance(one, ir.Struct) and isinstance(other, ir.Struct):
        mine, theirs = ({each.wire for each in struct.fields} for struct in (one, other))
        return (mine <= theirs or theirs <= mine) and bool(mine) is bool(theirs)
    return shape(one, old) == shape(other, new)


def sketch(expression: ir.TypeExpr, model: ir.Model) -> str:
    """The type as text, without names: a rename does not change it."""
    if isinstance(expression, ir.Ref) and expression.name in model.recursive:
        return "a type that contains itself"
    match concrete(expression, model):
        case ir.Ref():
            return "object"
        case ir.Nullable(inner):
            return f"{sketch(inner, model)} or null"
        case ir.ListOf(item=item):
            return f"array of {sketch(item, model)}"
        case ir.MapOf(inner):
            return f"map of {sketch(inner, model)}"
        case ir.InlineEnum(primitive=primitive):
            return primitive.value
        case other:
            return str(other)


@dataclass(slots=True)
class _Pairing:
    """Finds pairs of definitions: starting from known pairs, it compares the definitions in the same place of both."""

    old: ir.Model
    new: ir.Model
    forward: dict[str, str] = field(default_factory=dict)
    _todo: deque[tuple[str, str]] = field(default_factory=deque)
    _taken: set[str] = field(default_factory=set)

    def run(self, methods: Iterable[tuple[ir.Method, ir.Method]]) -> None:
        for name in self.old.by_name:
            if name in self.new.by_name:
                self._put(name, name)
        for one, other in methods:
            for part, known in ((one.params, other.params), (one.result, other.result)):
                if isinstance(part, ir.Ref) and isinstance(known, ir.Ref):
                    self._put(part.name, known.name)
        while self._todo:
            mine, theirs = self._todo.popleft()
            self._inside(self.old.by_name[mine], self.new.by_name[theirs])

    def _put(self, name: str, known: str) -> None:
        """Pair two definitions, unless one of them has a counterpart already."""
        if name not in self.forward and known not in self._taken:
            self.forward[name] = known
            self._taken.add(known)
            self._todo.append((name, known))

    def _put_alike(self, one: ir.TypeExpr, other: ir.TypeExpr) -> None:
        """Pair the definitions in two types in the same place, if they are alike."""
        for name, known in zip(references(one), references(other), strict=False):
            if _are_alike(self.old.by_name[name], self.old, self.new.by_name[known], self.new):
                self._put(name, known)

    def _inside(self, one: ir.Definition, other: ir.Definition) -> None:
        match one, other:
            case ir.Struct(), ir.Struct():
                theirs = {each.wire: each for each in other.fields}
                for each in one.fields:
                    if each.wire in theirs:
                        self._put_alike(each.type, theirs[each.wire].type)
                if one.base is not None and other.base is not None:
                    self._put_alike(ir.Ref(one.base), ir.Ref(other.base))
            case ir.Alias(), ir.Alias():
                self._put_alike(one.type, other.type)
            case (ir.TaggedUnion() | ir.UntaggedUnion()), (ir.TaggedUnion() | ir.UntaggedUnion()):
                self._tagged(one, other)
                self._untagged(one, other)

    def _tagged(self, one: ir.TaggedUnion | ir.UntaggedUnion, other: ir.TaggedUnion | ir.UntaggedUnion) -> None:
        if isinstance(one, ir.TaggedUnion) and isinstance(other, ir.TaggedUnion):
            targets = {each.tag: each.target for each in other.variants}
            for variant in one.variants:
                if variant.tag in targets:
                    self._put(variant.target, targets[variant.tag])
            if one.other is not None and other.other is not None:
                self._put(one.other.target, other.other.target)

    def _untagged(self, one: ir.TaggedUnion | ir.UntaggedUnion, other: ir.TaggedUnion | ir.UntaggedUnion) -> None:
        """Pair members of equal shape, then the single ones left over if they are alike. One union may have a tag."""
        tag = next((each.tag for each in (one, other) if isinstance(each, ir.TaggedUnion)), None)
        loose = {*untagged(one), *untagged(other)}
        mine, theirs = self._free(one), self._free(other, new=True)
        for name, known in _matches(
            [(shape(self.old.by_name[name], self.old, tag=tag), name) for name in mine],
            [(shape(self.new.by_name[name], self.new, tag=tag), name) for name in theirs],
        ):
            if ir.Ref(name) in loose or ir.Ref(known) in loose:
                self._put(name, known)
        mine, theirs = self._free(one), self._free(other, new=True)
        if len(mine) == len(theirs) == 1 and not loose.isdisjoint(map(ir.Ref, mine + theirs)):
            self._put_alike(ir.Ref(mine[0]), ir.Ref(theirs[0]))

    def _free(self, union: ir.TaggedUnion | ir.UntaggedUnion, *, new: bool = False) -> list[str]:
        """The members without a counterpart."""
        paired = self._taken if new else self.forward.keys()
        return [each.name for each in members(union) if isinstance(each, ir.Ref) and each.name not in paired]
