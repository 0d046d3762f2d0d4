"""Put together what is known of a type or method. Pure: from the composed schema and the model to data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TypeAlias

from acpgen.diagnostics import InputError, input_error
from acpgen.emit.fields import Reading
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
    OtherVariant,
    Ref,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.objects import Definitions
from acpgen.ir.order import references
from acpgen.ir.usage import Usage, Uses
from acpgen.schema.compose import Composed
from acpgen.schema.document import resolve
from acpgen.schema.gates import Gate
from acpgen.schema.walk import definition_pointer, schema_map
from acpgen.show.entries import (
    Entry,
    FieldEntry,
    GateEntry,
    MemberEntry,
    MethodEntry,
    Origin,
    SchemaEntry,
    TypeEntry,
    ValueEntry,
)

_LENGTH = 100
"""How much of a name is compared and quoted."""


@dataclass(frozen=True, slots=True)
class Untyped:
    """A definition of the schema that the package has no type for."""

    name: str


Subject: TypeAlias = Definition | Method | Untyped


def find(name: str, composed: Composed, model: Model) -> list[Subject]:
    """Everything that `name` is: a type by either of its names, then methods by wire name or handler.

    Raises `InputError` with the nearest names where it is nothing.
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
        raise _unknown(name, _known(composed, model))
    return found


def _known(composed: Composed, model: Model) -> set[str]:
    methods = {name for method in model.methods for name in (method.wire, method.name)}
    return {*model.by_name, *schema_map(composed.root, "$defs"), *methods}


def _unknown(name: str, known: Iterable[str]) -> InputError:
    folded: dict[str, str] = {}
    for each in sorted(known):
        folded.setdefault(each[:_LENGTH].casefold(), each)
    near = [folded[each] for each in get_close_matches(name[:_LENGTH].casefold(), folded, n=3)]
    hint = f"did you mean {' or '.join(map(_short, near))}?" if near else "`acpgen methods` lists the methods"
    return input_error("unknown-name", f"{_short(name)} is no type and no method here", hint=hint)


def _short(name: str) -> str:
    return repr(name if len(name) <= _LENGTH else name[: _LENGTH - 1] + "…")


class Describer:
    """Describes names of one model; what several names share is worked out once."""

    def __init__(self, composed: Composed, model: Model, signatures: Signatures) -> None:
        self._composed = composed
        self._model = model
        self._signatures = signatures
        self._usage = Usage(model)

    def describe(self, subject: Subject) -> Entry:
        """All that is known of `subject`."""
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
        return TypeEntry(
            name=definition.name,
            kind=_kind(definition),
            signature=self._signatures.of_type(definition),
            doc=definition.doc,
            fields=tuple(self._fields(definition)),
            members=tuple(_members(definition)),
            tag=definition.tag if isinstance(definition, TaggedUnion) else None,
            values=tuple(_values(definition)),
            schema=self._schema(definition.pointer),
            origin=self._origin(definition.pointer),
            extended_by=tuple(self._extended_by(definition.pointer)),
            gates=_gates(uses),
            uses=uses,
            note=self._note(definition),
        )

    def _untyped(self, name: str) -> TypeEntry:
        pointer = definition_pointer(name)
        node = resolve(self._composed.root, pointer)
        doc = node.get("description", "") if isinstance(node, dict) else ""
        return TypeEntry(
            name=name,
            kind="definition",
            signature=None,
            doc=str(doc),
            fields=(),
            members=(),
            tag=None,
            values=(),
            schema=SchemaEntry(pointer=pointer, node=node),
            origin=self._origin(pointer),
            extended_by=tuple(self._extended_by(pointer)),
            gates=(),
            uses=Uses(),
            note=f"The package has no type for it: {self._why_untyped(name)}.",
        )

    def _why_untyped(self, name: str) -> str:
        """What became of a definition that has no type: the runtime speaks it, or others have its properties."""
        if name in Definitions(schema_map(self._composed.root, "$defs")).envelopes:
            return "it is an envelope of JSON-RPC"
        start = definition_pointer(name) + "/"
        heirs = [
            definition.name
            for definition in self._model.definitions
            if isinstance(definition, Struct) and any(field.pointer.startswith(start) for field in definition.fields)
        ]
        return (
            f"its properties stand in {', '.join(heirs)}" if heirs else "it adds nothing to the types that refer to it"
        )

    def _note(self, definition: Definition) -> str | None:
        """What is to be said of a type that is not a definition of the schema."""
        if definition.name in self._defined:
            return None
        return "The schema has no definition of this name: acpgen named a part of one."

    @cached_property
    def _defined(self) -> frozenset[str]:
        """The Python names of the definitions of the schema."""
        return frozenset(map(names.class_name, schema_map(self._composed.root, "$defs")))

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
        """The methods that wait for an attribute, by its class and name."""
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        gated = [(method.wire, method.gate) for method in self._model.methods if method.gate is not None]
        for wire, gate in gated:
            for path in gate.paths:
                place = self._follow(Ref(names.class_name(gate.root)), path)
                if place is not None and wire not in found[place]:
                    found[place].append(wire)
        return found

    def _follow(self, expression: TypeExpr, path: tuple[str, ...]) -> tuple[str, str] | None:
        """The class and the attribute that `path` ends at, below a value of the type."""
        reading, place = Reading(self._model), None
        for wire in path:
            found = reading.resolved(expression)
            while isinstance(found, Nullable):
                found = reading.resolved(found.inner)
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

    # --- Where things come from -------------------------------------------------------------------------------------

    def _schema(self, pointer: str) -> SchemaEntry:
        return SchemaEntry(pointer=pointer, node=resolve(self._composed.root, pointer))

    def _origin(self, pointer: str) -> Origin:
        name = self._composed.origin(pointer)
        place, original = self._composed.locate(pointer)
        specs = {fragment.origin: fragment.spec for fragment in self._composed.fragments}
        return Origin(name=name, extension=specs.get(name), place=place, pointer=original)

    def _extended_by(self, pointer: str) -> Iterator[Origin]:
        """The parts of what stands at `pointer` that an extension brought; what is in such a part is not told again."""
        own = {self._composed.origin(pointer), self._composed.base.origin}
        outer = ""
        for inner, (document, _) in sorted(self._composed.sources.items()):
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
    """What the attribute is where nothing is given, as source; None where something must be."""
    if isinstance(field.type, Const) and field.required:
        return literal(field.type.value)
    if field.required:
        return None
    return "UNSET" if field.default is None else value(field.default)


def _members(definition: Definition) -> Iterator[MemberEntry]:
    match definition:
        case TaggedUnion(variants=variants, fallbacks=fallbacks):
            for variant in variants:
                yield MemberEntry(hint=variant.target, tag=variant.tag, doc=variant.doc)
        case UntaggedUnion(members=fallbacks):
            pass
        case _:
            return
    for member in fallbacks:
        match member:
            case Candidate(type=type, doc=doc):
                yield MemberEntry(hint=hint(type), tag=None, doc=doc)
            case OtherVariant(target=target, doc=doc):
                yield MemberEntry(hint=target, tag=None, doc=doc)


def _values(definition: Definition) -> Iterator[ValueEntry]:
    for member in definition.members if isinstance(definition, Enum) else ():
        yield ValueEntry(value=member.value, title=member.title, doc=member.doc)


def _gates(uses: Uses) -> tuple[str, ...]:
    """The gates of the methods that carry a type, if there is no way around them."""
    gates = [carrier.gate for carrier in uses.messages]
    return tuple(dict.fromkeys(gate for gate in gates if gate is not None)) if None not in gates else ()
