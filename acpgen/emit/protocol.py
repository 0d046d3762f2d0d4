"""Expressions for the records in `methods.py`: gates of methods, and the rules of the protocol."""

from __future__ import annotations

from acpgen.emit.conversions import TYPES
from acpgen.emit.source import Code, enclosed, identifier, literal, tuple_of, value
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.least import least_members
from acpgen.ir.relations import resolved
from acpgen.schema.gates import Gate


def gate_argument(gate: Gate, model: ir.Model) -> Code:
    """The argument `capability` of a record: that of a capability gate."""
    paths = tuple_of([tuple_of(map(literal, path)) for path in gate.paths])
    root = names.class_name(gate.root)
    opening = literal(_opening_value(ir.Ref(root), gate.paths[0], model))
    return Code(enclosed("capability=Gate(", [identifier(TYPES + root), paths, opening], "),", indent=8)[:-1])


def _opening_value(expression: ir.TypeExpr, path: tuple[str, ...], model: ir.Model) -> str | None:
    """The smallest value at `path` below `expression` that opens a gate, if it is "true" or "{}"."""
    found = resolved(expression, model)
    if isinstance(found, ir.Nullable):
        return _opening_value(found.inner, path, model)
    definition = model.by_name[found.name] if isinstance(found, ir.Ref) else None
    if path and isinstance(definition, ir.Struct):
        field = next(field for field in definition.fields if field.wire == path[0])
        return _opening_value(field.type, path[1:], model)
    if isinstance(found, ir.Scalar):
        return "true"
    needs_more = isinstance(definition, ir.Struct) and any(field.required for field in definition.fields)
    return None if isinstance(found, ir.ListOf) or needs_more else "{}"


class ProtocolView:
    """The rules of a protocol."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.cancel = model.envelope.cancel
        self.negotiation = model.negotiation
        self.unsupported = model.negotiation.unsupported if model.negotiation else None

    @property
    def least(self) -> Code:
        """The smallest params of the request that negotiates the version."""
        found = self.negotiation
        return value(least_members(self.model, found.method, found.version)) if found else Code("{}")
