"""Rules about types: their names and kinds, and what is in classes, enums and aliases."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff.class_rules import compare_classes
from acpgen.diff.expression_rules import type_finding, type_rules
from acpgen.diff.findings import (
    SOURCE_OK,
    ChangePlace,
    DiffFinding,
    Effect,
    Found,
    Shown,
    SourceEffect,
    SourceVerdict,
    Use,
    WireVerdict,
    breaks,
    risks,
)
from acpgen.diff.rules import (
    BY_TYPE,
    DOCS,
    IMPORT,
    MATCH,
    MODELS,
    NO_MESSAGES,
    ModelPair,
    RuleTable,
)
from acpgen.diff.type_forms import shown
from acpgen.diff.union_rules import Union, compare_unions
from acpgen.ir import model as ir
from acpgen.ir.order import members
from acpgen.text import cut

DEFINITIONS = RuleTable[ModelPair, ir.Definition, ir.Definition]()
"""Rules about paired types, whatever their kinds."""
ENUMS = RuleTable[ModelPair, ir.Enum, ir.Enum]()
ALIASES = RuleTable[ModelPair, ir.Alias, ir.Alias]()
DOCUMENTATION = RuleTable[ir.Method | ir.Definition, ir.Method | ir.Definition]()

_KINDS = {
    ir.Struct: "a class",
    ir.TaggedUnion: "a union",
    ir.UntaggedUnion: "a union",
    ir.Enum: "an enum",
    ir.Alias: "an alias",
}


def compare_definitions(models: ModelPair, old: ir.Definition, new: ir.Definition) -> Iterator[DiffFinding]:
    """The differences between two definitions, including their names and texts."""
    yield from DEFINITIONS.find(models, old, new)
    yield from DOCUMENTATION.find(old, new)
    match old, new:
        case ir.Struct(), ir.Struct():
            yield from compare_classes(models, old, new)
        case (ir.TaggedUnion() | ir.UntaggedUnion()), (ir.TaggedUnion() | ir.UntaggedUnion()):
            yield from compare_unions(models, old, new)
        case ir.Enum(), ir.Enum():
            yield from ENUMS.find(models, old, new)
        case ir.Alias(), ir.Alias():
            yield from ALIASES.find(models, old, new)


# --- All types ------------------------------------------------------------------------------------------------------


@MODELS.pair(
    ("type-added", "a type is new", "ok: one more name"),
    ("type-removed", "a type is gone", IMPORT),
    wire="none: its users have their own findings",
    shown=Shown.NAMED,
)
def _unpaired(models: ModelPair) -> Iterator[Found]:
    for definition in models.new.definitions:
        if definition.name not in models.pairs.backward:
            yield Found(ChangePlace(type=definition.name), f"new type: {_KINDS[type(definition)]}")
    for definition in models.old.definitions:
        if definition.name not in models.pairs.forward:
            message, source = f"type removed: {_KINDS[type(definition)]}", breaks(Use.IMPORT)
            yield Found(ChangePlace(type=definition.name), message, source=source, is_reverse=True)


@DEFINITIONS.rule(
    "type-renamed",
    "a type has another name, but the same tag or message, or the same shape in the same place",
    wire="none: names of types are not sent",
    source=IMPORT,
)
def _renamed(_: ModelPair, old: ir.Definition, new: ir.Definition) -> Iterator[Found]:
    if old.name != new.name:
        place = ChangePlace(type=new.name, was=old.name)
        yield Found(place, f"is the new name of {old.name}", source=breaks(Use.IMPORT))


@DEFINITIONS.rule(
    "type-kind-changed",
    "a class became a union, an alias became an enum, or the like",
    wire=BY_TYPE,
    source="breaks: a union cannot be called and has no attributes; an enum or alias only if values no longer fit",
)
def _kind_changed(models: ModelPair, old: ir.Definition, new: ir.Definition) -> Iterator[Found]:
    if _has_other_kind(models, old, new):
        message = f"is {_described(new)} now; before: {_described(old)}"
        effect, source = models.effect_inside(old.name, new.name), _source_of_other_kind(models, old, new)
        yield Found(ChangePlace(type=new.name), message, effect, source)


def _has_other_kind(models: ModelPair, old: ir.Definition, new: ir.Definition) -> bool:
    if isinstance(old, Union) and isinstance(new, Union):
        # the only class of a union can be constructed under its name
        before, after = _behind(old, models.old), _behind(new, models.new)
        return isinstance(before, ir.Struct) is not isinstance(after, ir.Struct)
    return type(old) is not type(new)


def _source_of_other_kind(models: ModelPair, old: ir.Definition, new: ir.Definition) -> SourceEffect:
    """The source verdict; enums, aliases and unions with one member are only names, so code may work unchanged."""
    if {type(old), type(new)} == {ir.Enum, ir.Alias}:
        return models.source(ir.Ref(old.name), ir.Ref(new.name))
    before, after = _behind(old, models.old), _behind(new, models.new)
    if isinstance(old, Union) and not isinstance(before, ir.Struct) and isinstance(after, ir.Struct):
        return SOURCE_OK  # a union could not be called; its removed members have findings of their own
    still_exists = before is not old and before.name in models.pairs.forward  # under its own name
    if not isinstance(before, ir.Struct) or not isinstance(after, ir.Struct) or still_exists:
        return breaks(Use.CONSTRUCT, Use.READ)
    classes = compare_classes(models, before, after)
    found = [each.source for each in classes if each.source.verdict is not SourceVerdict.OK]
    uses = tuple(dict.fromkeys(use for each in found for use in each.uses))
    return SourceEffect(SourceVerdict.worst(each.verdict for each in found), uses)


def _behind(definition: ir.Definition, model: ir.Model) -> ir.Definition:
    """The definition behind aliases and unions with a single member."""
    while True:
        match definition:
            case ir.Alias(type=ir.Ref(name)) | ir.UntaggedUnion(members=(ir.Candidate(type=ir.Ref(name)),)):
                definition = model.by_name[name]
            case _:
                return definition


def _described(definition: ir.Definition) -> str:
    """The kind of a definition, with the members of a union and the target of an alias."""
    kind = _KINDS[type(definition)]
    match definition:
        case ir.TaggedUnion() | ir.UntaggedUnion():
            return f"{kind} ({cut(' | '.join(map(shown, members(definition))), 400)})"
        case ir.Alias(type=target):
            return f"{kind} of {shown(target)}"
        case _:
            return kind


# --- Documentation --------------------------------------------------------------------------------------------------


@DOCUMENTATION.rule(
    "documentation", "only descriptions or titles differ", wire=NO_MESSAGES, source=DOCS, shown=Shown.PROSE
)
def _documentation(old: ir.Method | ir.Definition, new: ir.Method | ir.Definition) -> Iterator[Found]:
    is_method = isinstance(new, ir.Method)
    place = ChangePlace(method=new.wire) if isinstance(new, ir.Method) else ChangePlace(type=new.name)
    before, after = _texts(old), _texts(new)
    parts = [name for name, text in after.items() if before.get(name, text) != text]
    inner = cut(", ".join(filter(None, parts)), 200)
    whole = "the method" if is_method else "the type"
    if about := [*([whole] if "" in parts else []), *([inner] if inner else [])]:
        yield Found(place, f"other text about {' and '.join(about)}")


def _texts(thing: ir.Method | ir.Definition) -> dict[str, str]:
    """The texts about the members by name, and that about the thing itself under the empty name."""
    texts = {"": thing.doc}
    match thing:
        case ir.Struct(fields=fields):
            texts |= {field.wire: field.doc for field in fields if not field.inherited}
        case ir.Enum(members=constants):
            texts |= {str(member.value): f"{member.title or ''}\n{member.doc}" for member in constants}
        case ir.TaggedUnion(variants=variants):
            texts |= {variant.tag: variant.doc for variant in variants}
    return texts


# --- Enums ------------------------------------------------------------------------------------------------------------


@ENUMS.pair(
    ("enum-value-added", "an enum has a new value", f"{MATCH}; ok if the enum is open"),
    (
        "enum-value-removed",
        "a value of an enum is gone",
        "breaks: the value does not type-check; ok if the enum is open",
    ),
    wire="new to old breaks if the old enum is closed; ok if it is open",
)
def _values(_: ModelPair, old: ir.Enum, new: ir.Enum) -> Iterator[Found]:
    before, after = ([member.value for member in enum.members] for enum in (old, new))
    for value in after:
        if value not in before:
            place, effect = ChangePlace(type=new.name, member=str(value)), Effect(WireVerdict.OK, _unknown_to(old))
            yield Found(place, "new value", effect, SOURCE_OK if old.open else risks(Use.MATCH))
    for value in before:
        if value not in after:
            place, effect = ChangePlace(type=new.name, member=str(value)), Effect(_unknown_to(new), WireVerdict.OK)
            source = SOURCE_OK if new.open else breaks(Use.CONSTRUCT, Use.MATCH)
            yield Found(place, "value removed", effect, source, is_reverse=True)


def _unknown_to(enum: ir.Enum) -> WireVerdict:
    """The verdict on a value that the reader's enum does not have."""
    return WireVerdict.OK if enum.open else WireVerdict.BREAKS


@ENUMS.pair(
    ("enum-opened", "an enum keeps unknown values", MATCH),
    ("enum-closed", "an enum refuses unknown values", "risk: values made at run time do not type-check"),
    wire="new to old breaks: unknown values are refused",
)
def _openness(_: ModelPair, old: ir.Enum, new: ir.Enum) -> Iterator[Found]:
    place, effect = ChangePlace(type=new.name), Effect(_unknown_to(new), _unknown_to(old))
    if new.open and not old.open:
        yield Found(place, "unknown values are kept now", effect, risks(Use.MATCH))
    if old.open and not new.open:
        yield Found(place, "unknown values are refused now", effect, risks(Use.CONSTRUCT), is_reverse=True)


@ENUMS.rule(
    "enum-type-changed",
    "the values of an enum have another JSON type",
    wire="breaks both ways, except for integers read as numbers",
    source="breaks: values have another type",
)
def _enum_type_changed(models: ModelPair, old: ir.Enum, new: ir.Enum) -> Iterator[Found]:
    if old.primitive is not new.primitive:
        message = f"the values are of type {new.primitive.value} now; before: {old.primitive.value}"
        effect, source = models.effect_inside(old.name, new.name), breaks(Use.CONSTRUCT, Use.READ)
        yield Found(ChangePlace(type=new.name), message, effect, source)


# --- Aliases --------------------------------------------------------------------------------------------------------


ALIAS_TYPES = type_rules("alias", "an alias")


def _alias_type(models: ModelPair, old: ir.Alias, new: ir.Alias) -> Iterator[DiffFinding]:
    if not models.agree(old.type, new.type):
        effect = models.effect(old.type, new.type)
        yield type_finding(ALIAS_TYPES, models, (old.type, new.type), place=ChangePlace(type=new.name), effect=effect)


ALIASES.include(ALIAS_TYPES.values(), _alias_type)
