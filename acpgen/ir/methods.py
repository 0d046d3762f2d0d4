"""Pair requests, responses and notifications by `x-method`, `x-side` and the suffix of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.context import Context
from acpgen.ir.objects import Definitions
from acpgen.roles import HANDLERS, Side
from acpgen.schema.compose import Composed
from acpgen.schema.document import join
from acpgen.schema.walk import definition_pointer, description, own_references, references, walk
from acpgen.text import did_you_mean

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
    return definitions.reachable(sent) - definitions.reachable(received)


@dataclass(slots=True)
class _Group:
    """The definitions of one method, by suffix."""

    wire: str
    parts: dict[str, str] = field(default_factory=dict)


def lower_methods(context: Context, composed: Composed) -> tuple[ir.Method, ...]:
    """The methods of the schema in the order of their first definition. Definitions that do not pair are reported."""
    docs = _method_docs(context, composed.root)
    methods = [
        method for group in _groups(context) for method in _group_methods(context, group, composed=composed, docs=docs)
    ]
    _check_names(context, methods)
    _check_unrouted(context)
    return tuple(methods)


def _groups(context: Context) -> list[_Group]:
    groups: dict[str, _Group] = {}
    for name, node in context.definitions.nodes.items():
        if isinstance(node, dict) and name not in context.definitions.envelopes:
            if "x-method" in node and "x-side" in node:
                _sort_in(context, groups.setdefault(node["x-method"], _Group(node["x-method"])), name)
            elif "x-method" in node or "x-side" in node:
                missing = "x-side" if "x-method" in node else "x-method"
                context.report.warning(
                    "unpaired-method", f"{name} has no `{missing}` and is not routed", at=definition_pointer(name)
                )
    return list(groups.values())


def _sort_in(context: Context, group: _Group, name: str) -> None:
    suffix = next((part for part in _PARTS if name.endswith(part)), None)
    if suffix is None:
        context.report.warning(
            "unpaired-method",
            f"{name} belongs to {group.wire!r}, but its name ends in none of {', '.join(_PARTS)}; it is not routed",
            at=definition_pointer(name),
        )
    elif suffix in group.parts:
        context.report.error(
            "method-clash",
            f"{group.wire!r} has two definitions for its {suffix.lower()}: {group.parts[suffix]} and {name}",
            at=definition_pointer(name),
        )
    else:
        group.parts[suffix] = name


def _group_methods(
    context: Context, group: _Group, *, composed: Composed, docs: Mapping[str, str]
) -> Iterator[ir.Method]:
    for part, kind in (("Request", ir.MethodKind.REQUEST), ("Notification", ir.MethodKind.NOTIFICATION)):
        if part in group.parts:
            yield from _method(context, group, kind, group.parts[part], composed=composed, docs=docs)
    if "Response" in group.parts and "Request" not in group.parts:
        name = group.parts["Response"]
        context.report.warning(
            "unpaired-method", f"{name} answers no request; it is not routed", at=definition_pointer(name)
        )


def _method(
    context: Context,
    group: _Group,
    kind: ir.MethodKind,
    definition: str,
    *,
    composed: Composed,
    docs: Mapping[str, str],
) -> Iterator[ir.Method]:
    node, pointer = context.definitions.nodes[definition], definition_pointer(definition)
    side = node["x-side"]
    if side not in HANDLERS:
        context.report.warning(
            "unknown-side",
            f"{group.wire!r} is for the side {side!r}, which acpgen does not know: types only, no routing",
            at=join(pointer, "x-side"),
            hint=did_you_mean(str(side), HANDLERS),
        )
    if not HANDLERS.get(side):
        return
    name = names.method_name(group.wire)
    if not name:
        context.refuse_name(f"the method {group.wire!r}", join(pointer, "x-method"), hint=None)
    if kind is ir.MethodKind.NOTIFICATION and "Request" in group.parts:
        name += "_notification"
    yield ir.Method(
        wire=group.wire,
        name=name,
        kind=kind,
        side=side,
        handlers=HANDLERS[side],
        params=ir.Ref(context.class_name(definition)),
        result=_result(context, group) if kind is ir.MethodKind.REQUEST else None,
        gate=composed.facts.gates.get(group.wire),
        doc=docs.get(definition) or str(node.get("description", "")),
        pointer=pointer,
        origin=context.origin(pointer),
    )


def _check_unrouted(context: Context) -> None:
    """Warn about definitions that look like messages but have no `x-method`."""
    if unrouted := list(_unrouted(context)):
        context.report.warning(
            "unrouted-message",
            f"no `x-method`: these get types but no routing: {_listed(unrouted)}",
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


def _listed(found: list[str]) -> str:
    more = len(found) - _MOST_NAMES
    return ", ".join(found[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _result(context: Context, group: _Group) -> ir.TypeExpr:
    request, response = group.parts["Request"], group.parts.get("Response")
    if response is None:
        context.report.warning(
            "unpaired-method",
            f"{group.wire!r} has a request but no response; its result is any JSON",
            at=definition_pointer(request),
        )
        return ir.AnyJson()
    nodes = context.definitions.nodes
    if nodes[request]["x-side"] != nodes[response]["x-side"]:
        context.report.error(
            "side-clash",
            f"{request} and {response} disagree on who handles {group.wire!r}",
            at=join(definition_pointer(response), "x-side"),
            hint="`x-side` is the peer that handles the request, on both",
        )
    return ir.Ref(context.class_name(response))


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
    for side in Side:
        seen: dict[str, ir.Method] = {}
        for method in methods:
            if side not in method.handlers:
                continue
            known = seen.setdefault(method.name, method)
            if known is not method:
                context.report.error(
                    "name-clash",
                    f"the methods {known.wire!r} and {method.wire!r} map to one handler, {method.name}",
                    at=method.pointer,
                )
