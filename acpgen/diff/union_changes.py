"""Compare two paired unions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import combinations
from typing import TypeAlias

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.findings import Delta, Effect, Place, Use, Wire, breaks, risks, worst_wire
from acpgen.diff.spelling import Spelling, shown, spelled
from acpgen.emit.source import hint
from acpgen.ir.model import OtherVariant, Ref, TaggedUnion, TypeExpr, UntaggedUnion, Variant
from acpgen.ir.order import members, untagged
from acpgen.ir.relations import Coverage
from acpgen.text import cut

Union: TypeAlias = TaggedUnion | UntaggedUnion

_CLASS_GONE = breaks(Use.IMPORT, Use.CONSTRUCT, Use.MATCH)


def compare_unions(bump: Bump, old: Union, new: Union) -> Iterator[Delta]:
    """The differences of the members of a union."""
    kept = _kept(bump, old, new)
    if _tag(old) != _tag(new):
        yield _retagged(bump, old, new, kept)
    # members that gained or lost their tag: one finding about the union covers them
    covered = frozenset(kept) if type(old) is not type(new) else frozenset[Spelling]()
    yield from _variants(bump, old, new, covered)
    yield from _others(bump, old, new, covered)
    yield from _untagged(bump, old, new, covered)


def _kept(bump: Bump, old: Union, new: Union) -> dict[Spelling, tuple[TypeExpr, TypeExpr]]:
    """The members that both unions have, with or without a tag."""
    before = {spelled(each, bump.old_name): each for each in members(old)}
    after = {spelled(each, str): each for each in members(new)}
    return {key: (member, after[key]) for key, member in before.items() if key in after}


def _tag(union: Union) -> str | None:
    return union.tag if isinstance(union, TaggedUnion) else None


def _retagged(bump: Bump, old: Union, new: Union, kept: Mapping[Spelling, tuple[TypeExpr, TypeExpr]]) -> Delta:
    now, before = (f"distinguished by {tag}" if (tag := _tag(union)) else "tried in turn" for union in (new, old))
    return Delta(
        rules.UNION_TAG_CHANGED,
        Place(type=new.name),
        f"the members are {now} now; before: {before}",
        effect=Effect(
            worst_wire(bump.forward.accepts(member, Ref(new.name)) for member, _ in kept.values()),
            worst_wire(bump.backward.accepts(member, Ref(old.name)) for _, member in kept.values()),
        ),
    )


def _variants(bump: Bump, old: Union, new: Union, covered: Set[Spelling]) -> Iterator[Delta]:
    before, after = (
        {each.tag: each for each in union.variants} if isinstance(union, TaggedUnion) else {} for union in (old, new)
    )
    for tag, variant in before.items():
        if tag in after:
            if bump.pairs.forward.get(variant.target) != after[tag].target:
                yield _retargeted(bump, variant, after[tag], Place(type=new.name, member=tag))
        elif spelled(Ref(variant.target), bump.old_name) not in covered:
            yield _removed(bump, Ref(variant.target), tag, union=new)
    for tag, variant in after.items():
        if tag not in before and spelled(Ref(variant.target), str) not in covered:
            yield _added(bump, Ref(variant.target), tag, old=old, new=new)


def _noun(tag: str | None, union: Union) -> str:
    return "member without a tag" if tag is None and isinstance(union, TaggedUnion) else "member"


def _removed(bump: Bump, member: TypeExpr, tag: str | None, *, union: Union) -> Delta:
    still_exists = isinstance(member, Ref) and member.name in bump.pairs.forward
    return Delta(
        rules.UNION_MEMBER_REMOVED,
        Place(type=union.name, member=str(hint(member)) if tag is None else tag),
        f"{_noun(tag, union)} removed: {shown(member)}",
        effect=Effect(bump.forward.accepts(member, Ref(union.name)), Wire.OK),
        source=risks(Use.CONSTRUCT, Use.MATCH) if still_exists else _CLASS_GONE,
    )


def _added(bump: Bump, member: TypeExpr, tag: str | None, *, old: Union, new: Union) -> Delta:
    return Delta(
        rules.UNION_MEMBER_ADDED,
        Place(type=new.name, member=str(hint(member)) if tag is None else tag),
        f"new {_noun(tag, new)}: {shown(member)}",
        effect=Effect(Wire.OK, bump.backward.accepts(member, Ref(old.name))),
        source=risks(Use.MATCH),
    )


def _retargeted(bump: Bump, old: Variant, new: Variant, place: Place) -> Delta:
    return Delta(
        rules.UNION_MEMBER_CHANGED,
        place,
        f"is {new.target} now; before: {old.target}",
        effect=bump.effect(Ref(old.target), Ref(new.target)),
        source=breaks(Use.CONSTRUCT, Use.READ, Use.MATCH),
    )


def _others(bump: Bump, old: Union, new: Union, covered: Set[Spelling]) -> Iterator[Delta]:
    place = Place(type=new.name)
    match _other(old, covered, bump.old_name), _other(new, covered, str):
        case OtherVariant() as before, OtherVariant() as after:
            yield from _exclusions(old, before, new, after)
        case None, OtherVariant(target=target):
            message = f"unknown tags are kept now, as {target}"
            effect = Effect(Wire.OK, bump.backward.accepts(Ref(target), Ref(old.name)))
            yield Delta(rules.UNION_OPENED, place, message, effect=effect, source=risks(Use.MATCH))
        case OtherVariant(target=target), None:
            message = f"unknown tags are refused now; {target} is removed"
            effect = Effect(bump.forward.accepts(Ref(target), Ref(new.name)), Wire.OK)
            yield Delta(rules.UNION_CLOSED, place, message, effect=effect, source=_CLASS_GONE)


def _other(union: Union, covered: Set[Spelling], name: Callable[[str], str]) -> OtherVariant | None:
    """The member for unknown tags, unless it is covered."""
    found = union.other if isinstance(union, TaggedUnion) else None
    return None if found is None or spelled(Ref(found.target), name) in covered else found


def _exclusions(old: Union, before: OtherVariant, new: Union, after: OtherVariant) -> Iterator[Delta]:
    """The refused tags that belong to no member; tags of members have findings of their own."""
    known = {each.tag for union in (old, new) if isinstance(union, TaggedUnion) for each in union.variants}
    refused, readmitted = set(after.excluded) - known, set(before.excluded) - known
    refused, readmitted = refused - readmitted, readmitted - refused
    parts = [
        f"{verb} {', '.join(sorted(map(repr, tags)))}"
        for verb, tags in (("now refused:", refused), ("no longer refused:", readmitted))
        if tags
    ]
    if parts:
        yield Delta(
            rules.UNION_EXCLUSION_CHANGED,
            Place(type=new.name),
            cut(f"tags without a member are {'; '.join(parts)}", 200),
            effect=Effect(Wire.BREAKS if refused else Wire.OK, Wire.BREAKS if readmitted else Wire.OK),
        )


def _untagged(bump: Bump, old: Union, new: Union, covered: Set[Spelling]) -> Iterator[Delta]:
    before = {spelled(each, bump.old_name): each for each in untagged(old)}
    after = {spelled(each, str): each for each in untagged(new)}
    gone = {key: each for key, each in before.items() if key not in after and key not in covered}
    come = {key: each for key, each in after.items() if key not in before and key not in covered}
    for member in gone.values():
        like = next((each for each in come if _bare(come[each], str) == _bare(member, bump.old_name)), None)
        if like is None:
            yield _removed(bump, member, None, union=new)
        else:
            yield _rebound(bump, member, come.pop(like), new)
    for member in come.values():
        yield _added(bump, member, None, old=old, new=new)
    yield from _order(bump, [key for key in before if key in after], after, new)


def _bare(member: TypeExpr, name: Callable[[str], str]) -> Spelling:
    return spelled(member, name, bounds=False, annotations=False)


def _rebound(bump: Bump, old: TypeExpr, new: TypeExpr, union: Union) -> Delta:
    """A member with other bounds."""
    place, message = Place(type=union.name, member=str(hint(new))), f"is {shown(new)} now; before: {shown(old)}"
    return Delta(rules.UNION_MEMBER_CHANGED, place, message, effect=bump.effect(old, new))


def _order(bump: Bump, before: list[Spelling], after: dict[Spelling, TypeExpr], new: Union) -> Iterator[Delta]:
    kept = [key for key in after if key in before]
    if kept == before:
        return
    place = {key: index for index, key in enumerate(kept)}
    swapped = [(after[one], after[other]) for one, other in combinations(before, 2) if place[one] > place[other]]
    coverage = Coverage(bump.new.by_name)
    overlap = any(coverage.covers(one, other) or coverage.covers(other, one) for one, other in swapped)
    verdict = Wire.LOSES if overlap else Wire.OK
    yield Delta(
        rules.UNION_ORDER_CHANGED,
        Place(type=new.name),
        cut(f"the members are tried in another order: {', '.join(shown(after[key]) for key in kept)}", 200),
        effect=Effect(verdict, verdict),
    )
