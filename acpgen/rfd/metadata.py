"""Read what the text of an RFD says about itself: its title, revision and address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from acpgen.rfd.blocks import Source
from acpgen.schema.fragment import mark

if TYPE_CHECKING:
    from markdown_it.token import Token

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
