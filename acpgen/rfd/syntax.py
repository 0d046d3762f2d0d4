"""Parse the TypeScript of an RFD with tree-sitter: find declarations and the comments about each part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from acpgen.diagnostics import Location
from acpgen.rfd.blocks import Block, Findings, line_range
from acpgen.text import cut

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_CODE = 32 * 1024
"""The limit for one block, in bytes: error recovery takes quadratic time. Blocks of real texts stay below 4 KB."""
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
"""The original text of the two placeholders, `___` and `__;`."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declaration:
    """An interface, type alias or enum. `doc` is the comment before it, `trailing` the one behind it in its line."""

    name: str
    node: Node
    doc: str
    trailing: str
    code: Code


@dataclass(slots=True)
class Item:
    """A node with the comments before it, and the one behind it in its line."""

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
    code = Code(block=block, data=data, lines=data.split(b"\n"))
    root = Parser(Language(language_typescript())).parse(_ELLIPSIS.sub(_placeholder, data)).root_node
    items, _ = items_of(root.children, code)
    pairs = [(item, _declaration(item, code)) for item in items if item.node.type != "empty_statement"]
    for is_unread, group in groupby(pairs, key=lambda pair: pair[1] is None):
        if is_unread:
            _report_unread([item.node for item, _ in group], code, findings)
    if not pairs:
        findings.note("rfd-value", "no declarations in this block", block.location(0))
    return [declaration for _, declaration in pairs if declaration is not None]


def _placeholder(match: re.Match[bytes]) -> bytes:
    """A name in the place of `...`, which is not valid TypeScript; the same length keeps all positions."""
    if match["skip"] is not None:
        return match[0]
    return b"___" + match["ends"] if match["ends"] else b"__;"


def items_of(nodes: Iterable[Node], code: Code) -> tuple[list[Item], bool]:
    """The nodes with the comments about each, and whether `...` or a comment stands for more of them."""
    nodes = list(nodes)
    found: list[Item] = []
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
                found.append(Item(node, _doc(before)))
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
    return Declaration(name=code.text(name), node=node, doc=item.doc, trailing=item.trailing, code=code)


def _report_unread(nodes: list[Node], code: Code, findings: Findings) -> None:
    first, last = code.range(nodes[0]).start, code.range(nodes[-1])[-1]
    findings.warn(
        "rfd-typescript",
        f"{line_range(first, last)} not read: `{code.excerpt(nodes[0])}` is not a valid interface, type alias or enum"
        " without type parameters",
        code.location(nodes[0]),
        hint="add what it says to the draft where it matters",
    )


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
