"""Views for `methods.py`: a record for each method, in a table for each side, and the values that need a capability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acpgen.emit.conversions import TYPES, DecodeExpressions, Writing, encoder
from acpgen.emit.source import LINE_LENGTH, Code, docstring, enclosed, hint, identifier, literal, tuple_of
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.gate_tags import tags_that_do_not_count
from acpgen.ir.gated_places import GatedPlaces, Step
from acpgen.ir.order import members
from acpgen.ir.relations import follow, without_null
from acpgen.roles import RoleRecord, Side
from acpgen.schema.gates import Gate

CODEC = "codec."
"""The prefix for names of `codec.py` in `methods.py`."""


class TableView:
    """The table of the methods that a side handles, in a package for `roles`."""

    def __init__(self, side: Side, model: ir.Model, roles: Sequence[RoleRecord]) -> None:
        self._side = side
        self._model = model
        self._is_handled = any(side in role.sides for role in roles)
        self._is_called = any(side in role.called for role in roles)
        self._reading = DecodeExpressions(model)
        self._writing = Writing(model)
        methods = _beside_twins([method for method in model.methods if side in method.handlers])
        self.name = identifier(side.methods)
        self.side = literal(side.value)
        self.doc = docstring(f"The methods that the {side.value} handles, by wire name.", 0)
        self.records = [self._record(each) for each in methods]
        read = [each for method in methods for each in self._read(method)]
        self.readers = {self._reading.reader(each) for each in read if self._reading.decoded_by(each) is None}
        """The functions of `_decode` that the records may use."""

    def _read(self, method: ir.Method) -> list[ir.TypeExpr]:
        """What the package decodes of a method."""
        params, results = [method.params] if self._is_handled else [], _results(method) if self._is_called else []
        return [*params, *results]

    def _record(self, method: ir.Method) -> Code:
        """The record of a method."""
        negotiates = self._is_handled and self._model.negotiating is method
        takes = self._part(method.params, is_read=self._is_handled, is_written=self._is_called, negotiates=negotiates)
        gives = [self._part(each, is_read=self._is_called, is_written=self._is_handled) for each in _results(method)]
        arguments = [literal(method.wire), literal(method.name), takes, *gives]
        if method.gate is not None:
            arguments.append(_gate_record(method.gate, self._model, "capability="))
        if method.side != self._side.value:
            arguments.append(Code(f"side={literal(method.side)}"))
        if method.origin != self._model.origin:
            arguments.append(Code(f"origin={literal(method.origin)}"))
        return enclosed("Method(", arguments, "),", indent=4)

    def _part(self, expression: ir.TypeExpr, *, is_read: bool, is_written: bool, negotiates: bool = False) -> Code:
        arguments, decode = [hint(expression, module=TYPES)], self._decoder(expression)
        if negotiates:
            decode = Code(f"negotiated(PROTOCOL_INFO, {decode or 'anything'})")
        if is_read and decode is not None:
            arguments.append(Code(f"decode={decode}"))
        if is_written and (encode := self._encoder(expression)) is not None:
            arguments.append(Code(f"encode={encode}"))
        if not self._is_json_object(expression):
            arguments.append(Code("is_object=False"))
        return enclosed("Payload(", arguments, ")", indent=8)

    def _decoder(self, expression: ir.TypeExpr) -> Code | None:
        """The function that decodes; None for any JSON, which needs none."""
        if self._reading.resolved(expression) in (ir.AnyJson(), ir.Nullable(ir.AnyJson())):
            return None
        read = self._reading.reader(expression)
        return read if self._reading.decoded_by(expression) is None else Code(CODEC + read)

    def _encoder(self, expression: ir.TypeExpr) -> Code | None:
        """The function that encodes; None for values that are JSON already."""
        match self._reading.resolved(expression):
            case found if self._writing.is_plain(found):
                return None
            case ir.Ref(name) if isinstance(self._model.by_name[name], ir.Struct):
                return Code(CODEC + encoder(name))
            case ir.Ref(name) if self._writing.has_class(self._model.by_name[name]):
                return Code(f"{CODEC}by_class")
            case _:
                return Code(f"{CODEC}encode")

    def _is_json_object(self, expression: ir.TypeExpr) -> bool:
        """True if every value is a JSON object."""
        found = self._reading.resolved(expression)
        definition = self._model.definition(found)
        if isinstance(definition, ir.UntaggedUnion):
            return all(self._is_json_object(member) for member in members(definition))
        return isinstance(found, ir.MapOf) or isinstance(definition, (ir.Struct, ir.TaggedUnion))


def _results(method: ir.Method) -> list[ir.TypeExpr]:
    """The type of the result; none for a notification."""
    return [method.result or ir.AnyJson()] if method.kind is ir.MethodKind.REQUEST else []


def _beside_twins(methods: Sequence[ir.Method]) -> list[ir.Method]:
    """The methods in order, but the notification with the name of a request comes after that."""
    places = {method.wire: at for at, method in enumerate(methods)}
    places |= {method.wire: at for at, method in enumerate(methods) if method.kind is ir.MethodKind.REQUEST}
    return sorted(methods, key=lambda each: (places[each.wire], each.kind is not ir.MethodKind.REQUEST))


def _gate_record(gate: Gate, model: ir.Model, start: str = "") -> Code:
    """The record of a capability gate, after the text `start`."""
    paths = tuple_of([tuple_of(map(literal, path)) for path in gate.paths])
    root = names.class_name(gate.root)
    arguments = [identifier(TYPES + root), paths, literal(_opening_value(gate, model))]
    if (but := tags_that_do_not_count(gate, model)) is not None:
        arguments.append(tuple_of([literal(but[0]), tuple_of(map(literal, but[1]))]))
    return Code(enclosed(f"{start}Gate(", arguments, "),", indent=8)[:-1])


def _opening_value(gate: Gate, model: ir.Model) -> str | None:
    """The smallest value that opens a gate at its first path, if it is "true" or "{}"."""
    _, expression = follow(ir.Ref(names.class_name(gate.root)), gate.paths[0], model)
    found = without_null(expression, model)
    if isinstance(found, ir.Scalar):
        return "true"
    definition = model.definition(found)
    needs_more = isinstance(definition, ir.Struct) and any(field.required for field in definition.fields)
    return None if isinstance(found, ir.ListOf) or needs_more else "{}"


# --- Values that need a capability -----------------------------------------------------------------------------------


def gated_value_records(model: ir.Model, roles: Sequence[RoleRecord]) -> list[Code]:
    """A record for each capability: the places in what the package sends whose values need it."""
    found: dict[Gate, list[Code]] = {}
    places = GatedPlaces(model)
    for kind, method, part in _sent(model, roles):
        for steps, gated in places.find(part):
            items = [literal(kind), literal(method.wire), tuple_of(map(_step, steps))]
            found.setdefault(gated.gate, []).append(enclosed("(", items, ")", indent=12))
    return [
        _record(gate, found[gate], model)
        for gate in dict.fromkeys(each.gate for each in model.gated_values)
        if gate in found
    ]


def _sent(model: ir.Model, roles: Sequence[RoleRecord]) -> Iterator[tuple[str, ir.Method, ir.TypeExpr]]:
    """The params and results that a package for `roles` sends, each with the kind of its messages."""
    called = {side for role in roles for side in role.called}
    handled = {side for role in roles for side in role.sides}
    for method in model.methods:
        if not called.isdisjoint(method.handlers):
            yield method.kind.value, method, method.params
        if method.result is not None and not handled.isdisjoint(method.handlers):
            yield "result", method, method.result


def _record(gate: Gate, places: Sequence[Code], model: ir.Model) -> Code:
    one = tuple_of(places)
    listed = one if len(one) < LINE_LENGTH - 8 else enclosed("(", places, ")", indent=8)
    return enclosed("GatedValues(", [_gate_record(gate, model), listed], "),", indent=4)


def _step(step: Step) -> Code:
    return tuple_of(map(literal, step)) if isinstance(step, tuple) else literal(step)
