"""Read the text of an RFD: its title, revision and address, and the code in it, with fences or without."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from acpgen.diagnostics import Location, Report, input_error
from acpgen.schema.document import read_bytes
from acpgen.schema.fragment import mark
from acpgen.text import EXCERPT

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_BYTES = 256 * 1024
"""The limit for one text; the longest RFD so far has 31 KB."""

_DECLARATION = re.compile(
    r"\s*(?:export\s+)?(?:declare\s+)?"
    r"(?:interface\s+[\w$]+[^{}()]{0,200}\{|(?:const\s+)?enum\s+[\w$]+\s*\{|type\s+[\w$]+\s*(?:<[^=]{0,100})?=)"
)
_JSON_START = re.compile(r"\s*(?:\{\s*(?:[\"}/]|$)|\[\s*(?:[\"{\]]|$))")
_CLOSING = re.compile(r"(\s*)[}\])]")
_OPERATORS = ("|", "&")
"""The starts of lines that continue a type."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A text by lines. `label` is the path in diagnostics, `name` the file name that the draft records."""

    label: str
    name: str
    digest: str
    lines: tuple[str, ...]

    def location(self, line: int, column: int = 1) -> Location:
        """The location of a line and a column, both counted from 1."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Location(self.label, line, column, text[:EXCERPT].rstrip())


def read_source(path: Path) -> Source:
    """Read the file `path`; raise `InputError` if it is not text or is too large for an RFD."""
    label = path.as_posix()
    return parse_source(read_bytes(path, label=label), label=label, name=path.name)


def parse_source(data: bytes, *, label: str, name: str) -> Source:
    """Decode UTF-8 text with any line ends; raise `InputError` for anything else or for too much of it."""
    if len(data) > MAX_BYTES:
        raise input_error("file-too-large", f"{label} is larger than {MAX_BYTES // 1024} KiB", hint="is this an RFD?")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise input_error("not-utf-8", f"{label} is not UTF-8: {error.reason} at byte {error.start}") from None
    if "\0" in text:
        raise input_error("not-text", f"{label} is no text: it has NUL characters", hint="is this an RFD?")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Source(label=label, name=name, digest=hashlib.sha256(data).hexdigest(), lines=tuple(lines))


class Language(Enum):
    """The language that a block is parsed as."""

    JSON = "JSON"
    TYPESCRIPT = "TypeScript"
    OTHER = "other"


_LANGUAGES = {
    **dict.fromkeys(("json", "jsonc", "json5"), Language.JSON),
    **dict.fromkeys(("ts", "tsx", "typescript", "js", "javascript"), Language.TYPESCRIPT),
}
_GUESSED = ("", "text")


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """A block of code. `first` is its first line in the source, `offsets` the indentation removed from each line."""

    source: Source
    kind: Language
    language: str
    first: int
    text: str
    offsets: tuple[int, ...]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @property
    def last(self) -> int:
        """The last line of the block in the source."""
        return self.first + len(self.offsets) - 1

    @property
    def may_define(self) -> bool:
        """Whether a block that is not read may hold definitions: its language says nothing about its content."""
        return self.language in (*_GUESSED, "diff", "patch")

    def line(self, offset: int) -> int:
        """The line of the source for an offset into the text."""
        return self.first + bisect_right(self._starts, offset) - 1

    def location(self, offset: int) -> Location:
        """The location in the source for an offset into the text."""
        index = self.line(offset) - self.first
        return self.at(index, offset - self._starts[index])

    def at(self, index: int, column: int) -> Location:
        """The location in the source for a line and a column of the text, both counted from 0."""
        indent = self.offsets[index] if index < len(self.offsets) else 0
        return self.source.location(self.first + index, indent + column + 1)


def line_range(first: int, last: int) -> str:
    """Lines in a message: "line 3" or "lines 3 to 5"."""
    return f"line {first}" if first == last else f"lines {first} to {last}"


def parse_markdown(source: Source) -> list[Token]:
    """Parse the block structure of the text; a page saved as plain text has paragraphs only."""
    # imported here because it belongs to the extra `rfd`
    from markdown_it import MarkdownIt

    # html_block is off because MDX has tags around fences; inline, because only blocks matter
    parser = MarkdownIt("commonmark").disable(["html_block", "inline"])
    return parser.parse("\n".join(source.lines).replace("\0", "\ufffd"))


def find_blocks(source: Source, tokens: Iterable[Token], report: Report) -> list[Block]:
    """Find all blocks in the order of the text; report code without fences that is incomplete."""
    fenced = list(_fenced(source, tokens))
    covered = sorted({line for block in fenced for line in range(block.first - 1, block.last + 2)})
    return sorted([*fenced, *_bare(source, covered, report)], key=lambda block: block.first)


def _fenced(source: Source, tokens: Iterable[Token]) -> Iterator[Block]:
    for token in tokens:
        if token.type != "fence" or not token.map:
            continue
        start = token.map[0] + 1
        language = (token.info.split() or [""])[0].lower().strip("{}.")
        lines = token.content.removesuffix("\n").split("\n") if token.content else []
        raw = source.lines[start : start + len(lines)]
        offsets = tuple(max(len(whole) - len(line), 0) for whole, line in zip(raw, lines, strict=False))
        guessed = (
            next(filter(None, map(_kind_of_start, lines)), Language.OTHER) if language in _GUESSED else Language.OTHER
        )
        yield Block(
            source=source,
            kind=_LANGUAGES.get(language, guessed),
            language=language,
            first=start + 1,
            text="\n".join(lines),
            offsets=offsets or (0,),
        )


def _kind_of_start(line: str) -> Language | None:
    """The language of the code that starts with `line`; None for a line that starts no code."""
    if _JSON_START.match(line):
        return Language.JSON
    return Language.TYPESCRIPT if _DECLARATION.match(line) else None


def _bare(source: Source, covered: Sequence[int], report: Report) -> Iterator[Block]:
    """The blocks without fences: a line that starts code, up to the next closing bracket with its indentation.

    `covered` are the lines of fences: no block reaches across them.
    """
    closing: dict[str, list[int]] = {}
    for number, line in enumerate(source.lines, 1):
        if match := _CLOSING.match(line):
            closing.setdefault(match[1], []).append(number)
    last = 0
    for first, line in enumerate(source.lines, 1):
        kind, limit = _kind_of_start(line), _next(covered, first) or len(source.lines) + 1
        if first <= last or limit == first or not (kind or _CLOSING.match(line)):
            continue
        indent = line[: len(line) - len(line.lstrip())]
        is_open = sum(map(line.count, "{[(")) > sum(map(line.count, "}])"))
        end = (_next(closing.get(indent, ()), first) or limit) if is_open else first
        while end < len(source.lines) and source.lines[end].lstrip()[:1] in _OPERATORS:
            end += 1
        if kind is None or end >= limit:
            message = "the code in this line is not part of a complete block"
            hint = "read it, and add to the draft what is missing there"
            report.warning("rfd-stray-code", message, at=source.location(first), hint=hint)
            continue
        last = end
        code = source.lines[first - 1 : last]
        yield Block(source=source, kind=kind, language="", first=first, text="\n".join(code), offsets=(0,) * len(code))


def _next(numbers: Sequence[int], start: int) -> int | None:
    """The first of the sorted numbers from `start` on."""
    index = bisect_left(numbers, start)
    return numbers[index] if index < len(numbers) else None


_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_FIELD = re.compile(r"[>*\s-]{0,10}(title|rfd)(?:\*\*)?\s*:\s*(?:\*\*)?\s*(\S.{0,300})", re.IGNORECASE)
_URL = re.compile(r"https?://[!-~]{1,300}")
_HISTORY = re.compile(r"#{0,6}\s*revision history\s*$", re.IGNORECASE)
_HEAD_LINES = 60
"""The number of lines at the start of a text in which fields are searched."""


def read_metadata(source: Source, tokens: Sequence[Token]) -> dict[str, str | None]:
    """The id, revision, title and address in a draft, with a mark for each that the text does not state.

    They are in the fields at the start, the heading, the revision history and the name of the file. `rfd` may be None.
    """
    matches = filter(None, map(_FIELD.match, reversed(source.lines[:_HEAD_LINES])))
    fields = {match[1].lower(): match[2].strip().strip("\"'*`") for match in matches}
    title = "".join(filter(str.isprintable, fields.get("title") or _heading(tokens))).strip()
    address = _URL.search(fields.get("rfd", ""))
    return {
        "id": _slug(source.name) or _slug(title) or mark("lower-case words joined by hyphens"),
        "revision": _revision(source) or mark("the date of the text, YYYY-MM-DD"),
        "title": title or mark("what the extension is about, on one line"),
        "rfd": address[0].rstrip(".,;)>]\"'") if address else None,
    }


def _heading(tokens: Sequence[Token]) -> str:
    headings = (inline for token, inline in pairwise(tokens) if token.type == "heading_open" and token.tag == "h1")
    return next((inline.content for inline in headings), "")


def _revision(source: Source) -> str | None:
    """The newest date in the revision history, else the date in the name of the file."""
    history = [index for index, line in enumerate(source.lines) if _HISTORY.match(line)]
    lines = source.lines[history[-1] :] if history else ()
    dates = [date for line in lines for date in _DATE.findall(line[:40])] or _DATE.findall(source.name)
    return max(dates, default=None)


def _slug(text: str) -> str | None:
    """The words of a title, or of a file name without suffix and date, joined by hyphens."""
    stem = re.sub(r"\.[A-Za-z0-9]{1,10}$", "", text)
    found = "-".join(re.findall(r"[a-z0-9]+", _DATE.sub("", stem).lower()))
    return found[:80].strip("-") or None
