"""Parse the TypeScript of an RFD with tree-sitter: find declarations and the comments about each part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acpgen.diagnostics import Location, Report
from acpgen.rfd.blocks import Block, line_range
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
class Code:
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
    code: Code


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
    code = Code(block=block, data=data, lines=data.split(b"\n"))
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


def items_of(nodes: Iterable[Node], code: Code) -> tuple[list[Item], bool]:
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


def _declaration(item: Item, code: Code) -> Declaration | None:
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
