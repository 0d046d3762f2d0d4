"""Printing to the terminal: diagnostics, plans and tables."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import typer

from acpgen.diagnostics import AcpgenError, Diagnostic, Severity
from acpgen.text import WIDTH, folded, printable

CAP = 20
"""The most diagnostics that are printed as text. The rest is counted: the first ones mostly explain the others."""

_LONGEST = 2000
"""The most characters of a message. Messages quote names, which can be long."""


class DataFormat(str, Enum):
    """The formats of results on stdout."""

    TEXT = "text"
    JSON = "json"


class DiagnosticFormat(str, Enum):
    """The formats of diagnostics."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


@contextmanager
def exit_on_errors(form: DiagnosticFormat, *, cap: int = CAP) -> Iterator[None]:
    """Print the diagnostics of an error that the block raises, and exit with its code."""
    try:
        yield
    except AcpgenError as error:
        print_diagnostics(error.diagnostics, form, cap=cap)
        raise typer.Exit(error.exit_code) from None


def print_diagnostics(
    diagnostics: Iterable[Diagnostic],
    form: DiagnosticFormat = DiagnosticFormat.TEXT,
    *,
    notes: bool = True,
    cap: int = CAP,
) -> None:
    """Print `diagnostics` to stderr, sorted by place. `notes` includes notes; `cap` limits their number as text."""
    shown = sorted(
        dict.fromkeys(found for found in diagnostics if notes or found.severity is not Severity.NOTE),
        key=lambda found: found.sort_key,
    )
    match form:
        case DiagnosticFormat.TEXT:
            lines = _text(shown, cap)
        case DiagnosticFormat.JSON:
            lines = [_json([_as_json(found) for found in shown])]
        case DiagnosticFormat.GITHUB:
            lines = [_annotation(found) for found in shown]
    for line in lines:
        print(line, file=sys.stderr)


def _text(diagnostics: Sequence[Diagnostic], cap: int) -> list[str]:
    lines = [line for found in diagnostics[:cap] for line in _paragraph(found)]
    if len(diagnostics) > cap:
        lines.append(f"… and {len(diagnostics) - cap} more")
    return lines


def _paragraph(found: Diagnostic) -> list[str]:
    where = f"{printable(str(found.location))}: " if found.location else ""
    lines = [f"{where}{found.severity.value}: {_short(found.message)} [{found.code}]"]
    if found.location and found.location.excerpt.strip(" {["):
        lines.append(f"  {found.location.line} | {printable(found.location.excerpt.strip())}")
    if found.pointer:
        lines.append(f"  at {_short(found.pointer)}")
    if found.hint:
        lines.append(f"  hint: {_short(found.hint)}")
    return lines


def _short(text: str) -> str:
    """Cut `text` for people. `--format json` has all of it."""
    return printable(text if len(text) <= _LONGEST else text[:_LONGEST] + "…")


def _as_json(found: Diagnostic) -> dict[str, object]:
    place = found.location
    return {
        "code": found.code,
        "severity": found.severity.value,
        "message": found.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "pointer": found.pointer,
        "hint": found.hint,
    }


_GITHUB_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def _annotation(found: Diagnostic) -> str:
    place = found.location
    where = [("file", place.file), ("line", str(place.line)), ("col", str(place.column))] if place else []
    lines = [_short(found.message), *([f"hint: {_short(found.hint)}"] if found.hint else [])]
    return annotation(_GITHUB_LEVELS[found.severity], [*where, ("title", found.code)], lines)


def _in_repository(file: str) -> str:
    """The path of a file as GitHub expects it: relative to the top of the repository."""
    if not (top := os.environ.get("GITHUB_WORKSPACE")):
        return file
    path, folder = Path(file).resolve(), Path(top).resolve()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file


def annotation(level: str, properties: Iterable[tuple[str, str]], lines: Iterable[str]) -> str:
    """A workflow command for the log of GitHub Actions."""
    shown = ((key, _in_repository(value) if key == "file" else value) for key, value in properties)
    where = ",".join(f"{key}={_escaped(value, in_property=True)}" for key, value in shown)
    return f"::{level} {where}::{'%0A'.join(map(_escaped, lines))}"


def _escaped(text: str, *, in_property: bool = False) -> str:
    text = printable(text).replace("%", "%25")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def print_data(text: str) -> None:
    """Print `text` on stdout. A closed pipe (`| head`) is not an error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # otherwise the interpreter flushes again when it exits, and reports the error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(data: object) -> None:
    """Print `data` as JSON on stdout."""
    print_data(_json(data))


def _json(data: object) -> str:
    return json.dumps(data, indent=2)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with the columns `head`, or each row as a list if the table is wider than the terminal.

    Where there is no terminal, `WIDTH` decides.
    """
    clean = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(line[column]) for line in (head, *clean)) for column in range(len(head))]
    if sum(widths) + 2 * (len(widths) - 1) <= shutil.get_terminal_size((WIDTH, 24)).columns:
        padded = ("  ".join(map(str.ljust, line, widths)) for line in (head, *clean))
        print_data("\n".join(line.rstrip() for line in padded))
    else:
        print_data("\n".join(line for row in clean for line in _stacked(head, row)))


def _stacked(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    """Print the first cell as a title, and below it the other cells, each with the name of its column."""
    width = max(map(len, head))
    yield row[0]
    for name, cell in zip(head[1:], row[1:], strict=True):
        if cell != "-":
            yield from folded(f"  {name.ljust(width)}  {cell}", indent=width + 4)
