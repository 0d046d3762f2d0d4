"""Lower unions: members with a tag, the member for other tags, and members that are tried in turn.

A union of objects is distributed until every class is concrete: the properties around the union, those of the member
and those of its payload end up in one class, named after the union and the tag (or title) of the member.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.conditions import condition, excluded_values
from acpgen.ir.context import Context
from acpgen.ir.objects import Definitions, Property, Shape, Subschema
from acpgen.schema.document import join
from acpgen.schema.walk import description, referenced_definition

OTHER_SUFFIX = "Other"

ReadType = Callable[[Any, str, str], ir.TypeExpr]
"""Lower (node, pointer) to a type; the last argument is the name for an inline object or union."""
DefineObject = Callable[[str, Shape, str], None]
"""Lower (name, shape, pointer) to a class, or to a union of classes."""


def lower_values(
    context: Context, name: str, node: dict[str, Any], *, pointer: str, read: ReadType
) -> ir.UntaggedUnion:
    """The union `name` of the members of `node`, not all of them objects."""
    key = "oneOf" if "oneOf" in node else "anyOf"
    members = [each for index, member in enumerate(node[key]) for each in _by_type(member, join(pointer, key, index))]
    nulls = [member for member in members if context.definitions.is_null(member.node)]
    return ir.UntaggedUnion(
        name=name,
        members=tuple(
            ir.Candidate(
                type=read(member.node, member.pointer, _inline_name(name, member, context.definitions)),
                required=_required(context.definitions.shape(member.node, member.pointer)),
                doc=description(member.node),
            )
            for member in members
            if member not in nulls[1:]  # redundant, and `None | None` is an error at import
        ),
        doc=description(node),
        pointer=pointer,
        origin=context.origin(pointer),
    )


def _by_type(node: Any, pointer: str) -> Iterator[Subschema]:
    """A member; one of several types that has no title, and so no name of its own, as a member for each."""
    kinds = node.get("type") if isinstance(node, dict) and not {"title", "$ref"} & node.keys() else None
    if isinstance(kinds, list) and len(set(kinds) - {"null"}) > 1:
        yield from (Subschema({**node, "type": kind}, pointer) for kind in kinds)
    else:
        yield Subschema(node, pointer)


def lower_objects(context: Context, name: str, shape: Shape, *, pointer: str, define: DefineObject) -> ir.Definition:
    """The union `name` of the first branch of `shape`. Its members are lowered by `define`."""
    branch, *rest = shape.branches
    around = replace(shape, branches=tuple(rest), docs=())
    union = _ObjectUnion(context=context, define=define, name=name, pointer=pointer, around=around)
    readings = [_read(member, context.definitions) for member in branch]
    tag, doc = _tag(readings), shape.docs[0] if shape.docs else ""
    with context.inside_unions([len(each) for each in shape.branches], pointer):
        return union.untagged(readings, doc) if tag is None else union.tagged(readings, tag, doc)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A member with its shape and the string constants among its required properties."""

    member: Subschema
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


def _read(member: Subschema, definitions: Definitions) -> _Reading:
    shape = definitions.shape(member.node, member.pointer)
    constants = {
        found.wire: constant
        for found in shape.properties
        if found.required and (constant := _string_constant(found)) is not None
    }
    return _Reading(member=member, shape=shape, constants=constants)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObjectUnion:
    """A union of objects whose members are inside the shape `around`."""

    context: Context
    define: DefineObject
    name: str
    pointer: str
    around: Shape

    def untagged(self, readings: list[_Reading], doc: str) -> ir.UntaggedUnion:
        """The union without a tag."""
        return ir.UntaggedUnion(
            name=self.name,
            members=tuple(map(self._candidate, readings)),
            doc=doc,
            pointer=self.pointer,
            origin=self.context.origin(self.pointer),
        )

    def tagged(self, readings: list[_Reading], tag: str, doc: str) -> ir.TaggedUnion:
        """The union whose members are told apart by the property `tag`."""
        rest = [reading for reading in readings if tag not in reading.constants]
        other = next((reading for reading in rest if reading.is_free_string(tag)), None)
        variants = tuple(self._variant(each, each.constants[tag]) for each in readings if tag in each.constants)
        name = self._name_of_other((each for each in readings if each is not other), tag)
        fallbacks = [self._other(each, tag, name) if each is other else self._candidate(each) for each in rest]
        if other is None and self.context.opens(self.pointer):
            fallbacks.append(self._opened(tag, variants, name))
        return ir.TaggedUnion(
            name=self.name,
            tag=tag,
            variants=variants,
            fallbacks=tuple(fallbacks),
            doc=doc,
            pointer=self.pointer,
            origin=self.context.origin(self.pointer),
        )

    def _variant(self, reading: _Reading, value: str) -> ir.Variant:
        label = names.pascal(value)
        if not label:
            self.context.refuse_name(f"the tag {value!r}", reading.member.pointer)
        return ir.Variant(
            tag=value, target=self._target(reading, self.name + label), doc=description(reading.member.node)
        )

    def _candidate(self, reading: _Reading) -> ir.Candidate:
        target = self._target(reading, _inline_name(self.name, reading.member, self.context.definitions))
        required = _required(self.around + reading.shape)
        return ir.Candidate(type=ir.Ref(target), required=required, doc=description(reading.member.node))

    def _target(self, reading: _Reading, name: str) -> str:
        """The class of the member: that of the definition it refers to if it adds nothing, else one called `name`."""
        pure = _pure_reference(reading.member.node)
        if pure is not None and not (self.around.properties or self.around.branches or self.around.open):
            return self.context.class_name(pure)
        self.define(name, self.around + reading.shape, reading.member.pointer)
        return name

    def _name_of_other(self, readings: Iterable[_Reading], tag: str) -> str:
        """The name of the member for other tags; another of `readings`, or a definition, keeps its own."""
        definitions = self.context.definitions
        members = {
            (
                self.name + names.pascal(each.constants[tag])
                if tag in each.constants
                else _inline_name(self.name, each.member, definitions)
            )
            for each in readings
        }
        name, taken = self.name + OTHER_SUFFIX, members | definitions.class_names
        while name in taken:
            name += OTHER_SUFFIX
        return name

    def _other(self, reading: _Reading, tag: str, name: str) -> ir.OtherVariant:
        """The member for other tags that the schema has."""
        excluded: list[str] = []
        for exclusion in reading.shape.exclusions:
            found = condition(exclusion.node, exclusion.pointer, self.context.report)
            excluded += excluded_values(found, tag) or ()
        self._define_other(name, reading.shape, reading.member.pointer)
        return ir.OtherVariant(target=name, excluded=tuple(excluded), doc=description(reading.member.node))

    def _opened(self, tag: str, variants: tuple[ir.Variant, ...], name: str) -> ir.OtherVariant:
        """The member for other tags that the option `open` adds."""
        doc = f"A member of `{self.name}` with a tag that this package does not know; all its properties are kept."
        node = {"type": "string", "description": "The unknown tag."}
        found = Property(wire=tag, node=node, pointer=self.pointer, required=True, owners=())
        excluded = tuple(variant.tag for variant in variants)
        known = [{"properties": {tag: {"const": value}}, "required": [tag]} for value in excluded]
        exclusion = Subschema({"anyOf": known}, self.pointer)
        shape = Shape(properties=(found,), exclusions=(exclusion,), docs=(doc,), required=frozenset({tag}))
        self._define_other(name, shape, self.pointer)
        return ir.OtherVariant(target=name, excluded=excluded, doc=doc, opened=True)

    def _define_other(self, name: str, shape: Shape, pointer: str) -> None:
        self.define(name, replace(self.around + shape, open=True), pointer)


def _tag(readings: list[_Reading]) -> str | None:
    """The property that is a constant in most members, different in each; the first one on a tie."""
    uses = Counter(wire for reading in readings for wire in reading.constants)
    for wire, _ in uses.most_common():
        values = [reading.constants[wire] for reading in readings if wire in reading.constants]
        if len(set(values)) == len(values):
            return wire
    return None


def _string_constant(found: Property) -> str | None:
    match found.node:
        case {"const": str(only)} | {"enum": [str(only)]}:
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


def _inline_name(union: str, member: Subschema, definitions: Definitions) -> str:
    """The name for a member without a tag, from its title, definition or required properties; empty if it has none."""
    node = member.node if isinstance(member.node, dict) else {}
    shape = definitions.shape(node, member.pointer)
    candidates = [node.get("title", ""), *shape.owners, "with " + " ".join(_required(shape))]
    if isinstance(node.get("type"), str) and node["type"] != "object":
        candidates.append(node["type"])
    return next((union + label for text in candidates if (label := names.pascal(text)) not in ("", "With")), "")


def _required(shape: Shape) -> tuple[str, ...]:
    """The required names: declared ones in the order of the schema, then the rest."""
    declared = [found.wire for found in shape.properties if found.required]
    return tuple(dict.fromkeys([*declared, *sorted(shape.required)]))
