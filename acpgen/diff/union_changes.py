"""Compare two paired unions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import combinations
from typing import TypeAlias

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.findings import SOURCE_OK, DiffFinding, Effect, Place, Use, Wire, breaks, risks
from acpgen.diff.spelling import shown, spelled
from acpgen.emit.source import hint
from acpgen.ir import model as ir
from acpgen.ir.order import members, untagged
from acpgen.ir.relations import Coverage
from acpgen.text import cut

Union: TypeAlias = ir.TaggedUnion | ir.UntaggedUnion

_CLASS_GONE = breaks(Use.IMPORT, Use.CONSTRUCT, Use.MATCH)


def compare_unions(bump: Bump, old: Union, new: Union) -> Iterator[DiffFinding]:
    """The differences of the members of a union."""
    kept = _kept(bump, old, new)
    if _tag(old) != _tag(new):
        yield _retagged(bump, old, new, kept.values())
    # members that gained or lost their tag: one finding about the union covers them
    covered: Set[object] = kept.keys() if type(old) is not type(new) else set()
    before, after = _members(old, bump.old_name), _members(new, str)
    for (tag, spelling), member in before.items():
        if (tag, spelling) not in after and _key(member, bump.old_name) not in covered:
            yield _removed(bump, member, tag, union=new)
        elif (tag, spelling) in after and not bump.agree(member, after[tag, spelling]):
            yield _changed(bump, member, after[tag, spelling], tag=tag, union=new)
    for (tag, spelling), member in after.items():
        if (tag, spelling) not in before and _key(member, str) not in covered:
            yield _added(bump, member, tag, old=old, new=new)
    yield from _others(bump, old, new, covered)
    yield from _order(bump, before, after, new)


_Name: TypeAlias = Callable[[str], str]
_Members: TypeAlias = Mapping[tuple[str | None, object], ir.TypeExpr]
"""The members of a union by their tag, or if they have none by their spelling."""


def _members(union: Union, name: _Name) -> _Members:
    variants = union.variants if isinstance(union, ir.TaggedUnion) else ()
    found: dict[tuple[str | None, object], ir.TypeExpr] = {(each.tag, None): ir.Ref(each.target) for each in variants}
    spellings = [(spelled(each, name), each) for each in untagged(union)]
    counts = Counter(spelling.bare for spelling, _ in spellings)
    # bounds distinguish members that are otherwise the same
    return found | {(None, one.bare if counts[one.bare] == 1 else one): each for one, each in spellings}


def _key(member: ir.TypeExpr, name: _Name) -> object:
    return spelled(member, name).bare


def _kept(bump: Bump, old: Union, new: Union) -> Mapping[object, tuple[ir.TypeExpr, ir.TypeExpr]]:
    """The members that both unions have, with or without a tag."""
    before = {_key(each, bump.old_name): each for each in members(old)}
    after = {_key(each, str): each for each in members(new)}
    return {key: (member, after[key]) for key, member in before.items() if key in after}


def _tag(union: Union) -> str | None:
    return union.tag if isinstance(union, ir.TaggedUnion) else None


def _retagged(bump: Bump, old: Union, new: Union, kept: Iterable[tuple[ir.TypeExpr, ir.TypeExpr]]) -> DiffFinding:
    now, before = (f"distinguished by {tag}" if (tag := _tag(union)) else "tried in turn" for union in (new, old))
    return DiffFinding(
        rules.UNION_TAG_CHANGED,
        Place(type=new.name),
        f"the members are {now} now; before: {before}",
        effect=Effect(
            Wire.worst(bump.forward.accepts(member, ir.Ref(new.name)) for member, _ in kept),
            Wire.worst(bump.backward.accepts(member, ir.Ref(old.name)) for _, member in kept),
        ),
    )


def _noun(tag: str | None, union: Union) -> str:
    return "member without a tag" if tag is None and isinstance(union, ir.TaggedUnion) else "member"


def _removed(bump: Bump, member: ir.TypeExpr, tag: str | None, *, union: Union) -> DiffFinding:
    still_exists = isinstance(member, ir.Ref) and member.name in bump.pairs.forward
    return DiffFinding(
        rules.UNION_MEMBER_REMOVED,
        Place(type=union.name, member=str(hint(member)) if tag is None else tag),
        f"{_noun(tag, union)} removed: {shown(member)}",
        effect=Effect(bump.forward.accepts(member, ir.Ref(union.name)), Wire.OK),
        source=risks(Use.CONSTRUCT, Use.MATCH) if still_exists else _CLASS_GONE,
    )


def _added(bump: Bump, member: ir.TypeExpr, tag: str | None, *, old: Union, new: Union) -> DiffFinding:
    return DiffFinding(
        rules.UNION_MEMBER_ADDED,
        Place(type=new.name, member=str(hint(member)) if tag is None else tag),
        f"new {_noun(tag, new)}: {shown(member)}",
        effect=Effect(Wire.OK, bump.backward.accepts(member, ir.Ref(old.name))),
        source=risks(Use.MATCH),
    )


def _changed(bump: Bump, old: ir.TypeExpr, new: ir.TypeExpr, *, tag: str | None, union: Union) -> DiffFinding:
    return DiffFinding(
        rules.UNION_MEMBER_CHANGED,
        Place(type=union.name, member=str(hint(new)) if tag is None else tag),
        f"is {shown(new)} now; before: {shown(old)}",
        effect=bump.effect(old, new),
        source=SOURCE_OK if tag is None else breaks(Use.CONSTRUCT, Use.READ, Use.MATCH),
    )


def _others(bump: Bump, old: Union, new: Union, covered: Set[object]) -> Iterator[DiffFinding]:
    place = Place(type=new.name)
    match _other(old, covered, bump.old_name), _other(new, covered, str):
        case ir.OtherVariant() as before, ir.OtherVariant() as after:
            yield from _exclusions(old, before, new, after)
        case None, ir.OtherVariant(target=target):
            message = f"unknown tags are kept now, as {target}"
            effect = Effect(Wire.OK, bump.backward.accepts(ir.Ref(target), ir.Ref(old.name)))
            yield DiffFinding(rules.UNION_OPENED, place, message, effect=effect, source=risks(Use.MATCH))
        case ir.OtherVariant(target=target), None:
            message = f"unknown tags are refused now; {target} is removed"
            effect = Effect(bump.forward.accepts(ir.Ref(target), ir.Ref(new.name)), Wire.OK)
            yield DiffFinding(rules.UNION_CLOSED, place, message, effect=effect, source=_CLASS_GONE)


def _other(union: Union, covered: Set[object], name: _Name) -> ir.OtherVariant | None:
    """The member for unknown tags, unless it is covered."""
    found = union.other if isinstance(union, ir.TaggedUnion) else None
    return None if found is None or _key(ir.Ref(found.target), name) in covered else found


def _exclusions(old: Union, before: ir.OtherVariant, new: Union, after: ir.OtherVariant) -> Iterator[DiffFinding]:
    """The refused tags that belong to no member; tags of members have findings of their own."""
    known = {each.tag for union in (old, new) if isinstance(union, ir.TaggedUnion) for each in union.variants}
    refused, readmitted = (
        {*one.excluded} - {*other.excluded} - known for one, other in ((after, before), (before, after))
    )
    parts = [
        f"{verb} {', '.join(sorted(map(repr, tags)))}"
        for verb, tags in (("now refused:", refused), ("no longer refused:", readmitted))
        if tags
    ]
    if parts:
        yield DiffFinding(
            rules.UNION_EXCLUSION_CHANGED,
            Place(type=new.name),
            cut(f"tags without a member are {'; '.join(parts)}", 200),
            effect=Effect(Wire.BREAKS if refused else Wire.OK, Wire.BREAKS if readmitted else Wire.OK),
        )


def _order(bump: Bump, before: _Members, after: _Members, new: Union) -> Iterator[DiffFinding]:
    """The order in which members without a tag are tried matters if a value fits two of them."""
    kept = [key for key in after if key in before and key[0] is None]
    place = {key: index for index, key in enumerate(kept)}
    swapped = [
        (after[one], after[other])
        for one, other in combinations((key for key in before if key in place), 2)
        if place[one] > place[other]
    ]
    if not swapped:
        return
    coverage = Coverage(bump.new.by_name)
    overlap = any(coverage.covers(one, other) or coverage.covers(other, one) for one, other in swapped)
    verdict = Wire.LOSES if overlap else Wire.OK
    yield DiffFinding(
        rules.UNION_ORDER_CHANGED,
        Place(type=new.name),
        cut(f"the members are tried in another order: {', '.join(shown(after[key]) for key in kept)}", 200),
        effect=Effect(verdict, verdict),
    )
