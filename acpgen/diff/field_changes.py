"""Compare the properties of two paired classes."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.findings import FINE, SOURCE_OK, DiffFinding, Effect, Place, SourceEffect, Use, Wire, breaks, risks
from acpgen.diff.rules import FIELD_TYPE_RULES, TypeChange
from acpgen.diff.spelling import shown, shown_leniency, shown_value
from acpgen.diff.wire import left_out
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.text import cut

_GONE = breaks(Use.CONSTRUCT, Use.READ)
_MOST_PAIRS = 10_000
"""With more candidates than this, no renames are searched: it is another schema."""


def compare_fields(bump: Bump, old: ir.Struct, new: ir.Struct) -> Iterator[DiffFinding]:
    """The differences of the properties; those of a common base class belong to the base class."""
    base = bump.pairs.forward.get(old.base) if old.base is not None else None
    has_base = base is not None and base == new.base
    before, after = _fields(old, own=has_base), _fields(new, own=has_base)
    renamed = _renamed(bump, before, after)
    for wire, field in before.items():
        if wire in after:
            yield from _compare(bump, field, after[wire], Place(type=new.name, member=wire))
        elif wire in renamed:
            other = after[renamed[wire]]
            yield _rename(field, other, old, new)
            yield from _compare(bump, field, other, Place(type=new.name, member=other.wire))
        else:
            yield _removed(field, new)
    for wire, field in after.items():
        if wire not in before and wire not in renamed.values():
            yield _added(field, old, new)


def _fields(struct: ir.Struct, *, own: bool) -> dict[str, ir.Field]:
    return {field.wire: field for field in struct.fields if not (own and field.inherited)}


def _renamed(bump: Bump, before: dict[str, ir.Field], after: dict[str, ir.Field]) -> dict[str, str]:
    """The new names of renamed properties; a property with two possible new names has none."""
    gone = [field for wire, field in before.items() if wire not in after]
    come = [field for wire, field in after.items() if wire not in before]
    found: dict[str, str] = {}
    if len(gone) * len(come) > _MOST_PAIRS:
        return found
    for field in gone:
        like = [each for each in come if each.wire not in found.values() and _is_renamed(bump, field, each)]
        if len(like) == 1:
            found[field.wire] = like[0].wire
    return found


def _is_renamed(bump: Bump, old: ir.Field, new: ir.Field) -> bool:
    """Whether the types are the same, and one name has all words of the other or the type is a definition."""
    given, wanted = _bare(old.type), _bare(new.type)
    if _share_words(old.wire, new.wire):
        return bump.agree(given, wanted) or bump.type_change(given, wanted) is TypeChange.RESPELLED
    return isinstance(given, ir.Ref) and bump.agree(given, wanted) and old.required == new.required


def _share_words(one: str, other: str) -> bool:
    """Whether one name has all words of the other (`id` and `methodId`)."""
    mine, theirs = ({word.lower() for word in names.words(text)} for text in (one, other))
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def _bare(expression: ir.TypeExpr) -> ir.TypeExpr:
    return expression.inner if isinstance(expression, ir.Nullable) else expression


def _unknown_to(struct: ir.Struct) -> Wire:
    """The verdict on a property that the reader's class does not name."""
    return Wire.OK if struct.keeps_extra else Wire.LOSES


def _rename(old: ir.Field, new: ir.Field, before: ir.Struct, after: ir.Struct) -> DiffFinding:
    effect = Effect(
        Wire.worst((left_out(None, new), _unknown_to(after))),
        Wire.worst((left_out(None, old), _unknown_to(before))),
    )
    place, source = Place(type=after.name, member=new.wire, was=old.wire), SOURCE_OK if old.name == new.name else _GONE
    return DiffFinding(rules.FIELD_RENAMED, place, f"is the new name of {cut(old.wire)}", effect, source)


def _removed(field: ir.Field, owner: ir.Struct) -> DiffFinding:
    rule = rules.FIELD_REMOVED_REQUIRED if field.required else rules.FIELD_REMOVED_OPTIONAL
    message = f"{'required' if field.required else 'optional'} property removed: {shown(field.type)}"
    effect = Effect(_unknown_to(owner), left_out(None, field))
    return DiffFinding(rule, Place(type=owner.name, member=field.wire), message, effect, _GONE)


def _added(field: ir.Field, before: ir.Struct, owner: ir.Struct) -> DiffFinding:
    rule = rules.FIELD_ADDED_REQUIRED if field.required else rules.FIELD_ADDED_OPTIONAL
    message = f"new {'required' if field.required else 'optional'} property: {shown(field.type)}"
    effect = Effect(left_out(None, field), _unknown_to(before))
    return DiffFinding(rule, Place(type=owner.name, member=field.wire), message, effect, _needed(field))


def _needed(field: ir.Field) -> SourceEffect:
    """The verdict on constructor calls without the property; a required constant is no argument."""
    is_argument = field.required and not isinstance(field.type, ir.Const)
    return breaks(Use.CONSTRUCT) if is_argument else SOURCE_OK


def _compare(bump: Bump, old: ir.Field, new: ir.Field, place: Place) -> Iterator[DiffFinding]:
    if old.required != new.required:
        yield _requirement(old, new, place)
    if not bump.agree(old.type, new.type):
        effect = Effect(bump.forward.value(old, new), bump.backward.value(new, old))
        yield bump.type_finding(FIELD_TYPE_RULES, place, (old.type, new.type), effect=effect)
    if not old.required and not new.required:
        yield from _default(bump, old, new, place)
    if old.leniency != new.leniency:
        message = f"readers {shown_leniency(new.leniency)} now; before: {shown_leniency(old.leniency)}"
        yield DiffFinding(rules.FIELD_LENIENCY_CHANGED, place, message, effect=FINE)


def _requirement(old: ir.Field, new: ir.Field, place: Place) -> DiffFinding:
    effect = Effect(left_out(old, new), left_out(new, old))
    if new.required:
        return DiffFinding(rules.FIELD_MADE_REQUIRED, place, "is required now", effect=effect, source=_needed(new))
    meaning = f", which means {shown_value(new.default)}" if new.default is not None else ""
    source = breaks(Use.READ) if new.may_be_unset else SOURCE_OK
    return DiffFinding(rules.FIELD_MADE_OPTIONAL, place, f"is optional now{meaning}", effect=effect, source=source)


def _default(bump: Bump, old: ir.Field, new: ir.Field, place: Place) -> Iterator[DiffFinding]:
    match old.default, new.default:
        case None, None:
            return
        case None, value:
            message, source = f"the default is {shown_value(value)} now; before: none", risks(Use.CONSTRUCT, Use.READ)
            yield DiffFinding(rules.FIELD_DEFAULT_ADDED, place, message, effect=FINE, source=source)
        case value, None:
            message, source = f"has no default any more; before: {shown_value(value)}", breaks(Use.READ)
            yield DiffFinding(rules.FIELD_DEFAULT_REMOVED, place, message, effect=FINE, source=source)
        case before, value if before and value and not bump.forward.means_same(before, value):
            then, now = map(shown_value, bump.forward.apart(before, value))
            effect = Effect(bump.forward.absence(old, new), bump.backward.absence(new, old))
            message, source = f"the default is {now} now; before: {then}", risks(Use.CONSTRUCT)
            yield DiffFinding(rules.FIELD_DEFAULT_CHANGED, place, message, effect, source)
