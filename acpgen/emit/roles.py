"""Views for `methods.py`, `agent.py` and `client.py`: methods, handlers, stubs and routes."""

from __future__ import annotations

from collections.abc import Sequence

from acpgen.emit.fields import Reading, Writing, encoder
from acpgen.emit.protocol import gate_record
from acpgen.emit.source import Code, docstring, enclosed, hint, identifier, listed, literal
from acpgen.ir.model import (
    AnyJson,
    MapOf,
    Method,
    MethodKind,
    Model,
    Primitive,
    Ref,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members, references
from acpgen.roles import RoleRecord, Side

CODEC = "codec."
"""The prefix for names of `codec.py` in the role modules."""
ANYTHING = Code("anything")
"""The function for values that need no decoding or encoding."""


class MethodView:
    """One method."""

    def __init__(self, method: Method, model: Model) -> None:
        self.method = method
        self._model = model
        self._reading = Reading(model)
        self._writing = Writing(model)

    @property
    def is_request(self) -> bool:
        """True for a request, false for a notification."""
        return self.method.kind is MethodKind.REQUEST

    @property
    def result(self) -> TypeExpr:
        """The type of the result; null for a notification."""
        return self.method.result or Scalar(primitive=Primitive.NULL)

    @property
    def uses_any(self) -> bool:
        """True if the parameters or the result are annotated with `Any`."""
        return "Any" in (hint(self.method.params), hint(self.result))

    @property
    def gate(self) -> Code | None:
        """The capability gate as an expression, if there is one."""
        return gate_record(self.method.gate, self._model) if self.method.gate is not None else None

    @property
    def decode_params(self) -> Code:
        """The decoder of the parameters."""
        return self._decoder(self.method.params)

    @property
    def decode_result(self) -> Code:
        """The decoder of the result."""
        return self._decoder(self.method.result or AnyJson())

    @property
    def encode_result(self) -> Code:
        """The encoder of the result; a notification has none."""
        return self._encoder(self.method.result or AnyJson())

    @property
    def encode_params(self) -> Code:
        """The encoder of the parameters."""
        return self._encoder(self.method.params)

    def _decoder(self, expression: TypeExpr) -> Code:
        read = self._reading.reader(expression)
        return Code(CODEC + read) if read.startswith("decode_") else read

    def _encoder(self, expression: TypeExpr) -> Code:
        match self._reading.resolved(expression):
            case found if self._writing.is_plain(found):
                return ANYTHING
            case Ref(name) if isinstance(self._model.by_name[name], Struct):
                return Code(CODEC + encoder(name))
            case Ref(name) if self._writing.has_class(self._model.by_name[name]):
                return Code(f"{CODEC}by_class")
            case _:
                return Code(f"{CODEC}encode")

    @property
    def negotiates(self) -> bool:
        """True for the request that negotiates the version."""
        return (
            self._model.negotiation is not None
            and self.is_request
            and self.method.wire == self._model.negotiation.method
        )

    @property
    def takes_object(self) -> bool:
        """True if the parameters are an object: absent params then mean an empty one."""
        return self._is_json_object(self.method.params)

    @property
    def gives_object(self) -> bool:
        """True if the result is an object: null then means an empty one."""
        return self.method.result is not None and self._is_json_object(self.method.result)

    @property
    def calling(self) -> Code:
        """The statement with which a stub sends the request."""
        arguments = [literal(self.method.wire), Code("params"), self.encode_params, self.decode_result]
        if not self.gives_object:
            arguments.append(Code("gives_object=False"))
        start = "self.negotiated = await" if self.negotiates else "return await"
        return enclosed(f"{start} self._call(", arguments, ")", indent=8)

    @property
    def notifying(self) -> Code:
        """The statement with which a stub sends the notification."""
        arguments = [literal(self.method.wire), Code("params"), self.encode_params]
        return enclosed("await self._notify(", arguments, ")", indent=8)

    @property
    def route(self) -> Code:
        """The entry of the dispatch table."""
        read = Code(f"negotiated(PROTOCOL_INFO, {self.decode_params})") if self.negotiates else self.decode_params
        arguments = [literal(self.method.name), read, self.encode_result]
        if not self.takes_object:
            arguments.append(Code("takes_object=False"))
        return enclosed(f"{literal(self.method.wire)}: Route(", arguments, "),", indent=8)

    @property
    def doc(self) -> Code:
        """The docstring: description, capability gate and origin."""
        what = self.method.doc or f"`{self.method.wire}`, which the schema does not describe."
        return docstring("\n\n".join(filter(None, (what, self._gate_text, self._origin_text))), indent=8)

    @property
    def _gate_text(self) -> str:
        if self.method.gate is None:
            return ""
        paths = " or ".join(f"`{'.'.join(path)}`" for path in self.method.gate.paths)
        return f"Needs {paths} in `{self.method.gate.root}`."

    @property
    def _origin_text(self) -> str:
        return f"From {self.method.origin}." if self.method.origin != self._model.origin else ""

    def _is_json_object(self, expression: TypeExpr) -> bool:
        """True if every value is a JSON object."""
        found = self._reading.resolved(expression)
        definition = self._model.by_name[found.name] if isinstance(found, Ref) else None
        if isinstance(definition, UntaggedUnion):
            return all(self._is_json_object(member) for member in members(definition))
        return isinstance(found, MapOf) or isinstance(definition, (Struct, TaggedUnion))


class SideView:
    """The methods of one side: their table, and the stub that calls them."""

    def __init__(self, side: Side, model: Model) -> None:
        self.methods = [MethodView(method, model) for method in model.methods if side in method.handlers]
        """The methods that the side handles."""
        self.name = identifier(side.value)
        """The attribute for the stub."""
        self.stub = identifier(side.stub)
        """The stub class."""
        self.table_name = identifier(side.methods)
        """The name of the table."""

    @property
    def stub_doc(self) -> Code:
        """The docstring of the stub."""
        return docstring(f"The {self.name} at the other end: each method sends one message through its `Peer`.")

    @property
    def table_doc(self) -> Code:
        """The docstring of the table."""
        return docstring(f"The methods that the {self.name} handles, by wire name.", 0)

    @property
    def table(self) -> list[tuple[MethodView, MethodView | None]]:
        """The methods. A request comes with the notification of the same wire name, if there is one."""
        twins = {view.method.wire: view for view in self.methods if not view.is_request}
        requests = {view.method.wire for view in self.methods if view.is_request}
        return [
            (view, twins.get(view.method.wire) if view.is_request else None)
            for view in self.methods
            if view.is_request or view.method.wire not in requests
        ]

    @property
    def uses_any(self) -> bool:
        """True if a signature contains `Any`."""
        return any(view.uses_any for view in self.methods)


class RoleView:
    """One role: the methods that it handles, and the sides that it calls."""

    def __init__(self, role: RoleRecord, model: Model) -> None:
        self._role = role
        self.base = identifier(role.base)
        """The class to extend."""
        self.handled = [MethodView(each, model) for each in model.methods if {*role.sides} & {*each.handlers}]
        """The methods that the role handles."""
        self.stubs = [SideView(side, model) for side in role.called]
        """The sides that the role calls."""
        self.tables = _merged(role.sides)
        """The tables of the methods that the role handles, as one."""
        self.peer_tables = _merged(role.called)
        """The same of those that it calls."""

    @property
    def module_doc(self) -> Code:
        """The docstring of the module."""
        stubs = " and ".join(f"`{each.stub}`" for each in self.stubs)
        return docstring(f"Write {self._role.noun}: extend `{self.base}`, and call the peer by {stubs}.", 0)

    @property
    def base_doc(self) -> Code:
        """The docstring of the class to extend."""
        calls = " ".join(f"`self.{each.name}` calls the {each.name}." for each in self.stubs)
        return docstring(
            f"{self._role.noun.capitalize()}: override what it supports. {calls}\n\n"
            'A request that is not overridden is answered with "method not found"; a notification is ignored.\n\n'
            f"`dispatch_request` and `dispatch_notification` pass messages of any transport to the {self._role.name}."
        )

    @property
    def parameters(self) -> Code:
        """The parameters of the constructor: the stubs."""
        return listed(Code(f"{each.name}: {each.stub}") for each in self.stubs)

    @property
    def negotiates(self) -> bool:
        """True if the role handles the request that negotiates the version."""
        return any(view.negotiates for view in self.handled)

    @property
    def answers(self) -> bool:
        """True if the role handles requests."""
        return any(view.is_request for view in self.handled)

    @property
    def imported(self) -> list[Code]:
        """The names of `types` in the signatures."""
        known = [each for view in self.handled + self._called for each in (view.method.params, view.result)]
        return [identifier(name) for name in sorted({name for each in known for name in references(each)})]

    @property
    def readers(self) -> Code:
        """The functions of `_decode` that the routes and stubs use."""
        return listed(sorted({code for code in self._functions if not code.startswith(CODEC)}))

    @property
    def _functions(self) -> list[Code]:
        used = [code for view in self.handled for code in (view.decode_params, view.encode_result)]
        used += [view.encode_params for view in self._called]
        return used + [view.decode_result for view in self._called if view.is_request]

    @property
    def _called(self) -> list[MethodView]:
        return [view for side in self.stubs for view in side.methods]

    @property
    def uses_any(self) -> bool:
        """True if a signature contains `Any`."""
        return any(view.uses_any for view in self.handled + self._called)


def _merged(sides: Sequence[Side]) -> Code:
    first, *more = (identifier(side.methods) for side in sides)
    return Code(f"{{**{', **'.join((first, *more))}}}") if more else first
