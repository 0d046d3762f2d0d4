"""Compare two unions that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from itertools import combinations

from acpgen.diff.context import Context, change
from acpgen.diff.findings import Change, Effect, Place, Source, Use, Wire, worst_wire
from acpgen.diff.likeness import member_types
from acpgen.diff.spelling import shown, spelled
from acpgen.diff.wire import Acceptance
from acpgen.emit.source import hint
from acpgen.ir.model import OtherVariant, Ref, TaggedUnion, TypeExpr, UntaggedUnion, Variant
from acpgen.ir.order import members
from acpgen.text import cut

Union = TaggedUnion | UntaggedUnion
Key = tuple[object, ...]
"""A type in the notation that both models share."""

_LESS_EXHAUSTIVE = (Source.RISK, (Use.MATCH,))
_CLASS_GONE = (Source.BREAKS, (Use.IMPORT, Use.CONSTRUCT, Use.MATCH))


def compare_unions(context: Context, old: Union, new: Union) -> Iterator[Change]:
    """The changes of the members of a union."""
    kept = _kept(context, old, new)
    if _tag(old) != _tag(new):
        yield _retagged(context, old, new, kept)
    # that a member has got a tag, or lost it, is said of the union as a whole
    told = frozenset(kept) if type(old) is not type(new) else frozenset[Key]()
    yield from _variants(context, old, new, told)
    yield from _others(context, old, new, told)
    yield from _untagged(context, old, new, told)


def _kept(context: Context, old: Union, new: Union) -> dict[Key, tuple[TypeExpr, TypeExpr]]:
    """The members that both unions have, whatever they are told by."""
    before = {spelled(each, context.old_name): each for each in members(old)}
    after = {spelled(each, str): each for each in members(new)}
    return {key: (member, after[key]) for key, member in before.items() if key in after}


def _tag(union: Union) -> str | None:
    return union.tag if isinstance(union, TaggedUnion) else None


def _retagged(context: Context, old: Union, new: Union, kept: Mapping[Key, tuple[TypeExpr, TypeExpr]]) -> Change:
    told = [f"told apart by {tag}" if (tag := _tag(union)) else "tried in turn" for union in (new, old)]
    return change(
        "union-tag-changed",
        Place(type=new.name),
        f"the members are {told[0]} now; before: {told[1]}",
        effect=Effect(
            forward=worst_wire(context.forward.accepts(member, Ref(new.name)) for member, _ in kept.values()),
            backward=worst_wire(context.backward.accepts(member, Ref(old.name)) for _, member in kept.values()),
        ),
    )


def _variants(context: Context, old: Union, new: Union, told: Set[Key]) -> Iterator[Change]:
    before, after = (
        {each.tag: each for each in union.variants} if isinstance(union, TaggedUnion) else {} for union in (old, new)
    )
    for tag, variant in before.items():
        if tag in after:
            if context.pairs.forward.get(variant.target) != after[tag].target:
                yield _retargeted(context, variant, after[tag], Place(type=new.name, member=tag))
        elif spelled(Ref(variant.target), context.old_name) not in told:
            yield _removed(context, Ref(variant.target), tag, union=new)
    for tag, variant in after.items():
        if tag not in before and spelled(Ref(variant.target), str) not in told:
            yield _added(context, Ref(variant.target), tag, old=old, new=new)


def _what(tag: str | None, union: Union) -> str:
    return "member without a tag" if tag is None and isinstance(union, TaggedUnion) else "member"


def _removed(context: Context, member: TypeExpr, tag: str | None, *, union: Union) -> Change:
    still = isinstance(member, Ref) and member.name in context.pairs.forward
    return change(
        "union-member-removed",
        Place(type=union.name, member=str(hint(member)) if tag is None else tag),
        f"{_what(tag, union)} removed: {shown(member)}",
        effect=Effect(forward=context.forward.accepts(member, Ref(union.name)), backward=Wire.OK),
        source=(Source.RISK, (Use.CONSTRUCT, Use.MATCH)) if still else _CLASS_GONE,
    )


def _added(context: Context, member: TypeExpr, tag: str | None, *, old: Union, new: Union) -> Change:
    return change(
        "union-member-added",
        Place(type=new.name, member=str(hint(member)) if tag is None else tag),
        f"new {_what(tag, new)}: {shown(member)}",
        effect=Effect(forward=Wire.OK, backward=context.backward.accepts(member, Ref(old.name))),
        source=_LESS_EXHAUSTIVE,
    )


def _retargeted(context: Context, old: Variant, new: Variant, place: Place) -> Change:
    return change(
        "union-member-changed",
        place,
        f"is {new.target} now; before: {old.target}",
        effect=context.effect(Ref(old.target), Ref(new.target)),
        source=(Source.BREAKS, (Use.CONSTRUCT, Use.READ, Use.MATCH)),
    )


def _others(context: Context, old: Union, new: Union, told: Set[Key]) -> Iterator[Change]:
    place = Place(type=new.name)
    match _other(old, told, context.old_name), _other(new, told, str):
        case OtherVariant() as before, OtherVariant() as after:
            yield from _exclusions(old, before, new, after)
        case None, OtherVariant(target=target):
            yield change(
                "union-opened",
                place,
                f"unknown tags are kept now, as {target}",
                effect=Effect(forward=Wire.OK, backward=context.backward.accepts(Ref(target), Ref(old.name))),
                source=_LESS_EXHAUSTIVE,
            )
        case OtherVariant(target=target), None:
            yield change(
                "union-closed",
                place,
                f"unknown tags are refused now; {target} is removed",
                effect=Effect(forward=context.forward.accepts(Ref(target), Ref(new.name)), backward=Wire.OK),
                source=_CLASS_GONE,
            )


def _other(union: Union, told: Set[Key], name: Callable[[str], str]) -> OtherVariant | None:
    """The member for unknown tags, unless it is told of already."""
    found = union.other if isinstance(union, TaggedUnion) else None
    return None if found is None or spelled(Ref(found.target), name) in told else found


def _exclusions(old: Union, before: OtherVariant, new: Union, after: OtherVariant) -> Iterator[Change]:
    """The tags that are refused and are no members either; those of members are the members' business."""
    known = {each.tag for union in (old, new) if isinstance(union, TaggedUnion) for each in union.variants}
    less, more = set(before.excluded) - known, set(after.excluded) - known
    if less == more:
        return
    parts = [
        f"{verb} {', '.join(sorted(map(repr, tags)))}"
        for verb, tags in (("now refused:", more - less), ("no longer refused:", less - more))
        if tags
    ]
    yield change(
        "union-exclusion-changed",
        Place(type=new.name),
        cut(f"tags that are no members are {'; '.join(parts)}", 200),
        effect=Effect(
            forward=Wire.BREAKS if more - less else Wire.OK, backward=Wire.BREAKS if less - more else Wire.OK
        ),
    )


def _untagged(context: Context, old: Union, new: Union, told: Set[Key]) -> Iterator[Change]:
    before = {spelled(each, context.old_name): each for each in member_types(old)}
    after = {spelled(each, str): each for each in member_types(new)}
    gone = {key: each for key, each in before.items() if key not in after and key not in told}
    come = {key: each for key, each in after.items() if key not in before and key not in told}
    for member in gone.values():
        like = next((each for each in come if _bare(come[each], str) == _bare(member, context.old_name)), None)
        if like is None:
            yield _removed(context, member, None, union=new)
        else:
            yield _rebound(context, member, come.pop(like), new)
    for member in come.values():
        yield _added(context, member, None, old=old, new=new)
    yield from _order(context, [key for key in before if key in after], after, new)


def _bare(member: TypeExpr, name: Callable[[str], str]) -> Key:
    return spelled(member, name, bounds=False, annotations=False)


def _rebound(context: Context, old: TypeExpr, new: TypeExpr, union: Union) -> Change:
    """A member that has other bounds."""
    return change(
        "union-member-changed",
        Place(type=union.name, member=str(hint(new))),
        f"is {shown(new)} now; before: {shown(old)}",
        effect=context.effect(old, new),
    )


def _order(context: Context, before: list[Key], after: dict[Key, TypeExpr], new: Union) -> Iterator[Change]:
    kept = [key for key in after if key in before]
    if kept == before:
        return
    place = {key: index for index, key in enumerate(kept)}
    swapped = [(after[one], after[other]) for one, other in combinations(before, 2) if place[one] > place[other]]
    own = Acceptance(context.new, context.new, {name: name for name in context.new.by_name})
    overlaps = any(_overlap(own, one, other) for one, other in swapped)
    verdict = Wire.LOSES if overlaps else Wire.OK
    yield change(
        "union-order-changed",
        Place(type=new.name),
        cut(f"the members are tried in another order: {', '.join(shown(after[key]) for key in kept)}", 200),
        effect=Effect(forward=verdict, backward=verdict),
    )


def _overlap(own: Acceptance, one: TypeExpr, other: TypeExpr) -> bool:
    """Whether all values of either type are also read as the other."""
    return any(own.accepts(*each) is not Wire.BREAKS for each in ((one, other), (other, one)))
