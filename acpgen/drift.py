"""Compares the package in an output folder with the result of a build. Nothing is written."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from acpgen.config import BuildOptions
from acpgen.output import LOCK_NAME, ChangeKind, Manifest, OutputPlan, unchanged
from acpgen.output.folder import MOST_READ, ObstacleError, read_below, real_root
from acpgen.output.manifest import same_head
from acpgen.output.plan import has_marker
from acpgen.pipeline import build
from acpgen.text import digest, with_plain_ends

_MOST_ADDED = 1024 * 1024
"""A diff reads at most this many bytes of a file, beyond twice the size of the generated text."""


class Flaw(Enum):
    """The kinds of differences between a file and the result of a build."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited"
    EXTRA = "extra"

    @property
    def meaning(self) -> str:
        """The flaw in words."""
        return {
            Flaw.MISSING: "is missing",
            Flaw.STALE: "does not match the present schema and options",
            Flaw.EDITED: "was edited by hand",
            Flaw.EXTRA: "is not part of the package: move it or delete it",
        }[self]


@dataclass(frozen=True, slots=True)
class FlawedFile:
    """A file that differs. `path` is relative to the output folder, and empty if there is no package at all."""

    flaw: Flaw
    path: str

    @property
    def can_be_built(self) -> bool:
        """Whether a build fixes it: a build does not touch extra files."""
        return self.flaw is not Flaw.EXTRA


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result for one output folder.

    `reasons` are the inputs and options that have changed since the package was written. `plan` is that of a build.
    `is_hidden`: files differ, but only a build with `full` fixes them: the manifest shows no change. `names` are the
    public names of the package.
    """

    findings: tuple[FlawedFile, ...]
    reasons: tuple[str, ...]
    plan: OutputPlan
    is_hidden: bool
    names: frozenset[str]

    @property
    def folder(self) -> Path:
        """The output folder."""
        return self.plan.folder

    @property
    def can_be_built(self) -> bool:
        """Whether a build fixes at least one finding."""
        return not self.plan.problems and any(finding.can_be_built for finding in self.findings)

    @property
    def counts(self) -> dict[Flaw, int]:
        """The number of findings of each kind."""
        found = Counter(finding.flaw for finding in self.findings)
        return {flaw: found[flaw] for flaw in Flaw if found[flaw]}

    def diff(self) -> Iterator[str]:
        """The lines of a diff from the files on disk to the result of a build. Long files are cut."""
        for change in self.plan.different:
            new = "" if change.kind is ChangeKind.DELETE else self.plan.files[change.path]
            data = _read(self.folder, change.path, limit=2 * len(new.encode()) + _MOST_ADDED) or b""
            old = with_plain_ends(data).decode(errors="replace")
            path = (self.folder / change.path).as_posix()
            before = "/dev/null" if change.kind is ChangeKind.CREATE else path
            after = "/dev/null" if change.kind is ChangeKind.DELETE else path
            yield from difflib.unified_diff(_lines(old), _lines(new), before, after, lineterm="")


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def check(options: BuildOptions) -> Checked:
    """Compile, and compare the output folder with the result.

    The manifest is not trusted: an edit of the files can change it, too. Raises `InputError` for errors
    in the input, and for a folder that cannot hold a package.
    """
    built = build(options, full=True)
    old, plan = built.old, built.plan
    assert plan is not None  # a full build always has one
    is_same = old is not None and same_head(old.head, built.head)
    return Checked(
        findings=(*_changed_files(plan, old, is_same=is_same), *_extra_files(plan)),
        reasons=tuple(_reasons(old.head, built.head)) if old and not old.in_conflict else (),
        plan=plan,
        is_hidden=not plan.is_clean and unchanged(options.out, built.head),
        names=built.names,
    )


def _changed_files(plan: OutputPlan, old: Manifest | None, *, is_same: bool) -> Iterator[FlawedFile]:
    """If `is_same`, `old` has the inputs and options of this build, so every difference is an edit."""
    kinds = {change.path: change.kind for change in plan.changes}
    if set(kinds.values()) == {ChangeKind.CREATE} and not plan.problems:
        yield FlawedFile(Flaw.MISSING, "")
        return
    recorded = old.files if old else {}
    for path in sorted({*plan.files, *kinds}):
        match kinds.get(path):
            case ChangeKind.KEEP:
                continue
            case ChangeKind.CREATE:
                is_missing = is_same or path in recorded or path == LOCK_NAME
                yield FlawedFile(Flaw.MISSING if is_missing else Flaw.STALE, path)
            case ChangeKind.DELETE:
                yield FlawedFile(Flaw.STALE, path)
            case ChangeKind.UPDATE if not is_same and _is_as_recorded(plan.folder, path, old):
                yield FlawedFile(Flaw.STALE, path)
            case _:  # or the path is not a regular file
                yield FlawedFile(Flaw.EDITED, path)


def _is_as_recorded(folder: Path, path: str, old: Manifest | None) -> bool:
    """Whether an earlier build wrote this text, according to the manifest and the first line of the file."""
    if path == LOCK_NAME:
        return old is not None
    data = _read(folder, path)
    recorded = old.files.get(path) if old else None
    return data is not None and (has_marker(data) if recorded is None else digest(data) == recorded)


def _read(folder: Path, path: str, *, limit: int = MOST_READ) -> bytes | None:
    try:
        return read_below(folder, path, limit=limit)
    except ObstacleError:
        return None


def _extra_files(plan: OutputPlan) -> Iterator[FlawedFile]:
    """The files that no build has written, without the caches and hidden files of other tools."""
    root = real_root(plan.folder)
    known = {*plan.files, *(change.path for change in plan.changes)}
    for above, folders, files in os.walk(root):
        # modules can be imported through a link
        links = {name for name in folders if (Path(above) / name).is_symlink()}
        for name in sorted([*files, *links]):
            path = (Path(above) / name).relative_to(root).as_posix()
            if path not in known and not _is_harmless(Path(above) / name):
                yield FlawedFile(Flaw.EXTRA, path)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in links)


def _is_harmless(path: Path) -> bool:
    """Whether Python never runs code from this file.

    A hidden file cannot be imported: its name is not an identifier. Python runs a `.pyc` in a cache only if its time
    stamp is that of the module, which a commit cannot set, or if its flags select a hash instead.
    """
    if path.parent.name != "__pycache__" or path.name.startswith("."):
        return path.name.startswith(".")
    if path.suffix != ".pyc":  # a Python that is killed while it writes a `.pyc` leaves such a file
        return re.search(r"\.pyc\.\d+$", path.name) is not None
    head = _read(path.parent, path.name, limit=_FLAGS + 1)
    return head is not None and not (len(head) > _FLAGS and head[_FLAGS] & _GOES_BY_HASH)


_FLAGS, _GOES_BY_HASH = 4, 1
"""The offset of the flags in a `.pyc`, and the flag for a hash instead of a time stamp (PEP 552)."""


def _reasons(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """The differences between the inputs and options of two builds."""
    before, after = dict(_flat(old)), dict(_flat(new))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name}: {_shown(before.get(name))} -> {_shown(after.get(name))}"


def _flat(head: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    for key, value in head.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{key}.")
        elif key == "extensions" and isinstance(value, (list, tuple)):
            for each in value:
                name = each.get("name") if isinstance(each, dict) else None
                yield f"{above}extension {name}", each.get("sha256") if isinstance(each, dict) else each
        elif key == "protocols" and isinstance(value, (list, tuple)):
            parts = [each for each in value if isinstance(each, dict)]
            yield "protocol", [each.get("protocol") for each in parts]
            for each in parts:
                inputs = {name: part for name, part in each.items() if name != "protocol"}
                yield from _flat(inputs, f"v{each.get('protocol')} ")
        else:
            yield f"{above}{key}", value


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case str() if len(value) == 64:  # the start of a digest is enough to see a difference
            return value[:12]
        case list() | tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)
