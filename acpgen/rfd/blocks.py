"""Find the code in the text of an RFD: fenced blocks of Markdown, and declarations or JSON without fences."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from acpgen.diagnostics import Diagnostic, Location, Severity, input_error
from acpgen.schema.document import read_bytes

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_BYTES = 256 * 1024
"""The limit for one text; the longest RFD so far has 31 KB."""
MAX_LINES = 10_000
_MAX_OPENINGS = 50
"""The limit for openings that are never closed: each costs a scan of the rest of the text."""
_EXCERPT = 200

_DECLARATION = re.compile(
    r"\s*(?:export\s+)?(?:declare\s+)?"
    r"(?:interface\s+[\w$]+[^{}()]{0,200}\{|(?:const\s+)?enum\s+[\w$]+\s*\{|type\s+[\w$]+\s*(?:<[^=]{0,100})?=)"
)
_JSON_START = re.compile(r"\s*(?:\{\s*(?:[\"}/]|$)|\[\s*(?:[\"{\]]|$))")
_JSON_MEMBER = re.compile(r"\s*\"[^\"]{1,100}\"\s*:")
_STRAY = re.compile(
    r"\s*(?:[}\]]+[,;)]*\s*$|(?:readonly\s+)?[\w$]{1,100}\??:\s*[\w$\"'{\[(|][^.]{0,200};\s*$)",
)
_PATCH_LINE = re.compile(r"[+-](?![+-])")
# every alternative consumes what it has scanned, so the scan is linear
_SCAN = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?|`[^`]*`?|//[^\n]*|/\*(?:[^*]|\*(?!/))*(?:\*/)?"
    r"|(?P<open>[{\[(])|(?P<close>[}\])])|(?P<end>(?<![=|&])(?:\n(?![ \t]*[|&])|$))"
)


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
        return Location(self.label, line, column, text[:_EXCERPT].rstrip())


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
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(lines) > MAX_LINES:
        raise input_error("file-too-large", f"{label} has more than {MAX_LINES} lines", hint="is this an RFD?")
    return Source(label=label, name=name, digest=hashlib.sha256(data).hexdigest(), lines=tuple(lines))


@dataclass(slots=True)
class Findings:
    """Collect diagnostics about a text. A warning asks a person to act; a note does not."""

    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str, location: Location | None, *, hint: str | None = None) -> None:
        """Record code that was not understood, or a decision that a person has to make."""
        self._add(Severity.WARNING, code, message, location, hint=hint)

    def note(self, code: str, message: str, location: Location | None, *, hint: str | None = None) -> None:
        """Record code that adds nothing to the draft."""
        self._add(Severity.NOTE, code, message, location, hint=hint)

    def _add(self, severity: Severity, code: str, message: str, location: Location | None, *, hint: str | None) -> None:
        self.found.append(Diagnostic(code=code, severity=severity, message=message, location=location, hint=hint))


class Kind(Enum):
    """The language that a block is parsed as."""

    JSON = "JSON"
    TYPESCRIPT = "TypeScript"
    OTHER = "other"


_LANGUAGES = {
    **dict.fromkeys(("json", "jsonc", "json5"), Kind.JSON),
    **dict.fromkeys(("ts", "tsx", "typescript", "js", "javascript"), Kind.TYPESCRIPT),
}
_GUESSED = ("", "text", "diff", "patch")


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """A block of code. `first` is its first line in the source, `offsets` the indentation removed from each line.

    For a patch, `text` is the result of the patch, and `added` the lines of the source that it adds. `added` is None
    for a block that is not a patch.
    """

    source: Source
    kind: Kind
    language: str
    first: int
    text: str
    offsets: tuple[int, ...]
    added: frozenset[int] | None = None

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @property
    def last(self) -> int:
        """The last line of the block in the source."""
        return self.first + len(self.offsets) - 1

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

    def is_added(self, line: int) -> bool:
        """Whether a patch adds the line; True for a block that is not a patch."""
        return self.added is None or line in self.added


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


def find_blocks(source: Source, tokens: Iterable[Token], findings: Findings) -> tuple[Block, ...]:
    """Find all blocks in the order of the text; report lines outside of them that look like code."""
    fenced = list(_fenced(source, tokens))
    covered = {line for block in fenced for line in range(block.first - 1, block.last + 2)}
    bare = list(_bare(source, covered))
    covered |= {line for block in bare for line in range(block.first, block.last + 1)}
    _report_stray(source, covered, findings)
    blocks = sorted([*fenced, *bare], key=lambda block: block.first)
    return tuple(_patched(block, findings) if _is_patch(block) else block for block in blocks)


def _fenced(source: Source, tokens: Iterable[Token]) -> Iterator[Block]:
    for token in tokens:
        if token.type != "fence" or not token.map:
            continue
        start = token.map[0] + 1
        language = (token.info.split() or [""])[0].lower().strip("{}.")
        lines = token.content.removesuffix("\n").split("\n") if token.content else []
        raw = source.lines[start : start + len(lines)]
        offsets = tuple(max(len(whole) - len(line), 0) for whole, line in zip(raw, lines, strict=False))
        yield Block(
            source=source,
            kind=_LANGUAGES.get(language) or (_guess(lines) if language in _GUESSED else Kind.OTHER),
            language=language,
            first=start + 1,
            text="\n".join(lines),
            offsets=offsets or (0,),
        )


def _guess(lines: Iterable[str]) -> Kind:
    for line in lines:
        bare = line[1:] if _PATCH_LINE.match(line) else line
        if _JSON_MEMBER.match(bare):
            return Kind.JSON
        if kind := _kind_of_start(bare):
            return kind
    return Kind.OTHER


def _kind_of_start(line: str) -> Kind | None:
    """The language of the code that starts with `line`; None for a line that starts no code."""
    if _JSON_START.match(line):
        return Kind.JSON
    return Kind.TYPESCRIPT if _DECLARATION.match(line) else None


def _bare(source: Source, covered: Collection[int]) -> Iterator[Block]:
    """The blocks without fences: a line that starts code, up to the line that closes all its brackets."""
    # a fenced line is a closing bracket to the scan, so no block reaches across it
    lines = ["}" if number in covered else line.rstrip() for number, line in enumerate(source.lines, 1)]
    text, start, index, openings = "\n".join(lines), 0, 0, 0
    while index < len(lines):
        kind, count = _kind_of_start(lines[index]), 0
        if kind is not None and openings < _MAX_OPENINGS:
            count = _count_lines(text, start)
            openings += count == 0
        if kind is not None and count > 0:
            code = "\n".join(source.lines[index : index + count])
            yield Block(source=source, kind=kind, language="", first=index + 1, text=code, offsets=(0,) * count)
        for line in lines[index : index + max(count, 1)]:
            start += len(line) + 1
        index += max(count, 1)


def _count_lines(text: str, start: int) -> int:
    """The number of lines from `start` to where all brackets are closed; 0 if that never happens."""
    depth = 0
    for match in _SCAN.finditer(text, start):
        match match.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth -= 1
            case "end" if depth == 0:
                return text.count("\n", start, match.start()) + 1
        if depth < 0:
            break
    return 0


def _report_stray(source: Source, covered: Collection[int], findings: Findings) -> None:
    stray = [
        number
        for number, line in enumerate(source.lines, 1)
        if number not in covered and _looks_like_code(line[1:] if re.match(r"\+(?!\+)", line) else line)
    ]
    starts = [0, *(index for index, (one, other) in enumerate(pairwise(stray), 1) if other > one + 1), len(stray)]
    for start, end in pairwise(starts if stray else ()):
        lines = line_range(stray[start], stray[end - 1])
        findings.warn(
            "rfd-stray-code",
            f"the code in {lines} is not part of a complete block",
            source.location(stray[start]),
            hint="read it, and add to the draft what is missing there",
        )


def _looks_like_code(line: str) -> bool:
    return bool(_STRAY.match(line) or _JSON_MEMBER.match(line) or _kind_of_start(line))


def _is_patch(block: Block) -> bool:
    if block.kind is Kind.OTHER or block.language in ("diff", "patch"):
        return block.kind is not Kind.OTHER
    lines = [line for line in block.text.split("\n") if line.strip()]
    return any(map(_PATCH_LINE.match, lines)) and all(line[0] in "+- @" for line in lines)


def _bare_line(line: str) -> str:
    """A line of a patch without its sign, and without the comma that only a new neighbour asks for."""
    return line[1:].strip().rstrip(",;")


def _patched(block: Block, findings: Findings) -> Block:
    """The result of a patch, line by line. Removed lines are reported: additions cannot express them."""
    old = block.text.split("\n")
    removed = {_bare_line(line) for line in old if line.startswith("-")}
    restored = {_bare_line(line) for line in old if line.startswith("+")}
    lines, added = [], set()
    for number, line in enumerate(old, block.first):
        is_kept = not line.startswith(("-", "+++", "@@", "\\", "diff ", "index "))
        lines.append(" " + (line[1:] if is_kept else ""))
        if is_kept and line.startswith("+") and _bare_line(line) not in removed:
            added.add(number)
        elif line.startswith("-") and not line.startswith("---") and _bare_line(line) not in restored:
            findings.warn(
                "rfd-removal",
                "the patch removes this line, and a draft only adds",
                block.source.location(number),
                hint="state the old and the new shape of the definition under `changes`, `replace`",
            )
    return replace(block, text="\n".join(lines), added=frozenset(added))
