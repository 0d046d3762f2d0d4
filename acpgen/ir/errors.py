"""Find the error object and the named error codes: the type of `error` in the JSON-RPC responses of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from acpgen.ir import names
from acpgen.ir.context import Context
from acpgen.ir.model import Enum, ErrorCode, Errors, Field, Ref, Struct
from acpgen.schema.walk import referenced_definition, walk

_JSON_RPC_CODES = (
    (-32700, "Parse error", "What arrived is not JSON."),
    (-32600, "Invalid request", "What arrived is JSON, yet no request object."),
    (-32601, "Method not found", "The peer does not offer the method."),
    (-32602, "Invalid params", "The parameters do not fit the method."),
    (-32603, "Internal error", "The peer failed while it handled the request."),
)
"""The codes that JSON-RPC 2.0 itself defines (section 5.1)."""


def lower_errors(context: Context) -> Errors:
    """The error object and codes of the schema; where it has none, those of JSON-RPC 2.0 alone."""
    found = next(_error_objects(context), None)
    codes = {code: _error_code(code, title, doc) for code, title, doc in _JSON_RPC_CODES}
    for named in _named_codes(context, found) if found else ():
        if named.code in codes:
            # other modules import these classes: the schema may describe them, not rename them
            codes[named.code] = replace(named, name=codes[named.code].name)
        elif _is_free(named.name, {code.name for code in codes.values()}, context):
            codes[named.code] = named
    return Errors(object=found.name if found else None, codes=tuple(codes.values()))


def _is_free(name: str, taken: set[str], context: Context) -> bool:
    """Whether a code may have a class of that name; without one it is a plain `RequestError`."""
    is_taken = name in taken or name in context.lowered or name in names.RESERVED_CLASSES
    return name.isidentifier() and not is_taken


def _error_objects(context: Context) -> Iterator[Struct]:
    for name in context.definitions.nodes:
        if name not in context.definitions.envelopes:
            continue
        for pointer, node in walk(context.definitions.nodes[name]):
            if not pointer.endswith("/properties/error") or not isinstance(node, dict):
                continue
            for part in [node, *node.get("allOf", [])]:
                target = referenced_definition(part)
                definition = context.lowered.get(context.class_name(target)) if target else None
                if isinstance(definition, Struct) and {"code", "message", "data"} <= {
                    field.wire for field in definition.fields
                }:
                    yield definition


def _named_codes(context: Context, error: Struct) -> Iterator[ErrorCode]:
    code: Field = next(field for field in error.fields if field.wire == "code")
    enum = context.lowered.get(code.type.name) if isinstance(code.type, Ref) else None
    if not isinstance(enum, Enum):
        return
    for member in enum.members:
        if isinstance(member.value, int) and member.title and names.pascal(member.title):
            yield _error_code(member.value, member.title, member.doc)


def _error_code(code: int, title: str, doc: str) -> ErrorCode:
    name = names.pascal(title)
    return ErrorCode(code=code, name=name if name.endswith("Error") else name + "Error", title=title, doc=doc)
