"""Read a trace: the connections in a file, and the findings about them, as one value for all that print it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from acpgen.diagnostics import Diagnostic, Location, Severity, input_error
from acpgen.files import open_file
from acpgen.ir import model as ir
from acpgen.ir.names import class_name
from acpgen.schema.bundled import bundled_fragments
from acpgen.schema.walk import methods_of, schema_map
from acpgen.trace.conversation import Conversation, Seen, Total
from acpgen.trace.lines import Event, MessagePlace, TraceEntry, continues, read_entries, read_lines
from acpgen.trace.masking import Masking
from acpgen.trace.values import Misfit

MOST = 10_000
"""The most findings of each severity that are kept. The others are counted."""

FULL = ".1"
"""The end of the name of a file that was full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding about a message. `about` is the class, or class and property, that the schema has for the value."""

    place: MessagePlace
    about: str
    diagnostic: Diagnostic


@dataclass(slots=True, kw_only=True)
class Trace:
    """A trace that was read. `messages` is empty unless they were kept."""

    file: Path
    models: Mapping[int, ir.Model]
    messages: list[Seen] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    counts: Counter[Severity] = field(default_factory=Counter)
    totals: defaultdict[str, Total] = field(default_factory=lambda: defaultdict(Total))

    @property
    def diagnostics(self) -> Iterator[Diagnostic]:
        """The findings that were kept, and how many more there are."""
        yield from (each.diagnostic for each in self.findings)
        for severity, count in self.counts.items():
            if count > MOST:
                message = f"{count - MOST} more findings of this severity are not listed: these are the first {MOST}"
                yield Diagnostic(code="more-findings", severity=severity, message=message)

    def add(self, place: MessagePlace, misfit: Misfit) -> None:
        """Add a finding about a message."""
        self.counts[misfit.severity] += 1
        if self.counts[misfit.severity] > MOST:
            return
        diagnostic = Diagnostic(
            code=misfit.code,
            severity=misfit.severity,
            message=misfit.message,
            location=Location(self.file.as_posix() + place.part, place.line, 1),
            pointer=misfit.pointer or None,
            hint=_hint(misfit, place.protocol),
        )
        self.findings.append(Finding(place=place, about=misfit.about, diagnostic=diagnostic))


def read_trace(file: Path, models: Mapping[int, ir.Model], *, keep: bool, shows_secrets: bool = False) -> Trace:
    """Read the trace in `file`. `keep` says whether the value has the messages, too. Secrets in it are masked."""
    trace = Trace(file=file, models=models)
    if not _RecordingReader(trace, keep=keep, shows_secrets=shows_secrets).read(_entries(file)):
        hint = "each line has a message as JSON, alone or after a prefix"
        raise input_error("no-messages", f"{file.as_posix()} has no messages", hint=hint)
    return trace


def _entries(file: Path) -> Iterator[TraceEntry]:
    """The lines of the file, and those of the full file before it, which its recorder has renamed."""
    rest = _lines(file, "")
    first = next(rest, None)
    if first is not None and continues(first) and _sibling(file, FULL).is_file():
        yield from _lines(file, FULL)
    yield from () if first is None else [first]
    yield from rest


def _lines(file: Path, part: str) -> Iterator[TraceEntry]:
    path = _sibling(file, part)
    with open_file(path, label=path.as_posix(), code="unreadable") as stream:
        yield from read_entries(read_lines(stream), part)


def _sibling(file: Path, part: str) -> Path:
    return Path(f"{file}{part}")


class _RecordingReader:
    """Gives each line to its connection. Where lines do not name it, each start of a recording is a new one."""

    def __init__(self, trace: Trace, *, keep: bool, shows_secrets: bool) -> None:
        self._trace = trace
        self._keeps = keep
        self._shows_secrets = shows_secrets
        self._open: dict[str, tuple[Conversation, Masking]] = {}
        """The connections that go on."""
        self._starts = 0
        self._lines = 0

    def read(self, entries: Iterator[TraceEntry]) -> int:
        """Read all lines: the number of messages."""
        is_cut, events = False, 0
        for entry in entries:
            self._starts += entry.event is Event.START
            if entry.event is not None and not self._starts:
                continue  # a line of another log
            events += entry.event is not None
            self._next(entry)
            is_cut = entry.problem is not None
        for key in [*self._open]:
            self._finish(key, is_cut=is_cut)
        return self._lines - events

    def _next(self, entry: TraceEntry) -> None:
        key = entry.connection or ""
        if key in self._open and entry.event is Event.START and not continues(entry):
            self._finish(key, is_cut=False)
        if key not in self._open:
            name = key or (str(self._starts) if self._starts else "")
            conversation = Conversation(name, self._trace.models, self._trace.totals, is_partial=continues(entry))
            self._open[key] = conversation, Masking()
        conversation, masking = self._open[key]
        seen = conversation.read(entry, self._lines)
        if not self._shows_secrets:
            masking.hide(seen)
        self._lines += 1
        if self._keeps:
            self._trace.messages.append(seen)
        for misfit in seen.findings:
            self._trace.add(seen.place, misfit)

    def _finish(self, key: str, *, is_cut: bool) -> None:
        conversation, _ = self._open.pop(key)
        for place, misfit in conversation.finish(is_cut=is_cut):
            self._trace.add(place, misfit)


def _hint(found: Misfit, protocol: int) -> str | None:
    """The bundled extensions that add the property to the class; without one, the method."""
    if not found.unknown:  # most findings need no fragments
        return None
    names = [*_extensions(protocol).get((found.owner, found.unknown), ())]
    return f"defined by {' and '.join(names)}: check with --extension {names[0]}" if names else None


@cache
def _extensions(protocol: int) -> dict[tuple[str, str], dict[str, None]]:
    """The extensions by class and property, and by method: a trace may have very many unknown names."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for fragment in bundled_fragments(protocol):
        definitions = schema_map(fragment.document.root, "$defs")
        keys = [("", method) for _, method in methods_of(definitions)]
        for definition, node in definitions.items():
            keys += [(class_name(definition), key) for key in schema_map(node, "properties")]
        for key in keys:
            found.setdefault(key, {})[fragment.id] = None
    return found
