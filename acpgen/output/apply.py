"""Writes the changes of a plan. Only `apply` and `write_file` change files on disk.

All new texts are first written to staged files, each beside the file that it will replace. Then `os.replace` puts them
in place one after the other, the manifest last. A failure before the first replacement leaves the old package. A run
that is killed between two replacements leaves whole files of both packages, and so may two runs at once: `check` names
the files that differ, and the next build finishes the work.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.output.paths import LOCK_NAME, STAGE_PREFIX, missing_folders, real_root
from acpgen.output.plan import Change, Kind, Plan, compare
from acpgen.output.preconditions import check_folders_writable

_LEFTOVER_SECONDS = 3600.0
"""Age from which a staged file counts as left behind. A younger one may be of another run."""


def apply(plan: Plan) -> None:
    """Write and delete the files as `plan` says.

    Raises `InputError` if the folder has changed since the plan was made, if it is not writable, or if the system
    refuses a write. The hint says how many changes were made before the failure.
    """
    check_writable(plan)
    root = real_root(plan.folder)
    done: list[Change] = []
    try:
        now = compare(plan.folder, plan.files)
        now.raise_problems()
        _remove_leftovers(root, now)
        if now.is_clean:  # another run may have been faster
            return
        if now != plan:
            raise _changed(plan)
        _write(plan, root, done)
    except OSError as error:
        raise _write_failed(plan, error, done) from error


def check_writable(plan: Plan) -> None:
    """Raise `InputError` if a folder in which the plan changes a file is not writable."""
    check_folders_writable(real_root(plan.folder), [change.path for change in plan.different])


def write_file(target: Path, text: str, *, force: bool = False) -> None:
    """Write the single file `target`. An existing file is replaced only with `force`.

    Raises `InputError`, without any change, if the file exists, is not a regular file, or the system refuses.
    """
    name = target.as_posix()
    if os.path.lexists(target):
        if os.path.islink(target) or not os.path.isfile(target):
            hint = "choose another name"
            raise input_error("foreign-file", f"{name} is in the way: it is not a regular file", hint=hint)
        if not force:
            hint = "choose another name, or overwrite the file with --force"
            raise input_error("file-exists", f"{name} exists already", hint=hint)
    try:
        with ExitStack() as cleanup:
            os.replace(_stage(target, text, cleanup), target)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error("write-failed", f"cannot write {name}: {reason}") from None


def _write(plan: Plan, root: Path, done: list[Change]) -> None:
    """Stage all new texts, then replace and delete. `done` receives each change that was made.

    Deletions follow the new files, so that no import fails for a missing module. The manifest is last: until then,
    the old one still lists every stale file.
    """
    written = [change for change in plan.different if change.kind is not Kind.DELETE]
    deleted = [change for change in plan.different if change.kind is Kind.DELETE]
    with ExitStack() as cleanup:
        staged: dict[str, Path] = {}
        for change in written:
            _make_folders((root / change.path).parent, cleanup)
            staged[change.path] = _stage(root / change.path, plan.files[change.path], cleanup)
        for change in sorted([*written, *deleted], key=lambda change: Path(change.path).name == LOCK_NAME):
            if change.kind is Kind.DELETE:
                os.unlink(root / change.path)
            else:
                os.replace(staged[change.path], root / change.path)
            done.append(change)
    _remove_empty(root, [change.path for change in deleted])


def _stage(target: Path, text: str, cleanup: ExitStack) -> Path:
    """Write `text` to a new file beside `target`; `cleanup` removes it if it is still there."""
    staged = target.parent / f"{STAGE_PREFIX}{os.urandom(8).hex()}"
    cleanup.callback(_remove_file, staged)
    # Not with tempfile: only the owner may read its files.
    with open(staged, "xb") as file:
        file.write(text.encode())
    return staged


def _make_folders(folder: Path, cleanup: ExitStack) -> None:
    """Make `folder` and its missing parents; `cleanup` removes those that are still empty."""
    for missing in missing_folders(folder):
        with suppress(FileExistsError):  # another run may have been faster
            os.mkdir(missing)
            cleanup.callback(_remove_folder, missing)


def _remove_file(path: Path) -> None:
    with suppress(OSError):
        os.unlink(path)


def _remove_folder(path: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError):
        os.rmdir(path)


def _remove_empty(root: Path, deleted: Iterable[str]) -> None:
    """Remove the folders that are empty now that the files `deleted` are gone."""
    for path in deleted:
        folder = (root / path).parent
        while folder != root:
            _remove_folder(folder)
            folder = folder.parent


def _remove_leftovers(root: Path, plan: Plan) -> None:
    """Remove the staged files that killed runs have left in the folders of the package."""
    for folder in {root, *((root / change.path).parent for change in plan.changes)}:
        with suppress(OSError):
            for path in folder.glob(f"{STAGE_PREFIX}*"):
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > _LEFTOVER_SECONDS:
                    _remove_file(path)


def _changed(plan: Plan) -> InputError:
    return input_error(
        "output-changed",
        f"the output folder {plan.folder.as_posix()} has changed while acpgen was running",
        hint="run acpgen again",
    )


def _write_failed(plan: Plan, error: OSError, done: Sequence[Change]) -> InputError:
    if done:
        hint = f"{len(done)} of {len(plan.different)} changes are made: solve the problem and build again"
    else:
        hint = "nothing in the folder has changed: solve the problem and build again"
    message = f"cannot write the output folder {plan.folder.as_posix()}: {error.strerror or error}"
    return input_error("write-failed", message, hint=hint)
