"""Pair requests, responses and notifications by `x-method`, `x-side` and the suffix of their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.context import Context
from acpgen.ir.objects import Definitions
from acpgen.roles import HANDLERS, Side
from acpgen.schema.compose import Composed
from acpgen.schema.document import join
from acpgen.schema.walk import closure, definition_pointer, description, own_references, references, walk
from acpgen.text import did_you_mean, some_of

ERRORS = "error responses"
"""The name for messages that carry the error object: any request may be answered with one."""


@dataclass(frozen=True, slots=True, order=True)
class MessageType:
    """A kind of message: the method, "request", "response" or "notification", and the sender ("agent", …)."""

    method: str
    part: str
    sender: str

    @property
    def side(self) -> Side:
        """The side that sends it."""
        return Side(self.sender)


def messages(model: ir.Model) -> Iterator[tuple[MessageType, ir.TypeExpr]]:
    """All messages with the types that they carry, in the order of the methods; error responses come last."""
    for method in model.methods:
        yield from messages_of(method)
    if model.errors.object is not None:
        for side in Side:
            yield MessageType(ERRORS, "response", side.value), ir.Ref(model.errors.object)


def messages_of(method: ir.Method) -> Iterator[tuple[MessageType, ir.TypeExpr]]:
    """The messages of `method` with the types that they carry; the peer of the handler sends the first."""
    for handler in method.handlers:
        yield MessageType(method.wire, method.kind.value, handler.peer.value), method.params
        if method.kind is ir.MethodKind.REQUEST and method.result is not None:
            yield MessageType(method.wire, "response", handler.value), method.result


_PARTS = ("Request", "Response", "Notification")
_MOST_NAMES = 10


def only_sent(definitions: Definitions, receivers: tuple[Side, ...]) -> frozenset[str]:
    """The definitions of the schema that messages carry, but none of those that `receivers` receive."""
    received, sent = set[str](), set[str]()
    for name, node in definitions.nodes.items():
        if name in definitions.envelopes or not isinstance(node, dict) or "x-method" not in node:
            continue
        for handler in HANDLERS.get(str(node.get("x-side")), ()):
            receiver = handler.peer if name.endswith("Response") else handler
            (received if receiver in receivers else sent).add(name)

    def edges(name: str) -> Iterator[str]:
        return references(definitions.nodes[name])

    return closure(sent, edges) - closure(received, edges)


_Parts: TypeAlias = dict[str, str]
"""The definitions of one method, by suffix."""


def lower_methods(context: Context, composed: Composed) -> tuple[ir.Method, ...]:
    """The methods of the schema in the order of their first definition. Definitions that do not pair are reported."""
    lowering = _Methods(context, composed)
    methods = [method for wire, parts in _groups(context).items() for method in lowering.lower(wire, parts)]
    _check_names(context, methods)
    _check_unrouted(context)
    return tuple(methods)


def _groups(context: Context) -> dict[str, _Parts]:
    groups: dict[str, _Parts] = {}
    for name, node in context.definitions.nodes.items():
        if isinstance(node, dict) and name not in context.definitions.envelopes:
            if "x-method" in node and "x-side" in node:
                _sort_in(context, groups.setdefault(node["x-method"], {}), name)
            elif "x-method" in node or "x-side" in node:
                missing = "x-side" if "x-method" in node else "x-method"
                _report_unpaired(context, name, f"{name} has no `{missing}` and is not routed")
    return groups


def _sort_in(context: Context, parts: _Parts, name: str) -> None:
    wire = context.definitions.nodes[name]["x-method"]
    suffix = next((part for part in _PARTS if name.endswith(part)), None)
    if suffix is None:
        fact = f"{name} belongs to {wire!r}, but its name ends in none of {', '.join(_PARTS)}; it is not routed"
        _report_unpaired(context, name, fact)
    elif suffix in parts:
        message = f"{wire!r} has two definitions for its {suffix.lower()}: {parts[suffix]} and {name}"
        context.report.error("method-clash", message, at=definition_pointer(name))
    else:
        parts[suffix] = name


def _report_unpaired(context: Context, name: str, fact: str) -> None:
    context.report.warning("unpaired-method", fact, at=definition_pointer(name))


class _Methods:
    """Lower the definitions of each method."""

    def __init__(self, context: Context, composed: Composed) -> None:
        self._context = context
        self._gates = composed.facts.gates
        self._docs = _method_docs(context, composed.root)

    def lower(self, wire: str, parts: _Parts) -> Iterator[ir.Method]:
        """The request and the notification, as far as the schema has them."""
        for kind in ir.MethodKind:
            if (definition := parts.get(kind.value.capitalize())) is not None:
                yield from self._method(wire, parts, kind, definition)
        if "Response" in parts and "Request" not in parts:
            name = parts["Response"]
            _report_unpaired(self._context, name, f"{name} answers no request; it is not routed")

    def _method(self, wire: str, parts: _Parts, kind: ir.MethodKind, definition: str) -> Iterator[ir.Method]:
        node, pointer = self._context.definitions.nodes[definition], definition_pointer(definition)
        side = node["x-side"]
        if side not in HANDLERS:
            self._context.report.warning(
                "unknown-side",
                f"{wire!r} is for the side {side!r}, which acpgen does not know: types only, no routing",
                at=join(pointer, "x-side"),
                hint=did_you_mean(str(side), HANDLERS),
            )
        if not HANDLERS.get(side):
            return
        name = names.method_name(wire)
        if not name:
            self._context.refuse_name(f"the method {wire!r}", join(pointer, "x-method"), hint=None)
        if kind is ir.MethodKind.NOTIFICATION and "Request" in parts:
            name += "_notification"
        yield ir.Method(
            wire=wire,
            name=name,
            kind=kind,
            side=side,
            handlers=HANDLERS[side],
            params=ir.Ref(self._context.class_name(definition)),
            result=self._result(wire, definition, parts) if kind is ir.MethodKind.REQUEST else None,
            gate=self._gates.get(wire),
            doc=self._docs.get(definition) or description(node),
            pointer=pointer,
            origin=self._context.origin(pointer),
        )

    def _result(self, wire: str, request: str, parts: _Parts) -> ir.TypeExpr:
        response = parts.get("Response")
        if response is None:
            fact = f"{wire!r} has a request but no response; its result is any JSON"
            _report_unpaired(self._context, request, fact)
            return ir.AnyJson()
        nodes = self._context.definitions.nodes
        if nodes[request]["x-side"] != nodes[response]["x-side"]:
            self._context.report.error(
                "side-clash",
                f"{request} and {response} disagree on who handles {wire!r}",
                at=join(definition_pointer(response), "x-side"),
                hint="`x-side` is the peer that handles the request, on both",
            )
        return ir.Ref(self._context.class_name(response))


def _check_unrouted(context: Context) -> None:
    """Warn about definitions that look like messages but have no `x-method`."""
    if unrouted := list(_unrouted(context)):
        context.report.warning(
            "unrouted-message",
            f"no `x-method`: these get types but no routing: {some_of(unrouted, _MOST_NAMES)}",
            at=definition_pointer(unrouted[0]),
            hint="a message is routed by `x-method`, its name on the wire, and `x-side`, the peer that handles it",
        )


def _unrouted(context: Context) -> Iterator[str]:
    """Objects that are named like messages and that no other definition uses."""
    nodes, envelopes = context.definitions.nodes, context.definitions.envelopes
    used = {target for name, node in nodes.items() if name not in envelopes for target in references(node)}
    for name, node in nodes.items():
        is_part = name in used or name in envelopes
        if is_part or not name.endswith(_PARTS) or not isinstance(node, dict) or {"x-method", "x-side"} & node.keys():
            continue
        if node.get("type") == "object" or context.definitions.is_object(node):
            yield name


def _method_docs(context: Context, root: dict[str, Any]) -> dict[str, str]:
    """The descriptions of methods in the JSON-RPC envelopes, by the definition of the params."""
    # in the order of the schema: the first description counts
    nodes = [root, *(node for name, node in context.definitions.nodes.items() if name in context.definitions.envelopes)]
    docs: dict[str, str] = {}
    for node in nodes:
        for _, child in walk({key: value for key, value in node.items() if key != "$defs"}):
            if text := description(child):
                for target in own_references(child):
                    docs.setdefault(target, text)
    return docs


def _check_names(context: Context, methods: list[ir.Method]) -> None:
    """Two methods of one side must not share a handler."""
    seen: dict[tuple[Side, str], ir.Method] = {}
    for method in methods:
        for side in method.handlers:
            known = seen.setdefault((side, method.name), method)
            if known is not method:
                context.report.error(
                    "name-clash",
                    f"the methods {known.wire!r} and {method.wire!r} map to one handler, {method.name}",
                    at=method.pointer,
                )
