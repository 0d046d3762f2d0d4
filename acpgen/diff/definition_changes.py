"""Compare two paired definitions, each kind in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff import rules
from acpgen.diff.bump import Bump
from acpgen.diff.field_changes import compare_fields
from acpgen.diff.findings import (
    FINE,
    SOURCE_OK,
    DiffFinding,
    Effect,
    Place,
    SourceEffect,
    SourceVerdict,
    Use,
    Wire,
    breaks,
    risks,
)
from acpgen.diff.rules import ALIAS_TYPE_RULES
from acpgen.diff.spelling import shown
from acpgen.diff.union_changes import compare_unions
from acpgen.ir import model as ir
from acpgen.ir.order import members
from acpgen.text import cut

_KINDS = {
    ir.Struct: "a class",
    ir.TaggedUnion: "a union",
    ir.UntaggedUnion: "a union",
    ir.Enum: "an enum",
    ir.Alias: "an alias",
}


def compare_definitions(bump: Bump, old: ir.Definition, new: ir.Definition) -> Iterator[DiffFinding]:
    """The differences between two definitions, including their names and texts."""
    if old.name != new.name:
        place = Place(type=new.name, was=old.name)
        yield DiffFinding(rules.TYPE_RENAMED, place, f"is the new name of {old.name}", source=breaks(Use.IMPORT))
    yield from _by_kind(bump, old, new)
    yield from _documentation(old, new)


def added(definition: ir.Definition) -> DiffFinding:
    """A type that only NEW has."""
    return DiffFinding(rules.TYPE_ADDED, Place(type=definition.name), f"new type: {_KINDS[type(definition)]}")


def removed(definition: ir.Definition) -> DiffFinding:
    """A type that only OLD has."""
    message = f"type removed: {_KINDS[type(definition)]}"
    return DiffFinding(rules.TYPE_REMOVED, Place(type=definition.name), message, source=breaks(Use.IMPORT))


def _by_kind(bump: Bump, old: ir.Definition, new: ir.Definition) -> Iterator[DiffFinding]:
    match old, new:
        case ir.Struct(), ir.Struct():
            yield from _structs(bump, old, new)
        case (ir.TaggedUnion() | ir.UntaggedUnion()), (ir.TaggedUnion() | ir.UntaggedUnion()):
            if isinstance(_behind(old, bump.old), ir.Struct) is not isinstance(_behind(new, bump.new), ir.Struct):
                yield _other_kind(bump, old, new)  # the only class of a union can be constructed under its name
            yield from compare_unions(bump, old, new)
        case ir.Enum(), ir.Enum():
            yield from _enums(bump, old, new)
        case ir.Alias(), ir.Alias():
            if not bump.agree(old.type, new.type):
                types, effect = (old.type, new.type), bump.effect(old.type, new.type)
                yield bump.type_finding(ALIAS_TYPE_RULES, Place(type=new.name), types, effect=effect)
        case _:
            yield _other_kind(bump, old, new)


# --- Definitions of different kinds ---------------------------------------------------------------------------------


def _other_kind(bump: Bump, old: ir.Definition, new: ir.Definition) -> DiffFinding:
    message = f"is {_described(new)} now; before: {_described(old)}"
    effect, source = bump.effect_inside(old.name, new.name), _source_of_other_kind(bump, old, new)
    return DiffFinding(rules.TYPE_KIND_CHANGED, Place(type=new.name), message, effect, source)


def _source_of_other_kind(bump: Bump, old: ir.Definition, new: ir.Definition) -> SourceEffect:
    """The source verdict; enums, aliases and unions with one member are only names, so code may work unchanged."""
    if {type(old), type(new)} == {ir.Enum, ir.Alias}:
        return bump.source(ir.Ref(old.name), ir.Ref(new.name))
    before, after = _behind(old, bump.old), _behind(new, bump.new)
    if (
        isinstance(old, (ir.TaggedUnion, ir.UntaggedUnion))
        and not isinstance(before, ir.Struct)
        and isinstance(after, ir.Struct)
    ):
        return SOURCE_OK  # a union could not be called; its removed members have findings of their own
    still_exists = before is not old and before.name in bump.pairs.forward  # under its own name
    if not isinstance(before, ir.Struct) or not isinstance(after, ir.Struct) or still_exists:
        return breaks(Use.CONSTRUCT, Use.READ)
    found = [each.source for each in _structs(bump, before, after) if each.source.verdict is not SourceVerdict.OK]
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


# --- Classes --------------------------------------------------------------------------------------------------------


def _structs(bump: Bump, old: ir.Struct, new: ir.Struct) -> Iterator[DiffFinding]:
    yield from compare_fields(bump, old, new)
    place = Place(type=new.name)
    before = bump.pairs.forward.get(old.base, old.base) if old.base is not None else None
    if before != new.base:
        message = f"extends {new.base or 'nothing'} now; before: {old.base or 'nothing'}"
        yield DiffFinding(rules.TYPE_BASE_CHANGED, place, message, effect=FINE, source=risks(Use.READ))
    if new.keeps_extra and not old.keeps_extra:
        message = "unknown properties are kept now, in `extra`"
        yield DiffFinding(rules.TYPE_OPENED, place, message, effect=Effect(Wire.OK, Wire.LOSES))
    if old.keeps_extra and not new.keeps_extra:
        message, effect = "unknown properties are dropped now; `extra` is gone", Effect(Wire.LOSES, Wire.OK)
        yield DiffFinding(rules.TYPE_CLOSED, place, message, effect=effect, source=breaks(Use.CONSTRUCT, Use.READ))
    is_other = _is_for_other_tags(old, bump.old) and _is_for_other_tags(new, bump.new)
    if old.rejects != new.rejects and not is_other:
        forward, backward = (Wire.OK if each.rejects is None else Wire.BREAKS for each in (new, old))
        message = "the type excludes other objects than before"
        yield DiffFinding(rules.TYPE_REJECTION_CHANGED, place, message, effect=Effect(forward, backward))


def _is_for_other_tags(struct: ir.Struct, model: ir.Model) -> bool:
    """Whether the class is for the unknown tags of a union; the union has the finding about excluded tags."""
    others = (each.other for each in model.definitions if isinstance(each, ir.TaggedUnion))
    return any(other is not None and other.target == struct.name for other in others)


# --- Enums ----------------------------------------------------------------------------------------------------------


def _enums(bump: Bump, old: ir.Enum, new: ir.Enum) -> Iterator[DiffFinding]:
    place = Place(type=new.name)
    if old.primitive is not new.primitive:
        message = f"the values are of type {new.primitive.value} now; before: {old.primitive.value}"
        effect, source = bump.effect_inside(old.name, new.name), breaks(Use.CONSTRUCT, Use.READ)
        yield DiffFinding(rules.ENUM_TYPE_CHANGED, place, message, effect, source)
    if new.open and not old.open:
        message, effect = "unknown values are kept now", Effect(Wire.OK, Wire.BREAKS)
        yield DiffFinding(rules.ENUM_OPENED, place, message, effect=effect, source=risks(Use.MATCH))
    if old.open and not new.open:
        message, effect = "unknown values are refused now", Effect(Wire.BREAKS, Wire.OK)
        yield DiffFinding(rules.ENUM_CLOSED, place, message, effect=effect, source=risks(Use.CONSTRUCT))
    yield from _values(old, new)


def _values(old: ir.Enum, new: ir.Enum) -> Iterator[DiffFinding]:
    before, after = ([member.value for member in enum.members] for enum in (old, new))
    for value in (*before, *after):
        place = Place(type=new.name, member=str(value))
        if value not in after:
            effect = Effect(Wire.OK if new.open else Wire.BREAKS, Wire.OK)
            source = SOURCE_OK if new.open else breaks(Use.CONSTRUCT, Use.MATCH)
            yield DiffFinding(rules.ENUM_VALUE_REMOVED, place, "value removed", effect, source)
        elif value not in before:
            effect = Effect(Wire.OK, Wire.OK if old.open else Wire.BREAKS)
            source = SOURCE_OK if old.open else risks(Use.MATCH)
            yield DiffFinding(rules.ENUM_VALUE_ADDED, place, "new value", effect, source)


# --- Documentation --------------------------------------------------------------------------------------------------


def _documentation(old: ir.Definition, new: ir.Definition) -> Iterator[DiffFinding]:
    before, after = _texts(old), _texts(new)
    parts = [name for name, text in after.items() if before.get(name, text) != text]
    inner = cut(", ".join(filter(None, parts)), 200)
    if about := [*(["the type"] if "" in parts else []), *([inner] if inner else [])]:
        yield DiffFinding(rules.DOCUMENTATION, Place(type=new.name), f"other text about {' and '.join(about)}")


def _texts(definition: ir.Definition) -> dict[str, str]:
    """The texts about the members by name, and that about the definition under the empty name."""
    texts = {"": definition.doc}
    match definition:
        case ir.Struct(fields=fields):
            texts |= {field.wire: field.doc for field in fields if not field.inherited}
        case ir.Enum(members=constants):
            texts |= {str(member.value): f"{member.title or ''}\n{member.doc}" for member in constants}
        case ir.TaggedUnion(variants=variants):
            texts |= {variant.tag: variant.doc for variant in variants}
    return texts
