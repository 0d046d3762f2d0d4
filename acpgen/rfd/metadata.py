"""What an RFD says of itself: title, revision, status, address."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from acpgen.rfd.source import Source

_DATE = re.compile(r"(?<!\d)(\d{4}-\d{2}-\d{2})(?!\d)")
_FIELD = re.compile(
    r"[>*\s-]{0,10}(title|status|revision|date|updated|rfd|url)(?:\*\*)?\s*:\s*(?:\*\*)?\s*(\S.{0,300})", re.IGNORECASE
)
_PREFIX = re.compile(r"rfd\s{0,3}[:-]\s{0,3}", re.IGNORECASE)
_HEADING = re.compile(r"#\s+(\S.{0,300})")
_URL = re.compile(r"https?://[!-~]{1,300}")
_HISTORY = re.compile(r"#{0,6}\s*revision history\s*$", re.IGNORECASE)
_SLUG = re.compile(r"[a-z0-9]+")
_HEAD_LINES = 60
"""How far fields of metadata are looked for: later ones are about something else."""

_STATUSES = {
    **dict.fromkeys(("draft", "proposal", "proposed", "preview", "active", "open", "wip"), "draft"),
    **dict.fromkeys(("landed", "accepted", "completed", "implemented", "merged", "stable", "stabilized"), "landed"),
    **dict.fromkeys(("vendor", "private"), "vendor"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What was found; None for what was not. `lines` has where, by the name of the field."""

    id: str | None
    title: str | None
    revision: str | None
    status: str | None
    rfd: str | None
    lines: Mapping[str, int]


def read_metadata(source: Source) -> Metadata:
    """The metadata of a text: from its front matter or first lines, its heading, its history and its name."""
    fields = dict(_fields(source))
    title, title_line = fields.get("title") or _heading(source) or (None, 1)
    revision, revision_line = _revision(source, fields)
    status, status_line = fields.get("status", ("", 1))
    url, url_line = fields.get("rfd") or fields.get("url") or ("", 1)
    address = _URL.search(url)
    words = re.findall(r"[a-z]+", status.lower())
    return Metadata(
        id=_identity(source.name) or (_identity(title) if title else None),
        title=title,
        revision=revision,
        status=next((_STATUSES[word] for word in words if word in _STATUSES), None if status else "draft"),
        rfd=address[0].rstrip(".,;)>]\"'") if address else None,
        lines={"title": title_line, "revision": revision_line, "status": status_line, "rfd": url_line},
    )


def _fields(source: Source) -> Iterator[tuple[str, tuple[str, int]]]:
    """The lines `name: value` at the start of the text; the first of a name counts."""
    seen: set[str] = set()
    for number, line in enumerate(source.lines[:_HEAD_LINES], 1):
        match = _FIELD.match(line)
        if match and (name := match[1].lower()) not in seen:
            seen.add(name)
            yield name, (_clean(match[2]), number)


def _heading(source: Source) -> tuple[str, int] | None:
    in_fence = False
    for number, line in enumerate(source.lines, 1):
        in_fence ^= line.lstrip().startswith(("```", "~~~"))
        if not in_fence and (match := _HEADING.match(line)):
            return _clean(match[1]), number
    return None


def _clean(text: str) -> str:
    """`text` without quotation marks, emphasis and "RFD:" around it, as one line that can be printed."""
    text = text.strip().strip("\"'*`").strip().rstrip("#").strip()
    if prefix := _PREFIX.match(text):
        text = text[prefix.end() :]
    return "".join(char for char in text if char.isprintable())


def _revision(source: Source, fields: Mapping[str, tuple[str, int]]) -> tuple[str | None, int]:
    """The newest date of the revision history, else that of a field, else that in the name of the file."""
    history = [number for number, line in enumerate(source.lines, 1) if _HISTORY.match(line)]
    if history:
        following = list(enumerate(source.lines[history[-1] :], history[-1] + 1))
        dates = [(found, number) for number, line in following for found in _dates(line[:40])]
        if dates:
            newest = max(found for found, _ in dates)
            return newest, next(number for found, number in dates if found == newest)
    for name in ("revision", "updated", "date"):
        text, line = fields.get(name, ("", 1))
        if found := next(_dates(text), None):
            return found, line
        if name == "revision" and re.fullmatch(r"[A-Za-z0-9.-]{1,40}", text):
            return text, line
    return next(_dates(source.name), None), 1


def _dates(text: str) -> Iterator[str]:
    for match in _DATE.finditer(text):
        try:
            date.fromisoformat(match[1])
        except ValueError:
            continue
        yield match[1]


def _identity(text: str) -> str | None:
    """The words of a title, or of the name of a file without ending and date, joined by hyphens."""
    stem = re.sub(r"\.[A-Za-z0-9]{1,10}$", "", text)
    found = "-".join(_SLUG.findall(_DATE.sub("", stem).lower()))
    return found[:80].strip("-") or None
