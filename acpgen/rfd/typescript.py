"""Convert declarations in TypeScript to JSON Schema, with the idioms of ACP's schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from acpgen.rfd.base import Base, described, nullable, reference, styled
from acpgen.rfd.blocks import Findings, line_range
from acpgen.rfd.entries import Definition, with_defaults
from acpgen.rfd.syntax import Code, Declaration, Item, flat, items_of, types_of
from acpgen.schema.fragment import mark

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 30
"""The limit for the nesting of types; real texts stay below 5."""

_SIMPLE: Mapping[str, dict[str, Any]] = {
    **{name: {"type": name} for name in ("string", "number", "boolean", "null", "object")},
    "unknown": {},
    "any": {},
}
_ABSENT = frozenset({"null", "undefined"})
_LISTS = frozenset({"Array", "ReadonlyArray"})


@dataclass(slots=True)
class _Record:
    """The parts of an object type, with the lines of each property."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    values: Any = None
    lines: dict[str, range] = field(default_factory=dict)
    is_elided: bool = False

    def schema(self) -> dict[str, Any]:
        node: dict[str, Any] = {"type": "object"}
        if self.properties or self.values is None:
            node["properties"] = self.properties
        if self.required:
            node["required"] = list(dict.fromkeys(self.required))
        if self.values is not None:
            node["additionalProperties"] = True if self.values == {} else self.values
        return node


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converter:
    """Convert nodes of one block; `known` are the names that can be referred to."""

    code: Code
    known: Collection[str]
    findings: Findings

    def definition(self, declaration: Declaration) -> Definition:
        node, record, is_elided = declaration.node, _Record(), False
        body = node.child_by_field_name("body")
        value = node.child_by_field_name("value")
        if body is not None and node.type == "interface_declaration":
            record = self.record(body.children, 0)
            schema: Any = self.with_bases(node, record.schema())
        elif body is not None:
            schema = {"anyOf": [self.enum_member(item) for item in items_of(body.children, self.code)[0]]}
        elif value is not None and value.type == "object_type":
            record = self.record(value.children, 0)
            schema = record.schema()
        elif value is not None and value.type == "union_type":
            schema, is_elided = self.union(value, 0, trailing=declaration.trailing)
        else:
            schema = self.schema(value, 0)
        return Definition(
            name=declaration.name,
            node=styled(described(schema, declaration.doc)),
            block=self.code.block,
            location=self.code.location(node),
            lines=self.code.range(node),
            properties=record.lines,
            is_elided=is_elided or record.is_elided,
        )

    def with_bases(self, node: Node, schema: dict[str, Any]) -> dict[str, Any]:
        clauses = [child for child in node.children if child.type == "extends_type_clause"]
        bases = [self.schema(base, 0) for clause in clauses for base in types_of(clause)]
        return {**schema, "allOf": bases} if bases else schema

    def enum_member(self, item: Item) -> Any:
        value = item.node.child_by_field_name("value")
        schema = self.constant(value) if value is not None else self.unknown(item.node, "has no value")
        return styled(described(schema, item.doc or item.trailing))

    def record(self, nodes: Iterable[Node], depth: int) -> _Record:
        items, is_elided = items_of(nodes, self.code)
        found = _Record(is_elided=is_elided)
        for item in items:
            node = item.node
            name = node.child_by_field_name("name")
            wire = self.property_name(name) if name is not None else None
            index = node.child_by_field_name("index_type")
            if node.type == "index_signature" and index is not None and self.code.text(index) == "string":
                found.values = self.annotation(node, depth)
            elif node.type in ("property_signature", "method_signature") and wire:
                is_optional, found.properties[wire] = self.property(item, depth)
                found.required += [] if is_optional else [wire]
                found.lines[wire] = self.code.range(node)
            else:
                self.report_member(node)
        return found

    def report_member(self, node: Node) -> None:
        lines = self.code.range(node)
        where = line_range(lines.start, lines[-1])
        message = f"{where} not read: `{self.code.excerpt(node)}` is not a property"
        self.findings.warn("rfd-typescript", message, self.code.location(node))

    def property_name(self, name: Node) -> str | None:
        if name.type == "string":
            found = self.constant(name)
            return found.get("const") if isinstance(found, dict) else None
        return self.code.text(name) if name.type == "property_identifier" else None

    def property(self, item: Item, depth: int) -> tuple[bool, Any]:
        """Whether the property is optional, and its schema; null stands for an absent value."""
        node = item.node
        has_mark = any(child.type == "?" for child in node.children)
        schema = self.annotation(node, depth) if node.type == "property_signature" else self.unknown(node)
        annotation = node.child_by_field_name("type")
        types = types_of(annotation) if annotation is not None else []
        parts = [self.code.text(part) for type_ in types for part in flat(type_, "union_type")]
        if has_mark and isinstance(schema, dict):
            schema = nullable(schema)
        return has_mark or "undefined" in parts, styled(described(schema, item.doc or item.trailing))

    def annotation(self, node: Node, depth: int) -> Any:
        annotation = node.child_by_field_name("type")
        types = types_of(annotation) if annotation is not None and not node.has_error else []
        return self.schema(types[0], depth + 1) if types else self.unknown(node)

    def schema(self, node: Node | None, depth: int) -> Any:
        """The schema of a type; a mark for a type that has none, which is reported."""
        if node is None or node.has_error:
            return self.unknown(node)
        if depth > MAX_DEPTH:
            return self.unknown(node, f"is nested more than {MAX_DEPTH} deep")
        types = types_of(node)
        text = self.code.text(node) if not types else ""
        match node.type:
            case "predefined_type" if text in _SIMPLE:
                return dict(_SIMPLE[text])
            case "literal_type" if types:
                return self.constant(types[0])
            case "type_identifier":
                return self.reference(node)
            case "generic_type":
                return self.generic(node, depth)
            case "parenthesized_type" | "readonly_type":
                return self.schema(types[0], depth + 1)
            case "array_type":
                return {"type": "array", "items": self.schema(types[0], depth + 1)}
            case "union_type":
                schema, is_elided = self.union(node, depth)
                return self.complete(node, schema, is_elided=is_elided)
            case "intersection_type":
                return self.intersection(node, depth)
            case "object_type":
                record = self.record(node.children, depth + 1)
                return self.complete(node, record.schema(), is_elided=record.is_elided)
        return self.unknown(node)

    def complete(self, node: Node, schema: Any, *, is_elided: bool) -> Any:
        """`schema`, after a report if the text leaves a part of it out."""
        if is_elided:
            message = "the text leaves out a part of this type, with `...`: it is not in the draft"
            self.findings.warn("rfd-type", message, self.code.location(node))
        return schema

    def union(self, node: Node, depth: int, *, trailing: str = "") -> tuple[Any, bool]:
        items, is_elided = items_of(flat(node, "union_type"), self.code)
        kept = [item for item in items if self.code.text(item.node) not in _ABSENT]
        has_null = any(self.code.text(item.node) == "null" for item in items)
        if kept and items and kept[-1] is items[-1]:
            kept[-1].trailing = kept[-1].trailing or trailing
        if len(kept) == 1 and not is_elided:
            found = self.schema(kept[0].node, depth + 1)
        else:
            members = [(self.schema(item.node, depth + 1), item.doc or item.trailing) for item in kept]
            found = {"anyOf": [styled(described(schema, doc)) for schema, doc in members]} if kept else {"type": "null"}
        return (nullable(found) if has_null and isinstance(found, dict) else found), is_elided

    def intersection(self, node: Node, depth: int) -> Any:
        """`{ type: "a" } & A` in the idiom of the schemas: the object itself, and `allOf` for the rest."""
        parts = [part for part in flat(node, "intersection_type") if part.is_named and part.type != "comment"]
        members = [child for part in parts if part.type == "object_type" for child in part.children]
        rest = [self.schema(part, depth + 1) for part in parts if part.type != "object_type"]
        record = self.record(members, depth + 1)
        schema = self.complete(node, record.schema(), is_elided=record.is_elided) if members else {}
        return {**schema, "allOf": rest} if rest else schema

    def reference(self, node: Node) -> Any:
        name = self.code.text(node)
        if name in self.known:
            return reference(name)
        return self.unknown(node, "is defined neither in the text nor in the schema", code="rfd-type")

    def generic(self, node: Node, depth: int) -> Any:
        name, arguments = node.child_by_field_name("name"), node.child_by_field_name("type_arguments")
        types = types_of(arguments) if arguments is not None else []
        match (self.code.text(name) if name is not None else "", types):
            case (name_, [item]) if name_ in _LISTS:
                return {"type": "array", "items": self.schema(item, depth + 1)}
            case ("Record", [key, value]) if self.code.text(key) == "string":
                return _Record(values=self.schema(value, depth + 1)).schema()
        return self.unknown(node)

    def constant(self, node: Node) -> Any:
        text = self.code.text(node)
        match node.type:
            case "null" | "undefined":
                return {"type": "null"}
            case "true" | "false":
                return {"type": "boolean", "const": text == "true"}
            case "string" if not node.has_error and (value := _string(text)) is not None:
                return {"type": "string", "const": value}
            case "number" | "unary_expression" if re.fullmatch(r"-?[0-9]{1,15}", text):
                return {"type": "integer", "const": int(text)}
        return self.unknown(node)

    def unknown(self, node: Node | None, why: str = "has no schema", *, code: str = "rfd-typescript") -> str:
        if node is None:
            return mark("a schema")
        excerpt = self.code.excerpt(node)
        self.findings.warn(code, f"`{excerpt}` {why}", self.code.location(node))
        return mark(f"a schema for: {excerpt}")


def _string(text: str) -> str | None:
    """The value of a string; None if it has an escape that JSON does not have."""
    inner = text[1:-1]
    if text[0] == "'":
        inner = inner.replace("\\'", "'").replace('"', '\\"')
    try:
        found = str(json.loads(f'"{inner}"', strict=False))
        found.encode()
    except ValueError:
        return None
    return found


def convert_declarations(
    declarations: Iterable[Declaration], schemas: Mapping[str, Any], *, base: Base, findings: Findings
) -> list[Definition]:
    """The definitions of declarations; `schemas` are the definitions that the text gives as JSON Schema."""
    declarations = list(declarations)
    known = base.definitions.keys() | schemas.keys() | {each.name for each in declarations}
    found = [_Converter(code=each.code, known=known, findings=findings).definition(each) for each in declarations]
    return with_defaults(found, schemas, base)
