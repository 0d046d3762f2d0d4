"""What a schema says about JSON-RPC itself: ids and cancellation. The runtime follows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acpgen.ir.context import Context
from acpgen.ir.model import Cancel, Envelope, Kind, Method, Ref, Struct
from acpgen.ir.role import Role
from acpgen.schema.pointer import join
from acpgen.schema.walk import referenced_definition, walk


def lower_envelope(context: Context, root: dict[str, Any], methods: tuple[Method, ...]) -> Envelope:
    """The rules for messages, found by structure in the envelopes of the schema. Warns if the root allows batches."""
    batches = [pointer for pointer, branch in _branches(root) if branch.get("type") == "array"]
    if batches:
        context.report.warning(
            "batches",
            "batches are no part of ACP: packages answer an array of messages with one error",
            at=batches[0],
            hint="send each message on its own",
        )
    ids = set(_id_definitions(context))
    return Envelope(
        cancel=next((found for method in methods if (found := _cancel(context, method, ids))), None),
        null_ids=not ids or any(_takes_null(context.definitions.nodes[name]) for name in ids),
        null_error_ids=_has_null_error_ids(context),
    )


def _has_null_error_ids(context: Context) -> bool:
    """Whether the id beside an `error` may be null, as JSON-RPC has it where nothing else is said."""
    found = [
        [node["properties"]["id"], *(context.definitions.nodes[name] for name in _targets(node["properties"]["id"]))]
        for envelope in context.definitions.envelopes
        for _, node in walk(context.definitions.nodes[envelope])
        if isinstance(node, dict) and {"id", "error"} <= node.get("properties", {}).keys()
    ]
    return not found or any(_takes_null(node) for nodes in found for node in nodes)


def _id_definitions(context: Context) -> Iterator[str]:
    """The definitions that type the `id` of requests."""
    for envelope in context.definitions.envelopes:
        for pointer, node in walk(context.definitions.nodes[envelope]):
            if pointer.endswith("/properties/id"):
                yield from _targets(node)


def _targets(node: Any) -> Iterator[str]:
    for part in [node, *node.get("allOf", [])] if isinstance(node, dict) else []:
        if (target := referenced_definition(part)) is not None:
            yield target


def _cancel(context: Context, method: Method, ids: set[str]) -> Cancel | None:
    """The method that cancels requests: a notification of both peers that must name one thing, the id of a request."""
    params = context.lowered.get(method.params.name) if isinstance(method.params, Ref) else None
    if method.kind is not Kind.NOTIFICATION or set(method.handlers) != set(Role) or not isinstance(params, Struct):
        return None
    required = [field for field in params.fields if field.required]
    if len(required) != 1 or not isinstance(required[0].type, Ref):
        return None
    if required[0].type.name not in {context.class_name(name) for name in ids}:
        return None
    return Cancel(method=method.wire, key=required[0].wire)


def _branches(node: Any, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """`node` and the alternatives of its unions, at any depth, each with its pointer below `node`."""
    if isinstance(node, dict):
        yield pointer, node
        for key in ("anyOf", "oneOf"):
            for index, branch in enumerate(node.get(key, [])):
                yield from _branches(branch, join(pointer, key, index))


def _takes_null(node: Any) -> bool:
    return any("null" in (kind, *(kind if isinstance(kind, list) else ())) for kind in _types(node))


def _types(node: Any) -> Iterator[Any]:
    return (branch.get("type") for _, branch in _branches(node))
