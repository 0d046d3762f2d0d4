"""The view for the values in `methods.py` that need a capability: by capability, the places in what a package sends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acpgen.emit.method_tables import gate_record
from acpgen.emit.source import LINE_LENGTH, Code, enclosed, literal, tuple_of
from acpgen.ir import model as ir
from acpgen.ir.gated_places import GatedPlaces, Step
from acpgen.roles import RoleRecord
from acpgen.schema.gates import Gate


def gated_value_records(model: ir.Model, roles: Sequence[RoleRecord]) -> list[Code]:
    """A record for each capability."""
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
    return enclosed("GatedValues(", [gate_record(gate, model, indent=8), listed], "),", indent=4)


def _step(step: Step) -> Code:
    return tuple_of(map(literal, step)) if isinstance(step, tuple) else literal(step)
