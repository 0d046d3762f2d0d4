"""The text of an RFD by lines, and what is found in it; both are untrusted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from acpgen.diagnostics import Diagnostic, Location, Severity, input_error
from acpgen.schema.document import read_bytes

MAX_BYTES = 256 * 1024
"""The longest RFD so far has 31 KB; more than this is something else."""
MAX_LINES = 10_000
_EXCERPT = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """A text. `label` is how diagnostics name the file, `name` what the draft says of where it comes from."""

    label: str
    name: str
    digest: str
    lines: tuple[str, ...]

    def location(self, line: int, column: int = 1) -> Location:
        """The place of a line and a column, both counted from 1."""
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return Location(self.label, line, column, text[:_EXCERPT].rstrip())


def read_source(path: Path) -> Source:
    """The text in the file `path`; raises `InputError` for one that is no text, or too large for an RFD."""
    label = path.as_posix()
    return parse_source(read_bytes(path, label=label), label=label, name=path.name)


def parse_source(data: bytes, *, label: str, name: str) -> Source:
    """The text in `data` (UTF-8, any line ends); raises `InputError` for anything else, and for too much of it."""
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
    """Collects what there is to say about a text: warnings are for a person to act upon, notes are worth knowing."""

    found: list[Diagnostic] = field(default_factory=list)

    def warn(self, code: str, message: str, location: Location | None, *, hint: str | None = None) -> None:
        """Record something that was not understood, or that somebody has to decide."""
        self._add(Severity.WARNING, code, message, location, hint=hint)

    def note(self, code: str, message: str, location: Location | None, *, hint: str | None = None) -> None:
        """Record what was left out because nothing follows from it for a fragment."""
        self._add(Severity.NOTE, code, message, location, hint=hint)

    def _add(self, severity: Severity, code: str, message: str, location: Location | None, *, hint: str | None) -> None:
        self.found.append(Diagnostic(code=code, severity=severity, message=message, location=location, hint=hint))
