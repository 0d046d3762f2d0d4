"""Views for `methods.py`: a record for each method, in a table for each side."""

from __future__ import annotations

from collections.abc import Sequence

from acpgen.emit.conversions import TYPES, Reading, Writing, encoder
from acpgen.emit.source import Code, docstring, enclosed, hint, identifier, literal, tuple_of
from acpgen.emit.versions import negotiating
from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.order import members
from acpgen.ir.relations import resolved
from acpgen.roles import RoleRecord, Side
from acpgen.schema.gates import Gate

CODEC = "codec."
"""The prefix for names of `codec.py` in `methods.py`."""


class RecordView:
    """The record of one method in `methods.py`, as a package for certain roles has it.

    `is_handled` and `is_called` say what they do with the method.
    """

    def __init__(self, method: ir.Method, model: ir.Model, *, is_handled: bool, is_called: bool) -> None:
        self._method = method
        self._model = model
        self._is_handled = is_handled
        self._is_called = is_called
        self._reading = Reading(model)
        self._writing = Writing(model)

    def record(self, side: Side) -> Code:
        """The expression for the record in the table of `side`."""
        arguments = [literal(self._method.wire), literal(self._method.name), self._takes]
        if self._method.kind is ir.MethodKind.REQUEST:
            arguments.append(self._gives)
        if self._method.gate is not None:
            arguments.append(_gate_argument(self._method.gate, self._model))
        if self._method.side != side.value:
            arguments.append(Code(f"side={literal(self._method.side)}"))
        if self._method.origin != self._model.origin:
            arguments.append(Code(f"origin={literal(self._method.origin)}"))
        return enclosed("Method(", arguments, "),", indent=4)

    @property
    def readers(self) -> list[Code]:
        """The functions of `_decode` that the record uses."""
        found = [self._method.params] if self._is_handled else []
        if self._is_called and self._method.result is not None:
            found.append(self._method.result)
        return [self._reading.reader(each) for each in found if self._reading.decoded_by(each) is None]

    @property
    def parts(self) -> list[ir.TypeExpr]:
        """The types of the params and, for a request, of the result."""
        return [self._method.params, *([self._result] if self._method.kind is ir.MethodKind.REQUEST else [])]

    @property
    def is_gated(self) -> bool:
        """True if the method needs a capability."""
        return self._method.gate is not None

    @property
    def negotiates(self) -> bool:
        """True if the package handles the method, which negotiates the version."""
        return self._is_handled and negotiating(self._model) is self._method

    @property
    def _result(self) -> ir.TypeExpr:
        return self._method.result or ir.AnyJson()

    @property
    def _takes(self) -> Code:
        decode = self._decoder(self._method.params)
        if self.negotiates:
            decode = Code(f"negotiated(PROTOCOL_INFO, {decode or 'anything'})")
        return self._part(self._method.params, decode, is_read=self._is_handled, is_written=self._is_called)

    @property
    def _gives(self) -> Code:
        decode = self._decoder(self._result)
        return self._part(self._result, decode, is_read=self._is_called, is_written=self._is_handled)

    def _part(self, expression: ir.TypeExpr, decode: Code | None, *, is_read: bool, is_written: bool) -> Code:
        arguments = [hint(expression, module=TYPES)]
        if is_read and decode is not None:
            arguments.append(Code(f"decode={decode}"))
        if is_written and (encode := self._encoder(expression)) is not None:
            arguments.append(Code(f"encode={encode}"))
        if not self._is_json_object(expression):
            arguments.append(Code("is_object=False"))
        return enclosed("Part(", arguments, ")", indent=8)

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


class TableView:
    """The table of the methods that a side handles, in a package for `roles`."""

    def __init__(self, side: Side, model: ir.Model, roles: Sequence[RoleRecord]) -> None:
        self._side = side
        is_handled = any(side in role.sides for role in roles)
        is_called = any(side in role.called for role in roles)
        self.views = [
            RecordView(method, model, is_handled=is_handled, is_called=is_called)
            for method in _requests_first(model, side)
        ]
        """The views of the records."""
        self.name = identifier(side.methods)
        """The name of the table."""
        self.side = literal(side.value)
        """The side, as a literal."""

    @property
    def doc(self) -> Code:
        """The docstring of the table."""
        return docstring(f"The methods that the {self._side.value} handles, by wire name.", 0)

    @property
    def records(self) -> list[Code]:
        """The expressions for them."""
        return [each.record(self._side) for each in self.views]

    @property
    def readers(self) -> list[Code]:
        """The functions of `_decode` that the records use."""
        return [reader for each in self.views for reader in each.readers]


def _requests_first(model: ir.Model, side: Side) -> list[ir.Method]:
    """The methods that `side` handles. The notification with the name of a request comes after that."""
    methods = [method for method in model.methods if side in method.handlers]
    twins = {method.wire: method for method in methods if method.kind is not ir.MethodKind.REQUEST}
    requests = {method.wire for method in methods if method.kind is ir.MethodKind.REQUEST}
    found = list[ir.Method]()
    for method in methods:
        if method.kind is ir.MethodKind.REQUEST:
            found += [method, twins[method.wire]] if method.wire in twins else [method]
        elif method.wire not in requests:
            found.append(method)
    return found


def _gate_argument(gate: Gate, model: ir.Model) -> Code:
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
    definition = model.definition(found)
    if path and isinstance(definition, ir.Struct):
        field = next(field for field in definition.fields if field.wire == path[0])
        return _opening_value(field.type, path[1:], model)
    if isinstance(found, ir.Scalar):
        return "true"
    needs_more = isinstance(definition, ir.Struct) and any(field.required for field in definition.fields)
    return None if isinstance(found, ir.ListOf) or needs_more else "{}"
