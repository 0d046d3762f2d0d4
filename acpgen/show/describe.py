"""Descriptions of types and methods, from the composed schema and the model. They are the data of the JSON form."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from acpgen.diagnostics import Location, input_error
from acpgen.emit.signatures import Signature, Signatures
from acpgen.emit.source import field_hint, hint, literal, value
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.leniency import fallback, replaces_misfits, skips_misfits
from acpgen.ir.objects import Definitions
from acpgen.ir.order import references
from acpgen.ir.relations import Coverage
from acpgen.ir.usage import NO_USES, TypeUsage, Uses
from acpgen.schema.compose import Composed
from acpgen.schema.document import join, resolve
from acpgen.schema.gates import Gate
from acpgen.schema.walk import definition_pointer, description, find_property, methods_of, schema_list, schema_map
from acpgen.show.capabilities import by_type, needed_by
from acpgen.show.example_values import Example, example_of
from acpgen.show.occurrences import Occurrence, ValueEntry, find_value, known_values
from acpgen.text import cut, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The base or extension that brought something, and the place in its file.

    `extension` is the user's name for an extension, and `status` its status: "draft", "landed", "withdrawn", or
    "vendor" for a private one. `place` is None for something without a place of its own.
    """

    name: str
    extension: str | None
    status: str | None
    place: Location | None
    pointer: str


@dataclass(frozen=True, slots=True)
class GateEntry:
    """The capability that a method or value needs; `origin` is None if the base has it."""

    text: str
    origin: Origin | None


@dataclass(frozen=True, slots=True)
class GatedEntry:
    """A value that needs a capability. `source` is where the text of its schema or extension says so."""

    value: str
    needs: GateEntry
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEntry:
    """An attribute. `default` is source code, or None if required.

    `opens` are the methods, and `allows` the values, that need it. `required` is about the wire: a constant has a
    default in Python, but its key must be there. `on_error` and `on_null` are what readers use for a value that does
    not fit and for null, if they are lenient; source code, too. `skips_items` says that they leave out items that do
    not fit.
    """

    name: str
    wire: str
    hint: str
    default: str | None
    required: bool
    nullable: bool
    on_error: str | None
    on_null: str | None
    skips_items: bool
    inherited_from: str | None
    doc: str
    origin: Origin
    opens: tuple[str, ...]
    allows: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEntry:
    """A member of a union, with its tag if it has one."""

    hint: str
    tag: str | None
    doc: str


@dataclass(frozen=True, slots=True)
class SchemaEntry:
    """A part of the composed schema."""

    pointer: str
    schema: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeEntry:
    """A type, or a definition without one (`signature` is None).

    `extended_by` are the extensions that change it. `gates` are the capabilities of the methods that carry it, if all
    of these need one. `gated_values` are the parts of it that need one, and the tags that select it and need one.
    """

    name: str
    kind: str
    signature: Signature | None = None
    doc: str
    fields: tuple[FieldEntry, ...] = ()
    members: tuple[MemberEntry, ...] = ()
    tag: str | None = None
    values: tuple[ir.EnumMember, ...] = ()
    schema: SchemaEntry
    origin: Origin
    extended_by: tuple[Origin, ...]
    gates: tuple[str, ...] = ()
    gated_values: tuple[GatedEntry, ...] = ()
    uses: Uses = NO_USES
    note: str | None
    example: Example | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEntry:
    """A method. `handlers` and `callers` are sides, `params` and `result` type hints."""

    wire: str
    name: str
    kind: str
    handlers: tuple[str, ...]
    callers: tuple[str, ...]
    params: str
    result: str | None
    signatures: tuple[Signature, ...]
    doc: str
    schema: tuple[SchemaEntry, ...]
    origin: Origin
    gate: GateEntry | None


Description: TypeAlias = TypeEntry | MethodEntry | ValueEntry


class Describer:
    """Describes names of one model, and computes what they share once."""

    def __init__(self, composed: Composed, model: ir.Model, signatures: Signatures) -> None:
        self._composed = composed
        self._model = model
        self._signatures = signatures
        self._usage = TypeUsage(model)
        self._coverage = Coverage(model.by_name)
        self._definitions = schema_map(composed.root, "$defs")
        gated = ((each.wire, each.gate) for each in model.methods if each.gate is not None)
        self._opened = needed_by(gated, model)
        self._allowed = needed_by(((str(each), each.gate) for each in model.gated_values), model)
        self._gated = by_type(model)

    def describe(self, name: str) -> list[Description]:
        """All meanings of `name`: a type by its Python or schema name, methods by wire name or handler, and values.

        Raises `InputError` with the nearest name if there are none.
        """
        python_name = names.class_name(name) if name in self._definitions else name
        is_named = python_name in self._model.by_name or name in self._definitions
        found: list[Description] = [self._named(name)] if is_named else []
        found += [self._method(method) for method in self._model.methods if name in (method.wire, method.name)]
        found += self._unhandled(name)
        if (value_entry := find_value(name, self._model, self._usage, partial(self._origin_of, name))) is not None:
            found.append(value_entry)
        if not found:
            methods = (each for method in self._model.methods for each in (method.wire, method.name))
            known = {*self._model.by_name, *self._definitions, *dict(self._unrouted).values()}
            near = did_you_mean(name, {*known, *methods, *known_values(self._model)})
            message, listing = f"{cut(name)!r} is no type, method or value here", "`acpgen methods` lists the methods"
            raise input_error("unknown-name", message, hint=near or listing)
        return found

    def types(self) -> Iterator[TypeEntry]:
        """All types and all definitions without one, by name."""
        untyped = {name for name in self._definitions if names.class_name(name) not in self._model.by_name}
        for name in sorted({*self._model.by_name, *untyped}, key=lambda each: (each.lower(), each)):
            yield self._untyped(name) if name in untyped else self._type(self._model.by_name[name])

    def methods(self) -> Iterator[MethodEntry]:
        """All methods, in the order of the model."""
        return map(self._method, self._model.methods)

    # --- Types ------------------------------------------------------------------------------------------------------

    def _named(self, name: str) -> TypeEntry:
        """A type, or a definition without one, by its Python or schema name."""
        python_name = names.class_name(name) if name in self._definitions else name
        definition = self._model.by_name.get(python_name)
        return self._untyped(name) if definition is None else self._type(definition)

    def _unhandled(self, wire: str) -> Iterator[TypeEntry]:
        """The definitions of a method that no class of the package handles, such as one between proxies."""
        for name, method in self._unrouted:
            if method == wire:
                side = self._definitions[name].get("x-side")
                note = f"It belongs to {wire}, a method for the side {side!r}: no class has a handler for it."
                yield replace(self._named(name), note=note)

    @cached_property
    def _unrouted(self) -> list[tuple[str, str]]:
        """The definitions of methods that the model does not have, each with the method."""
        known = {method.wire for method in self._model.methods}
        return [(name, method) for name, method in methods_of(self._definitions) if method not in known]

    @cached_property
    def _classes_of_schema(self) -> Set[str]:
        """The classes that the definitions of the schema are named for."""
        return {names.class_name(name) for name in self._definitions}

    def _type(self, definition: ir.Definition) -> TypeEntry:
        uses = self._usage.of(definition.name)
        note = "The schema has no definition of this name: acpgen named a part of one."
        return TypeEntry(
            name=definition.name,
            kind=_kind(definition),
            signature=self._signatures.of_type(definition),
            doc=definition.doc,
            fields=tuple(self._fields(definition)),
            members=tuple(_members(definition)),
            tag=definition.tag if isinstance(definition, ir.TaggedUnion) else None,
            values=definition.members if isinstance(definition, ir.Enum) else (),
            schema=self._schema(definition.pointer),
            origin=self._origin(definition.pointer),
            extended_by=tuple(self._extended_by(definition.pointer)),
            gates=_gates(uses),
            gated_values=tuple(
                GatedEntry(str(each), self._gate(each.gate), each.gate.source)
                for each in self._gated.get(definition.name, ())
            ),
            uses=uses,
            note=None if definition.name in self._classes_of_schema else note,
            example=example_of(definition, self._model),
        )

    def _untyped(self, name: str) -> TypeEntry:
        schema = self._schema(definition_pointer(name))
        return TypeEntry(
            name=name,
            kind="definition",
            doc=description(schema.schema),
            schema=schema,
            origin=self._origin(schema.pointer),
            extended_by=tuple(self._extended_by(schema.pointer)),
            note=f"The package has no type for it: {self._why_untyped(name)}.",
        )

    def _why_untyped(self, name: str) -> str:
        if name in Definitions(self._definitions).envelopes:
            return "it is an envelope of JSON-RPC"
        start = definition_pointer(name) + "/"
        structs = [each for each in self._model.definitions if isinstance(each, ir.Struct)]
        heirs = [each.name for each in structs if any(field.pointer.startswith(start) for field in each.fields)]
        if heirs:
            return f"its properties are those of {', '.join(heirs)}"
        return "it adds nothing to the types that refer to it"

    def _fields(self, definition: ir.Definition) -> Iterator[FieldEntry]:
        if not isinstance(definition, ir.Struct):
            return
        for field in definition.fields:
            yield FieldEntry(
                name=field.name,
                wire=field.wire,
                hint=field_hint(field),
                default=_default(field),
                required=field.required,
                nullable=self._coverage.covers(field.type, ir.Scalar(primitive=ir.Primitive.NULL)),
                on_error=_replacement(field, self._model) if replaces_misfits(field, self._model) else None,
                on_null=_replacement(field, self._model) if field.leniency.default_on_null else None,
                skips_items=skips_misfits(field, self._model),
                inherited_from=definition.base if field.inherited else None,
                doc=field.doc,
                origin=self._origin(field.pointer),
                opens=tuple(self._opened.get((definition.name, field.name), ())),
                allows=tuple(self._allowed.get((definition.name, field.name), ())),
            )

    def _gate(self, gate: Gate) -> GateEntry:
        return GateEntry(str(gate), self._origin(gate.pointer) if gate.pointer else None)

    # --- Methods ----------------------------------------------------------------------------------------------------

    def _method(self, method: ir.Method) -> MethodEntry:
        gate = method.gate
        parts = [*references(method.params), *(references(method.result) if method.result is not None else ())]
        return MethodEntry(
            wire=method.wire,
            name=method.name,
            kind=method.kind.value,
            handlers=tuple(side.value for side in method.handlers),
            callers=tuple(side.peer.value for side in method.handlers),
            params=hint(method.params),
            result=hint(method.result) if method.result is not None else None,
            signatures=tuple(self._signatures.of_method(method)),
            doc=method.doc,
            schema=tuple(self._schema(self._model.by_name[name].pointer) for name in dict.fromkeys(parts)),
            origin=self._origin(method.pointer),
            gate=None if gate is None else self._gate(gate),
        )

    # --- Places -----------------------------------------------------------------------------------------------------

    def _schema(self, pointer: str) -> SchemaEntry:
        return SchemaEntry(pointer, resolve(self._composed.root, pointer))

    def _origin(self, pointer: str) -> Origin:
        name = self._composed.origin(pointer)
        place, original = self._composed.locate(pointer)
        fragment = next((each for each in self._composed.fragments if each.origin == name), None)
        spec, status = (fragment.spec, fragment.status) if fragment is not None else (None, None)
        return Origin(name=name, extension=spec, status=status, place=place, pointer=original)

    def _origin_of(self, value: str, place: Occurrence) -> str:
        """The origin of the member of a union, or the value of an enumeration, that a value stands for."""
        owner = self._model.by_name.get(place.owner)
        if owner is None:
            return self._model.origin
        node = resolve(self._composed.root, owner.pointer)
        for keyword in ("oneOf", "anyOf", "enum"):
            for index, member in enumerate(schema_list(node, keyword)):
                pointer = join(owner.pointer, keyword, index)
                if str(self._constant(member, pointer, place.key)) == value:
                    return self._composed.origin(pointer)
        return self._composed.origin(owner.pointer)

    def _constant(self, member: Any, pointer: str, key: str | None) -> Any:
        """The constant that a member of a union has, itself or as its property `key`."""
        if key is not None:
            found = find_property(member, pointer, key, self._definitions)
            pointer, member = found if found is not None else (pointer, None)
        return member.get("const") if isinstance(member, dict) else member

    def _extended_by(self, pointer: str) -> Iterator[Origin]:
        """The parts below `pointer` that an extension brought, without the parts of such parts."""
        own = {self._composed.origin(pointer), self._composed.base.origin}
        outer = ""
        for inner, (document, _) in sorted(self._composed.origins.sources.items()):
            is_part = inner.startswith(pointer + "/") and not (outer and inner.startswith(outer + "/"))
            if is_part and document.origin not in own:
                outer = inner
                yield self._origin(inner)


_KINDS = {ir.Struct: "class", ir.TaggedUnion: "tagged union", ir.UntaggedUnion: "union", ir.Alias: "alias"}


def _kind(definition: ir.Definition) -> str:
    if isinstance(definition, ir.Enum):
        return "open enum" if definition.open else "closed enum"
    return _KINDS[type(definition)]


def _default(field: ir.Field) -> str | None:
    """The default of the attribute as source code; None if it is required."""
    if isinstance(field.type, ir.Const) and field.required:
        return literal(field.type.value)
    if field.required:
        return None
    return "UNSET" if field.default is None else value(field.default)


def _replacement(field: ir.Field, model: ir.Model) -> str | None:
    """What a lenient reader uses for a value of the property, as source code; None if it refuses the value."""
    replacement = fallback(field, model)
    if replacement is None:
        return None if field.required else "UNSET"
    return value(replacement)


def _members(definition: ir.Definition) -> Iterator[MemberEntry]:
    match definition:
        case ir.TaggedUnion(variants=variants, fallbacks=fallbacks):
            yield from (MemberEntry(hint=each.target, tag=each.tag, doc=each.doc) for each in variants)
        case ir.UntaggedUnion(members=fallbacks):
            pass
        case _:
            return
    yield from (MemberEntry(hint=hint(each.type), tag=None, doc=each.doc) for each in fallbacks)


def _gates(uses: Uses) -> tuple[str, ...]:
    """The capabilities of the methods that carry a type; none if one of these needs no capability."""
    gates = [carrier.gate for carrier in uses.messages]
    return tuple(dict.fromkeys(gate for gate in gates if gate is not None)) if None not in gates else ()
