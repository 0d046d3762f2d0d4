"""Compares the generated files with the output folder. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.output.conflicts import has_conflict, is_generated_in_conflict
from acpgen.output.manifest import Manifest, read_manifest, render_manifest
from acpgen.output.paths import LOCK_NAME, ObstacleError, StrPath, foreign_file, read_below, shown, unreadable
from acpgen.output.preconditions import check_apart, check_files, check_folder
from acpgen.text import HTML_MARKER, MARKER, digest, with_plain_ends


class Kind(Enum):
    """The kinds of changes to a file."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """The change to one file. `path` is relative to the output folder."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The work of `apply`. `files` is the whole package by path, with the manifest; `changes` are sorted by path."""

    folder: Path
    changes: tuple[Change, ...]
    files: Mapping[str, str]
    notes: tuple[Diagnostic, ...] = ()
    """Warnings that stop nothing: stale files that are kept, and edited files that are lost."""
    problems: tuple[Diagnostic, ...] = ()
    """Errors in the folder. A plan that has any cannot be applied."""

    @property
    def is_clean(self) -> bool:
        """Whether the folder already holds exactly this package."""
        return not self.different

    @property
    def different(self) -> tuple[Change, ...]:
        """The changes without those of files that are kept as they are."""
        return tuple(change for change in self.changes if change.kind is not Kind.KEEP)

    def raise_problems(self) -> None:
        """Raise `InputError` with the problems, if there are any."""
        if self.problems:
            raise InputError(self.problems)


def plan(files: Mapping[str, str], *, folder: StrPath, head: Mapping[str, object]) -> Plan:
    """Plan the changes that write `files` to `folder`, with a manifest that starts with `head`.

    Files in the way are among the `problems` of the plan.

    Raises `InputError` for a folder that cannot hold a package, and `InternalError` for files that acpgen must not
    generate. Only `apply` refuses a folder that is not writable: `check` must work on a read-only disk.
    """
    check_files(files)
    package = dict(sorted(files.items()))
    package[LOCK_NAME] = render_manifest(head, files)
    found = compare(folder, package)
    if not found.problems:
        try:
            check_apart(folder)
        except OSError as error:
            raise unreadable(folder, error) from error
    return found


def compare(folder: StrPath, package: Mapping[str, str]) -> Plan:
    """Plan the changes after which `folder` holds `package` (path to text, with the manifest).

    Raises `InputError` for a folder that cannot hold a package.
    """
    check_folder(folder)
    report = Report()
    old: Manifest | None = None
    with report.collecting():
        old = read_manifest(folder)
    recorded = old.files if old else {}
    changes = _new_changes(folder, package, recorded=recorded, report=report)
    changes += _stale_changes(folder, package, recorded=recorded, report=report)
    _report_edited(folder, changes, old, report)
    return Plan(
        folder=Path(folder),
        changes=tuple(sorted(changes, key=lambda change: change.path)),
        files=package,
        notes=tuple(found for found in report.found if found.severity is not Severity.ERROR),
        problems=report.errors,
    )


def _new_changes(
    folder: StrPath, package: Mapping[str, str], *, recorded: Collection[str], report: Report
) -> list[Change]:
    changes: list[Change] = []
    for path, text in package.items():
        try:
            # A line end of Windows has two bytes. A longer file differs in any case, so the rest is not read.
            old = read_below(folder, path, limit=2 * len(text.encode()) + len(HTML_MARKER) + 1)
        except ObstacleError as obstacle:
            report.add(*obstacle.diagnostics)
            continue
        kind = _kind(old, text.encode())
        # A foreign manifest was reported when it was read.
        if kind is Kind.UPDATE and old is not None and path != LOCK_NAME and not _is_generated(old):
            if path in recorded:
                message = f"{shown(folder, path)} is in {LOCK_NAME}, but does not start with acpgen's marker"
                hint = "delete it and build again; keep a copy of what you need from it"
                report.error("foreign-file", message, hint=hint)
            else:
                report.add(*foreign_file(folder, path).diagnostics)
        changes.append(Change(path, kind))
    return changes


def _kind(old: bytes | None, new: bytes) -> Kind:
    if old is None:
        return Kind.CREATE
    return Kind.KEEP if with_plain_ends(old) == new else Kind.UPDATE


def _report_edited(folder: StrPath, changes: Iterable[Change], old: Manifest | None, report: Report) -> None:
    """Warn of each file that was edited since the last build, and is lost. A merge is no edit: a note says so."""
    in_conflict = [LOCK_NAME] if old and old.in_conflict else []
    recorded = old.files if old else {}
    for change in changes:
        if change.kind not in (Kind.UPDATE, Kind.DELETE) or change.path == LOCK_NAME:
            continue
        data = read_below(folder, change.path)
        if data is not None and has_conflict(data):
            in_conflict.append(change.path)
        elif change.path not in recorded or (old and old.in_conflict):
            continue
        elif data is not None and digest(data) != recorded[change.path]:
            verb = "deleted" if change.kind is Kind.DELETE else "overwritten"
            message = f"{shown(folder, change.path)} was edited after the last build, and is {verb}"
            hint = "keep your own code outside of the package, and exclude the package from formatters"
            report.warning("edited-file", message, hint=hint)

    if in_conflict:
        files = f"{len(in_conflict)} file{'s' if len(in_conflict) > 1 else ''}"
        message = f"a merge has left conflicts in {files} of {Path(folder).as_posix()}: the build resolves them"
        report.note("merge-resolved", message, hint="the package follows from the configuration; commit both")


def _is_generated(data: bytes) -> bool:
    return has_marker(data) or is_generated_in_conflict(data)


def has_marker(data: bytes) -> bool:
    """True if a file starts with a marker of acpgen. Only such a file may be deleted: manifests are untrusted."""
    return data.startswith((MARKER.encode(), HTML_MARKER.encode()))


def _stale_changes(
    folder: StrPath, package: Mapping[str, str], *, recorded: Iterable[str], report: Report
) -> list[Change]:
    changes: list[Change] = []
    for path in sorted(set(recorded) - package.keys()):
        is_generated = False
        with suppress(ObstacleError):
            data = read_below(folder, path, limit=len(MARKER))
            if data is None or _is_same_file(Path(folder), path, others=package):
                continue
            is_generated = has_marker(data)
        if is_generated:
            changes.append(Change(path, Kind.DELETE))
        else:
            kept = "is no longer generated, but is kept: it does not start with acpgen's marker"
            report.warning("stale-file-kept", f"{shown(folder, path)} {kept}", hint="delete it if you do not need it")
    return changes


def _is_same_file(folder: Path, path: str, *, others: Iterable[str]) -> bool:
    """Whether `path` and one of `others` are the same file, on a disk that ignores case: it must not be deleted."""
    fold = path.casefold()
    twins = (folder / other for other in others if other.casefold() == fold)
    return any(twin.exists() and os.path.samefile(folder / path, twin) for twin in twins)
