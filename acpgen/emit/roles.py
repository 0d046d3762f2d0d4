"""Views for `methods.py`, `agent.py` and `client.py`: methods, handlers, stubs and routes."""

from __future__ import annotations

from collections.abc import Iterable

from acpgen.emit.fields import TYPES, Reading, Writing, encoder
from acpgen.emit.source import Code, docstring, enclosed, hint, identifier, literal, tuple_of
from acpgen.ir import names
from acpgen.ir.model import (
    AnyJson,
    ListOf,
    MapOf,
    Method,
    MethodKind,
    Model,
    Nullable,
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
    def wire(self) -> Code:
        """The name on the wire, as a literal."""
        return literal(self.method.wire)

    @property
    def name(self) -> Code:
        """The name of the handler."""
        return identifier(self.method.name)

    @property
    def handler(self) -> Code:
        """The name of the handler, as a literal."""
        return literal(self.method.name)

    @property
    def kind(self) -> Code:
        """The kind, "request" or "notification", as a literal."""
        return literal(self.method.kind.value)

    @property
    def side(self) -> Code:
        """The value of `x-side`, as a literal."""
        return literal(self.method.side)

    @property
    def origin(self) -> Code:
        """The release or fragment that defines the method, as a literal."""
        return literal(self.method.origin)

    @property
    def is_request(self) -> bool:
        """True for a request, false for a notification."""
        return self.method.kind is MethodKind.REQUEST

    @property
    def params(self) -> Code:
        """The annotation of the parameters."""
        return hint(self.method.params)

    @property
    def result(self) -> Code:
        """The annotation of the result."""
        return hint(self.method.result) if self.method.result is not None else Code("None")

    @property
    def params_type(self) -> Code:
        """The qualified type of the parameters."""
        return hint(self.method.params, module=TYPES)

    @property
    def result_type(self) -> Code:
        """The qualified type of the result; None for a notification."""
        return hint(self.method.result, module=TYPES) if self.method.result is not None else Code("None")

    @property
    def gate(self) -> Code:
        """The capability gate as an expression; None if there is none."""
        if self.method.gate is None:
            return Code("None")
        paths = tuple_of([tuple_of(map(literal, path)) for path in self.method.gate.paths])
        root = names.class_name(self.method.gate.root)
        yes = literal(self._says_yes(Ref(root), self.method.gate.paths[0]))
        return Code(f"Gate({identifier(TYPES + root)}, {paths}, {yes})")

    def _says_yes(self, expression: TypeExpr, path: tuple[str, ...]) -> str | None:
        """The smallest value at `path` below `expression` that opens a gate: "true", "{}", or None for an array."""
        found = self._reading.resolved(expression)
        if isinstance(found, Nullable):
            return self._says_yes(found.inner, path)
        definition = self._model.by_name[found.name] if isinstance(found, Ref) else None
        if path and isinstance(definition, Struct):
            field = next(field for field in definition.fields if field.wire == path[0])
            return self._says_yes(field.type, path[1:])
        if isinstance(found, Scalar):
            return "true"
        return None if isinstance(found, ListOf) else "{}"

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
    def encoded_params(self) -> Code:
        """The expression that encodes the parameters."""
        encode = self._encoder(self.method.params)
        return Code("params" if encode == ANYTHING else f"{encode}(params)")

    def _decoder(self, expression: TypeExpr) -> Code:
        read = self._reading.reader(expression)
        return Code(CODEC + read) if read.startswith("decode_") else read

    def _encoder(self, expression: TypeExpr) -> Code:
        match self._reading.resolved(expression):
            case found if self._writing.is_plain(found):
                return ANYTHING
            case Ref(name) if isinstance(self._model.by_name[name], Struct):
                return Code(CODEC + encoder(name))
            case Ref(name) if self._writing.is_object(self._model.by_name[name]):
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
        return self._is_object(self.method.params)

    @property
    def gives_object(self) -> bool:
        """True if the result is an object: null then means an empty one."""
        return self.method.result is not None and self._is_object(self.method.result)

    @property
    def calling(self) -> Code:
        """The statement with which a stub sends the request."""
        arguments = [self.wire, self.encoded_params, self.decode_result]
        if not self.gives_object:
            arguments.append(Code("gives_object=False"))
        return enclosed("return await self._call(", arguments, ")", indent=8)

    @property
    def route(self) -> Code:
        """The entry of the dispatch table."""
        read = Code(f"negotiated(PROTOCOL_INFO, {self.decode_params})") if self.negotiates else self.decode_params
        arguments = [self.handler, read, self.encode_result]
        if not self.takes_object:
            arguments.append(Code("takes_object=False"))
        return enclosed(f"{self.wire}: Route(", arguments, "),", indent=8)

    @property
    def not_found(self) -> Code:
        """The message of a handler that is not overridden, as a literal."""
        return literal(f"Method not found: {self.method.wire}")

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

    def _is_object(self, expression: TypeExpr) -> bool:
        """True if every value is a JSON object."""
        found = self._reading.resolved(expression)
        definition = self._model.by_name[found.name] if isinstance(found, Ref) else None
        if isinstance(definition, UntaggedUnion):
            return all(self._is_object(member) for member in members(definition))
        return isinstance(found, MapOf) or isinstance(definition, (Struct, TaggedUnion))


def methods_table(role: Role) -> Code:
    """The name in `methods.py` of the table of methods that `role` handles."""
    return identifier(f"{role.value.upper()}_METHODS")


class RoleView:
    """One role: the methods that it handles, and those that it calls."""

    def __init__(self, role: Role, model: Model) -> None:
        self._role = role
        self._model = model

    @property
    def base(self) -> Code:
        """The class to extend."""
        return identifier(self._role.value.capitalize())

    @property
    def stub(self) -> Code:
        """The stub class of the peer."""
        return identifier(f"Remote{self._role.peer.value.capitalize()}")

    @property
    def module_doc(self) -> Code:
        """The docstring of the module."""
        return docstring(f"Write {_article(self._role)}: extend `{self.base}`, and call the peer by `{self.stub}`.", 0)

    @property
    def base_doc(self) -> Code:
        """The docstring of the class to extend."""
        role, peer = self._role.value, self._role.peer.value
        return docstring(
            f"{_article(self._role).capitalize()}: override what it supports. `self.{peer}` calls the {peer}.\n\n"
            'A request that is not overridden is answered with "method not found"; a notification is ignored.\n\n'
            f"`dispatch_request` and `dispatch_notification` pass messages of any transport to the {role}."
        )

    @property
    def stub_doc(self) -> Code:
        """The docstring of the stub."""
        peer = self._role.peer.value
        return docstring(f"The {peer} at the other end: each method sends one message through its `Peer`.")

    @property
    def peer(self) -> Code:
        """The attribute that holds the stub."""
        return identifier(self._role.peer.value)

    @property
    def methods_table(self) -> Code:
        """The table of the methods that the role handles."""
        return methods_table(self._role)

    @property
    def peer_table(self) -> Code:
        """The table of the methods that the peer handles."""
        return methods_table(self._role.peer)

    @property
    def handled(self) -> list[MethodView]:
        """The methods that the role handles."""
        return self._views(self._role)

    @property
    def negotiates(self) -> bool:
        """True if the role handles the request that negotiates the version."""
        return any(view.negotiates for view in self.handled)

    @property
    def answers(self) -> bool:
        """True if the role handles requests."""
        return any(view.is_request for view in self.handled)

    @property
    def called(self) -> list[MethodView]:
        """The methods that the role calls."""
        return self._views(self._role.peer)

    def _views(self, role: Role) -> list[MethodView]:
        return [MethodView(method, self._model) for method in self._model.methods if role in method.handlers]

    @property
    def imported(self) -> list[Code]:
        """The names of `types` in the signatures."""
        return [identifier(name) for name in sorted(set(_named(view.method for view in self.handled + self.called)))]

    @property
    def uses_codec(self) -> bool:
        """True if a route or stub uses `codec`."""
        return any(code.startswith(CODEC) for code in self._functions)

    @property
    def readers(self) -> Code:
        """The functions of `_decode` that the routes and stubs use."""
        return Code(", ".join(sorted({code for code in self._functions if not code.startswith((CODEC, "params"))})))

    @property
    def _functions(self) -> list[Code]:
        used = [code for view in self.handled for code in (view.decode_params, view.encode_result)]
        used += [view.encoded_params for view in self.called]
        return used + [view.decode_result for view in self.called if view.is_request]

    @property
    def uses_any(self) -> bool:
        """True if a signature contains `Any`."""
        return any("Any" in (view.params, view.result) for view in self.handled + self.called)


def _article(role: Role) -> str:
    return {Role.AGENT: "an agent", Role.CLIENT: "a client"}[role]


def _named(methods: Iterable[Method]) -> Iterable[str]:
    for method in methods:
        yield from references(method.params)
        if method.result is not None:
            yield from references(method.result)


def methods_of(role: Role, model: Model) -> list[tuple[MethodView, MethodView | None]]:
    """The methods that `role` handles. A request comes with the notification of the same wire name, if there is one."""
    views = [MethodView(method, model) for method in model.methods if role in method.handlers]
    twins = {view.method.wire: view for view in views if not view.is_request}
    requests = {view.method.wire for view in views if view.is_request}
    return [
        (view, twins.get(view.method.wire) if view.is_request else None)
        for view in views
        if view.is_request or view.method.wire not in requests
    ]
