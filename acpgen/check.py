"""Whether the package in an output folder is what a build would write; nothing is written."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from acpgen.config import BuildOptions
from acpgen.diagnostics import Diagnostic, InputError
from acpgen.digests import digest, with_plain_ends
from acpgen.inputs import find_inputs, manifest_head
from acpgen.output import LOCK_NAME, Change, Kind, Manifest, Plan, unchanged, usable_manifest
from acpgen.output.paths import ObstacleError, read_below, real_root, unreadable
from acpgen.output.planning import is_ours


class Flaw(Enum):
    """What can be wrong with a file."""

    MISSING = "missing"
    STALE = "stale"
    EDITED = "edited"
    EXTRA = "extra"

    @property
    def meaning(self) -> str:
        """The flaw in words."""
        return {
            Flaw.MISSING: "is not there",
            Flaw.STALE: "is not what the schema and the options make now",
            Flaw.EDITED: "was edited by hand",
            Flaw.EXTRA: "is not part of the package: move it or delete it",
        }[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that is not as it should be; `path` is relative to the output folder, empty for the package as such."""

    flaw: Flaw
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What there is to say about one output folder.

    `reasons` says which inputs have changed since the package was written. `plan` is what a build would do, where one
    had to be made, and could be; `diagnostics` are those of that build. `names` are the public names of the package.
    """

    folder: Path
    findings: tuple[Finding, ...]
    reasons: tuple[str, ...] = ()
    plan: Plan | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def can_be_built(self) -> bool:
        """Whether a build mends anything: it leaves alone what is not its own."""
        return self.plan is not None and any(finding.flaw is not Flaw.EXTRA for finding in self.findings)


def check(options: BuildOptions, *, full: bool = False, parallel: bool = False) -> Checked:
    """Compare an output folder with what a build would write there.

    Compiles only where the manifest does not tell, or with `full`; `parallel` is that of `build`. Raises `InputError`
    for what a build raises it for.
    """
    folder = options.out
    old = usable_manifest(folder)
    head = manifest_head(find_inputs(options.sources), options)
    if not full and old is not None and unchanged(folder, head):
        if options.strict:  # warnings are not in the manifest
            from acpgen.compiling import load_model

            load_model(options.sources, strict=True)
        return Checked(folder=folder, findings=tuple(_extra_files(folder, old.files)), names=old.names)
    from acpgen.build import build  # what is up to date needs no compiler

    try:
        built = build(options, full=True, parallel=parallel)
    except InputError as error:
        if not (damaged := tuple(_damaged_files(folder, old, error))):
            raise
        return Checked(folder=folder, findings=damaged, diagnostics=error.diagnostics)
    assert built.plan is not None  # a full build always has one
    package = built.plan.files
    if all(change.kind is Kind.CREATE for change in built.plan.changes):
        findings = [Finding(Flaw.MISSING, "")]
    else:
        findings = list(_changed_files(built.plan, old or Manifest(head={}, files={})))
    extra = _extra_files(folder, {**package, **(old.files if old else {})})
    return Checked(
        folder=folder,
        findings=(*findings, *extra),
        reasons=tuple(_reasons(old.head, head)) if old else (),
        plan=built.plan,
        diagnostics=built.diagnostics,
        names=built.names,
    )


_DAMAGE = {"foreign-file", "manifest-broken", "symlink-in-output"}
"""Codes of diagnostics about an output folder in which a build would overwrite what may be somebody's."""


def _damaged_files(folder: Path, old: Manifest | None, error: InputError) -> Iterator[Finding]:
    """Files of the package that were edited so much that a build does not know them for its own."""
    codes = {found.code for found in error.diagnostics}
    if not codes <= _DAMAGE:
        return
    if "manifest-broken" in codes:
        yield Finding(Flaw.EDITED, LOCK_NAME)
    for path in old.files if old else ():
        data = _read(folder, path)
        if data is None or not is_ours(data, None if old is None else old.files[path]):
            yield Finding(Flaw.EDITED, path)


def _changed_files(plan: Plan, old: Manifest) -> Iterator[Finding]:
    for change in plan.changes:
        if change.kind is not Kind.KEEP:
            yield Finding(_flaw(plan.folder, change, old), change.path)


def _flaw(folder: Path, change: Change, old: Manifest) -> Flaw:
    recorded = old.files.get(change.path)
    if change.kind is Kind.CREATE:
        return Flaw.MISSING if recorded or change.path == LOCK_NAME else Flaw.STALE
    if change.path == LOCK_NAME:
        return Flaw.STALE if old.is_sealed else Flaw.EDITED
    if recorded is None or change.kind is Kind.DELETE:
        return Flaw.STALE
    data = _read(folder, change.path)
    return Flaw.STALE if data is not None and digest(data) == recorded else Flaw.EDITED


def _read(folder: Path, path: str) -> bytes | None:
    try:
        return read_below(folder, path)
    except ObstacleError:
        return None
    except OSError as error:
        raise unreadable(folder, error) from error


def _extra_files(folder: Path, known: Mapping[str, str]) -> Iterator[Finding]:
    """Files that no build wrote; caches and hidden files are left out, which tools leave everywhere."""
    root = real_root(folder)
    for above, folders, files in os.walk(root):
        shown = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        links = {name for name in shown if (Path(above) / name).is_symlink()}  # which can be imported from, too
        folders[:] = [name for name in shown if name not in links]
        for name in sorted([*files, *links]):
            path = (Path(above) / name).relative_to(root).as_posix()
            if not name.startswith(".") and path not in known and path != LOCK_NAME:
                yield Finding(Flaw.EXTRA, path)


def _reasons(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """What differs between the inputs and options of two builds."""
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
                yield f"extension {name}", each.get("sha256") if isinstance(each, dict) else each
        else:
            yield f"{above}{key}", value


def _shown(value: object) -> str:
    match value:
        case None:
            return "none"
        case str() if len(value) == 64:  # a digest: the beginning is enough to see that it is another one
            return value[:12]
        case list() | tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)


def unified_diff(checked: Checked) -> Iterator[str]:
    """The lines of a diff that leads from what is on disk to what a build would write."""
    for change in checked.plan.changes if checked.plan else ():
        if change.kind is not Kind.KEEP:
            assert checked.plan is not None
            old = _text(_read(checked.folder, change.path))
            new = "" if change.kind is Kind.DELETE else checked.plan.files[change.path]
            path = (checked.folder / change.path).as_posix()
            before = "/dev/null" if change.kind is Kind.CREATE else path
            after = "/dev/null" if change.kind is Kind.DELETE else path
            yield from difflib.unified_diff(_lines(old), _lines(new), before, after, lineterm="")


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _text(data: bytes | None) -> str:
    return with_plain_ends(data or b"").decode(errors="replace")
