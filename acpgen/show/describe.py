"""Describe a type or method of a model, from the composed schema and the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from acpgen.diagnostics import input_error
from acpgen.emit.signatures import Signatures
from acpgen.emit.source import field_hint, hint, literal, value
from acpgen.ir import names
from acpgen.ir.model import (
    Alias,
    Candidate,
    Const,
    Definition,
    Enum,
    Field,
    Method,
    Model,
    Nullable,
    Ref,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.objects import Definitions
from acpgen.ir.order import references
from acpgen.ir.relations import resolved
from acpgen.ir.usage import TypeUsage, Uses
from acpgen.schema.compose import Composed
from acpgen.schema.document import resolve
from acpgen.schema.gates import Gate
from acpgen.schema.walk import definition_pointer, schema_map
from acpgen.show.description import (
    Description,
    FieldEntry,
    GateEntry,
    MemberEntry,
    MethodEntry,
    Origin,
    SchemaEntry,
    TypeEntry,
)
from acpgen.text import cut, did_you_mean


@dataclass(frozen=True, slots=True)
class Untyped:
    """A definition of the schema for which the package has no type."""

    name: str


Subject: TypeAlias = Definition | Method | Untyped


def find(name: str, composed: Composed, model: Model) -> list[Subject]:
    """All meanings of `name`: a type by its Python or schema name, and methods by wire name or handler.

    Raises `InputError` with the nearest name if there are none.
    """
    found: list[Subject] = []
    definitions = schema_map(composed.root, "$defs")
    python_name = names.class_name(name) if name in definitions else name
    if python_name in model.by_name:
        found.append(model.by_name[python_name])
    elif name in definitions:
        found.append(Untyped(name))
    found += [method for method in model.methods if name in (method.wire, method.name)]
    if not found:
        methods = (each for method in model.methods for each in (method.wire, method.name))
        hint = did_you_mean(name, {*model.by_name, *definitions, *methods}) or "`acpgen methods` lists the methods"
        raise input_error("unknown-name", f"{cut(name)!r} is no type and no method here", hint=hint)
    return found


class Describer:
    """Describes names of one model, and computes what they share once."""

    def __init__(self, composed: Composed, model: Model, signatures: Signatures) -> None:
        self._composed = composed
        self._model = model
        self._signatures = signatures
        self._usage = TypeUsage(model)
        self._definitions = schema_map(composed.root, "$defs")

    def describe(self, subject: Subject) -> Description:
        """The description of `subject`."""
        match subject:
            case Method():
                return self._method(subject)
            case Untyped(name=name):
                return self._untyped(name)
            case _:
                return self._type(subject)

    # --- Types ------------------------------------------------------------------------------------------------------

    def _type(self, definition: Definition) -> TypeEntry:
        uses = self._usage.of(definition.name)
        note = "The schema has no definition of this name: acpgen named a part of one."
        return TypeEntry(
            name=definition.name,
            kind=_kind(definition),
            signature=self._signatures.of_type(definition),
            doc=definition.doc,
            fields=tuple(self._fields(definition)),
            members=tuple(_members(definition)),
            tag=definition.tag if isinstance(definition, TaggedUnion) else None,
            values=definition.members if isinstance(definition, Enum) else (),
            schema=self._schema(definition.pointer),
            origin=self._origin(definition.pointer),
            extended_by=tuple(self._extended_by(definition.pointer)),
            gates=_gates(uses),
            uses=uses,
            note=None if definition.name in self._defined else note,
        )

    def _untyped(self, name: str) -> TypeEntry:
        schema = self._schema(definition_pointer(name))
        return TypeEntry(
            name=name,
            kind="definition",
            doc=str(schema.node.get("description", "")) if isinstance(schema.node, dict) else "",
            schema=schema,
            origin=self._origin(schema.pointer),
            extended_by=tuple(self._extended_by(schema.pointer)),
            note=f"The package has no type for it: {self._why_untyped(name)}.",
        )

    def _why_untyped(self, name: str) -> str:
        if name in Definitions(self._definitions).envelopes:
            return "it is an envelope of JSON-RPC"
        start = definition_pointer(name) + "/"
        structs = [each for each in self._model.definitions if isinstance(each, Struct)]
        heirs = [each.name for each in structs if any(field.pointer.startswith(start) for field in each.fields)]
        if heirs:
            return f"its properties are those of {', '.join(heirs)}"
        return "it adds nothing to the types that refer to it"

    @cached_property
    def _defined(self) -> frozenset[str]:
        """The Python names of the definitions of the schema."""
        return frozenset(map(names.class_name, self._definitions))

    def _fields(self, definition: Definition) -> Iterator[FieldEntry]:
        if not isinstance(definition, Struct):
            return
        for field in definition.fields:
            yield FieldEntry(
                name=field.name,
                wire=field.wire,
                hint=field_hint(field),
                default=_default(field),
                inherited_from=definition.base if field.inherited else None,
                doc=field.doc,
                origin=self._origin(field.pointer),
                opens=tuple(self._opened.get((definition.name, field.name), ())),
            )

    @cached_property
    def _opened(self) -> Mapping[tuple[str, str], list[str]]:
        """The methods that need an attribute, by its class and name."""
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        gated = [(method.wire, method.gate) for method in self._model.methods if method.gate is not None]
        for wire, gate in gated:
            for path in gate.paths:
                place = self._follow(Ref(names.class_name(gate.root)), path)
                if place is not None and wire not in found[place]:
                    found[place].append(wire)
        return found

    def _follow(self, expression: TypeExpr, path: tuple[str, ...]) -> tuple[str, str] | None:
        """The class and attribute at the end of `path`, starting from a value of the type."""
        place = None
        for wire in path:
            found = resolved(expression, self._model)
            while isinstance(found, Nullable):
                found = resolved(found.inner, self._model)
            definition = self._model.by_name.get(found.name) if isinstance(found, Ref) else None
            fields = definition.fields if isinstance(definition, Struct) else ()
            field = next((each for each in fields if each.wire == wire), None)
            if definition is None or field is None:
                return None
            place, expression = (definition.name, field.name), field.type
        return place

    # --- Methods ----------------------------------------------------------------------------------------------------

    def _method(self, method: Method) -> MethodEntry:
        parts = [*references(method.params), *(references(method.result) if method.result is not None else ())]
        return MethodEntry(
            wire=method.wire,
            name=method.name,
            kind=method.kind.value,
            handlers=tuple(role.value for role in method.handlers),
            callers=tuple(role.peer.value for role in method.handlers),
            params=hint(method.params),
            result=hint(method.result) if method.result is not None else None,
            signatures=tuple(self._signatures.of_method(method)),
            doc=method.doc,
            schema=tuple(self._schema(self._model.by_name[name].pointer) for name in dict.fromkeys(parts)),
            origin=self._origin(method.pointer),
            gate=self._gate(method.gate) if method.gate is not None else None,
        )

    def _gate(self, gate: Gate) -> GateEntry:
        return GateEntry(text=str(gate), origin=self._origin(gate.pointer) if gate.pointer else None)

    # --- Places -----------------------------------------------------------------------------------------------------

    def _schema(self, pointer: str) -> SchemaEntry:
        return SchemaEntry(pointer=pointer, node=resolve(self._composed.root, pointer))

    def _origin(self, pointer: str) -> Origin:
        name = self._composed.origin(pointer)
        place, original = self._composed.locate(pointer)
        specs = {fragment.origin: fragment.spec for fragment in self._composed.fragments}
        return Origin(name=name, extension=specs.get(name), place=place, pointer=original)

    def _extended_by(self, pointer: str) -> Iterator[Origin]:
        """The parts below `pointer` that an extension brought, without the parts of such parts."""
        own = {self._composed.origin(pointer), self._composed.base.origin}
        outer = ""
        for inner, (document, _) in sorted(self._composed.origins.sources.items()):
            is_part = inner.startswith(pointer + "/") and not (outer and inner.startswith(outer + "/"))
            if is_part and document.origin not in own:
                outer = inner
                yield self._origin(inner)


def _kind(definition: Definition) -> str:
    match definition:
        case Struct():
            return "class"
        case TaggedUnion():
            return "tagged union"
        case UntaggedUnion():
            return "union"
        case Enum(open=is_open):
            return "open enum" if is_open else "closed enum"
        case Alias():
            return "alias"


def _default(field: Field) -> str | None:
    """The default of the attribute as source code; None if it is required."""
    if isinstance(field.type, Const) and field.required:
        return literal(field.type.value)
    if field.required:
        return None
    return "UNSET" if field.default is None else value(field.default)


def _members(definition: Definition) -> Iterator[MemberEntry]:
    match definition:
        case TaggedUnion(variants=variants, fallbacks=fallbacks):
            yield from (MemberEntry(hint=each.target, tag=each.tag, doc=each.doc) for each in variants)
        case UntaggedUnion(members=fallbacks):
            pass
        case _:
            return
    for member in fallbacks:
        member_hint = hint(member.type) if isinstance(member, Candidate) else member.target
        yield MemberEntry(hint=member_hint, tag=None, doc=member.doc)


def _gates(uses: Uses) -> tuple[str, ...]:
    """The capabilities of the methods that carry a type; none if one of these needs no capability."""
    gates = [carrier.gate for carrier in uses.messages]
    return tuple(dict.fromkeys(gate for gate in gates if gate is not None)) if None not in gates else ()
