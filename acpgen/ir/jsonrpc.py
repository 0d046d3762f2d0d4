"""JSON-RPC in the schema: the envelope definitions, and the error object with its codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from acpgen.ir import model as ir
from acpgen.ir import names
from acpgen.ir.context import Context
from acpgen.roles import Side
from acpgen.schema.walk import own_references, schema_map, union_members, walk


def lower_envelope(context: Context, root: dict[str, Any], methods: tuple[ir.Method, ...]) -> ir.Envelope:
    """Find the rules for messages in the envelopes of the schema, by structure. Warns if the root allows batches."""
    batches = [pointer for pointer, branch in _branches(root) if branch.get("type") == "array"]
    if batches:
        context.report.warning(
            "batches",
            "batches are no part of ACP: packages answer an array of messages with one error",
            at=batches[0],
            hint="send each message on its own",
        )
    ids = {name for properties in _envelopes(context) for name in own_references(properties.get("id"))}
    return ir.Envelope(
        cancel=next((found for method in methods if (found := _cancel(context, method, ids))), None),
        null_ids=not ids or any(_takes_null(context.definitions.nodes[name]) for name in ids),
        null_error_ids=_has_null_error_ids(context),
    )


def _has_null_error_ids(context: Context) -> bool:
    """True if the id of an error response may be null, which is the default in JSON-RPC."""
    ids = [properties["id"] for properties in _envelopes(context) if {"id", "error"} <= properties.keys()]
    ids += [context.definitions.nodes[name] for node in ids for name in own_references(node)]
    return not ids or any(map(_takes_null, ids))


def _envelopes(context: Context) -> Iterator[Mapping[str, Any]]:
    """The `properties` of each object in the envelopes."""
    for name, node in context.definitions.nodes.items():
        if name in context.definitions.envelopes:
            yield from (schema_map(each, "properties") for _, each in walk(node))


def _cancel(context: Context, method: ir.Method, ids: set[str]) -> ir.Cancel | None:
    """The method that cancels requests: a notification for both peers whose one required property is a request id."""
    params = context.lowered.get(method.params.name) if isinstance(method.params, ir.Ref) else None
    if method.kind is not ir.MethodKind.NOTIFICATION or set(method.handlers) != set(Side):
        return None
    id_types = {context.class_name(name) for name in ids}
    match [field for field in params.fields if field.required] if isinstance(params, ir.Struct) else []:
        case [ir.Field(wire=key, type=ir.Ref(name))] if name in id_types:
            return ir.Cancel(method=method.wire, key=key)
    return None


def _branches(node: Any, pointer: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """`node` and the alternatives of its unions, at any depth, each with its pointer below `node`."""
    if isinstance(node, dict):
        yield pointer, node
        for where, branch in union_members(node, pointer):
            yield from _branches(branch, where)


def _takes_null(node: Any) -> bool:
    types = [branch.get("type") for _, branch in _branches(node)]
    return any(each == "null" or (isinstance(each, list) and "null" in each) for each in types)


_JSON_RPC_CODES = (
    (-32700, "Parse error", "What arrived is not JSON."),
    (-32600, "Invalid request", "What arrived is JSON, yet no request object."),
    (-32601, "Method not found", "The peer does not offer the method."),
    (-32602, "Invalid params", "The parameters do not fit the method."),
    (-32603, "Internal error", "The peer failed while it handled the request."),
)
"""The codes of JSON-RPC 2.0 (section 5.1)."""


def lower_errors(context: Context) -> ir.Errors:
    """The error object and codes of the schema, or those of JSON-RPC 2.0 if it defines none."""
    found = next(_error_objects(context), None)
    codes = {code: _error_code(code, title, doc) for code, title, doc in _JSON_RPC_CODES}
    for named in _named_codes(context, found) if found else ():
        if named.code in codes:
            # other modules import these classes: the schema may describe but not rename them
            codes[named.code] = replace(named, name=codes[named.code].name)
        elif _is_free(named.name, {code.name for code in codes.values()}, context):
            codes[named.code] = named
    return ir.Errors(object=found.name if found else None, codes=tuple(codes.values()))


def _is_free(name: str, taken: set[str], context: Context) -> bool:
    """True if a code may have a class with this name; otherwise it is a plain `RequestError`."""
    is_taken = name in taken or name in context.lowered or name in names.RESERVED_CLASSES
    return name.isidentifier() and not is_taken


def _error_objects(context: Context) -> Iterator[ir.Struct]:
    for properties in _envelopes(context):
        for name in own_references(properties.get("error")):
            found = context.lowered.get(context.class_name(name))
            if isinstance(found, ir.Struct) and {"code", "message", "data"} <= {field.wire for field in found.fields}:
                yield found


def _named_codes(context: Context, error: ir.Struct) -> Iterator[ir.ErrorCode]:
    code: ir.Field = next(field for field in error.fields if field.wire == "code")
    enum = context.lowered.get(code.type.name) if isinstance(code.type, ir.Ref) else None
    if not isinstance(enum, ir.Enum):
        return
    for member in enum.members:
        if isinstance(member.value, int) and member.title and names.pascal(member.title):
            yield _error_code(member.value, member.title, member.doc)


def _error_code(code: int, title: str, doc: str) -> ir.ErrorCode:
    name = names.pascal(title)
    return ir.ErrorCode(code=code, name=name if name.endswith("Error") else name + "Error", title=title, doc=doc)
