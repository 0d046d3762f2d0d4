"""Writes what a plan says: all of it, or nothing.

A new folder is made beside its place and renamed. A folder that exists is replaced as a whole (`replacing`). Where the
system cannot do that, its files are, one by one: new text goes to a staging folder first, then each file is renamed
into place, the manifest last. A file that is replaced keeps a second name in the staging folder, so that it can be put
back, time stamp and all. There, a run that is killed between two renames leaves files of both packages: the manifest
tells, and the next build repairs it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.output.paths import LOCK_NAME, real_root
from acpgen.output.plan import Change, Kind, Plan, check_folders_writable, compare
from acpgen.output.replacing import CannotReplaceError, replace_folder
from acpgen.output.staging import make_folders, make_stage, remove_folder, remove_tree, sweep, write_new, writing_alone


def apply(plan: Plan) -> None:
    """Make the output folder what `plan` says. Apart from `write_file`, the only function of acpgen that writes.

    Raises `InputError`, with the folder as it was before: if something got in the way since the plan was made, if the
    folder takes no changes, or if the system refuses midway.
    """
    root = real_root(plan.folder)
    check_writable(plan)
    try:
        with writing_alone(root):
            _apply(plan, root)
    except OSError as error:  # of the folders above
        raise _write_failed(plan, error, "no folder was left behind") from error


def _apply(plan: Plan, root: Path) -> None:
    now = compare(plan.folder, plan.files)
    now.raise_problems()
    sweep(root)
    if now.is_clean:  # perhaps because another run was faster
        return
    if now != plan:
        raise _changed(plan)
    if root.exists():
        _update(plan, root)
    else:
        _create(plan, root)


def check_writable(plan: Plan) -> None:
    """Raise `InputError` if a folder in which the plan changes something takes no changes."""
    changed = [change.path for change in plan.changes if change.kind is not Kind.KEEP]
    if changed:
        check_folders_writable(real_root(plan.folder), changed)


def _changed(plan: Plan) -> InputError:
    return input_error(
        "output-changed",
        f"the output folder {plan.folder.as_posix()} was changed while acpgen was at work",
        hint="run acpgen again",
    )


def write_file(target: Path, text: str, *, force: bool = False) -> None:
    """Write `text` to the file `target`, all of it or nothing; a file that is there is replaced with `force` only.

    Raises `InputError`, with everything as it was before, where the file is there, is no plain file, or the system
    refuses.
    """
    name = target.as_posix()
    if os.path.lexists(target) and (os.path.islink(target) or not os.path.isfile(target)):
        raise input_error("foreign-file", f"{name} is in the way: it is no plain file", hint="choose another name")
    stage: Path | None = None
    try:
        stage = make_stage(target.parent)
        write_new(stage / "new", text)
        if force:
            os.replace(stage / "new", target)
        else:
            _put_new(stage / "new", target)
    except FileExistsError:
        hint = "choose another name, or overwrite it with --force"
        raise input_error("file-exists", f"{name} exists already", hint=hint) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error("write-failed", f"cannot write {name}: {reason}") from None
    finally:
        if stage is not None:
            remove_tree(stage)


def _put_new(staged: Path, target: Path) -> None:
    """Give a file its name, unless another has it: raises `FileExistsError` then."""
    try:
        os.link(staged, target)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems have no hard links; there the test and the renaming are two steps.
        if os.path.lexists(target):
            raise FileExistsError from None
        os.replace(staged, target)


def _create(plan: Plan, root: Path) -> None:
    """Build the package beside its place and rename it in one step."""
    try:
        with ExitStack() as undo:
            stage = make_stage(root.parent, suffix=f".{root.name}")
            undo.callback(remove_tree, stage)
            for path, text in plan.files.items():
                make_folders((stage / path).parent, undo)
                write_new(stage / path, text)
            os.replace(stage, root)
            undo.pop_all()
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            raise _changed(plan) from error
        raise _write_failed(plan, error, "no folder was left behind") from error


def _update(plan: Plan, root: Path) -> None:
    try:
        replace_folder(plan, root)
    except CannotReplaceError:
        _swap_files(plan, root)
    except OSError as error:
        raise _write_failed(plan, error, "the old files are all in place") from error


def _swap_files(plan: Plan, root: Path) -> None:
    swap: _Swap | None = None
    try:
        swap = _Swap(root, make_stage(root))
        swap.run(plan)
    except OSError as error:
        hint = "the old files are all in place"
        if swap and swap.stuck:
            hint = f"not put back: {', '.join(swap.stuck)}; copy them from {swap.stage.as_posix()} or build again"
        raise _write_failed(plan, error, hint) from error
    finally:
        if swap and not swap.stuck:
            remove_tree(swap.stage)
    _remove_empty(root, [change.path for change in plan.changes if change.kind is Kind.DELETE])


@dataclass(slots=True)
class _Swap:
    """One replacement of many files. `stuck` names those that could not be put back after a failure."""

    root: Path
    stage: Path
    undo: ExitStack = field(default_factory=ExitStack)
    stuck: list[str] = field(default_factory=list)

    def run(self, plan: Plan) -> None:
        """Do all changes of `plan`; on any exception, put back what was done and pass the exception on."""
        # The manifest comes last: until then the old one still names every stale file.
        changes = [change for change in plan.changes if change.kind is not Kind.KEEP]
        changes.sort(key=lambda change: (change.path == LOCK_NAME, change.path))
        for number, change in enumerate(changes):
            if change.kind is not Kind.DELETE:
                write_new(self._staged(number), plan.files[change.path])
        with self.undo:
            for number, change in enumerate(changes):
                self._do(number, change)
            self.undo.pop_all()

    def _do(self, number: int, change: Change) -> None:
        target, staged, backup = self.root / change.path, self._staged(number), self.stage / f"{number}.old"
        if change.kind is Kind.DELETE:
            self.undo.callback(self._restore, backup, change.path)
            os.replace(target, backup)
            return
        if change.kind is Kind.UPDATE:
            # A second name, not a move: a run that is killed here leaves the old file where it was.
            _back_up(target, backup)
            self.undo.callback(self._restore, backup, change.path)
        else:
            make_folders(target.parent, self.undo)
            self.undo.callback(self._withdraw, staged, change.path)
        os.replace(staged, target)

    def _staged(self, number: int) -> Path:
        return self.stage / f"{number}.new"

    def _restore(self, backup: Path, path: str) -> None:
        try:
            if backup.exists():
                os.replace(backup, self.root / path)
        except OSError:
            self.stuck.append(f"{path} ({backup.name})")

    def _withdraw(self, staged: Path, path: str) -> None:
        if not staged.exists():  # Otherwise it never got into place, and what stands there is not ours.
            with suppress(OSError):
                os.unlink(self.root / path)


def _back_up(target: Path, backup: Path) -> None:
    try:
        os.link(target, backup)
    except OSError:
        # Some file systems have no hard links. Imported here because shutil is slow to import and seldom needed.
        import shutil

        shutil.copy2(target, backup)


def _remove_empty(root: Path, deleted: Iterable[str]) -> None:
    """Remove the folders that the deletion of `deleted` has left empty."""
    for path in deleted:
        folder = (root / path).parent
        while folder != root:
            remove_folder(folder)
            folder = folder.parent


def _write_failed(plan: Plan, error: OSError, hint: str) -> InputError:
    return input_error(
        "write-failed",
        f"cannot write the output folder {plan.folder.as_posix()}: {error.strerror or error}",
        hint=hint,
    )
