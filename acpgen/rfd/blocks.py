"""Find the code in an RFD: fenced blocks of Markdown, and what stands without fences in a page saved as text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from acpgen.diagnostics import Location
from acpgen.rfd.source import Findings, Source

_SUFFIXES = (".md", ".mdx", ".markdown")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_HEADING = re.compile(r" {0,3}#{1,6} \S")
_DECLARATION = re.compile(
    r"\s*(?:export\s+)?(?:declare\s+)?"
    r"(?:interface\s+[\w$]+[^{}()]{0,200}\{|(?:const\s+)?enum\s+[\w$]+\s*\{|type\s+[\w$]+\s*(?:<[^=]{0,100})?=)"
)
_JSON_START = re.compile(r"\s*(?:\{\s*(?:[\"}/]|$)|\[\s*(?:[\"{\]]|$))")
_STRAY = re.compile(
    r"\s*(?:\"[^\"]{1,100}\"\s*:|[}\]]+[,;)]*\s*$" r"|(?:readonly\s+)?[\w$]{1,100}\??:\s*[\w$\"'{\[(|][^.]{0,200};\s*$)"
)
_PATCH_LINE = re.compile(r"[+-](?![+-])")


class Kind(Enum):
    """What a block is read as."""

    JSON = "JSON"
    TYPESCRIPT = "TypeScript"
    OTHER = "other"


_LANGUAGES = {
    **dict.fromkeys(("json", "jsonc", "json5"), Kind.JSON),
    **dict.fromkeys(("ts", "tsx", "typescript", "js", "javascript"), Kind.TYPESCRIPT),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """A piece of code: `offsets` has where each of its lines starts in the line of the source.

    Of a patch, `text` is what it results in; `added` has the lines of the source that it adds, None where the block
    is no patch.
    """

    source: Source
    kind: Kind
    language: str
    first: int
    text: str
    offsets: tuple[int, ...]
    intro: str
    added: frozenset[int] | None = None
    _starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        object.__setattr__(self, "_starts", tuple(starts))

    @property
    def last(self) -> int:
        """The last line of the block in the source."""
        return self.first + len(self.offsets) - 1

    @property
    def lines(self) -> str:
        """The lines of the block in a message."""
        return _lines(self.first, self.last)

    def line(self, offset: int) -> int:
        """The line of the source for an offset into the text."""
        return self.first + self._index(offset)

    def location(self, offset: int) -> Location:
        """The place in the source for an offset into the text."""
        index = self._index(offset)
        return self.at(index, offset - self._starts[index])

    def at(self, index: int, column: int) -> Location:
        """The place in the source of a line and a column of the text, both counted from 0."""
        indent = self.offsets[index] if index < len(self.offsets) else 0
        return self.source.location(self.first + index, indent + column + 1)

    def _index(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1


def _lines(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first} to {last}"


def lines_are(first: int, last: int) -> str:
    """The beginning of a sentence about lines: "line 3 is", "lines 3 to 5 are"."""
    return f"{_lines(first, last)} {'is' if first == last else 'are'}"


def is_markdown(source: Source) -> bool:
    """Whether the text is Markdown: by the name of its file, or because it has fences or headings of Markdown."""
    return source.name.lower().endswith(_SUFFIXES) or any(
        _FENCE.match(line) or _HEADING.match(line) for line in source.lines
    )


def find_blocks(source: Source, findings: Findings) -> tuple[Block, ...]:
    """The blocks in the order of the text; code-like lines outside of them are reported."""
    fenced = list(_fenced(source)) if is_markdown(source) else []
    covered = {line for block in fenced for line in range(block.first - 1, block.last + 2)}
    bare = list(_bare(source, covered))
    covered |= {line for block in bare for line in range(block.first, block.last + 1)}
    _report_stray(source, covered, findings)
    blocks = sorted([*fenced, *bare], key=lambda block: block.first)
    return tuple(_patched(block, findings) if _is_patch(block) else block for block in blocks)


def _fenced(source: Source) -> Iterator[Block]:
    # imported here: no other command needs it
    from markdown_it import MarkdownIt

    # MDX puts tags around fences: read as HTML they would swallow the code; text within lines is of no interest
    parser = MarkdownIt("commonmark").disable(["html_block", "inline"])
    for token in parser.parse("\n".join(source.lines).replace("\0", "\ufffd")):
        if token.type == "fence" and token.map:
            language = (token.info.split() or [""])[0].lower().strip("{}.")
            yield _block(source, token.map[0] + 1, _content_lines(token.content), language)


def _content_lines(content: str) -> list[str]:
    return content.removesuffix("\n").split("\n") if content else []


def _block(source: Source, start: int, lines: list[str], language: str) -> Block:
    """The block of the fence in line `start`, whose content is `lines`."""
    text = "\n".join(lines)
    # markdown-it strips the indentation of the fence: what is left tells how much that was
    raw = source.lines[start : start + len(lines)]
    offsets = tuple(max(len(whole) - len(line), 0) for whole, line in zip(raw, lines, strict=False))
    return Block(
        source=source,
        kind=_LANGUAGES.get(language) or (_guess(text) if language in ("", "diff", "patch", "text") else Kind.OTHER),
        language=language,
        first=start + 1,
        text=text,
        offsets=offsets or (0,),
        intro=_intro(source, start - 2),
    )


def _guess(text: str) -> Kind:
    for line in text.split("\n"):
        bare = line[1:] if _PATCH_LINE.match(line) else line
        if _JSON_START.match(bare) or re.match(r"\s*\"[^\"]{1,100}\"\s*:", bare):
            return Kind.JSON
        if _DECLARATION.match(bare):
            return Kind.TYPESCRIPT
    return Kind.OTHER


def _bare(source: Source, covered: set[int]) -> Iterator[Block]:
    """The blocks without fences: a line that begins JSON or a declaration, up to where its brackets are closed."""
    number, tries = 1, 0
    while number <= len(source.lines):
        line = source.lines[number - 1]
        kind = _start_of(line) if number not in covered else None
        end = _end_of(source, number, kind, covered) if kind and tries < _MAX_TRIES else None
        if kind and end:
            lines = source.lines[number - 1 : end]
            yield Block(
                source=source,
                kind=kind,
                language="",
                first=number,
                text="\n".join(lines),
                offsets=(0,) * len(lines),
                intro=_intro(source, number - 2),
            )
            number = end
        elif kind:
            tries += 1
        number += 1


_MAX_TRIES = 50
"""How many openings that are never closed are looked at: each costs a scan up to `_LONGEST` lines."""
_LONGEST = 5_000


def _start_of(line: str) -> Kind | None:
    if _JSON_START.match(line):
        return Kind.JSON
    return Kind.TYPESCRIPT if _DECLARATION.match(line) else None


def _end_of(source: Source, number: int, kind: Kind, covered: set[int]) -> int | None:
    """The line in which everything that line `number` opens is closed, and a type alias has come to its end."""
    depth, in_comment = 0, False
    for current in range(number, min(number + _LONGEST, len(source.lines) + 1)):
        if current in covered:
            return None
        line = source.lines[current - 1]
        change, in_comment = _bracket_balance(line, in_comment=in_comment)
        depth += change
        if depth < 0:
            return None
        if depth == 0 and not in_comment and _is_complete(source, current, kind):
            return current
    return None


def _is_complete(source: Source, current: int, kind: Kind) -> bool:
    line = source.lines[current - 1].rstrip()
    if kind is Kind.JSON or line.endswith((";", "}")):
        return True
    following = source.lines[current].strip() if current < len(source.lines) else ""
    return not line.endswith(("=", "|", "&")) and not following.startswith(("|", "&"))


# a string that is never closed ends with the line: each alternative takes what it has looked at
_PIECES = re.compile(r"\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|`[^`]*`?|//|/\*|[{}\[\]()]")


def _bracket_balance(line: str, *, in_comment: bool) -> tuple[int, bool]:
    """How many brackets the line opens more than it closes, outside of strings and comments."""
    depth, position = 0, 0
    while position < len(line):
        if in_comment:
            end = line.find("*/", position)
            if end < 0:
                return depth, True
            position, in_comment = end + 2, False
            continue
        match = _PIECES.search(line, position)
        if match is None or match[0] == "//":
            break
        position = match.end()
        if match[0] == "/*":
            in_comment = True
        elif match[0] in "{[(":
            depth += 1
        elif match[0] in "}])":
            depth -= 1
    return depth, in_comment


def _intro(source: Source, index: int) -> str:
    """The last line with text at or before `index`."""
    while index >= 0:
        if text := source.lines[index].strip():
            return text
        index -= 1
    return ""


def _report_stray(source: Source, covered: set[int], findings: Findings) -> None:
    """Report runs of lines that look like code and are in no block: somebody has to see that nothing was lost."""
    run: list[int] = []
    for number in range(1, len(source.lines) + 2):
        is_stray = (
            number <= len(source.lines) and number not in covered and bool(_looks_like_code(source.lines[number - 1]))
        )
        if is_stray:
            run.append(number)
        elif run:
            findings.warn(
                "rfd-stray-code",
                f"{lines_are(run[0], run[-1])} code by the look of it, and part of no block that could be read",
                source.location(run[0]),
                hint="read it, and add what it says to the draft where it matters",
            )
            run = []


def _looks_like_code(line: str) -> bool:
    line = line[1:] if _PATCH_LINE.match(line) and line[0] == "+" else line
    return bool(_STRAY.match(line) or _start_of(line))


def _is_patch(block: Block) -> bool:
    if block.kind is Kind.OTHER:
        return False
    if block.language in ("diff", "patch"):
        return True
    lines = [line for line in block.text.split("\n") if line.strip()]
    return any(_PATCH_LINE.match(line) for line in lines) and all(line[0] in "+- @" for line in lines)


def _bare_line(line: str) -> str:
    """A line of a patch without its sign, and without what the neighbour of a new line needs: a comma."""
    return line[1:].strip().rstrip(",;")


def _patched(block: Block, findings: Findings) -> Block:
    """What the patch results in, line by line; what it removes is reported, as a fragment only adds."""
    before = {_bare_line(line) for line in block.text.split("\n") if line.startswith("-")}
    after = {_bare_line(line) for line in block.text.split("\n") if line.startswith("+")}
    lines, added = [], set()
    for index, line in enumerate(block.text.split("\n")):
        number = block.first + index
        marker, rest = line[:1], line[1:]
        if line.startswith(("+++", "---", "@@", "\\", "diff ", "index ")):
            rest = ""
        elif marker == "+" and _bare_line(line) not in before:
            added.add(number)
        elif marker == "-":
            rest = ""
            if _bare_line(line) not in after:
                findings.warn(
                    "rfd-removal",
                    "the patch removes this line, which a fragment cannot say by an addition",
                    block.source.location(number),
                    hint="state the old and the new shape of the definition under `changes`, `replace`",
                )
        lines.append(" " + rest)
    return Block(
        source=block.source,
        kind=block.kind,
        language=block.language,
        first=block.first,
        text="\n".join(lines),
        offsets=block.offsets,
        intro=block.intro,
        added=frozenset(added),
    )
