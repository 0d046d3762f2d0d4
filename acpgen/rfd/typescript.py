"""Convert the TypeScript of an RFD to JSON Schema: tree-sitter parses it, and the idioms are those of ACP's schemas.

Interfaces, type aliases and enums are read. Everything else is reported with its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Location
from acpgen.rfd.base import Base, capability_owners, described, nullable, reference, single_reference, styled
from acpgen.rfd.blocks import Block, Findings, line_range
from acpgen.rfd.entries import Definition
from acpgen.schema.fragment import mark
from acpgen.schema.walk import schema_list, schema_map
from acpgen.text import cut

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CODE = 32 * 1024
"""The limit for one block, in bytes: error recovery takes quadratic time. Blocks of real texts stay below 4 KB."""
MAX_DEPTH = 30
"""The limit for the nesting of types; real texts stay below 5."""
_MAX_DEFAULT = 2_000
"""The limit for a default, in characters: each level of capabilities multiplies the size of the one below."""
_PASSES = 5
"""The default of a capability contains those of the capabilities in it; this is the limit for their nesting."""

_SIMPLE: Mapping[str, dict[str, Any]] = {
    **{name: {"type": name} for name in ("string", "number", "boolean", "null", "object")},
    "unknown": {},
    "any": {},
}
_ABSENT = frozenset({"null", "undefined"})
_LISTS = frozenset({"Array", "ReadonlyArray"})
_DECLARATIONS = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
_WRAPPERS = frozenset({"export_statement", "ambient_declaration"})

_ELISION = re.compile(
    r"\.\.\.|…|\b(?:existing|other|remaining) (?:fields|properties|members|variants|values)", re.IGNORECASE
)
_ELLIPSIS = re.compile(
    rb"(?P<skip>\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|`[^`]*`?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?)"
    rb"|\.\.\.(?P<ends>[ \t]*[;,\n|}])?"
)
_ELLIPSES = frozenset({"...", ".."})
"""The original text of the two placeholders."""


# --- Parsing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Code:
    """A block and its nodes: `text` and `location` translate the byte offsets of tree-sitter."""

    block: Block
    data: bytes
    lines: list[bytes]

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode()

    def excerpt(self, node: Node) -> str:
        return cut(" ".join(self.text(node).split()))

    def location(self, node: Node) -> Location:
        row, column = node.start_point
        return self.block.at(row, len(self.lines[row][:column].decode()))

    def range(self, node: Node) -> range:
        start, end = node.start_point, node.end_point
        # a node that takes the end of a line ends in column 0 of the next one
        last = max(start.row, end.row - (end.column == 0))
        return range(self.block.first + start.row, self.block.first + last + 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """An interface, type alias or enum. `doc` is the comment before it, `trailing` the one behind it in its line."""

    name: str
    node: Node
    doc: str
    trailing: str
    code: _Code


@dataclass(slots=True)
class _Item:
    node: Node
    doc: str
    trailing: str = ""


def read_declarations(block: Block, findings: Findings) -> list[Declaration]:
    """Parse the declarations in a block; report all other lines."""
    # imported here because they belong to the extra `rfd`
    from tree_sitter import Language, Parser
    from tree_sitter_typescript import language_typescript

    data = block.text.encode()
    if len(data) > MAX_CODE:
        message = f"{line_range(block.first, block.last)} not read: more than {MAX_CODE // 1024} KiB of TypeScript"
        findings.warn("rfd-typescript", message, block.location(0))
        return []
    code = _Code(block=block, data=data, lines=data.split(b"\n"))
    root = Parser(Language(language_typescript())).parse(_ELLIPSIS.sub(_placeholder, data)).root_node
    items, _ = _items(root.children, code)
    pairs = [(item, _declaration(item, code)) for item in items if item.node.type != "empty_statement"]
    for is_unread, group in groupby(pairs, key=lambda pair: pair[1] is None):
        if is_unread:
            _report_unread([item.node for item, _ in group], code, findings)
    if not pairs:
        findings.note("rfd-value", "no declarations in this block", block.location(0))
    return [declaration for _, declaration in pairs if declaration is not None]


def _placeholder(match: re.Match[bytes]) -> bytes:
    """A name of the same length in the place of `...`, which is no TypeScript: that keeps all positions."""
    if match["skip"] is not None:
        return match[0]
    return b"___" + match["ends"] if match["ends"] else b"__;"


def _items(nodes: Iterable[Node], code: _Code) -> tuple[list[_Item], bool]:
    """The nodes with the comments about each, and whether `...` or a comment stands for more of them."""
    nodes = list(nodes)
    found: list[_Item] = []
    before: list[str] = []
    is_elided = False
    for index, node in enumerate(nodes):
        if node.type == "comment":
            text = code.text(node)
            if _ELISION.search(text) and not text.startswith("/**"):
                is_elided = True
            elif not _is_trailing(nodes, index):
                before.append(text)
            elif found and nodes[index - 1].type != "{":
                found[-1].trailing = found[-1].trailing or _doc([text])
        elif node.is_named or node.is_missing:
            if code.text(node) in _ELLIPSES:
                is_elided = True
            else:
                found.append(_Item(node, _doc(before)))
            before = []
    return found, is_elided


def _is_trailing(nodes: list[Node], index: int) -> bool:
    """Whether the comment `nodes[index]` ends a line that begins with something else."""
    node = nodes[index]
    starts_line = index == 0 or nodes[index - 1].end_point.row < node.start_point.row
    ends_line = index + 1 == len(nodes) or nodes[index + 1].start_point.row > node.end_point.row
    return ends_line and not starts_line


def _doc(comments: Iterable[str]) -> str:
    """The text of the last comment for documentation, else of all comments."""
    texts = [(raw.startswith("/**"), _comment_text(raw)) for raw in comments]
    docs = [text for is_doc, text in texts if is_doc]
    return docs[-1] if docs else " ".join(text for _, text in texts if text)


def _comment_text(raw: str) -> str:
    if raw.startswith("//"):
        return raw.lstrip("/").strip()
    lines = (line.strip().lstrip("*").strip() for line in raw[2:].removesuffix("*/").split("\n"))
    return " ".join(line for line in lines if line)


def _declaration(item: _Item, code: _Code) -> Declaration | None:
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
    return Declaration(name=code.text(name), node=node, doc=item.doc, trailing=item.trailing, code=code)


def _report_unread(nodes: list[Node], code: _Code, findings: Findings) -> None:
    first, last = code.range(nodes[0]).start, code.range(nodes[-1])[-1]
    findings.warn(
        "rfd-typescript",
        f"{line_range(first, last)} not read: `{code.excerpt(nodes[0])}` is not a valid interface, type alias or enum"
        " without type parameters",
        code.location(nodes[0]),
        hint="add what it says to the draft where it matters",
    )


# --- Conversion ------------------------------------------------------------------------------------------------------


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

    code: _Code
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
            schema = {"anyOf": [self.enum_member(item) for item in _items(body.children, self.code)[0]]}
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
        bases = [self.schema(base, 0) for clause in clauses for base in _types(clause)]
        return {**schema, "allOf": bases} if bases else schema

    def enum_member(self, item: _Item) -> Any:
        value = item.node.child_by_field_name("value")
        schema = self.constant(value) if value is not None else self.unknown(item.node, "does not say its value")
        return styled(described(schema, item.doc or item.trailing))

    def record(self, nodes: Iterable[Node], depth: int) -> _Record:
        items, is_elided = _items(nodes, self.code)
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

    def property(self, item: _Item, depth: int) -> tuple[bool, Any]:
        """Whether the property is optional, and its schema; null stands for an absent value."""
        node, is_optional = item.node, any(child.type == "?" for child in item.node.children)
        schema = self.annotation(node, depth) if node.type == "property_signature" else self.unknown(node)
        annotation = node.child_by_field_name("type")
        if annotation is not None and not annotation.has_error:
            parts = [part for type_ in _types(annotation) for part in _flat(type_, "union_type")]
            is_optional = is_optional or "undefined" in map(self.code.text, parts)
            if any(child.type == "?" for child in node.children) and isinstance(schema, dict):
                schema = schema if _accepts_null(schema) else nullable(schema)
        return is_optional, styled(described(schema, item.doc or item.trailing))

    def annotation(self, node: Node, depth: int) -> Any:
        annotation = node.child_by_field_name("type")
        types = _types(annotation) if annotation is not None and not node.has_error else []
        return self.schema(types[0], depth + 1) if types else self.unknown(node)

    def schema(self, node: Node | None, depth: int) -> Any:
        """The schema of a type; a mark for a type that has none, which is reported."""
        if node is None or node.has_error:
            return self.unknown(node)
        if depth > MAX_DEPTH:
            return self.unknown(node, f"is nested more than {MAX_DEPTH} deep")
        types = _types(node)
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
        if is_elided:
            message = "the text leaves out a part of this type, with `...`: it is not in the draft"
            self.findings.warn("rfd-type", message, self.code.location(node))
        return schema

    def union(self, node: Node, depth: int, *, trailing: str = "") -> tuple[Any, bool]:
        items, is_elided = _items(_flat(node, "union_type"), self.code)
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
        parts = [part for part in _flat(node, "intersection_type") if part.is_named and part.type != "comment"]
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
        types = _types(arguments) if arguments is not None else []
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


def _types(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _flat(node: Node, kind: str) -> Iterator[Node]:
    """The operands and signs of nested nodes of one kind, in order; `a | b | c` nests to the left, however deep."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.type == kind:
            waiting += reversed(each.children)
        else:
            yield each


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


def _accepts_null(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return (
        kind == "null"
        or (isinstance(kind, list) and "null" in kind)
        or {"type": "null"} in schema_list(schema, "anyOf")
    )


# --- Capabilities ----------------------------------------------------------------------------------------------------


def convert_declarations(
    declarations: Iterable[Declaration], schemas: Mapping[str, Any], *, base: Base, findings: Findings
) -> list[Definition]:
    """The definitions of declarations; `schemas` are the definitions that the text gives as JSON Schema."""
    declarations = list(declarations)
    known = base.definitions.keys() | schemas.keys() | {each.name for each in declarations}
    found = [_Converter(code=each.code, known=known, findings=findings).definition(each) for each in declarations]
    capabilities = _capabilities(found, capability_owners(base.definitions))
    for _ in range(_PASSES):
        definitions = {**{each.name: each.node for each in found}, **base.definitions, **schemas}
        before = found
        found = [_with_defaults(each, definitions) if each.name in capabilities else each for each in found]
        if [each.node for each in found] == [each.node for each in before]:
            break
    return found


def _capabilities(definitions: list[Definition], owners: Collection[str]) -> set[str]:
    """The names of capability types: those in the schema, and all types that their properties refer to."""
    nodes = {each.name: each.node for each in definitions}
    found: set[str] = set()
    waiting = list(owners)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            properties = schema_map(nodes.get(name), "properties").values()
            waiting += [target for target in map(single_reference, properties) if target]
    return found


def _with_defaults(definition: Definition, definitions: Mapping[str, Any]) -> Definition:
    """The definition with defaults: an absent capability is not supported."""
    properties, required = schema_map(definition.node, "properties"), schema_list(definition.node, "required")
    new = {wire: node if wire in required else _with_default(node, definitions) for wire, node in properties.items()}
    return replace(definition, node={**definition.node, "properties": new}) if new else definition


def _with_default(node: Any, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(node, dict):
        return node
    doc = {key: node[key] for key in ("description",) if key in node}
    if node.get("type") == ["boolean", "null"]:
        return {**doc, "type": "boolean", "default": False}
    target = single_reference(node)
    children = schema_map(definitions.get(target or ""), "properties").items()
    default = {wire: child["default"] for wire, child in children if isinstance(child, dict) and "default" in child}
    if default and len(json.dumps(default)) <= _MAX_DEFAULT:
        return {**doc, "allOf": [reference(str(target))], "default": default}
    return node
