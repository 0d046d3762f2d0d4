"""Rules about classes, and about their properties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from acpgen.diff.expression_rules import TypeChange, type_change, type_finding, type_rules
from acpgen.diff.findings import (
    FINE,
    SOURCE_OK,
    ChangePlace,
    DiffFinding,
    Effect,
    Found,
    Shown,
    SourceEffect,
    Use,
    WireVerdict,
    breaks,
    risks,
)
from acpgen.diff.rules import ATTRIBUTE_GONE, UNCHECKED, ModelPair, RuleTable
from acpgen.diff.type_forms import shown, shown_leniency, shown_value
from acpgen.diff.wire import left_out
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.text import cut


@dataclass(frozen=True, slots=True)
class ClassPair:
    """Two paired classes."""

    models: ModelPair
    old: ir.Struct
    new: ir.Struct

    def place(self, field: ir.Field, *, was: str | None = None) -> ChangePlace:
        """The place of a property."""
        return ChangePlace(type=self.new.name, member=field.wire, was=was)


CLASSES = RuleTable[ModelPair, ir.Struct, ir.Struct]()
FIELDS = RuleTable[ClassPair, ir.Field, ir.Field]()
"""Rules about properties that both classes have, some with another name."""
UNPAIRED_FIELDS = RuleTable[ClassPair, ir.Field | None, ir.Field | None]()
"""Rules about properties that only one of the classes has."""

_GONE = breaks(Use.CONSTRUCT, Use.READ)
_DROPPED = "new to old loses: dropped by old readers"
_NEEDED = "breaks: constructors need it (construct)"


def compare_classes(models: ModelPair, old: ir.Struct, new: ir.Struct) -> Iterator[DiffFinding]:
    """The differences of two classes; those of properties of a common base class belong to the base class."""
    yield from CLASSES.find(models, old, new)
    base = models.pairs.forward.get(old.base) if old.base is not None else None
    has_base = base is not None and base == new.base
    classes, before, after = ClassPair(models, old, new), _fields(old, own=has_base), _fields(new, own=has_base)
    renamed = _renamed(models, before, after)
    for wire, field in before.items():
        if (kept := renamed.get(wire, wire)) in after:
            yield from FIELDS.find(classes, field, after[kept])
        else:
            yield from UNPAIRED_FIELDS.find(classes, field, None)
    for wire, field in after.items():
        if wire not in before and wire not in renamed.values():
            yield from UNPAIRED_FIELDS.find(classes, None, field)


# --- Classes --------------------------------------------------------------------------------------------------------


@CLASSES.rule(
    "type-base-changed",
    "a class has another base class",
    wire="ok: classes are not sent, and all properties are compared",
    source="risk: `isinstance` and annotations with the base class",
)
def _base_changed(models: ModelPair, old: ir.Struct, new: ir.Struct) -> Iterator[Found]:
    before = models.pairs.forward.get(old.base, old.base) if old.base is not None else None
    if before != new.base:
        message = f"extends {new.base or 'nothing'} now; before: {old.base or 'nothing'}"
        yield Found(ChangePlace(type=new.name), message, FINE, risks(Use.READ))


@CLASSES.pair(
    ("type-opened", "a class keeps unknown properties", "ok: a new `extra`"),
    ("type-closed", "a class drops unknown properties", ATTRIBUTE_GONE),
    wire=_DROPPED,
)
def _openness(_: ModelPair, old: ir.Struct, new: ir.Struct) -> Iterator[Found]:
    place, effect = ChangePlace(type=new.name), Effect(_unknown_to(new), _unknown_to(old))
    if new.keeps_extra and not old.keeps_extra:
        yield Found(place, "unknown properties are kept now, in `extra`", effect)
    if old.keeps_extra and not new.keeps_extra:
        yield Found(place, "unknown properties are dropped now; `extra` is gone", effect, _GONE, is_reverse=True)


@CLASSES.rule(
    "type-rejection-changed",
    "a type excludes other objects (`not`)",
    wire="breaks towards readers that exclude objects, as the sender may send these",
    source=UNCHECKED,
)
def _rejection_changed(models: ModelPair, old: ir.Struct, new: ir.Struct) -> Iterator[Found]:
    is_other = _is_for_other_tags(old, models.old) and _is_for_other_tags(new, models.new)
    if old.rejects != new.rejects and not is_other:
        effect = Effect(*(WireVerdict.OK if each.rejects is None else WireVerdict.BREAKS for each in (new, old)))
        yield Found(ChangePlace(type=new.name), "the type excludes other objects than before", effect)


def _is_for_other_tags(struct: ir.Struct, model: ir.Model) -> bool:
    """Whether the class is for the unknown tags of a union; the union has the finding about excluded tags."""
    others = (each.other for each in model.definitions if isinstance(each, ir.TaggedUnion))
    return any(other is not None and other.target == struct.name for other in others)


# --- Renamed properties ---------------------------------------------------------------------------------------------


def _fields(struct: ir.Struct, *, own: bool) -> dict[str, ir.Field]:
    return {field.wire: field for field in struct.fields if not (own and field.inherited)}


def _renamed(models: ModelPair, before: dict[str, ir.Field], after: dict[str, ir.Field]) -> dict[str, str]:
    """The new names of renamed properties; a property with two possible new names has none."""
    gone = [field for wire, field in before.items() if wire not in after]
    come = [field for wire, field in after.items() if wire not in before]
    found: dict[str, str] = {}
    taken = set[str]()
    by_trait = defaultdict[str | ir.Ref, list[ir.Field]](list)
    for field in come:
        for trait in _traits(field, str):
            by_trait[trait].append(field)
    for field in gone:
        near = {each.wire: each for trait in _traits(field, models.old_name) for each in by_trait.get(trait, ())}
        like = [wire for wire, each in near.items() if wire not in taken and _is_renamed(models, field, each)]
        if len(like) == 1:
            found[field.wire] = like[0]
            taken.add(like[0])
    return found


def _traits(field: ir.Field, name: Callable[[str], str]) -> set[str | ir.Ref]:
    """The words and the definition of a property, one of which it has in common with its new name."""
    bare = _bare(field.type)
    return {*_words(field.wire), *([ir.Ref(name(bare.name))] if isinstance(bare, ir.Ref) else [])}


def _is_renamed(models: ModelPair, old: ir.Field, new: ir.Field) -> bool:
    """Whether the types are the same, and one name has all words of the other or the type is a definition."""
    given, wanted = _bare(old.type), _bare(new.type)
    if _share_words(old.wire, new.wire):
        return models.agree(given, wanted) or type_change(models, given, wanted) is TypeChange.RESPELLED
    return isinstance(given, ir.Ref) and models.agree(given, wanted) and old.required == new.required


def _share_words(one: str, other: str) -> bool:
    """Whether one name has all words of the other (`id` and `methodId`)."""
    mine, theirs = _words(one), _words(other)
    return bool(mine and theirs) and (mine <= theirs or theirs <= mine)


def _words(text: str) -> set[str]:
    return {word.lower() for word in names.words(text)}


def _bare(expression: ir.TypeExpr) -> ir.TypeExpr:
    return expression.inner if isinstance(expression, ir.Nullable) else expression


@FIELDS.rule(
    "field-renamed",
    "a property has another name, but the same type; the names share all words of one, or the type is a definition",
    wire="breaks towards readers that require it, loses towards others",
    source="breaks: argument and attribute have another name; ok if it is the same in Python",
)
def _field_renamed(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[Found]:
    if old.wire != new.wire:
        effect = Effect(
            WireVerdict.worst((left_out(None, new), _unknown_to(classes.new))),
            WireVerdict.worst((left_out(None, old), _unknown_to(classes.old))),
        )
        place, source = classes.place(new, was=old.wire), SOURCE_OK if old.name == new.name else _GONE
        yield Found(place, f"is the new name of {cut(old.wire)}", effect, source)


# --- Added and removed properties -----------------------------------------------------------------------------------


@UNPAIRED_FIELDS.pair(
    ("field-added-optional", "an optional property is new", "ok"),
    ("field-removed-optional", "an optional property is gone", ATTRIBUTE_GONE),
    wire=_DROPPED,
)
def _optional(classes: ClassPair, old: ir.Field | None, new: ir.Field | None) -> Iterator[Found]:
    return _one_sided(classes, old, new, required=False)


@UNPAIRED_FIELDS.pair(
    ("field-added-required", "a required property is new", _NEEDED),
    ("field-removed-required", "a required property is gone", ATTRIBUTE_GONE),
    wire="old to new breaks: it is missing; new to old loses: dropped by old readers",
)
def _required(classes: ClassPair, old: ir.Field | None, new: ir.Field | None) -> Iterator[Found]:
    return _one_sided(classes, old, new, required=True)


def _one_sided(classes: ClassPair, old: ir.Field | None, new: ir.Field | None, *, required: bool) -> Iterator[Found]:
    kind = "required" if required else "optional"
    if new is not None and new.required is required:
        effect = Effect(left_out(None, new), _unknown_to(classes.old))
        yield Found(classes.place(new), f"new {kind} property: {shown(new.type)}", effect, _needed(new))
    if old is not None and old.required is required:
        effect = Effect(_unknown_to(classes.new), left_out(None, old))
        message = f"{kind} property removed: {shown(old.type)}"
        yield Found(classes.place(old), message, effect, _GONE, is_reverse=True)


def _unknown_to(struct: ir.Struct) -> WireVerdict:
    """The verdict on a property that the reader's class does not name."""
    return WireVerdict.OK if struct.keeps_extra else WireVerdict.LOSES


def _needed(field: ir.Field) -> SourceEffect:
    """The verdict on constructor calls without the property; a required constant is no argument."""
    is_argument = field.required and not isinstance(field.type, ir.Const)
    return breaks(Use.CONSTRUCT) if is_argument else SOURCE_OK


# --- Properties of both releases ------------------------------------------------------------------------------------


@FIELDS.pair(
    ("field-made-required", "a property is required now", _NEEDED),
    ("field-made-optional", "a property is optional now", "breaks: the attribute may be UNSET; ok if it has a default"),
    wire="old to new breaks: it may be missing",
)
def _requirement(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[Found]:
    place, effect = classes.place(new), Effect(left_out(old, new), left_out(new, old))
    if new.required and not old.required:
        yield Found(place, "is required now", effect, _needed(new))
    if old.required and not new.required:
        meaning = f", which means {shown_value(new.default)}" if new.default is not None else ""
        source = breaks(Use.READ) if new.may_be_unset else SOURCE_OK
        yield Found(place, f"is optional now{meaning}", effect, source, is_reverse=True)


@FIELDS.pair(
    ("field-default-added", "an optional property gained a default", "risk: the attribute is never UNSET"),
    ("field-default-removed", "an optional property lost its default", "breaks: the attribute may be UNSET (read)"),
    wire="ok",
)
def _default(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[Found]:
    before, after = _defaults(old, new)
    if before is None and after is not None:
        message = f"the default is {shown_value(after)} now; before: none"
        yield Found(classes.place(new), message, FINE, risks(Use.CONSTRUCT, Use.READ))
    if before is not None and after is None:
        message = f"has no default any more; before: {shown_value(before)}"
        yield Found(classes.place(new), message, FINE, breaks(Use.READ), is_reverse=True)


@FIELDS.rule(
    "field-default-changed",
    "an optional property has another default",
    wire="loses both ways: the reader fills in another value than the sender meant",
    source="risk: code that omits the argument sends another value",
)
def _default_changed(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[Found]:
    forward, backward = classes.models.forward, classes.models.backward
    before, after = _defaults(old, new)
    if before is not None and after is not None and not forward.means_same(before, after):
        then, now = map(shown_value, forward.apart(before, after))
        effect = Effect(forward.absence(old, new), backward.absence(new, old))
        message = f"the default is {now} now; before: {then}"
        yield Found(classes.place(new), message, effect, risks(Use.CONSTRUCT))


def _defaults(old: ir.Field, new: ir.Field) -> tuple[ir.Value | None, ir.Value | None]:
    """The defaults of a property that both classes may lack."""
    return (None, None) if old.required or new.required else (old.default, new.default)


@FIELDS.rule(
    "field-leniency-changed",
    "readers forgive other invalid values (`x-deserialize-…`)",
    wire="ok: valid values are read as before; it only matters for peers that send invalid ones",
    source="ok",
    shown=Shown.COUNTED,
)
def _leniency_changed(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[Found]:
    if old.leniency != new.leniency:
        message = f"readers {shown_leniency(new.leniency)} now; before: {shown_leniency(old.leniency)}"
        yield Found(classes.place(new), message, FINE)


_TYPES = type_rules("field", "a property")


def _type(classes: ClassPair, old: ir.Field, new: ir.Field) -> Iterator[DiffFinding]:
    models = classes.models
    if not models.agree(old.type, new.type):
        effect = Effect(models.forward.value(old, new), models.backward.value(new, old))
        yield type_finding(_TYPES, models, (old.type, new.type), place=classes.place(new), effect=effect)


FIELDS.include(_TYPES.values(), _type)
