"""Views for `methods.py`, `agent.py` and `client.py`: methods, handlers, stubs and routes."""

from __future__ import annotations

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
    Role,
    Scalar,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members, references

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


class RoleView:
    """One role: the methods that it handles, and those that it calls."""

    def __init__(self, role: Role, model: Model) -> None:
        self.role = role
        self.handled = [MethodView(method, model) for method in model.methods if role in method.handlers]
        """The methods that the role handles."""
        self.called = [MethodView(method, model) for method in model.methods if role.peer in method.handlers]
        """The methods that the role calls."""

    @property
    def base(self) -> Code:
        """The class to extend."""
        return identifier(self.role.value.capitalize())

    @property
    def stub(self) -> Code:
        """The stub class of the peer."""
        return identifier(f"Remote{self.role.peer.value.capitalize()}")

    @property
    def module_doc(self) -> Code:
        """The docstring of the module."""
        return docstring(f"Write {_article(self.role)}: extend `{self.base}`, and call the peer by `{self.stub}`.", 0)

    @property
    def base_doc(self) -> Code:
        """The docstring of the class to extend."""
        role, peer = self.role.value, self.role.peer.value
        return docstring(
            f"{_article(self.role).capitalize()}: override what it supports. `self.{peer}` calls the {peer}.\n\n"
            'A request that is not overridden is answered with "method not found"; a notification is ignored.\n\n'
            f"`dispatch_request` and `dispatch_notification` pass messages of any transport to the {role}."
        )

    @property
    def stub_doc(self) -> Code:
        """The docstring of the stub."""
        peer = self.role.peer.value
        return docstring(f"The {peer} at the other end: each method sends one message through its `Peer`.")

    @property
    def table_doc(self) -> Code:
        """The docstring of the table of the methods that the role handles."""
        return docstring(f"The methods that the {self.role.value} handles, by wire name.", 0)

    @property
    def table(self) -> list[tuple[MethodView, MethodView | None]]:
        """The handled methods. A request comes with the notification of the same wire name, if there is one."""
        twins = {view.method.wire: view for view in self.handled if not view.is_request}
        requests = {view.method.wire for view in self.handled if view.is_request}
        return [
            (view, twins.get(view.method.wire) if view.is_request else None)
            for view in self.handled
            if view.is_request or view.method.wire not in requests
        ]

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
        known = [each for view in self.handled + self.called for each in (view.method.params, view.result)]
        return [identifier(name) for name in sorted({name for each in known for name in references(each)})]

    @property
    def readers(self) -> Code:
        """The functions of `_decode` that the routes and stubs use."""
        return listed(sorted({code for code in self._functions if not code.startswith(CODEC)}))

    @property
    def _functions(self) -> list[Code]:
        used = [code for view in self.handled for code in (view.decode_params, view.encode_result)]
        used += [view.encode_params for view in self.called]
        return used + [view.decode_result for view in self.called if view.is_request]

    @property
    def uses_any(self) -> bool:
        """True if a signature contains `Any`."""
        return any(view.uses_any for view in self.handled + self.called)


def _article(role: Role) -> str:
    return {Role.AGENT: "an agent", Role.CLIENT: "a client"}[role]
