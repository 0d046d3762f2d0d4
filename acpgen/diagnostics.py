"""Messages about the input: one type, one collector, one root of all errors.

A stage never prints. It adds diagnostics to a `Report`; the command line sorts, caps and prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """The consequence of a diagnostic."""

    ERROR = "error"
    """No package is written."""
    WARNING = "warning"
    """A package is written, but a part of the input has no effect on it. An error under `--strict`."""
    NOTE = "note"
    """Nothing is wrong. Shown under `--verbose`, or by a command that is about the same thing."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a text file: `line` and `column` count from 1, columns in characters; `excerpt` is the line itself."""

    file: str
    line: int
    column: int
    excerpt: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One message: the fact, its place, and a hint that names an action.

    `code` is a stable identifier for programs, such as `ref-not-found`. `pointer` is a JSON pointer (RFC 6901) into
    `location.file`.
    """

    code: str
    severity: Severity = Severity.ERROR
    message: str
    location: Location | None = None
    pointer: str | None = None
    hint: str | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """The order by place, then by code: the output must not depend on the order of the work."""
        where = self.location or Location("", 0, 0)
        return (where.file, where.line, where.column, self.code, self.message)


class AcpgenError(Exception):
    """The root of all errors that acpgen raises on purpose. `exit_code` is that of the command line."""

    exit_code = 2

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda found: found.sort_key))
        super().__init__("\n".join(found.message for found in self.diagnostics))


class InputError(AcpgenError):
    """The schema, a fragment, an option or the output folder cannot be used (exit code 2)."""


class InternalError(AcpgenError):
    """A bug in acpgen, whatever the input is (exit code 3)."""

    exit_code = 3


def input_error(
    code: str, message: str, *, location: Location | None = None, pointer: str | None = None, hint: str | None = None
) -> InputError:
    """Make an `InputError` with a single diagnostic."""
    return InputError([Diagnostic(code=code, message=message, location=location, pointer=pointer, hint=hint)])


def internal_error(message: str) -> InternalError:
    """Make an `InternalError` that asks for a bug report."""
    hint = "this is a bug in acpgen: please report it with the schema and the command line"
    return InternalError([Diagnostic(code="internal", message=message, hint=hint)])


Locate = Callable[[str], tuple[Location | None, str]]
"""Maps a pointer into the composed schema to the place in a file, and the pointer, that it comes from."""


@dataclass(slots=True)
class Report:
    """Collects the diagnostics of a run, each of them once.

    `at` is a place in a file, or a pointer for which `locate` finds the place; None for what has no place.
    """

    locate: Locate = field(default=lambda pointer: (None, pointer))
    found: list[Diagnostic] = field(default_factory=list)
    _seen: set[Diagnostic] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self._seen.update(self.found)

    def error(self, code: str, message: str, *, at: str | Location | None = None, hint: str | None = None) -> None:
        """Add an error: no package can be written. The stage may go on to find more."""
        self._add(Severity.ERROR, code, message, at=at, hint=hint)

    def warning(self, code: str, message: str, *, at: str | Location | None = None, hint: str | None = None) -> None:
        """Add a warning: a part of the input has no effect."""
        self._add(Severity.WARNING, code, message, at=at, hint=hint)

    def note(self, code: str, message: str, *, at: str | Location | None = None, hint: str | None = None) -> None:
        """Add a note: nothing is wrong, but the effect may surprise."""
        self._add(Severity.NOTE, code, message, at=at, hint=hint)

    def _add(self, severity: Severity, code: str, message: str, *, at: str | Location | None, hint: str | None) -> None:
        location, pointer = self.locate(at) if isinstance(at, str) else (at, None)
        self.add(
            Diagnostic(code=code, severity=severity, message=message, location=location, pointer=pointer, hint=hint)
        )

    def add(self, *diagnostics: Diagnostic) -> None:
        """Add diagnostics that have their places already."""
        for each in diagnostics:
            if each not in self._seen:
                self._seen.add(each)
                self.found.append(each)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Add the diagnostics of an `InputError` that the block raises, and go on after the block."""
        try:
            yield
        except InputError as error:
            self.add(*error.diagnostics)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The errors so far."""
        return tuple(found for found in self.found if found.severity is Severity.ERROR)

    @property
    def in_order(self) -> tuple[Diagnostic, ...]:
        """All diagnostics by place."""
        return tuple(sorted(self.found, key=lambda found: found.sort_key))

    def raise_errors(self) -> None:
        """Raise `InputError` with all errors so far, if there are any."""
        if errors := self.errors:
            raise InputError(errors)
