"""Convert declarations in TypeScript to JSON Schema, with the idioms of ACP's schemas."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Report
from acpgen.rfd.base import Base, capability_owners, described, nullable, reference, styled
from acpgen.rfd.entries import Entry, with_defaults
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
_BASES = "extends_type_clause"
_ESCAPES = re.compile(r"[\\\n]")
"""The marks of a string with escapes or over several lines, which is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Converter:
    """Convert nodes of one block; `known` are the names that can be referred to."""

    code: Code
    known: Collection[str]
    report: Report

    def entry(self, declaration: Declaration) -> Entry:
        node, is_elided = declaration.node, False
        value = node.child_by_field_name("body") or node.child_by_field_name("value")
        if value is not None and value.type in ("interface_body", "object_type"):
            schema, is_elided = self.record(value, 0)
            bases = [
                self.schema(base, 0) for child in node.children if child.type == _BASES for base in types_of(child)
            ]
            schema = {**schema, "allOf": bases} if bases else schema
        else:
            schema = self.schema(value, 0)
        return Entry(
            name=declaration.name,
            node=styled(described(schema, declaration.doc)),
            is_change=is_elided,
            location=self.code.location(node),
            lines=self.code.range(node),
        )

    def record(self, node: Node, depth: int) -> tuple[dict[str, Any], bool]:
        """The schema of an object type, and whether the text leaves a part of it out."""
        items, is_elided = items_of(node.children, self.code)
        properties: dict[str, Any] = {}
        required: list[str] = []
        for item in items:
            name = item.node.child_by_field_name("name")
            if item.node.type == "property_signature" and name is not None and name.type == "property_identifier":
                wire = self.code.text(name)
                is_optional, properties[wire] = self.property(item, depth)
                required += [] if is_optional else [wire]
            else:
                self.code.report_unread(item.node, "is not a property", self.report)
        schema = {"type": "object", "properties": properties}
        return ({**schema, "required": list(dict.fromkeys(required))} if required else schema), is_elided

    def property(self, item: Item, depth: int) -> tuple[bool, Any]:
        """Whether the property is optional, and its schema; null stands for an absent value."""
        annotation = item.node.child_by_field_name("type")
        types = types_of(annotation) if annotation is not None and not item.node.has_error else []
        schema = self.schema(types[0], depth + 1) if types else self.unknown(item.node)
        is_optional = any(child.type == "?" for child in item.node.children)
        if is_optional and isinstance(schema, dict):
            schema = nullable(schema)
        return is_optional, styled(described(schema, item.doc))

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
            case "parenthesized_type":
                return self.schema(types[0], depth + 1)
            case "array_type":
                return {"type": "array", "items": self.schema(types[0], depth + 1)}
            case "union_type":
                return self.union(node, depth)
            case "object_type":
                return self.complete(node, *self.record(node, depth + 1))
        return self.unknown(node)

    def complete(self, node: Node, schema: Any, is_elided: bool) -> Any:
        """`schema`, after a report if the text leaves a part of it out."""
        if is_elided:
            message = "the text leaves out a part of this type, with `...`: it is not in the draft"
            self.report.warning("rfd-type", message, at=self.code.location(node))
        return schema

    def union(self, node: Node, depth: int) -> Any:
        items, is_elided = items_of(flat(node, "union_type"), self.code)
        kept = [item for item in items if self.code.text(item.node) != "null"]
        members = [styled(described(self.schema(item.node, depth + 1), item.doc)) for item in kept]
        found = members[0] if len(members) == 1 else {"anyOf": members} if members else {"type": "null"}
        if isinstance(found, dict) and len(kept) < len(items):
            found = nullable(found)
        return self.complete(node, found, is_elided)

    def reference(self, node: Node) -> Any:
        name = self.code.text(node)
        if name in self.known:
            return reference(name)
        return self.unknown(node, "is defined neither in the text nor in the schema", code="rfd-type")

    def generic(self, node: Node, depth: int) -> Any:
        name, arguments = node.child_by_field_name("name"), node.child_by_field_name("type_arguments")
        types = types_of(arguments) if arguments is not None else []
        match (self.code.text(name) if name is not None else "", types):
            case ("Array", [item]):
                return {"type": "array", "items": self.schema(item, depth + 1)}
            case ("Record", [key, value]) if self.code.text(key) == "string":
                return {"type": "object", "additionalProperties": self.schema(value, depth + 1) or True}
        return self.unknown(node)

    def constant(self, node: Node) -> Any:
        text = self.code.text(node)
        if text == "null":
            return {"type": "null"}
        if node.type == "string" and not node.has_error and not _ESCAPES.search(text):
            return {"type": "string", "const": text[1:-1]}
        return self.unknown(node)

    def unknown(self, node: Node | None, why: str = "has no schema", *, code: str = "rfd-typescript") -> str:
        if node is None:
            return mark("a schema")
        excerpt = self.code.excerpt(node)
        self.report.warning(code, f"`{excerpt}` {why}", at=self.code.location(node))
        return mark(f"a schema for: {excerpt}")


def convert_declarations(
    declarations: Iterable[Declaration], schemas: Mapping[str, Any], *, base: Base, report: Report
) -> list[Entry]:
    """The entries for declarations; `schemas` are the definitions that the text gives as JSON Schema."""
    declarations = list(declarations)
    known, owners = {**base.definitions, **schemas}, capability_owners(base.definitions)
    names = known.keys() | {each.name for each in declarations}
    found = [_Converter(code=each.code, known=names, report=report).entry(each) for each in declarations]
    return [with_defaults(entry, known) if entry.name in owners else entry for entry in found]
