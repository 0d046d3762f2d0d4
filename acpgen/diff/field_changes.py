"""Compare the properties of two classes that belong together."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff.context import FINE, Context, change, type_message
from acpgen.diff.findings import Change, Effect, Place, Source, Use, Wire, worst_wire
from acpgen.diff.likeness import MOST_PAIRS, same_words
from acpgen.diff.python_types import broken, source_of
from acpgen.diff.spelling import shown, shown_leniency, shown_value
from acpgen.diff.wire import left_out
from acpgen.ir.model import Const, Field, Nullable, Ref, Struct, TypeExpr
from acpgen.text import cut

_GONE = (Source.BREAKS, (Use.CONSTRUCT, Use.READ))


def compare_fields(context: Context, old: Struct, new: Struct) -> Iterator[Change]:
    """The changes of the properties that the classes do not have from a common base."""
    base = context.pairs.forward.get(old.base) if old.base is not None else None
    is_based = base is not None and base == new.base
    before, after = _fields(old, own=is_based), _fields(new, own=is_based)
    renamed = _renamed(context, before, after)
    for wire, field in before.items():
        if wire in after:
            yield from _compare(context, field, after[wire], Place(type=new.name, member=wire))
        elif wire in renamed:
            other = after[renamed[wire]]
            yield _rename(field, other, old, new)
            yield from _compare(context, field, other, Place(type=new.name, member=other.wire))
        else:
            yield _removed(field, new)
    for wire, field in after.items():
        if wire not in before and wire not in renamed.values():
            yield _added(field, old, new)


def _fields(struct: Struct, *, own: bool) -> dict[str, Field]:
    return {field.wire: field for field in struct.fields if not (own and field.inherited)}


def _renamed(context: Context, before: dict[str, Field], after: dict[str, Field]) -> dict[str, str]:
    """The properties that have another name: by the words in it or by a type of its own, which must be the same."""
    gone = [field for wire, field in before.items() if wire not in after]
    come = [field for wire, field in after.items() if wire not in before]
    found: dict[str, str] = {}
    if len(gone) * len(come) > MOST_PAIRS:
        return found
    for field in gone:
        like = [each for each in come if each.wire not in found.values() and _is_renamed(context, field, each)]
        if len(like) == 1:
            found[field.wire] = like[0].wire
    return found


def _is_renamed(context: Context, old: Field, new: Field) -> bool:
    given, wanted = _bare(old.type), _bare(new.type)
    if same_words(old.wire, new.wire):
        return context.agree(given, wanted) or context.kind_of_difference(given, wanted) == "type-respelled"
    return isinstance(given, Ref) and context.agree(given, wanted) and old.required == new.required


def _bare(expression: TypeExpr) -> TypeExpr:
    return expression.inner if isinstance(expression, Nullable) else expression


def _unread(struct: Struct) -> Wire:
    """What becomes of a property of which the reader knows nothing."""
    return Wire.OK if struct.keeps_extra else Wire.LOSES


def _rename(old: Field, new: Field, before: Struct, after: Struct) -> Change:
    return change(
        "field-renamed",
        Place(type=after.name, member=new.wire, was=old.wire),
        f"is the new name of {cut(old.wire)}",
        effect=Effect(
            forward=worst_wire((left_out(None, new), _unread(after))),
            backward=worst_wire((left_out(None, old), _unread(before))),
        ),
        source=(Source.OK, ()) if old.name == new.name else _GONE,
    )


def _removed(field: Field, owner: Struct) -> Change:
    return change(
        "field-removed-required" if field.required else "field-removed-optional",
        Place(type=owner.name, member=field.wire),
        f"{_must(field)} property removed: {shown(field.type)}",
        effect=Effect(forward=_unread(owner), backward=left_out(None, field)),
        source=_GONE,
    )


def _added(field: Field, before: Struct, owner: Struct) -> Change:
    return change(
        "field-added-required" if field.required else "field-added-optional",
        Place(type=owner.name, member=field.wire),
        f"new {_must(field)} property: {shown(field.type)}",
        effect=Effect(forward=left_out(None, field), backward=_unread(before)),
        source=_needed(field),
    )


def _needed(field: Field) -> tuple[Source, tuple[Use, ...]]:
    """The source verdict on a property that has to be there; constructors know of themselves what is constant."""
    is_argument = field.required and not isinstance(field.type, Const)
    return (Source.BREAKS, (Use.CONSTRUCT,)) if is_argument else (Source.OK, ())


def _must(field: Field) -> str:
    return "required" if field.required else "optional"


def _compare(context: Context, old: Field, new: Field, place: Place) -> Iterator[Change]:
    if old.required != new.required:
        yield _requirement(old, new, place)
    if not context.agree(old.type, new.type):
        yield _type(context, old, new, place)
    if not old.required and not new.required:
        yield from _default(context, old, new, place)
    if old.leniency != new.leniency:
        message = f"readers: {shown_leniency(new.leniency)}; before: {shown_leniency(old.leniency)}"
        yield change("field-leniency-changed", place, message, effect=FINE)


def _requirement(old: Field, new: Field, place: Place) -> Change:
    effect = Effect(forward=left_out(old, new), backward=left_out(new, old))
    if new.required:
        return change(
            "field-made-required",
            place,
            "is required now",
            effect=effect,
            source=_needed(new),
        )
    return change(
        "field-made-optional",
        place,
        "may be left out now" + (f", which means {shown_value(new.default)}" if new.default is not None else ""),
        effect=effect,
        source=broken(constructs=True, reads=not new.may_be_unset),
    )


def _type(context: Context, old: Field, new: Field, place: Place) -> Change:
    kind = context.kind_of_difference(old.type, new.type)
    return change(
        f"field-{kind}",
        place,
        type_message(kind, old.type, new.type),
        effect=Effect(forward=context.forward.value(old, new), backward=context.backward.value(new, old)),
        source=source_of(context.old_types.atoms(old.type), context.new_types.atoms(new.type)),
    )


def _default(context: Context, old: Field, new: Field, place: Place) -> Iterator[Change]:
    match old.default, new.default:
        case None, None:
            return
        case None, value:
            yield change(
                "field-default-added",
                place,
                f"left out, it means {shown_value(value)} now",
                effect=FINE,
                source=(Source.RISK, (Use.CONSTRUCT, Use.READ)),
            )
        case value, None:
            yield change(
                "field-default-removed",
                place,
                f"left out, it no longer means {shown_value(value)}",
                effect=FINE,
                source=(Source.BREAKS, (Use.READ,)),
            )
        case before, value if before and value and not context.forward.defaults.same(before, value):
            then, now = context.forward.defaults.apart(before, value)
            yield change(
                "field-default-changed",
                place,
                f"left out, it means {shown_value(now)} now; before: {shown_value(then)}",
                effect=Effect(forward=context.forward.absence(old, new), backward=context.backward.absence(new, old)),
                source=(Source.RISK, (Use.CONSTRUCT,)),
            )
