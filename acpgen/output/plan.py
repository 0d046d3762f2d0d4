"""Compares the generated files with the output folder. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.output.folder import (
    LOCK_NAME,
    ObstacleError,
    StrPath,
    check_apart,
    check_files,
    check_folder,
    foreign_file,
    has_conflict,
    is_generated_in_conflict,
    read_below,
    shown,
    unreadable,
)
from acpgen.output.manifest import Manifest, read_manifest, render_manifest
from acpgen.text import HTML_MARKER, MARKER, digest, with_plain_ends


class ChangeKind(Enum):
    """The kinds of changes to a file."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """The change to one file. `path` is relative to the output folder."""

    path: str
    kind: ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
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
        return tuple(change for change in self.changes if change.kind is not ChangeKind.KEEP)

    def raise_problems(self) -> None:
        """Raise `InputError` with the problems, if there are any."""
        if self.problems:
            raise InputError(self.problems)


def plan(files: Mapping[str, str], *, folder: StrPath, head: Mapping[str, object]) -> OutputPlan:
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


def compare(folder: StrPath, package: Mapping[str, str]) -> OutputPlan:
    """Plan the changes after which `folder` holds `package` (path to text, with the manifest).

    Raises `InputError` for a folder that cannot hold a package.
    """
    check_folder(folder)
    report = Report()
    old: Manifest | None = None
    with report.collecting():
        old = read_manifest(folder)
    changes = tuple(_Comparison(Path(folder), package, old, report).changes())
    return OutputPlan(
        folder=Path(folder),
        changes=changes,
        files=package,
        notes=tuple(found for found in report.found if found.severity is not Severity.ERROR),
        problems=report.errors,
    )


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A package, and the folder that it is compared with. Each file is read once."""

    folder: Path
    package: Mapping[str, str]
    old: Manifest | None
    report: Report
    conflicts: list[str] = field(default_factory=list)
    """The files in which a merge has left conflicts."""

    def changes(self) -> Iterator[Change]:
        """The changes by path. What is wrong, kept or lost is reported."""
        if self.old and self.old.in_conflict:
            self.conflicts.append(LOCK_NAME)
        for path in sorted({*self.package, *self._recorded}):
            kind = self._kind(path) if path in self.package else self._stale_kind(path)
            if kind is not None:
                yield Change(path, kind)
        if self.conflicts:
            files = f"{len(self.conflicts)} file{'s' if len(self.conflicts) > 1 else ''}"
            message = f"a merge has left conflicts in {files} of {self.folder.as_posix()}: the build resolves them"
            hint = "the package follows from the configuration; commit both"
            self.report.note("merge-resolved", message, hint=hint)

    @property
    def _recorded(self) -> Mapping[str, str]:
        return self.old.files if self.old else {}

    def _kind(self, path: str) -> ChangeKind | None:
        """The change to a file of the package; None if something is in its place that is no file."""
        try:
            data = read_below(self.folder, path)
        except ObstacleError as obstacle:
            self.report.add(*obstacle.diagnostics)
            return None
        if data is None:
            return ChangeKind.CREATE
        if with_plain_ends(data) == self.package[path].encode():
            return ChangeKind.KEEP
        if path == LOCK_NAME:  # a foreign one was reported when it was read
            return ChangeKind.UPDATE
        if has_marker(data) or is_generated_in_conflict(data):
            self._tell_edited(path, data, "overwritten")
        elif path in self._recorded:
            message = f"{shown(self.folder, path)} is in {LOCK_NAME}, but does not start with acpgen's marker"
            hint = "delete it and build again; keep a copy of what you need from it"
            self.report.error("foreign-file", message, hint=hint)
        else:
            self.report.add(*foreign_file(self.folder, path).diagnostics)
        return ChangeKind.UPDATE

    def _stale_kind(self, path: str) -> ChangeKind | None:
        """The change to a file that the manifest names, and the package has no longer; None if it stays."""
        try:
            data = read_below(self.folder, path)
            if data is None or _is_same_file(self.folder, path, others=self.package):
                return None
            if has_marker(data):
                self._tell_edited(path, data, "deleted")
                return ChangeKind.DELETE
        except ObstacleError:
            pass
        kept = "is no longer generated, but is kept: it does not start with acpgen's marker"
        message = f"{shown(self.folder, path)} {kept}"
        self.report.warning("stale-file-kept", message, hint="delete it if you do not need it")
        return None

    def _tell_edited(self, path: str, data: bytes, verb: str) -> None:
        """Warn of a file that was edited since the last build, and is lost. A merge is no edit: a note says so."""
        if has_conflict(data):
            self.conflicts.append(path)
        elif digest(data) != self._recorded.get(path, digest(data)) and not (self.old and self.old.in_conflict):
            message = f"{shown(self.folder, path)} was edited after the last build, and is {verb}"
            hint = "keep your own code outside of the package, and exclude the package from formatters"
            self.report.warning("edited-file", message, hint=hint)


def has_marker(data: bytes) -> bool:
    """True if a file starts with a marker of acpgen. Only such a file may be deleted: manifests are untrusted."""
    return data.startswith((MARKER.encode(), HTML_MARKER.encode()))


def _is_same_file(folder: Path, path: str, *, others: Iterable[str]) -> bool:
    """Whether `path` and one of `others` are the same file, on a disk that ignores case: it must not be deleted."""
    fold = path.casefold()
    twins = (folder / other for other in others if other.casefold() == fold)
    return any(twin.exists() and os.path.samefile(folder / path, twin) for twin in twins)
