"""What acpgen has to say about its input: one diagnostic type, one collector, one error root.

A stage never prints. It puts its findings into a `Report`; the command line sorts, caps and prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """How grave a diagnostic is, by its consequence."""

    ERROR = "error"
    """No package is written."""
    WARNING = "warning"
    """A package is written, yet something in the input had no effect on it; an error under `--strict`."""
    NOTE = "note"
    """Worth knowing; shown under `--verbose`, or where the user asked for the thing that it is about."""


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
    """One finding: what, where, and how to fix it.

    `code` is stable and made for machines (`ref-not-found`); `pointer` is a JSON pointer (RFC 6901)
    into `location.file`.
    """

    code: str
    severity: Severity
    message: str
    location: Location | None = None
    pointer: str | None = None
    hint: str | None = None

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        """Order by place, then by code, so that output does not depend on the order of the work."""
        where = self.location or Location("", 0, 0)
        return (where.file, where.line, where.column, self.code, self.message)


class AcpgenError(Exception):
    """The root of everything acpgen raises on purpose. `exit_code` is what the command line returns for it."""

    exit_code = 2

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda found: found.sort_key))
        super().__init__("\n".join(found.message for found in self.diagnostics))


class InputError(AcpgenError):
    """The schema, a fragment, an option or the output folder is not usable as it is (exit code 2)."""


class InternalError(AcpgenError):
    """acpgen contradicts itself: a bug in acpgen, never the user's fault (exit code 3)."""

    exit_code = 3


def input_error(code: str, message: str, *, location: Location | None = None, hint: str | None = None) -> InputError:
    """An `InputError` with a single diagnostic, for problems that have no JSON pointer."""
    found = Diagnostic(code=code, severity=Severity.ERROR, message=message, location=location, hint=hint)
    return InputError([found])


def internal_error(message: str) -> InternalError:
    """An `InternalError` that asks for a bug report."""
    return InternalError(
        [
            Diagnostic(
                code="internal",
                severity=Severity.ERROR,
                message=message,
                hint="this is a bug in acpgen: please report it with the schema and the command line",
            )
        ]
    )


Locate = Callable[[str], tuple[Location | None, str]]
"""Turns a pointer into the composed schema into the file position and pointer that it came from."""


@dataclass(slots=True)
class Report:
    """Collects the diagnostics of a run, each placed by `locate` in the file where its cause stands."""

    locate: Locate = field(default=lambda pointer: (None, pointer))
    found: list[Diagnostic] = field(default_factory=list)
    _seen: set[Diagnostic] = field(default_factory=set, init=False, repr=False)

    def error(self, code: str, message: str, *, at: str, hint: str | None = None) -> None:
        """Record something that makes a package impossible; the stage may go on to find more."""
        self._add(Severity.ERROR, code, message, at=at, hint=hint)

    def warning(self, code: str, message: str, *, at: str, hint: str | None = None) -> None:
        """Record something that acpgen reads past."""
        self._add(Severity.WARNING, code, message, at=at, hint=hint)

    def note(self, code: str, message: str, *, at: str, hint: str | None = None) -> None:
        """Record something that is as it should be, yet may surprise."""
        self._add(Severity.NOTE, code, message, at=at, hint=hint)

    def _add(self, severity: Severity, code: str, message: str, *, at: str, hint: str | None) -> None:
        location, pointer = self.locate(at)
        found = Diagnostic(code=code, severity=severity, message=message, location=location, pointer=pointer, hint=hint)
        if found not in self._seen:
            self._seen.add(found)
            self.found.append(found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that make a package impossible."""
        return tuple(found for found in self.found if found.severity is Severity.ERROR)

    def raise_errors(self) -> None:
        """Raise `InputError` with all errors recorded so far, if there are any."""
        if errors := self.errors:
            raise InputError(errors)
