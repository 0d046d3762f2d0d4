"""Lower a composed schema to the IR: definitions here, their unions in `unions`, methods in `methods`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from acpgen.diagnostics import Report
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.conditions import And, Condition, condition
from acpgen.ir.context import Context
from acpgen.ir.defaults import fill_defaults
from acpgen.ir.expressions import Expressions
from acpgen.ir.jsonrpc import lower_envelope, lower_errors
from acpgen.ir.methods import lower_methods, only_sent
from acpgen.ir.objects import Definitions, Property, Shape
from acpgen.ir.order import find_recursive, in_reading_order, references
from acpgen.ir.relations import Coverage
from acpgen.ir.unions import lower_objects, lower_values
from acpgen.ir.validate import check_model, check_vendor_methods
from acpgen.roles import Side
from acpgen.schema.compose import Composed
from acpgen.schema.facts import NegotiationFacts
from acpgen.schema.value_gates import read_gated_part, tag_property
from acpgen.schema.walk import definition_pointer, description


def lower(composed: Composed, options: ir.Options, report: Report) -> ir.Model:
    """The IR of `composed`, which must have passed `check_dialect`.

    Diagnostics go into `report`. Raises `InputError` if there is an error among them.
    """
    context = Context(
        definitions=Definitions(composed.root["$defs"]),
        report=report,
        origin=composed.origin,
        options=options,
        nulls=None if options.keep_unknown else composed.facts.nulls,
        is_added=composed.is_added,
    )
    if options.open:
        context.closed = only_sent(context.definitions, options.receivers)
    lowering = _Lowering(context)
    for name in context.definitions.nodes:
        if name not in context.definitions.envelopes and name not in context.definitions.absorbed:
            lowering.definition(name)
    report.raise_errors()
    definitions = fill_defaults(context)
    report.raise_errors()
    methods = lower_methods(context, composed)
    model = ir.Model(
        protocol=composed.protocol,
        release=composed.release,
        origin=composed.base.origin,
        extensions=tuple(fragment.document.origin for fragment in composed.fragments),
        definitions=in_reading_order(definitions, _in_conversation(methods, composed.facts.negotiation)),
        recursive=find_recursive(definitions),
        methods=methods,
        gated_values=tuple(_gated_values(context, composed, definitions)),
        errors=lower_errors(context),
        envelope=lower_envelope(context, composed.root, methods),
        negotiation=composed.facts.negotiation,
        sessions=composed.facts.sessions,
    )
    check_model(model, report)
    check_vendor_methods(methods, composed, report)
    report.raise_errors()
    return model


def _in_conversation(methods: Iterable[ir.Method], negotiation: NegotiationFacts | None) -> Iterator[str]:
    """What messages carry: of the method that begins, then of what the client calls, what the agent calls, the rest."""
    begins = negotiation.method if negotiation else None
    order: dict[tuple[Side, ...], int] = {(side,): at for at, side in enumerate(Side)}

    def place(method: ir.Method) -> tuple[bool, int]:
        return method.wire != begins, order.get(method.handlers, len(order))

    for method in sorted(methods, key=place):
        for carried in (method.params, method.result):
            if carried is not None:
                yield from references(carried)


def _gated_values(
    context: Context, composed: Composed, definitions: Mapping[str, ir.Definition]
) -> Iterator[ir.GatedValue]:
    """The values that need a capability. One in a definition that no type comes from is reported."""
    for text, gate in sorted(composed.facts.values.items()):
        part = read_gated_part(text)
        name = context.class_name(part.definition)
        if name in definitions:
            key = tag_property(part, context.definitions.nodes)
            yield ir.GatedValue(definition=name, properties=part.properties, key=key, value=part.value, gate=gate)
        else:
            message = f"the gate of the value {text!r} has no effect: the package has no type for {part.definition}"
            hint = "name a definition that uses it"
            context.report.warning("gate-value", message, at=gate.pointer, hint=hint)


class _Lowering:
    """Lower schema nodes to definitions, and register these with the context."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._expressions = Expressions(context, self._named)
        self._coverage = Coverage({})  # definitions are not lowered yet

    def definition(self, schema_name: str) -> None:
        """Lower the definition `schema_name` of the schema."""
        name = self._context.class_name(schema_name)
        if name:
            node = self._context.definitions.nodes[schema_name]
            self._named(node, definition_pointer(schema_name), name, (schema_name,))

    def _named(self, node: Any, pointer: str, name: str, owners: tuple[str, ...] = ()) -> None:
        """Lower `node` as the definition with the Python name `name`."""
        if not name:
            self._unnamed(pointer)
        elif self._context.definitions.is_class(node):
            self._object(name, self._context.definitions.shape(node, pointer, owners), pointer)
        else:
            self._context.define(self._scalar_like(node, pointer, name))

    def _scalar_like(self, node: Any, pointer: str, name: str) -> ir.Definition:
        doc = description(node)
        for key in ("oneOf", "anyOf"):
            if isinstance(node, dict) and key in node:
                if (inline := self._expressions.inline_enum_of(node[key])) is not None:
                    return self._enum(name, inline, node[key], doc=doc, pointer=pointer)
                return lower_values(self._context, name, node, pointer=pointer, read=self._expressions.read)
        if isinstance(node, dict) and "enum" in node:
            listed = self._expressions.enumeration(node, pointer)
            if isinstance(listed, ir.InlineEnum) and None not in node["enum"]:
                return self._enum(name, listed, [], doc=doc, pointer=pointer)
        expression = self._expressions.read(node, pointer, name + "Value")
        return ir.Alias(name=name, type=expression, doc=doc, pointer=pointer, origin=self._context.origin(pointer))

    def _enum(self, name: str, inline: ir.InlineEnum, nodes: list[Any], *, doc: str, pointer: str) -> ir.Enum:
        described = {node["const"]: node for node in nodes if "const" in node}
        nodes = [described.get(value, {}) for value in inline.values]
        is_opened = not inline.open and self._context.opens(pointer)
        return ir.Enum(
            name=name,
            primitive=inline.primitive,
            members=tuple(
                ir.EnumMember(value=value, title=node.get("title"), doc=description(node))
                for value, node in zip(inline.values, nodes, strict=True)
            ),
            open=inline.open or is_opened,
            opened=is_opened,
            doc=doc,
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def _object(self, name: str, shape: Shape, pointer: str) -> None:
        """Lower an object shape to a class, or to a union of classes if it has branches."""
        if not name:
            self._unnamed(pointer)
        elif shape.branches:
            union = lower_objects(self._context, name, shape, pointer=pointer, define=self._object)
            self._context.define(union)
        else:
            self._context.define(self._struct(name, shape, pointer))

    def _unnamed(self, pointer: str) -> None:
        self._context.report.error(
            "unnamed-member",
            "this union member has no tag, title, `$ref` or required property to name it after",
            at=pointer,
            hint="give it a `title`",
        )

    def _struct(self, name: str, shape: Shape, pointer: str) -> ir.Struct:
        own = [known for known in shape.owners if self._context.class_name(known) != name]
        self._check_owners(own, pointer)
        base = self._context.definitions.base_of(tuple(own))
        keeps = shape.open or self._context.options.keep_unknown
        fields = self._fields(name, shape, base)
        if keeps:
            self._check_extra(fields)
        for missing in sorted(shape.required - {field.wire for field in fields}):
            self._context.report.warning(
                "undeclared-required",
                f"{missing!r} is required, but no property declares it; it is not checked",
                at=pointer,
            )
        return ir.Struct(
            name=name,
            fields=fields,
            base=self._context.class_name(base) if base else None,
            keeps_extra=keeps,
            rejects=self._rejects(shape),
            doc="\n\n".join(shape.docs),
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def _check_owners(self, owners: list[str], pointer: str) -> None:
        for name in owners:
            node = self._context.definitions.nodes[name]
            if {"const", "enum"} & node.keys() or "object" not in node.get("type", "object"):
                message = f"this object also has to be {name}, which is not an object"
                self._context.report.error("no-object", message, at=pointer, hint="refer to it in a property")

    def _rejects(self, shape: Shape) -> Condition | None:
        found = [condition(item.node, item.pointer, self._context.report) for item in shape.exclusions]
        parts = tuple(part for part in found if part is not None)
        return parts[0] if len(parts) == 1 else And(parts) if parts else None

    def _fields(self, owner: str, shape: Shape, base: str | None) -> tuple[ir.Field, ...]:
        fields: dict[str, ir.Field] = {}
        ordered = sorted(shape.properties, key=lambda found: base is None or base not in found.owners)
        for found in ordered:
            inherited = base is not None and base in found.owners
            field = self._field(owner, found, inherited=inherited)
            if field is not None:
                fields[field.name] = self._merged(fields[field.name], field) if field.name in fields else field
        return tuple(fields.values())

    def _merged(self, known: ir.Field, field: ir.Field) -> ir.Field:
        """Merge a property that two layers declare: the narrower type, and required if either is."""
        if known.wire != field.wire:
            message = f"the properties {known.wire!r} and {field.wire!r} of one object map to one name, {field.name}"
            self._context.report.error("name-clash", message, at=field.pointer)
            return known
        if self._coverage.covers(field.type, known.type):
            narrow = known
        elif self._coverage.covers(known.type, field.type):
            narrow = field
        else:
            message = f"the property {field.wire!r} is declared twice in one object, and neither type is narrower"
            self._context.report.error("property-clash", message, at=field.pointer, hint=f"see {known.pointer}")
            return known
        required = known.required or field.required
        return replace(
            narrow,
            required=required,
            # a required property tells union members apart: it is strict, even if a layer is lenient
            leniency=ir.Leniency() if required else known.leniency | field.leniency,
            doc=field.doc or known.doc,
            inherited=known.inherited,
            omits_null=known.omits_null or field.omits_null,
        )

    def _field(self, owner: str, found: Property, *, inherited: bool) -> ir.Field | None:
        name = names.field_name(found.wire)
        if not name:
            self._context.refuse_name(f"the property {found.wire!r}", found.pointer)
            return None
        home = self._context.class_name(found.owners[-1]) if found.owners else owner
        inline_name = home + names.pascal(found.wire)
        if isinstance(found.node, dict) and "default" in found.node:
            self._context.raw_defaults[owner, name] = found.node["default"]
        node = found.node if isinstance(found.node, dict) else {}
        return ir.Field(
            wire=found.wire,
            name=name,
            type=self._expressions.read(found.node, found.pointer, inline_name),
            required=found.required,
            default=None,
            leniency=ir.Leniency.of(node),
            doc=description(node),
            pointer=found.pointer,
            origin=self._context.origin(found.pointer),
            inherited=inherited,
            omits_null=self._omits_null(found),
        )

    def _omits_null(self, found: Property) -> bool:
        """True for an optional property of which null says no more than leaving it out."""
        nulls, owner = self._context.nulls, found.owners[-1] if found.owners else ""
        if nulls is None or found.required or self._context.is_added(found.pointer):
            return False
        return nulls.isdisjoint((owner, f"{owner}/{found.wire}"))

    def _check_extra(self, fields: tuple[ir.Field, ...]) -> None:
        for field in fields:
            if field.name == ir.EXTRA_FIELD:
                self._context.report.error(
                    "name-clash",
                    f"the property {field.wire!r} maps to `{ir.EXTRA_FIELD}`, which holds unknown properties",
                    at=field.pointer,
                )
