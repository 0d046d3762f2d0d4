"""What black looks at in a definition, so that one which is laid out like others need not be given to it.

The names and the texts in a line that fits decide nothing about its layout. So a definition is taken apart into traits:
the form of each of its lines, in which every name is the same, and how one kind of line follows another. Where each
trait was in a definition that black left as it was, black leaves this one as it is, too. What may depend on the length
of names, or on the content of texts, has no traits, and is black's to format.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from acpgen.emit.literals import LINE_LENGTH


class Line(NamedTuple):
    """A trait: the form of a line that fits, and whether it is an element of something in brackets."""

    text: str
    is_element: bool


class Order(NamedTuple):
    """A trait: the kind of a line, that of the one above with the number of empty lines between, and where they are."""

    above: tuple[object, ...]
    empty: int
    here: tuple[object, ...]


Trait = Line | Order

_KEYWORDS = frozenset({*keyword.kwlist, *keyword.softkwlist, "print", "exec"})
_TRIPLE = re.compile(r'"""(.*?)"""', re.DOTALL)
_TOKEN = re.compile(r'[A-Za-z]{0,2}"[^"\\\n]*"|[^\W\d]\w*|\d[\w.]*')
_DOC = "$"
"""Stands for a text in three quotes: alone for one line, with a sign for several, by where the closing quotes are."""
_TEXT = '"S"'
_ALONE = f"{_DOC}#"
_FOLDED = "\N{BROKEN BAR}"
_SPECIAL = re.compile(r"[\t\f\r]|[ ]\n|^ *#(?:[^ \n]| *(?:fmt|yapf|type))", re.MULTILINE)
"""Comments that black obeys or mends, and white space that it changes."""

_NAME = r"n(?:\.n)*"
_TYPE = rf"{_NAME}(?:\[[n., |\[\]]*\])?"
_OPENING = re.compile(
    rf"(?:@|def |async def |class |return |raise |await |from \.*(?:{_NAME})? import |n=|{_TEXT}: )?"
    rf"(?:{_TYPE}(?:: {_TYPE})? = )?(?:{_NAME})?[(\[{{]"
)
"""A line that leaves one bracket open, outside of which nothing is by which black could split the line instead."""
_CLOSING = re.compile(rf"[)\]}}](?:,|:| -> {_TYPE}:| -> None:)?")


class UnclearError(Exception):
    """The layout may depend on more than traits."""


def traits(text: str, folded: Collection[str] = ()) -> frozenset[Trait]:
    """The traits of a definition, but for those of the lines in `folded`, which are too long.

    Raises `UnclearError` where the traits do not decide all.
    """
    if _SPECIAL.search(text):
        raise UnclearError
    for line in folded:
        text = text.replace(line, line[: indent_of(line)] + _FOLDED + line[indent_of(line) :])
    form = _TOKEN.sub(_form, _TRIPLE.sub(_docstring, text))
    return frozenset(_Reader().read(form))


def long_lines(text: str) -> list[str]:
    """The lines that may not fit; characters that are not ASCII may be two columns wide."""
    return [line for line in text.split("\n") if len(line) > LINE_LENGTH or _width(line) > LINE_LENGTH]


def _width(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-16-le"))


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip(" "))


def _form(token: re.Match[str]) -> str:
    text = token[0]
    if text[-1] == '"':
        return text[: text.index('"')] + _TEXT
    if text.isdecimal():
        return "0"
    return text if text in _KEYWORDS or text[0].isdigit() else "n"


def _docstring(found: re.Match[str]) -> str:
    """The form of a text in three quotes that stands as black writes it. Raises `UnclearError` for others."""
    before = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    first, *rest = found[1].split("\n")
    if before.strip() or "\\" in found[1] or not first or first[0].isspace() or first[0] == '"':
        raise UnclearError
    *middle, last = rest or [first]
    if any(line != line.rstrip() for line in [first, *middle]) or (last.strip() and (last[-1].isspace())):
        raise UnclearError
    if rest and last.strip() == "" and (last != before or not [first, *middle][-1]):
        raise UnclearError
    indents = [indent_of(line) for line in rest if line.strip()]
    if rest and (not indents or min(indents) != len(before)):
        raise UnclearError
    return _DOC + ("" if not rest else "+" if last.strip() else "-")


@dataclass(slots=True)
class _Reader:
    """Reads the form of a definition line by line. `above` are the indents and kinds of the blocks around a line."""

    above: list[tuple[int, str]] = field(default_factory=list)
    open: int = 0
    previous: str = ""
    blank: int = 0

    def read(self, form: str) -> Iterator[Trait]:
        """The traits. Raises `UnclearError`."""
        last: tuple[object, ...] = ()
        for line in form.strip("\n").split("\n"):
            code = line.lstrip(" ")
            if not code:
                self.blank += 1
                continue
            folded, code = code[0] == _FOLDED, code.removeprefix(_FOLDED)
            code = "#" if code[0] == "#" else code
            if not self.open:
                self._leave(indent_of(line))
            place = (self.open > 0, *(kind for _, kind in self.above))
            self._count(code)
            if not folded and code[0] not in _ALONE:
                yield Line(line, bool(place[0]))
            yield Order(last, self.blank, last := (_kind(code), *place))
            self.previous, self.blank = code, 0
            if code[-1] == ":" and not self.open:
                self.above.append((indent_of(line), _kind(code)))
        if self.open:
            raise UnclearError

    def _leave(self, indent: int) -> None:
        """Forget the blocks that a line with `indent` is not in."""
        while self.above and self.above[-1][0] >= indent:
            self.above.pop()

    def _count(self, code: str) -> None:
        """Keep account of the brackets; each that is open at the end of a line has one element a line."""
        if any(sign in code.replace(_TEXT, "") for sign in "'\"\\;") or "#" in code[1:]:
            raise UnclearError
        if code[0] in ")]}":
            if not _CLOSING.fullmatch(code) or self.previous[-1:] != ",":
                raise UnclearError
            self.open -= 1
            return
        opened = sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if opened not in {0, 1} or (opened and not _OPENING.fullmatch(code)):
            raise UnclearError
        if self.open and not opened and code[-1] != "," and code != "#":
            raise UnclearError
        self.open += opened


def _kind(code: str) -> str:
    """As much of a line as decides what may stand above and below it."""
    if code[0] in f"{_DOC})]}}":
        return code
    word = code[0] if code[0] in "@#" else re.split(r"\W", code, maxsplit=1)[0]
    return (word if word in {*_KEYWORDS, "@", "#"} else "n") + (" ..." if code.endswith("...") else "")
