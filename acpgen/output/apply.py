"""Writes the changes of a plan. Only `apply` changes files in an output folder.

All new texts are first written to staged files, each beside the file that it will replace. Then `os.replace` puts them
in place one after the other, the manifest last. A failure before the first replacement leaves the old package. A run
that is killed between two replacements leaves whole files of both packages, and so may two runs at once: `check` names
the files that differ, and the next build finishes the work.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.files import stage
from acpgen.output.folder import LOCK_NAME, check_writable, missing_folders, real_root
from acpgen.output.plan import Change, ChangeKind, OutputPlan


def apply(plan: OutputPlan) -> None:
    """Write and delete the files as `plan` says.

    Raises `InputError` for a plan with problems, if the folder is not writable, or if the system refuses a write. The
    hint says how many changes were made before the failure.
    """
    plan.raise_problems()
    check_writable(plan.folder, [change.path for change in plan.different])
    done: list[Change] = []
    try:
        _write(plan, real_root(plan.folder), done)
    except OSError as error:
        raise _write_failed(plan, error, done) from error


def _write(plan: OutputPlan, root: Path, done: list[Change]) -> None:
    """Stage all new texts, then replace and delete. `done` receives each change that was made.

    Deletions follow the new files, so that no import fails for a missing module. The manifest is last: until then,
    the old one still lists every stale file.
    """
    written = [change for change in plan.different if change.kind is not ChangeKind.DELETE]
    deleted = [change for change in plan.different if change.kind is ChangeKind.DELETE]
    with ExitStack() as cleanup:
        staged: dict[str, Path] = {}
        for change in written:
            _make_folders((root / change.path).parent, cleanup)
            staged[change.path] = stage(root / change.path, [plan.files[change.path]], cleanup)
        for change in sorted([*written, *deleted], key=lambda change: Path(change.path).name == LOCK_NAME):
            if change.kind is ChangeKind.DELETE:
                with suppress(FileNotFoundError):  # another run may have been faster
                    os.unlink(root / change.path)
            else:
                os.replace(staged[change.path], root / change.path)
            done.append(change)
    _remove_empty(root, [change.path for change in deleted])


def _make_folders(folder: Path, cleanup: ExitStack) -> None:
    """Make `folder` and its missing parents; `cleanup` removes those that are still empty."""
    for missing in missing_folders(folder):
        with suppress(FileExistsError):  # another run may have been faster
            os.mkdir(missing)
            cleanup.callback(_remove_folder, missing)


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


def _write_failed(plan: OutputPlan, error: OSError, done: Sequence[Change]) -> InputError:
    if done:
        hint = f"{len(done)} of {len(plan.different)} changes are made: solve the problem and build again"
    else:
        hint = "nothing in the folder has changed: solve the problem and build again"
    message = f"cannot write the output folder {plan.folder.as_posix()}: {error.strerror or error}"
    return input_error("write-failed", message, hint=hint)
