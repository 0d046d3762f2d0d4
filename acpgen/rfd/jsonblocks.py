"""Read the JSON in an RFD: strictly, but for comments, and any number of values in one block."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import InputError, Location
from acpgen.rfd.blocks import Block
from acpgen.rfd.looks import note_value
from acpgen.rfd.source import Findings
from acpgen.schema.document import Document, parse_document

_COMMENT = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?")
_MAX_VALUES = 50
_DECODER = json.JSONDecoder()
_HINT = "comments are read past, everything else has to be JSON: write out what `...` stands for"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """A JSON object in a block. `comments` are those at the end of lines, by the line of the source."""

    block: Block
    document: Document
    comments: Mapping[int, str]

    @property
    def root(self) -> dict[str, Any]:
        """The object itself."""
        return self.document.root

    def location(self, pointer: str) -> Location:
        """The place in the source of the value at `pointer`."""
        if not pointer:
            return self.block.location(_skip(self.document.text, 0))
        found = self.document.location(pointer)
        return self.block.at(found.line - 1, found.column - 1)

    def lines(self, pointer: str) -> tuple[int, int]:
        """The first and the last line of the source that the value at `pointer` takes."""
        found, text = self.document.location(pointer), self.document.text
        start = sum(len(line) + 1 for line in text.split("\n")[: found.line - 1]) + found.column - 1
        start = _skip(text, start)
        _, end = _DECODER.raw_decode(text, start)
        return self.block.line(start), self.block.line(end)

    def comment(self, pointer: str) -> str:
        """The comment at the end of the line in which the value at `pointer` begins."""
        return self.comments.get(self.location(pointer).line, "")

    def is_added(self, pointer: str) -> bool:
        """Whether the value at `pointer` begins in a line that a patch adds; true where there is no patch."""
        return self.block.added is None or self.location(pointer).line in self.block.added


def read_pieces(block: Block, findings: Findings) -> Iterator[Piece]:
    """The objects in a block; what is not JSON is reported, and so are values that are no objects."""
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
            _note_other(value, block.location(position), findings)
        position = _skip(text, end)
        if text.startswith(",", position):
            position = _skip(text, position + 1)


def _note_other(value: Any, location: Location, findings: Findings) -> None:
    items = value if isinstance(value, list) else []
    note_value(items, what=" that is no object", place=lambda _: location, findings=findings)


def _piece(block: Block, findings: Findings, *, text: str, start: int, comments: Mapping[int, str]) -> Iterator[Piece]:
    padded = re.sub(r"[^\n]", " ", text[:start]) + text[start:]
    try:
        document = parse_document(padded.encode(), label=block.source.label, origin=block.source.label)
    except InputError as error:
        for found in error.diagnostics:
            _report(block, findings, found.message, block.location(start))
        return
    yield Piece(block=block, document=document, comments=comments)


def _report(block: Block, findings: Findings, message: str, location: Location) -> None:
    what = f"the block in {block.lines} cannot be read"
    findings.warn("rfd-bad-json", f"{what}: {message}", location, hint=_HINT)


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
    while position < len(text) and text[position] in " \t\n\r":
        position += 1
    return position
