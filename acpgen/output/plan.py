"""Compares the generated files with the output folder. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.output.manifest import read_manifest, render_manifest
from acpgen.output.paths import (
    LOCK_NAME,
    ObstacleError,
    StrPath,
    foreign_file,
    read_below,
    shown,
    unreadable,
)
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

    @property
    def written(self) -> dict[str, str]:
        """The text of each file that is created or updated."""
        return {
            change.path: self.files[change.path] for change in self.changes if change.kind in (Kind.CREATE, Kind.UPDATE)
        }


def plan(files: Mapping[str, str], *, folder: StrPath, head: Mapping[str, object], names: Iterable[str] = ()) -> Plan:
    """Plan the changes that write `files` to `folder`, with a manifest that starts with `head`.

    `names` are the public names of the package. Files in the way are among the `problems` of the plan.

    Raises `InputError` for a folder that cannot hold a package, and `InternalError` for files that acpgen must not
    generate. Only `apply` refuses a folder that is not writable: `check` must work on a read-only disk.
    """
    check_files(files)
    package = dict(sorted(files.items()))
    package[LOCK_NAME] = render_manifest(head, files, names)
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
    root = check_folder(folder)
    report = Report()
    recorded: Mapping[str, str] = {}
    with report.collecting():
        old = read_manifest(folder)
        recorded = old.files if old else {}
    try:
        changes = _new_changes(root, package, recorded=recorded, folder=folder, report=report)
        stale = _stale_changes(root, package, recorded=recorded, folder=folder, report=report)
        report.add(*_edited([*changes, *stale], root, recorded=recorded, folder=folder))
    except OSError as error:
        raise unreadable(folder, error) from error
    return Plan(
        folder=Path(folder),
        changes=tuple(sorted([*changes, *stale], key=lambda change: change.path)),
        files=package,
        notes=tuple(found for found in report.found if found.severity is not Severity.ERROR),
        problems=report.errors,
    )


def _new_changes(
    root: Path,
    package: Mapping[str, str],
    *,
    recorded: Collection[str],
    folder: StrPath,
    report: Report,
) -> list[Change]:
    changes: list[Change] = []
    for path, text in package.items():
        try:
            # A line end of Windows has two bytes. A longer file differs in any case, so the rest is not read.
            old = read_below(root, path, limit=2 * len(text.encode()) + len(HTML_MARKER) + 1)
        except ObstacleError as obstacle:
            report.add(obstacle.diagnostic(folder))
            continue
        kind = _kind(old, text.encode())
        # A foreign manifest was reported when it was read.
        if kind is Kind.UPDATE and old is not None and path != LOCK_NAME and not has_marker(old):
            report.add(foreign_file(folder, path, is_recorded=path in recorded))
        changes.append(Change(path, kind))
    return changes


def _kind(old: bytes | None, new: bytes) -> Kind:
    if old is None:
        return Kind.CREATE
    return Kind.KEEP if with_plain_ends(old) == new else Kind.UPDATE


def _edited(
    changes: Iterable[Change], root: Path, *, recorded: Mapping[str, str], folder: StrPath
) -> Iterator[Diagnostic]:
    """A warning for each file that was edited since the last build, and is lost."""
    for change in changes:
        if change.kind not in (Kind.UPDATE, Kind.DELETE) or change.path not in recorded:
            continue
        data = read_below(root, change.path)
        if data is not None and digest(data) != recorded[change.path]:
            verb = "deleted" if change.kind is Kind.DELETE else "overwritten"
            yield Diagnostic(
                code="edited-file",
                severity=Severity.WARNING,
                message=f"{shown(folder, change.path)} was edited after the last build, and is {verb}",
                hint="keep your own code outside of the package, and exclude the package from formatters",
            )


def has_marker(data: bytes) -> bool:
    """True if a file starts with a marker of acpgen. Only such a file may be deleted: manifests are untrusted."""
    return data.startswith((MARKER.encode(), HTML_MARKER.encode()))


def _stale_changes(
    root: Path, package: Mapping[str, str], *, recorded: Iterable[str], folder: StrPath, report: Report
) -> list[Change]:
    changes: list[Change] = []
    for path in sorted(set(recorded) - package.keys()):
        try:
            data = read_below(root, path, limit=len(MARKER))
        except ObstacleError:
            report.add(_kept(folder, path))
            continue
        if data is None or _is_same_file(root, path, others=package):
            continue
        if has_marker(data):
            changes.append(Change(path, Kind.DELETE))
        else:
            report.add(_kept(folder, path))
    return changes


def _is_same_file(root: Path, path: str, *, others: Iterable[str]) -> bool:
    """Whether `path` and one of `others` are the same file, on a disk that ignores case: it must not be deleted."""
    fold = path.casefold()
    twins = (root / other for other in others if other.casefold() == fold)
    return any(twin.exists() and os.path.samefile(root / path, twin) for twin in twins)


def _kept(folder: StrPath, path: str) -> Diagnostic:
    return Diagnostic(
        code="stale-file-kept",
        severity=Severity.WARNING,
        message=f"{shown(folder, path)} is no longer generated, but is kept: it does not start with acpgen's marker",
        hint="delete it if you do not need it",
    )
