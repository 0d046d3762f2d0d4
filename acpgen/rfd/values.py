"""Read the JSON values in the blocks of an RFD, with comments in them; recognise schemas and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from acpgen.diagnostics import InputError, Location
from acpgen.rfd.blocks import Block, Findings, line_range
from acpgen.schema.document import Document, join, parse_document

_COMMENT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?")
_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_VALUES = 50
_MAX_NAME = 200
"""The limit for the name of a method, in characters."""
_DECODER = json.JSONDecoder()

_TYPES = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_STRUCTURE = frozenset(
    {"properties", "items", "const", "enum", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"}
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A JSON object in a block. `comments` are those of the block, by line of the source."""

    block: Block
    document: Document
    comments: Mapping[int, str]

    @property
    def root(self) -> dict[str, Any]:
        """The object itself."""
        return self.document.root

    def location(self, pointer: str) -> Location:
        """The location in the source of the value at `pointer`."""
        if not pointer:
            return self.block.location(_skip(self.document.text, 0))
        found = self.document.location(pointer)
        return self.block.at(found.line - 1, found.column - 1)

    def lines(self, pointer: str) -> range:
        """The lines of the source from the start to the end of the value at `pointer`."""
        found, text = self.document.location(pointer), self.document.text
        start = _skip(text, sum(len(line) + 1 for line in text.split("\n")[: found.line - 1]) + found.column - 1)
        _, end = _DECODER.raw_decode(text, start)
        return range(self.block.line(start), self.block.line(end) + 1)

    def comment(self, pointer: str) -> str:
        """The comment in the line where the value at `pointer` begins."""
        return self.comments.get(self.location(pointer).line, "")


def read_pieces(block: Block, findings: Findings) -> Iterator[Piece]:
    """Read the objects in a block; report values of other types, and the first error."""
    text, comments = _without_comments(block)
    position, count = _skip(text, 0), 0
    while position < len(text):
        count += 1
        try:
            if count > _MAX_VALUES:
                raise json.JSONDecodeError(f"more than {_MAX_VALUES} values in one block", text, position)
            value, end = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError as error:
            _report(block, findings, f"not JSON: {error.msg}", block.location(error.pos))
            return
        except (ValueError, RecursionError) as error:
            _report(block, findings, f"not JSON: {str(error)[:100]}", block.location(position))
            return
        if isinstance(value, dict):
            yield from _piece(block, findings, text=text[:end], start=position, comments=comments)
        else:
            has_schema = isinstance(value, list) and any(map(looks_like_schema, value))
            report_value(block.location(position), findings, count=int(has_schema))
        position = _skip(text, end)
        if text.startswith(",", position):
            position = _skip(text, position + 1)


def _piece(block: Block, findings: Findings, *, text: str, start: int, comments: Mapping[int, str]) -> Iterator[Piece]:
    # blanks in the place of earlier values keep the positions right
    padded = re.sub(r"[^\n]", " ", text[:start]) + text[start:]
    try:
        document = parse_document(padded.encode(), label=block.source.label, origin=block.source.label)
    except InputError as error:
        for found in error.diagnostics:
            _report(block, findings, found.message, block.location(start))
        return
    yield Piece(block=block, document=document, comments=comments)


def _report(block: Block, findings: Findings, message: str, location: Location) -> None:
    where = line_range(block.first, block.last)
    hint = "only comments may be added to JSON: write out the parts that `...` stands for"
    findings.warn("rfd-bad-json", f"cannot read the block in {where}: {message}", location, hint=hint)


def _without_comments(block: Block) -> tuple[str, Mapping[int, str]]:
    """The text with blanks in the place of comments, and the comments by line."""
    comments: dict[int, str] = {}

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith('"'):
            return found
        comments[block.line(match.start())] = found.strip("/* \n")
        return re.sub(r"[^\n]", " ", found)

    return _COMMENT.sub(blank, block.text), comments


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def looks_like_schema(node: Any) -> bool:
    """Whether a value looks like a JSON Schema."""
    if not isinstance(node, dict):
        return False
    stated = node.get("type")
    kinds = stated if isinstance(stated, list) else [stated]
    is_typed = bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
    has_structure = bool(_STRUCTURE & node.keys()) and not any(
        isinstance(node.get(key, {}), str) for key in ("properties", "items")
    )
    is_plain = node.keys() <= {"type", "description", "title", "format"}
    return (is_typed and (has_structure or is_plain)) or (has_structure and stated is None)


def report_unused(piece: Piece, findings: Findings) -> None:
    """Report an object that adds nothing to the draft; a warning if there are schemas in it."""
    found = list(_find_schemas(piece.root, ()))
    report_value(piece.location(join("", *found[0]) if found else ""), findings, count=len(found))


def _find_schemas(node: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The paths of the outermost values that look like schemas; `parse_document` has bounded the depth."""
    if looks_like_schema(node):
        yield path
        return
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        yield from _find_schemas(child, (*path, key))


def report_value(location: Location, findings: Findings, *, count: int) -> None:
    """Report a value that adds nothing to the draft; `count` is the number of schemas in it."""
    if count == 0:
        findings.note("rfd-value", "this value adds nothing to the draft", location)
        return
    what = "a schema" if count == 1 else f"{count} schemas, the first of them here,"
    findings.warn(
        "rfd-value",
        f"this value has {what} without a definition's name: not in the draft",
        location,
        hint="where it is a definition, put it under its name into `$defs` of the draft",
    )


# --- Messages --------------------------------------------------------------------------------------------------------


class MessageKind(Enum):
    """The kinds of JSON-RPC messages."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """An example of a message; `method` is None for a response without a request before it."""

    kind: MessageKind
    method: str | None
    piece: Piece

    @property
    def is_call(self) -> bool:
        """Whether it is a request or a notification."""
        return self.kind in (MessageKind.REQUEST, MessageKind.NOTIFICATION)

    @property
    def location(self) -> Location:
        """The location of the first bracket."""
        return self.piece.location("")


def is_message(root: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a JSON-RPC message."""
    return "jsonrpc" in root or (isinstance(root.get("method"), str) and ("params" in root or "id" in root))


def read_messages(pieces: Iterable[Piece]) -> Iterator[Message]:
    """The messages in the order of the text; a response belongs to the last request with its id."""
    asked: dict[str, str] = {}
    for piece in pieces:
        root, key, method = piece.root, repr(piece.root.get("id")), piece.root.get("method")
        if isinstance(method, str) and 0 < len(method) <= _MAX_NAME:
            kind = MessageKind.REQUEST if "id" in root else MessageKind.NOTIFICATION
            if kind is MessageKind.REQUEST:
                asked[key] = method
            yield Message(kind=kind, method=method, piece=piece)
        else:
            kind = MessageKind.ERROR if "error" in root else MessageKind.RESULT
            yield Message(kind=kind, method=asked.get(key), piece=piece)
