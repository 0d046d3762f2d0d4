"""Conclude from example messages and values: methods, variants of a type in the schema, and properties of errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Location, input_error
from acpgen.ir.names import pascal
from acpgen.rfd.base import (
    Base,
    error_object,
    lower_words,
    nullable,
    properties_of,
    reference,
    required_of,
    styled,
    without_prose,
)
from acpgen.rfd.blocks import Findings, Source
from acpgen.rfd.entries import Entry
from acpgen.rfd.values import Message, MessageKind, Piece
from acpgen.schema.alternatives import find_union, type_of_constant
from acpgen.schema.document import join
from acpgen.schema.equality import json_text
from acpgen.schema.fragment import mark
from acpgen.schema.walk import layers, schema_list, schema_map

ENDINGS = ("Request", "Response", "Notification")
_MAX_METHODS = 500
"""The limit for new methods; a text with more is a schema, not an RFD."""
_MAX_PROPERTIES = 100
_MAX_DEPTH = 3
_OPTIONAL = re.compile(r"\boptional\b", re.IGNORECASE)
_CONSTANT_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


# --- Methods ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """A method that the text adds. `definitions` has its types by ending, `side` the side that handles it if known."""

    name: str
    location: Location
    is_notification: bool
    definitions: Mapping[str, str]
    side: str | None

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the definitions that it needs."""
        return ENDINGS[2:] if self.is_notification else ENDINGS[:2]


def find_methods(
    entries: Mapping[str, Entry], messages: Sequence[Message], base: Base
) -> tuple[list[Method], list[str]]:
    """The new methods in the order of the text, and the definitions of methods that the text does not name."""
    found = {
        entry.node["x-method"]: entry.location
        for entry in reversed(list(entries.values()))
        if isinstance(entry.node, dict) and isinstance(entry.node.get("x-method"), str)
    }
    for message in messages:
        if message.is_call and message.method and message.method not in base.methods:
            found.setdefault(message.method, message.location)
    if len(found) > _MAX_METHODS:
        raise input_error("rfd-too-large", f"the text has more than {_MAX_METHODS} new methods")
    owners, orphans = _owners(entries, list(found))
    kinds: dict[str | None, set[MessageKind]] = {}
    for message in messages:
        kinds.setdefault(message.method, set()).add(message.kind)
    return [
        _method(name, location, definitions=owners.get(name, {}), entries=entries, kinds=kinds.get(name, set()))
        for name, location in sorted(found.items(), key=lambda item: (item[1], item[0]))
    ], orphans


def _owners(entries: Mapping[str, Entry], methods: list[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The definitions by method and ending, and those with such an ending that belong to no method."""
    found: dict[str, dict[str, str]] = {}
    orphans = []
    for name, entry in entries.items():
        ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
        if ending is None or entry.is_change:
            continue
        stated = entry.node.get("x-method") if isinstance(entry.node, dict) else None
        method = stated if isinstance(stated, str) else method_of(name.removesuffix(ending), methods)
        if method is None:
            orphans.append(name)
        else:
            found.setdefault(method, {}).setdefault(ending, name)
    return found, orphans


def method_of(stem: str, methods: Iterable[str]) -> str | None:
    """The one method whose name has the words of `stem`, or ends with them, in any order.

    `NewSession` and `SessionNew` both belong to `session/new`, or else to `_vendor/session/new`.
    """
    wanted = sorted(lower_words(stem))
    whole = [method for method in methods if sorted(lower_words(method)) == wanted]
    ends = [method for method in methods if wanted and sorted(lower_words(method)[-len(wanted) :]) == wanted]
    found = whole or ends
    return found[0] if wanted and len(found) == 1 else None


def _method(
    name: str,
    location: Location,
    *,
    definitions: Mapping[str, str],
    entries: Mapping[str, Entry],
    kinds: set[MessageKind],
) -> Method:
    stated = {schema_map({"": entries[each].node}, "").get("x-side") for each in definitions.values()} - {None}
    is_request = MessageKind.REQUEST in kinds or bool({*ENDINGS[:2]} & definitions.keys())
    return Method(
        name=name,
        location=location,
        is_notification=not is_request and ("Notification" in definitions or MessageKind.NOTIFICATION in kinds),
        definitions=definitions,
        side=side if len(stated) == 1 and isinstance(side := stated.pop(), str) else None,
    )


def report_messages(messages: Sequence[Message], methods: Iterable[Method], findings: Findings) -> None:
    """Note how every message was understood; warn about one that contradicts the rest of the text."""
    new = {method.name: method for method in methods}
    requests = {each.method: each.location for each in reversed(messages) if each.kind is MessageKind.REQUEST}
    for message in messages:
        method = new.get(message.method or "")
        if not message.is_call:
            text = f"an example: a response to {message.method or 'a request that is not shown'}"
        else:
            text = f"an example: a {message.kind.value} of {message.method}"
            text += "" if method else ", which the schema has"
        other = _contradiction(message, method, requests.get(message.method)) if method and message.is_call else ""
        if other:
            hint = "a request has an `id`, a notification has none: correct the wrong one"
            findings.warn("rfd-example", f"{text}, but a {other}", message.location, hint=hint)
        else:
            findings.note("rfd-example", text, message.location)


def _contradiction(message: Message, method: Method, request: Location | None) -> str:
    if message.kind is MessageKind.REQUEST:
        name = method.definitions.get("Notification")
        return f"notification elsewhere: {name}" if name else ""
    name = method.definitions.get("Response") or method.definitions.get("Request")
    name = name or (f"line {request.line}" if request else None)
    return f"request elsewhere: {name}" if name else ""


# --- Variants --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shape:
    """The properties that all values of a type have, and the required ones among them."""

    properties: Mapping[str, Any]
    required: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Variant:
    """An example of a variant of the type `owner`, with the value of its tag."""

    owner: str
    piece: Piece
    tag: str
    value: str
    is_optional: bool

    @property
    def name(self) -> str:
        """The name of its definition, as in the schemas."""
        return self.owner + pascal(self.value)


def infer_variants(
    values: Sequence[Piece], *, base: Base, source: Source, findings: Findings
) -> tuple[list[Entry], set[Piece]]:
    """The entries for examples of variants, and the examples that were used."""
    found = list(_variants(values, base, source))
    new: dict[str, list[_Variant]] = {}
    for variant in found:
        if _is_known(variant, base):
            message = f"an example of {variant.owner}: the schema has {variant.value!r} already"
            findings.note("rfd-example", message, variant.piece.location(""))
        else:
            new.setdefault(variant.owner, []).append(variant)
    entries = [entry for variants in new.values() for entry in _variant_entries(variants, base, findings)]
    return entries, {variant.piece for variant in found}


def _variants(values: Sequence[Piece], base: Base, source: Source) -> Iterator[_Variant]:
    """The values of a type that the schema has and the text names, each with another value of a new tag."""
    mentioned = set(re.findall(r"(?<!\w)[A-Z]\w{1,100}", "\n".join(source.lines)))
    shapes = {name: _shape(name, base) for name in base.definitions if {name, f"{name}s"} & mentioned}
    by_owner: dict[str, list[Piece]] = {}
    for piece in values:
        if len(piece.root) <= _MAX_PROPERTIES and (owner := _owner(piece.root, shapes)):
            by_owner.setdefault(owner, []).append(piece)
    for owner, pieces in by_owner.items():
        tag = _tag(pieces, shapes[owner])
        if tag is None:
            continue
        for piece in pieces:
            is_optional = bool(_OPTIONAL.search(piece.comment(join("", tag))))
            yield _Variant(owner=owner, piece=piece, tag=tag, value=piece.root[tag], is_optional=is_optional)


def _owner(value: Mapping[str, Any], shapes: Mapping[str, _Shape]) -> str | None:
    """The one type whose required properties the value has, and most of its other properties."""
    scores = {
        name: len(value.keys() & shape.properties.keys())
        for name, shape in shapes.items()
        if shape.required and shape.required <= value.keys()
    }
    best = [name for name, score in scores.items() if score == max(scores.values())]
    return best[0] if len(best) == 1 else None


def _shape(name: str, base: Base) -> _Shape:
    """The shape of a definition; for a union, that which all its members share apart from the tag."""
    node, definitions = base.definitions[name], base.definitions
    union = find_union(node, {}, definitions)
    if union is None:
        properties = {wire: child for _, wire, child in properties_of(name, definitions)}
        return _Shape(properties, frozenset(required_of(name, definitions)))
    members = [[layer for _, layer in layers(member, "", definitions)] for member in union.members]
    wires = [{wire for layer in member for wire in schema_map(layer, "properties")} for member in members]
    required = [{wire for layer in member for wire in map(str, schema_list(layer, "required"))} for member in members]
    common = set.intersection(*wires) - {union.tag}
    first = {wire: child for layer in members[0] for wire, child in schema_map(layer, "properties").items()}
    properties = {wire: child for wire, child in first.items() if wire in common}
    return _Shape(properties, frozenset(set.intersection(*required) & common))


def _is_known(variant: _Variant, base: Base) -> bool:
    union = find_union(base.definitions[variant.owner], {}, base.definitions)
    tags = [union.identity(member) for member in union.members] if union else []
    return variant.name in base.definitions or ("value", json_text(variant.value)) in tags


def _tag(pieces: list[Piece], shape: _Shape) -> str | None:
    """The one new property that has a different text in each of the values."""
    found = [
        wire
        for wire in pieces[0].root
        if wire not in shape.properties
        and all(isinstance(piece.root.get(wire), str) and pascal(piece.root[wire]) for piece in pieces)
        and len({piece.root[wire] for piece in pieces}) == len(pieces)
    ]
    return found[0] if len(found) == 1 and len(pieces) > 1 else None


def _variant_entries(variants: list[_Variant], base: Base, findings: Findings) -> Iterator[Entry]:
    owner, present = variants[0].owner, base.definitions[variants[0].owner]
    for variant in variants:
        message = f"{variant.name} is inferred from this example of {owner}: check types and required properties"
        findings.warn("rfd-inferred", message, variant.piece.location(""))
        yield _entry(variant.name, _variant_schema(variant, _shape(owner, base)), variant.piece, is_change=False)
    # a member without a tag accepts every value, so it comes last
    members = [_member(variant) for variant in sorted(variants, key=lambda variant: variant.is_optional)]
    is_union = bool(schema_list(present, "anyOf") or schema_list(present, "oneOf"))
    replacement = {"expect": without_prose(present), "with": {"anyOf": members}}
    change = {"members": members} if is_union else {"replace": replacement}
    yield _entry(owner, change, variants[0].piece, is_change=True)


def _entry(name: str, node: Any, piece: Piece, *, is_change: bool) -> Entry:
    return Entry(name=name, node=node, is_change=is_change, location=piece.location(""), lines=piece.lines(""))


def _variant_schema(variant: _Variant, shape: _Shape) -> dict[str, Any]:
    """The properties of the type and those of the example, in the order of the example."""
    inherited = {wire: without_prose(node) for wire, node in shape.properties.items()}
    properties: dict[str, Any] = {}
    unsure = []
    for wire, value in variant.piece.root.items():
        if wire in inherited:
            properties[wire] = inherited[wire]
        elif wire != variant.tag:
            comment = variant.piece.comment(join("", wire))
            is_optional = bool(_OPTIONAL.search(comment) or (isinstance(value, str) and _OPTIONAL.match(value)))
            schema = _schema_of(value)
            properties[wire] = nullable(schema) if is_optional and isinstance(schema, dict) else schema
            unsure += [] if is_optional else [wire]
        elif variant.is_optional:
            properties[wire] = {"type": "string", "const": value, "default": value}
    properties |= {wire: node for wire, node in inherited.items() if wire not in properties}
    required = sorted(shape.required, key=lambda wire: (list(properties).index(wire), wire))
    if unsure:
        required.append(mark(f"those of {', '.join(unsure)} that are never absent"))
    return dict(styled({"type": "object", "properties": properties, "required": required}))


def _schema_of(value: Any, depth: int = 0) -> Any:
    """The schema of an example; a mark for a value that does not determine one."""
    match value:
        case bool() | int() | str():
            return {"type": type_of_constant(value)}
        case float():
            return {"type": "number"}
        case list() if isinstance(item := _common(value, depth), dict):
            return {"type": "array", "items": item}
        # constant-like names, as those of environment variables, are data: the object is a map
        case dict() if all(map(_CONSTANT_NAME.fullmatch, value)) and isinstance(
            item := _common(value.values(), depth), dict
        ):
            return {"type": "object", "additionalProperties": item}
    return mark("a schema: the example does not determine one")


def _common(values: Iterable[Any], depth: int) -> Any:
    """The schema that all values share; None if there is none."""
    schemas = [_schema_of(value, depth + 1) for value in values] if depth < _MAX_DEPTH else []
    return schemas[0] if schemas and all(schema == schemas[0] for schema in schemas) else None


def _member(variant: _Variant) -> dict[str, Any]:
    rest = [reference(variant.name)]
    if variant.is_optional:
        return {"title": variant.value, "allOf": rest}
    tag = {variant.tag: {"type": "string", "const": variant.value}}
    return {"type": "object", "properties": tag, "required": [variant.tag], "allOf": rest}


# --- Errors ----------------------------------------------------------------------------------------------------------


def infer_errors(messages: Iterable[Message], *, base: Base, findings: Findings) -> Iterator[Entry]:
    """The properties of errors in examples that the schema does not have."""
    target = error_object(base.definitions)
    known = base.properties(target) if target else set()
    for message in messages:
        error = message.piece.root.get("error")
        if message.kind is not MessageKind.ERROR or target is None or not isinstance(error, dict):
            continue
        added = {wire: _like_elsewhere(wire, value, base) for wire, value in error.items() if wire not in known}
        if added and len(error) <= _MAX_PROPERTIES:
            text = f"{', '.join(added)} of {target}: inferred from this example of an error"
            findings.warn("rfd-inferred", text, message.piece.location("/error"))
            known |= added.keys()
            yield _entry(target, {"properties": added}, message.piece, is_change=True)


def _like_elsewhere(wire: str, value: Any, base: Base) -> Any:
    """The schema of the property of that name if there is just one in the schema, else that of the example."""
    shapes: list[Any] = []
    for node in base.definitions.values():
        property_ = schema_map(node, "properties").get(wire)
        if isinstance(property_, dict):
            shape = {key: part for key, part in without_prose(property_).items() if key != "default"}
            shapes += [shape] if shape not in shapes else []
    return shapes[0] if len(shapes) == 1 else _schema_of(value)
