"""Convert declarations in TypeScript, as tree-sitter parses them, to JSON Schema with the idioms of ACP's schemas."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Location, Report
from acpgen.rfd.base import Base, capability_slots, described, nullable, reference, styled
from acpgen.rfd.blocks import Block, line_range
from acpgen.rfd.entries import DraftEntry, with_defaults
from acpgen.schema.fragment import mark
from acpgen.text import cut

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CODE = 32 * 1024
"""The limit for one block, in bytes: error recovery takes quadratic time. Blocks of real texts stay below 4 KB."""
_DECLARATIONS = frozenset({"interface_declaration", "type_alias_declaration"})
_WRAPPERS = frozenset({"export_statement", "ambient_declaration"})

_ELISION = re.compile(
    r"\.\.\.|…|\b(?:existing|other|remaining) (?:fields|properties|members|variants|values)", re.IGNORECASE
)
_ELLIPSIS_LINE = re.compile(rb"(?m)^([ \t]*)\.\.\.(?=[ \t]*[;,]?[ \t]*$)")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypeScriptCode:
    """A block and its text as bytes: nodes of tree-sitter have byte offsets."""

    block: Block
    data: bytes
    lines: list[bytes]

    def text(self, node: Node) -> str:
        """The text of a node, as the block has it."""
        return self.data[node.start_byte : node.end_byte].decode()

    def excerpt(self, node: Node) -> str:
        """The text of a node on one line, cut to the length of a message."""
        return cut(" ".join(self.text(node).split()))

    def location(self, node: Node) -> Location:
        """The start of a node in the source."""
        row, column = node.start_point
        return self.block.at(row, len(self.lines[row][:column].decode()))

    def range(self, node: Node) -> range:
        """The lines of a node in the source."""
        start, end = node.start_point, node.end_point
        # a node that takes the end of a line ends in column 0 of the next one
        last = max(start.row, end.row - (end.column == 0))
        return range(self.block.first + start.row, self.block.first + last + 1)

    def report_unread(self, node: Node, why: str, report: Report) -> None:
        """Report a node that is not read."""
        lines = self.range(node)
        message = f"{line_range(lines.start, lines[-1])} not read: `{self.excerpt(node)}` {why}"
        hint = "add what it says to the draft where it matters"
        report.warning("rfd-typescript", message, at=self.location(node), hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """An interface or type alias. `doc` is the documentation before it."""

    name: str
    node: Node
    doc: str
    code: TypeScriptCode


@dataclass(frozen=True, slots=True)
class Item:
    """A node with the documentation before it."""

    node: Node
    doc: str


def read_declarations(block: Block, report: Report) -> list[Declaration]:
    """Parse the declarations in a block; report all other lines."""
    # imported here because they belong to the extra `rfd`
    from tree_sitter import Language, Parser
    from tree_sitter_typescript import language_typescript

    data = block.text.encode()
    if len(data) > MAX_CODE:
        message = f"{line_range(block.first, block.last)} not read: more than {MAX_CODE // 1024} KiB of TypeScript"
        report.warning("rfd-typescript", message, at=block.location(0))
        return []
    code = TypeScriptCode(block=block, data=data, lines=data.split(b"\n"))
    # a line of `...` is not valid TypeScript: it is parsed as a comment, of the same length to keep all positions
    root = Parser(Language(language_typescript())).parse(_ELLIPSIS_LINE.sub(rb"\1// ", data)).root_node
    items, _ = items_of(root.children, code)
    found = []
    for item in items:
        if declaration := _declaration(item, code):
            found.append(declaration)
        elif item.node.type != "empty_statement":
            what = "is not a valid interface or type alias without type parameters"
            code.report_unread(item.node, what, report)
    return found


def items_of(nodes: Iterable[Node], code: TypeScriptCode) -> tuple[list[Item], bool]:
    """The nodes with the `/** */` comment before each, and whether another comment stands for more of them."""
    found: list[Item] = []
    doc, is_elided = "", False
    for node in nodes:
        if node.type == "comment":
            text = code.text(node)
            if text.startswith("/**"):
                doc = _doc(text)
            else:
                is_elided = is_elided or _ELISION.search(text) is not None
        elif node.is_named or node.is_missing:
            found.append(Item(node, doc))
            doc = ""
    return found, is_elided


def _doc(comment: str) -> str:
    lines = (line.strip().lstrip("*").strip() for line in comment[2:].removesuffix("*/").split("\n"))
    return " ".join(line for line in lines if line)


def _declaration(item: Item, code: TypeScriptCode) -> Declaration | None:
    """The declaration in a statement; None for other statements and for those with an error outside of members."""
    node = item.node
    while node.type in _WRAPPERS and node.named_children:
        node = node.named_children[-1]
    name = node.child_by_field_name("name")
    if node.type not in _DECLARATIONS or name is None or node.child_by_field_name("type_parameters"):
        return None
    body = node.child_by_field_name("body")
    if any(child.is_error or child.is_missing for child in node.children) or (body and body.children[-1].is_missing):
        return None
    return Declaration(name=code.text(name), node=node, doc=item.doc, code=code)


def types_of(node: Node) -> list[Node]:
    """The types directly inside a node."""
    return [child for child in node.named_children if child.type != "comment"]


def flat(node: Node, kind: str) -> Iterator[Node]:
    """The operands and signs of nested nodes of one kind, in order; `a | b | c` nests to the left, however deep."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.type == kind:
            waiting += reversed(each.children)
        else:
            yield each


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

    code: TypeScriptCode
    known: Collection[str]
    report: Report

    def entry(self, declaration: Declaration) -> DraftEntry:
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
        return DraftEntry(
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
) -> list[DraftEntry]:
    """The entries for declarations; `schemas` are the definitions that the text gives as JSON Schema."""
    declarations = list(declarations)
    known = {**base.definitions, **schemas}
    owners = {slot.owner for slot in capability_slots(base.definitions) if len(slot.path) > 1}  # of capabilities
    names = known.keys() | {each.name for each in declarations}
    found = [_Converter(code=each.code, known=names, report=report).entry(each) for each in declarations]
    return [with_defaults(entry, known) if entry.name in owners else entry for entry in found]
