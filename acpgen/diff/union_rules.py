"""Rules about unions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TypeAlias

from acpgen.diff.findings import SOURCE_OK, ChangePlace, DiffFinding, Effect, Found, Use, WireVerdict, breaks, risks
from acpgen.diff.rules import BY_TYPE, MATCH, UNCHECKED, ModelPair, RuleTable
from acpgen.diff.type_forms import shown, spelled
from acpgen.emit.source import hint
from acpgen.ir import model as ir
from acpgen.ir.order import members, untagged
from acpgen.ir.relations import Coverage
from acpgen.text import cut

Union: TypeAlias = ir.TaggedUnion | ir.UntaggedUnion
_Name: TypeAlias = Callable[[str], str]
_Key: TypeAlias = tuple[str | None, object]
"""The tag of a member, or if it has none its spelling."""


@dataclass(frozen=True)
class UnionPair:
    """Two paired unions."""

    models: ModelPair
    old: Union
    new: Union

    @property
    def place(self) -> ChangePlace:
        """The place of the union in NEW."""
        return ChangePlace(type=self.new.name)

    def member(self, member: ir.TypeExpr, key: _Key) -> ChangePlace:
        """The place of a member."""
        return ChangePlace(type=self.new.name, member=str(hint(member)) if key[0] is None else key[0])

    @cached_property
    def before(self) -> Mapping[_Key, ir.TypeExpr]:
        """The members of the old union."""
        return _members(self.old, self.models.old_name)

    @cached_property
    def after(self) -> Mapping[_Key, ir.TypeExpr]:
        """The members of the new union."""
        return _members(self.new, str)

    @cached_property
    def kept(self) -> Mapping[object, tuple[ir.TypeExpr, ir.TypeExpr]]:
        """The members that both unions have, with or without a tag."""
        before = {_spelling(each, self.models.old_name): each for each in members(self.old)}
        after = {_spelling(each, str): each for each in members(self.new)}
        return {key: (member, after[key]) for key, member in before.items() if key in after}

    @property
    def covered(self) -> Set[object]:
        """Members that gained or lost their tag: one finding about the union covers them."""
        return self.kept.keys() if type(self.old) is not type(self.new) else set()

    @property
    def others(self) -> tuple[ir.OtherVariant | None, ir.OtherVariant | None]:
        """The members for unknown tags, unless they are covered."""
        return self._other(self.old, self.models.old_name), self._other(self.new, str)

    def _other(self, union: Union, name: _Name) -> ir.OtherVariant | None:
        found = union.other if isinstance(union, ir.TaggedUnion) else None
        return None if found is None or _spelling(ir.Ref(found.target), name) in self.covered else found


def _members(union: Union, name: _Name) -> Mapping[_Key, ir.TypeExpr]:
    variants = union.variants if isinstance(union, ir.TaggedUnion) else ()
    found: dict[_Key, ir.TypeExpr] = {(each.tag, None): ir.Ref(each.target) for each in variants}
    spellings = [(spelled(each, name), each) for each in untagged(union)]
    counts = Counter(spelling.bare for spelling, _ in spellings)
    # bounds distinguish members that are otherwise the same
    return found | {(None, one.bare if counts[one.bare] == 1 else one): each for one, each in spellings}


def _spelling(member: ir.TypeExpr, name: _Name) -> object:
    return spelled(member, name).bare


UNIONS = RuleTable[UnionPair]()

_CLASS_GONE = breaks(Use.IMPORT, Use.CONSTRUCT, Use.MATCH)


def compare_unions(models: ModelPair, old: Union, new: Union) -> Iterator[DiffFinding]:
    """The differences of two unions."""
    return UNIONS.find(UnionPair(models, old, new))


# --- Members --------------------------------------------------------------------------------------------------------


@UNIONS.pair(
    ("union-member-added", "a union has a new member", MATCH),
    ("union-member-removed", "a member of a union is gone", "breaks: its class is gone; risk if it still exists"),
    wire="new to old: breaks in a closed union, ok in an open one, loses if another member reads it",
)
def _member(unions: UnionPair) -> Iterator[Found]:
    models = unions.models
    for key, member in unions.after.items():
        if key not in unions.before and _spelling(member, str) not in unions.covered:
            effect = Effect(WireVerdict.OK, models.backward.accepts(member, ir.Ref(unions.old.name)))
            message = f"new {_noun(key, unions.new)}: {shown(member)}"
            yield Found(unions.member(member, key), message, effect, risks(Use.MATCH))
    for key, member in unions.before.items():
        if key not in unions.after and _spelling(member, models.old_name) not in unions.covered:
            effect = Effect(models.forward.accepts(member, ir.Ref(unions.new.name)), WireVerdict.OK)
            message = f"{_noun(key, unions.new)} removed: {shown(member)}"
            still_exists = isinstance(member, ir.Ref) and member.name in models.pairs.forward
            source = risks(Use.CONSTRUCT, Use.MATCH) if still_exists else _CLASS_GONE
            yield Found(unions.member(member, key), message, effect, source, is_reverse=True)


def _noun(key: _Key, union: Union) -> str:
    return "member without a tag" if key[0] is None and isinstance(union, ir.TaggedUnion) else "member"


@UNIONS.rule(
    "union-member-changed",
    "a tag stands for another class, and both releases have both; or a member has other bounds",
    wire=BY_TYPE,
    source="breaks: the tag gives and takes another class; ok for bounds",
)
def _changed(unions: UnionPair) -> Iterator[Found]:
    for key, old in unions.before.items():
        new = unions.after.get(key)
        if new is not None and not unions.models.agree(old, new):
            source = SOURCE_OK if key[0] is None else breaks(Use.CONSTRUCT, Use.READ, Use.MATCH)
            message = f"is {shown(new)} now; before: {shown(old)}"
            yield Found(unions.member(new, key), message, unions.models.effect(old, new), source)


# --- Unknown tags ---------------------------------------------------------------------------------------------------


@UNIONS.pair(
    ("union-opened", "a union keeps unknown tags", MATCH),
    ("union-closed", "a union refuses unknown tags", "breaks: the class for other tags is gone"),
    wire="new to old breaks: unknown tags are refused",
)
def _openness(unions: UnionPair) -> Iterator[Found]:
    models = unions.models
    match unions.others:
        case None, ir.OtherVariant(target=target):
            effect = Effect(WireVerdict.OK, models.backward.accepts(ir.Ref(target), ir.Ref(unions.old.name)))
            yield Found(unions.place, f"unknown tags are kept now, as {target}", effect, risks(Use.MATCH))
        case ir.OtherVariant(target=target), None:
            effect = Effect(models.forward.accepts(ir.Ref(target), ir.Ref(unions.new.name)), WireVerdict.OK)
            message = f"unknown tags are refused now; {target} is removed"
            yield Found(unions.place, message, effect, _CLASS_GONE, is_reverse=True)


@UNIONS.rule(
    "union-order-changed",
    "the members without a tag are tried in another order",
    wire="loses if a value fits several of them; else ok",
    source="ok: the union is the same",
)
def _order(unions: UnionPair) -> Iterator[Found]:
    before, after = unions.before, unions.after
    kept = [key for key in after if key in before and key[0] is None]
    place = {key: index for index, key in enumerate(kept)}
    swapped = [
        (after[one], after[other])
        for one, other in combinations((key for key in before if key in place), 2)
        if place[one] > place[other]
    ]
    if swapped:
        coverage = Coverage(unions.models.new.by_name)
        overlap = any(coverage.covers(one, other) or coverage.covers(other, one) for one, other in swapped)
        verdict = WireVerdict.LOSES if overlap else WireVerdict.OK
        message = f"the members are tried in another order: {', '.join(shown(after[key]) for key in kept)}"
        yield Found(unions.place, cut(message, 200), Effect(verdict, verdict))


@UNIONS.rule(
    "union-tag-changed",
    "another property, or none, distinguishes the members",
    wire="computed for the members that both releases have: their values, decoded as the other union",
    source="ok: other attributes or classes of members have their own findings",
)
def _tag_changed(unions: UnionPair) -> Iterator[Found]:
    models, kept = unions.models, unions.kept.values()
    before, after = (each.tag if isinstance(each, ir.TaggedUnion) else None for each in (unions.old, unions.new))
    if before != after:
        then, now = (f"distinguished by {tag}" if tag else "tried in turn" for tag in (before, after))
        effect = Effect(
            WireVerdict.worst(models.forward.accepts(member, ir.Ref(unions.new.name)) for member, _ in kept),
            WireVerdict.worst(models.backward.accepts(member, ir.Ref(unions.old.name)) for _, member in kept),
        )
        yield Found(unions.place, f"the members are {now} now; before: {then}", effect)


@UNIONS.rule(
    "union-exclusion-changed",
    "the member for unknown tags excludes other tags than before",
    wire="breaks towards readers that refuse a tag that the sender may send",
    source=UNCHECKED,
)
def _exclusion_changed(unions: UnionPair) -> Iterator[Found]:
    before, after = unions.others
    if before is None or after is None:
        return
    # tags of members have findings of their own
    known = {
        each.tag for union in (unions.old, unions.new) if isinstance(union, ir.TaggedUnion) for each in union.variants
    }
    refused = {*after.excluded} - {*before.excluded} - known
    readmitted = {*before.excluded} - {*after.excluded} - known
    parts = [
        f"{verb} {', '.join(sorted(map(repr, tags)))}"
        for verb, tags in (("now refused:", refused), ("no longer refused:", readmitted))
        if tags
    ]
    if parts:
        effect = Effect(
            WireVerdict.BREAKS if refused else WireVerdict.OK, WireVerdict.BREAKS if readmitted else WireVerdict.OK
        )
        yield Found(unions.place, cut(f"tags without a member are {'; '.join(parts)}", 200), effect)
