"""Compare two definitions that belong together, each kind in its own way."""

from __future__ import annotations

from collections.abc import Iterator

from acpgen.diff.context import FINE, Context, change, type_message
from acpgen.diff.field_changes import compare_fields
from acpgen.diff.findings import Change, Effect, Place, Source, Use, Wire, worst_source
from acpgen.diff.python_types import source_of
from acpgen.diff.rules import DOCUMENTATION
from acpgen.diff.spelling import shown
from acpgen.diff.union_changes import compare_unions
from acpgen.ir.model import (
    Alias,
    Candidate,
    Definition,
    Enum,
    EnumMember,
    Model,
    OtherVariant,
    Primitive,
    Ref,
    Struct,
    TaggedUnion,
    UntaggedUnion,
)
from acpgen.ir.order import members
from acpgen.text import cut

_KINDS = {
    Struct: "a class",
    TaggedUnion: "a union",
    UntaggedUnion: "a union",
    Enum: "an enum",
    Alias: "an alias",
}
_EXHAUSTIVE = (Source.RISK, (Use.MATCH,))


def compare_definitions(context: Context, old: Definition, new: Definition) -> Iterator[Change]:
    """The changes between two definitions, their name among them."""
    if old.name != new.name:
        message = f"is the new name of {old.name}"
        yield change("type-renamed", Place(type=new.name, was=old.name), message, source=(Source.BREAKS, (Use.IMPORT,)))
    yield from _by_kind(context, old, new)
    if (found := _documentation(old, new)) is not None:
        yield found


def added(definition: Definition) -> Change:
    """A type that only NEW has."""
    place = Place(type=definition.name)
    return change("type-added", place, f"new type: {_KINDS[type(definition)]}")


def removed(definition: Definition) -> Change:
    """A type that only OLD has."""
    place = Place(type=definition.name)
    message = f"type removed: {_KINDS[type(definition)]}"
    return change("type-removed", place, message, source=(Source.BREAKS, (Use.IMPORT,)))


def _by_kind(context: Context, old: Definition, new: Definition) -> Iterator[Change]:
    match old, new:
        case Struct(), Struct():
            yield from _structs(context, old, new)
        case (TaggedUnion() | UntaggedUnion()), (TaggedUnion() | UntaggedUnion()):
            if isinstance(_behind(old, context.old), Struct) is not isinstance(_behind(new, context.new), Struct):
                yield _other_kind(context, old, new)  # the only class of a union can be constructed under its name
            yield from compare_unions(context, old, new)
        case Enum(), Enum():
            yield from _enums(old, new)
        case Alias(), Alias():
            yield from _aliases(context, old, new)
        case _:
            yield _other_kind(context, old, new)


def _other_kind(context: Context, old: Definition, new: Definition) -> Change:
    return change(
        "type-kind-changed",
        Place(type=new.name),
        f"is {_described(new)} now; before: {_described(old)}{_instead(old, new, context.new)}",
        effect=Effect(
            forward=context.forward.afresh(old.name, new.name), backward=context.backward.afresh(new.name, old.name)
        ),
        source=_other_code(context, old, new),
    )


def _other_code(context: Context, old: Definition, new: Definition) -> tuple[Source, tuple[Use, ...]]:
    """Enums, aliases and unions of one are but names for what they stand for: code may not notice the difference."""
    if {type(old), type(new)} == {Enum, Alias}:
        return source_of(context.old_types.atoms(Ref(old.name)), context.new_types.atoms(Ref(new.name)))
    before, after = _behind(old, context.old), _behind(new, context.new)
    if isinstance(old, (TaggedUnion, UntaggedUnion)) and not isinstance(before, Struct) and isinstance(after, Struct):
        return Source.OK, ()  # what could not be called can be called now; members that are gone are told apart
    if not isinstance(before, Struct) or not isinstance(after, Struct):
        return Source.BREAKS, (Use.CONSTRUCT, Use.READ)
    if before is not old and before.name in context.pairs.forward:  # which is another class now than the one wanted
        return Source.BREAKS, (Use.CONSTRUCT, Use.READ)
    found = list(_structs(context, before, after))
    uses = tuple(dict.fromkeys(use for each in found if each.source is not Source.OK for use in each.uses))
    return worst_source(each.source for each in found), uses


def _behind(definition: Definition, model: Model) -> Definition:
    """The definition that a name stands for: an alias of it, or a union that has no other member."""
    while True:
        match definition:
            case Alias(type=Ref(name)) | UntaggedUnion(members=(Candidate(type=Ref(name)),)):
                definition = model.by_name[name]
            case _:
                return definition


def _described(definition: Definition) -> str:
    """The kind of a definition; of an alias, what it stands for, and of a union, its members, too."""
    kind = _KINDS[type(definition)]
    match definition:
        case TaggedUnion() | UntaggedUnion():
            return f"{kind} ({cut(' | '.join(map(shown, members(definition))), 200)})"
        case Alias(type=target):
            return f"{kind} of {shown(target)}"
        case _:
            return kind


def _instead(old: Definition, new: Definition, model: Model) -> str:
    """What to construct where a class has become a union."""
    if isinstance(old, (Enum, Alias)) or not isinstance(_behind(new, model), (TaggedUnion, UntaggedUnion)):
        return ""
    names = dict.fromkeys(_classes(_behind(new, model), model))
    return f"; construct {cut(' or '.join(names), 400)} instead" if names else ""


def _classes(definition: Definition, model: Model) -> Iterator[str]:
    """The names of the classes that a type stands for: its own, or those of the members of a union."""
    match definition:
        case Struct(name=name):
            yield name
        case TaggedUnion() | UntaggedUnion():
            for each in members(definition):
                if isinstance(each, Ref):
                    yield from _classes(_behind(model.by_name[each.name], model), model)
        case _:
            return


def _structs(context: Context, old: Struct, new: Struct) -> Iterator[Change]:
    yield from compare_fields(context, old, new)
    place = Place(type=new.name)
    before = context.pairs.forward.get(old.base, old.base) if old.base is not None else None
    if before != new.base:
        message = f"extends {new.base or 'nothing'} now; before: {old.base or 'nothing'}"
        yield change("type-base-changed", place, message, effect=FINE, source=(Source.RISK, (Use.READ,)))
    if new.keeps_extra and not old.keeps_extra:
        message = "properties without a name are kept now, in `extra`"
        yield change("type-opened", place, message, effect=Effect(forward=Wire.OK, backward=Wire.LOSES))
    if old.keeps_extra and not new.keeps_extra:
        yield change(
            "type-closed",
            place,
            "properties without a name are dropped now; `extra` is gone",
            effect=Effect(forward=Wire.LOSES, backward=Wire.OK),
            source=(Source.BREAKS, (Use.CONSTRUCT, Use.READ)),
        )
    if old.rejects != new.rejects and not _is_for_other_tags(context, old, new):
        yield change(
            "type-rejection-changed",
            place,
            "other objects are excluded from the type than before",
            effect=Effect(
                forward=Wire.BREAKS if new.rejects is not None else Wire.OK,
                backward=Wire.BREAKS if old.rejects is not None else Wire.OK,
            ),
        )


def _is_for_other_tags(context: Context, old: Struct, new: Struct) -> bool:
    """Whether the classes take the tags that a union does not know: what these exclude is said of the union."""
    return all(
        any(isinstance(each, TaggedUnion) and _takes_others(each.other, struct) for each in model.definitions)
        for model, struct in ((context.old, old), (context.new, new))
    )


def _takes_others(other: OtherVariant | None, struct: Struct) -> bool:
    return other is not None and other.target == struct.name


def _enums(old: Enum, new: Enum) -> Iterator[Change]:
    place = Place(type=new.name)
    if old.primitive is not new.primitive:
        widens = (Primitive.INTEGER, Primitive.NUMBER)
        yield change(
            "enum-type-changed",
            place,
            f"the values are of type {new.primitive.value} now; before: {old.primitive.value}",
            effect=Effect(
                forward=Wire.OK if (old.primitive, new.primitive) == widens and new.open else Wire.BREAKS,
                backward=Wire.OK if (new.primitive, old.primitive) == widens and old.open else Wire.BREAKS,
            ),
            source=(Source.BREAKS, (Use.CONSTRUCT, Use.READ)),
        )
    if new.open and not old.open:
        message = "values without a name are kept now"
        effect = Effect(forward=Wire.OK, backward=Wire.BREAKS)
        yield change("enum-opened", place, message, effect=effect, source=_EXHAUSTIVE)
    if old.open and not new.open:
        message = "values without a name are refused now"
        effect = Effect(forward=Wire.BREAKS, backward=Wire.OK)
        yield change("enum-closed", place, message, effect=effect, source=(Source.RISK, (Use.CONSTRUCT,)))
    yield from _values(old, new)


def _values(old: Enum, new: Enum) -> Iterator[Change]:
    before, after = ([member.value for member in enum.members] for enum in (old, new))
    for value in before:
        if value not in after:
            yield change(
                "enum-value-removed",
                Place(type=new.name, member=str(value)),
                "value removed",
                effect=Effect(forward=Wire.OK if new.open else Wire.BREAKS, backward=Wire.OK),
                source=(Source.OK, ()) if new.open else (Source.BREAKS, (Use.CONSTRUCT, Use.MATCH)),
            )
    for value in after:
        if value not in before:
            yield change(
                "enum-value-added",
                Place(type=new.name, member=str(value)),
                "new value",
                effect=Effect(forward=Wire.OK, backward=Wire.OK if old.open else Wire.BREAKS),
                source=(Source.OK, ()) if old.open else _EXHAUSTIVE,
            )


def _aliases(context: Context, old: Alias, new: Alias) -> Iterator[Change]:
    if context.agree(old.type, new.type):
        return
    kind = context.kind_of_difference(old.type, new.type)
    yield change(
        f"alias-{kind}",
        Place(type=new.name),
        type_message(kind, old.type, new.type),
        effect=context.effect(old.type, new.type),
        source=source_of(context.old_types.atoms(old.type), context.new_types.atoms(new.type)),
    )


def _documentation(old: Definition, new: Definition) -> Change | None:
    before, after = _texts(old), _texts(new)
    parts = [name for name, text in after.items() if name in before and before[name] != text]
    if not parts:
        return None
    inner = [part for part in parts if part]
    about = [*(["the type"] if "" in parts else []), *([cut(", ".join(inner), 200)] if inner else [])]
    return change(DOCUMENTATION, Place(type=new.name), f"other text about {' and '.join(about)}")


def _texts(definition: Definition) -> dict[str, str]:
    """The text about the definition (under no name) and about its members, by name."""
    texts = {"": definition.doc}
    match definition:
        case Struct(fields=fields):
            texts |= {field.wire: field.doc for field in fields if not field.inherited}
        case Enum(members=constants):
            texts |= {str(member.value): _enum_text(member) for member in constants}
        case TaggedUnion(variants=variants):
            texts |= {variant.tag: variant.doc for variant in variants}
        case _:
            pass
    return texts


def _enum_text(member: EnumMember) -> str:
    return f"{member.title or ''}\n{member.doc}"
