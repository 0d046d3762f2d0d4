"""Compares the generated files with the output folder. Only reads."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.digests import with_plain_ends
from acpgen.marker import MARKER
from acpgen.output.guards import check_files, check_folder
from acpgen.output.manifest import Manifest, read_manifest, render_manifest
from acpgen.output.paths import LOCK_NAME, ObstacleError, StrPath, foreign_file, read_below, shown, unreadable


class Kind(Enum):
    """What happens to a file."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to the file at `path`, relative to the output folder."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What `apply` would do. `files` is the whole package by path, manifest included; `changes` are sorted by path."""

    folder: Path
    changes: tuple[Change, ...]
    files: Mapping[str, str]
    notes: tuple[Diagnostic, ...] = ()
    """What is worth telling although it stops nothing: stale files that are kept."""
    problems: tuple[Diagnostic, ...] = ()
    """What stands in the way; a plan that has any cannot be applied."""

    @property
    def is_clean(self) -> bool:
        """Whether the folder already holds exactly this package."""
        return all(change.kind is Kind.KEEP for change in self.changes)

    def raise_problems(self) -> None:
        """Raise `InputError` if anything stands in the way."""
        if self.problems:
            raise InputError(self.problems)

    @property
    def written(self) -> dict[str, str]:
        """The text of each file that is created or updated."""
        return {
            change.path: self.files[change.path] for change in self.changes if change.kind in (Kind.CREATE, Kind.UPDATE)
        }


def plan(files: Mapping[str, str], *, folder: StrPath, head: Mapping[str, object], names: Iterable[str] = ()) -> Plan:
    """What has to change in `folder` for it to hold `files` and the manifest that `head` begins.

    `names` are the public names of the package. What stands in the way is among the `problems` of the plan.

    Raises `InputError` for a folder that cannot hold a package, and `InternalError` for files that acpgen must not
    generate. A folder that takes no changes is for `apply` to refuse: stale code can be found on a read-only disk.
    """
    check_files(files)
    package = dict(sorted(files.items()))
    package[LOCK_NAME] = render_manifest(head, files, names)
    return compare(folder, package)


def compare(folder: StrPath, package: Mapping[str, str]) -> Plan:
    """The plan that leads from what is on disk to `package` (path to text, manifest included).

    Raises `InputError` for a folder that cannot hold a package.
    """
    root = check_folder(folder)
    problems: list[Diagnostic] = []
    try:
        old = _old_manifest(folder, problems)
        changes = _new_changes(root, package, recorded=old.files, folder=folder, problems=problems)
        stale, notes = _stale_changes(root, package, recorded=old.files, folder=folder)
    except OSError as error:
        raise unreadable(folder, error) from error
    ordered = sorted([*changes, *stale], key=lambda change: change.path)
    return Plan(
        folder=Path(folder), changes=tuple(ordered), files=package, notes=tuple(notes), problems=tuple(problems)
    )


def _old_manifest(folder: StrPath, problems: list[Diagnostic]) -> Manifest:
    """The manifest on disk, or an empty one; what is wrong with it goes to `problems`."""
    try:
        found = read_manifest(folder)
    except InputError as error:
        problems.extend(error.diagnostics)
        found = None
    return found or Manifest(head={}, files={})


def _new_changes(
    root: Path,
    package: Mapping[str, str],
    *,
    recorded: Collection[str],
    folder: StrPath,
    problems: list[Diagnostic],
) -> list[Change]:
    changes: list[Change] = []
    for path, text in package.items():
        try:
            # Line ends of Windows are two bytes each. A file that goes on after that is another text.
            old = read_below(root, path, limit=2 * len(text.encode()) + len(MARKER) + 1)
        except ObstacleError as obstacle:
            problem = obstacle.diagnostic(folder)
            if problem not in problems:  # One folder in the way of ten files is one problem.
                problems.append(problem)
            continue
        kind = _kind(old, text.encode())
        # A manifest that is not ours has been reported when it was read.
        if kind is Kind.UPDATE and old is not None and path != LOCK_NAME and not has_marker(old):
            problems.append(foreign_file(folder, path, is_recorded=path in recorded))
        changes.append(Change(path, kind))
    return changes


def _kind(old: bytes | None, new: bytes) -> Kind:
    if old is None:
        return Kind.CREATE
    return Kind.KEEP if with_plain_ends(old) == new else Kind.UPDATE


def has_marker(data: bytes) -> bool:
    """Whether a file says itself that it is acpgen's; what a manifest says of it is no reason to delete it."""
    return data.startswith(MARKER.encode())


def _stale_changes(
    root: Path, package: Mapping[str, str], *, recorded: Iterable[str], folder: StrPath
) -> tuple[list[Change], list[Diagnostic]]:
    changes: list[Change] = []
    notes: list[Diagnostic] = []
    for path in sorted(set(recorded) - package.keys()):
        try:
            data = read_below(root, path, limit=len(MARKER))
        except ObstacleError:
            notes.append(_kept(folder, path))
            continue
        if data is None or _is_same_file(root, path, others=package):
            continue
        if has_marker(data):
            changes.append(Change(path, Kind.DELETE))
        else:
            notes.append(_kept(folder, path))
    return changes, notes


def _is_same_file(root: Path, path: str, *, others: Iterable[str]) -> bool:
    """Whether `path` is, on a disk that ignores case, one of `others`: to delete it would delete the new file."""
    fold = path.casefold()
    twins = (root / other for other in others if other.casefold() == fold)
    return any(twin.exists() and os.path.samefile(root / path, twin) for twin in twins)


def _kept(folder: StrPath, path: str) -> Diagnostic:
    return Diagnostic(
        code="stale-file-kept",
        severity=Severity.WARNING,
        message=f"{shown(folder, path)} is no longer generated, but does not start with acpgen's marker, so it stays",
        hint="delete it if nothing needs it",
    )
