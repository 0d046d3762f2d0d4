"""Read the JSON values in the blocks of an RFD, with comments in them; recognise messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import InputError, Location, Report
from acpgen.rfd.blocks import Block, line_range
from acpgen.schema.document import Document, parse_document

_COMMENT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?")
_SPACE = re.compile(r"[ \t\n\r]*")
_MAX_VALUES = 50
_DECODER = json.JSONDecoder()
_SCHEMA = re.compile(r'"(?:properties|items|enum|anyOf|oneOf|allOf)"\s*:\s*[{\[]|"type"\s*:\s*"(?:object|string)"')


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


def read_pieces(block: Block, report: Report) -> Iterator[Piece]:
    """Read the objects in a block; report values of other types, and the first error."""
    text, comments = _without_comments(block)
    position, count = _skip(text, 0), 0
    while position < len(text):
        count += 1
        try:
            if count > _MAX_VALUES:
                raise ValueError(f"more than {_MAX_VALUES} values in one block")
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            offset, why = position, str(error)[:100]
            if isinstance(error, json.JSONDecodeError):
                offset, why = error.pos, error.msg
            _report_error(block, report, f"not JSON: {why}", at=block.location(offset))
            return
        if isinstance(value, dict):
            yield from _piece(block, report, text=text[:end], start=position, comments=comments)
        else:
            report_value(text[position:end], block.location(position), report)
        position = _skip(text, end)


def _piece(block: Block, report: Report, *, text: str, start: int, comments: Mapping[int, str]) -> Iterator[Piece]:
    # blanks in the place of earlier values keep the positions right
    padded = re.sub(r"[^\n]", " ", text[:start]) + text[start:]
    try:
        document = parse_document(padded.encode(), label=block.source.label, origin=block.source.label)
    except InputError as error:
        for found in error.diagnostics:
            _report_error(block, report, found.message, at=block.location(start))
        return
    yield Piece(block=block, document=document, comments=comments)


def _report_error(block: Block, report: Report, message: str, *, at: Location) -> None:
    where = line_range(block.first, block.last)
    hint = "only comments may be added to JSON: write out the parts that `...` stands for"
    report.warning("rfd-bad-json", f"cannot read the block in {where}: {message}", at=at, hint=hint)


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


def report_value(text: str, location: Location, report: Report) -> None:
    """Report a value that adds nothing to the draft; a warning if it looks like a schema."""
    message = "this value adds nothing to the draft"
    if _SCHEMA.search(text):
        hint = "where it is the schema of a definition, put it under its name into `$defs` of the draft"
        report.warning("rfd-value", f"{message}, but looks like a schema without a name", at=location, hint=hint)
    else:
        report.note("rfd-value", message, at=location)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleMessage:
    """An example of a request or a notification."""

    method: str
    is_request: bool
    location: Location


def is_message(root: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a JSON-RPC message."""
    return "jsonrpc" in root or (isinstance(root.get("method"), str) and ("params" in root or "id" in root))


def read_calls(messages: Iterable[Piece], report: Report) -> list[ExampleMessage]:
    """The requests and notifications among messages; each message gets a note."""
    calls: list[ExampleMessage] = []
    asked: dict[str, str] = {}
    for piece in messages:
        key, method, location = repr(piece.root.get("id")), piece.root.get("method"), piece.location("")
        if isinstance(method, str) and method:
            is_request = "id" in piece.root
            if is_request:
                asked[key] = method
            calls.append(ExampleMessage(method=method, is_request=is_request, location=location))
            text = f"a {'request' if is_request else 'notification'} of {method}"
        else:
            text = f"a response to {asked.get(key, 'a request that is not shown')}"
        report.note("rfd-example", f"an example: {text}", at=location)
    return calls
