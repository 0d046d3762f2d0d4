"""Lower unions: members with a tag, the member for other tags, and members that are tried in turn.

A union of objects is distributed until every class is concrete: the properties around the union, those of the member
and those of its payload end up in one class, named after the union and the tag (or title) of the member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from acpgen.ir import names
from acpgen.ir.conditions import condition, excluded_values
from acpgen.ir.context import Context
from acpgen.ir.expressions import Expressions
from acpgen.ir.model import Candidate, Definition, OtherVariant, Ref, TaggedUnion, UntaggedUnion, Variant
from acpgen.ir.objects import Exclusion, Member, Property, Shape
from acpgen.schema.document import join
from acpgen.schema.walk import description, referenced_definition

OTHER_SUFFIX = "Other"

Label = Callable[[Member], str]
"""The suffix for a member without a tag, appended to the name of its union."""


class ObjectLowering(Protocol):
    """Lower one shape to a class or to a union."""

    def object(self, name: str, shape: Shape, pointer: str, *, keeps_extra: bool = False) -> None:
        """Register the definition `name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A member with its shape and the string constants among its required properties."""

    member: Member
    shape: Shape
    constants: dict[str, str]

    def is_free_string(self, wire: str) -> bool:
        """True if the member requires `wire` to be any string."""
        return any(
            found.wire == wire
            and found.required
            and isinstance(found.node, dict)
            and found.node.get("type") == "string"
            and not {"const", "enum"} & found.node.keys()
            for found in self.shape.properties
        )


class Unions:
    """Lower `oneOf` and `anyOf`."""

    def __init__(self, context: Context, expressions: Expressions, objects: ObjectLowering) -> None:
        self._context = context
        self._expressions = expressions
        self._objects = objects

    def of_values(self, name: str, node: dict[str, Any], key: str, pointer: str) -> Definition:
        """Lower a union in which not every member is an object."""
        members = []
        nulls = [index for index, member in enumerate(node[key]) if self._context.definitions.is_null(member)]
        for index, member in enumerate(node[key]):
            if index in nulls[1:]:  # redundant, and `None | None` is an error at import
                continue
            where = join(pointer, key, index)
            label = self._label(Member(node=member, pointer=where))
            inline = name + label if label else ""
            members.append(
                Candidate(
                    type=self._expressions.read(member, where, inline),
                    required=_required(self._context.definitions.shape(member, where)),
                    doc=description(member),
                )
            )
        return UntaggedUnion(
            name=name,
            members=tuple(members),
            doc=description(node),
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def of_objects(self, name: str, outer: Shape, pointer: str, *, keeps_extra: bool) -> None:
        """Register the union `name` of the first branch of `outer`, and a class for each of its members."""
        branch, *rest = outer.branches
        around = Shape(
            properties=outer.properties,
            branches=tuple(rest),
            exclusions=outer.exclusions,
            owners=outer.owners,
            required=outer.required,
        )
        readings = [self._read(member) for member in branch]
        build = _UnionBuilder(self._context, self._objects, name=name, around=around, keeps_extra=keeps_extra)
        tag = _tag(readings)
        if tag is None:
            self._context.define(build.untagged(readings, outer=outer, pointer=pointer, label=self._label))
        else:
            self._context.define(build.tagged(readings, tag, outer=outer, pointer=pointer, label=self._label))

    def _read(self, member: Member) -> _Reading:
        shape = self._context.definitions.shape(member.node, member.pointer)
        constants = {
            found.wire: constant
            for found in shape.properties
            if found.required and (constant := _string_constant(found)) is not None
        }
        return _Reading(member=member, shape=shape, constants=constants)

    def _label(self, member: Member) -> str:
        """The name part for a member without a tag: its title, its definition, or its required properties."""
        node = member.node if isinstance(member.node, dict) else {}
        shape = self._context.definitions.shape(node, member.pointer)
        candidates = [node.get("title", ""), *shape.owners, "with " + " ".join(_required(shape))]
        if isinstance(node.get("type"), str) and node["type"] != "object":
            candidates.append(node["type"])
        return next((label for text in candidates if (label := names.pascal(text)) not in ("", "With")), "")


class _UnionBuilder:
    """Build one union of objects whose members are inside the shape `around`."""

    def __init__(
        self, context: Context, objects: ObjectLowering, *, name: str, around: Shape, keeps_extra: bool
    ) -> None:
        self._context = context
        self._objects = objects
        self._name = name
        self._around = around
        self._keeps_extra = keeps_extra

    def untagged(self, readings: list[_Reading], *, outer: Shape, pointer: str, label: Label) -> UntaggedUnion:
        """The union without a tag."""
        return UntaggedUnion(
            name=self._name,
            members=tuple(self._candidate(reading, label) for reading in readings),
            doc=_first(outer.docs),
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def tagged(self, readings: list[_Reading], tag: str, *, outer: Shape, pointer: str, label: Label) -> TaggedUnion:
        """The union whose members are told apart by the property `tag`."""
        known = [reading for reading in readings if tag in reading.constants]
        rest = [reading for reading in readings if tag not in reading.constants]
        other = next((reading for reading in rest if reading.is_free_string(tag)), None)
        variants = tuple(self._variant(reading, reading.constants[tag]) for reading in known)
        fallbacks = tuple(
            self._other(reading, tag) if reading is other else self._candidate(reading, label) for reading in rest
        )
        if other is None and self._context.options.open:
            fallbacks = (*fallbacks, self._opened(tag, variants, pointer))
        return TaggedUnion(
            name=self._name,
            tag=tag,
            variants=variants,
            fallbacks=fallbacks,
            doc=_first(outer.docs),
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def _variant(self, reading: _Reading, value: str) -> Variant:
        label = names.pascal(value)
        if not label:
            self._context.report.error(
                "bad-name",
                f"no Python name can be made of the tag {value!r}",
                at=reading.member.pointer,
                hint="use ASCII letters and digits",
            )
        target = self._itself(reading) or self._member(reading, self._name + label)
        return Variant(tag=value, target=target, doc=description(reading.member.node))

    def _other(self, reading: _Reading, tag: str) -> OtherVariant:
        excluded: list[str] = []
        for exclusion in reading.shape.exclusions:
            found = condition(exclusion.node, exclusion.pointer, self._context.report)
            excluded += excluded_values(found, tag) or ()
        name = self._name + OTHER_SUFFIX
        self._objects.object(name, self._around + reading.shape, reading.member.pointer, keeps_extra=True)
        return OtherVariant(target=name, excluded=tuple(excluded), doc=description(reading.member.node))

    def _opened(self, tag: str, variants: tuple[Variant, ...], pointer: str) -> OtherVariant:
        """The variant for unknown tags that the option `open` adds."""
        name = self._name + OTHER_SUFFIX
        doc = f"A member of `{self._name}` with a tag that this package does not know; all its properties are kept."
        node = {"type": "string", "description": "The unknown tag."}
        found = Property(wire=tag, node=node, pointer=pointer, required=True, owners=())
        excluded = tuple(variant.tag for variant in variants)
        known = [{"properties": {tag: {"const": value}}, "required": [tag]} for value in excluded]
        exclusion = Exclusion(node={"anyOf": known}, pointer=pointer)
        shape = Shape(properties=(found,), exclusions=(exclusion,), docs=(doc,), required=frozenset({tag}))
        self._objects.object(name, self._around + shape, pointer, keeps_extra=True)
        return OtherVariant(target=name, excluded=excluded, doc=doc)

    def _candidate(self, reading: _Reading, label: Label) -> Candidate:
        suffix = label(reading.member)
        target = self._itself(reading) or self._member(reading, self._name + suffix if suffix else "")
        required = _required(self._around + reading.shape)
        return Candidate(type=Ref(target), required=required, doc=description(reading.member.node))

    def _itself(self, reading: _Reading) -> str | None:
        """The class of the definition that the member refers to, if the member adds nothing."""
        pure = _pure_reference(reading.member.node)
        if pure is None or self._around.properties or self._around.branches or self._keeps_extra:
            return None
        return self._context.class_name(pure)

    def _member(self, reading: _Reading, name: str) -> str:
        shape = self._around + reading.shape
        self._objects.object(name, shape, reading.member.pointer, keeps_extra=self._keeps_extra)
        return name


def _tag(readings: list[_Reading]) -> str | None:
    """The property that is a constant in most members, different in each; the first one on a tie."""
    uses = Counter(wire for reading in readings for wire in reading.constants)
    for wire, _ in uses.most_common():
        values = [reading.constants[wire] for reading in readings if wire in reading.constants]
        if len(set(values)) == len(values):
            return wire
    return None


def _string_constant(found: Property) -> str | None:
    if not isinstance(found.node, dict):
        return None
    if isinstance(found.node.get("const"), str):
        return str(found.node["const"])
    match found.node.get("enum"):
        case [str(only)]:
            return only
    return None


def _pure_reference(node: Any) -> str | None:
    """The definition that a member refers to without adding anything."""
    if not isinstance(node, dict) or node.keys() - {"title", "description", "$ref", "allOf"}:
        return None
    match node.get("allOf", []):
        case []:
            return referenced_definition(node)
        case [single] if "$ref" not in node:
            return referenced_definition(single)
    return None


def _required(shape: Shape) -> tuple[str, ...]:
    """The required names: declared ones in the order of the schema, then the rest."""
    declared = [found.wire for found in shape.properties if found.required]
    return tuple(dict.fromkeys([*declared, *sorted(shape.required)]))


def _first(docs: tuple[str, ...]) -> str:
    return docs[0] if docs else ""
