"""Replaces the whole output folder in one step: whoever looks, and whenever a run is killed, it is the old or the new.

A twin of the folder is made beside it, with new files where there are new ones and second names (hard links) for all
that stays: unchanged files, and what is in the folder without being acpgen's. Then both change places.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from acpgen.output.exchange import exchange
from acpgen.output.paths import prefixes
from acpgen.output.planning import Kind, Plan
from acpgen.output.staging import make_stage, remove_tree, write_new

_MOST_FOREIGN = 1000
"""A folder in which more than this is not acpgen's is better left where it is."""

_NAMES = ("EPERM", "EACCES", "EXDEV", "ENOSYS", "EINVAL", "EBUSY", "ENOTSUP", "EOPNOTSUPP", "EMLINK", "EROFS", "ENOTTY")
_CANNOT = {getattr(errno, name) for name in _NAMES if hasattr(errno, name)}
"""Errors that say that the system has no such ways here, and not that something is wrong."""


class CannotReplaceError(Exception):
    """The folder cannot be replaced as a whole here, and is as it was; its files can be, one by one."""


def replace_folder(plan: Plan, root: Path) -> None:
    """Make `root`, which exists, what `plan` says, in one step.

    Raises `CannotReplaceError`, or `OSError` where something else is wrong; `root` is as it was then.
    """
    if _is_working_folder(root):  # whoever sits in it would find himself in a folder without a name
        raise CannotReplaceError
    ours = frozenset(change.path for change in plan.changes)
    twin: Path | None = None
    try:
        foreign = _few(_foreign(root, ours))
        twin = make_stage(root.parent, suffix=f".{root.name}")
        _fill(twin, root, plan=plan, foreign=foreign)
        exchange(twin, root)
        _keep_late_changes(twin, root, ours=ours)
    except OSError as error:
        if error.errno in _CANNOT:
            raise CannotReplaceError from error
        raise
    finally:
        if twin is not None:
            remove_tree(twin)  # by now the old folder, if all went well


def _is_working_folder(root: Path) -> bool:
    try:
        here = Path(os.path.realpath(os.getcwd()))
    except OSError:
        return False
    return here == root or root in here.parents


def _foreign(root: Path, ours: Set[str]) -> Iterator[str]:
    """What is in `root` and in no package, relative to it: folders end with a slash and come before their content."""
    folders = {prefix for path in ours for prefix in prefixes(path) if prefix != path}

    def below(folder: str) -> Iterator[str]:
        with os.scandir(root / folder) as entries:
            found = sorted((f"{folder}{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries)
        for path, is_folder in found:
            if not is_folder:
                if path not in ours:
                    yield path
                continue
            if path not in folders:
                yield f"{path}/"
            yield from below(f"{path}/")

    return below("")


def _few(found: Iterator[str]) -> list[str]:
    paths: list[str] = []
    for path in found:
        paths.append(path)
        if len(paths) > _MOST_FOREIGN:
            raise CannotReplaceError
    return paths


def _fill(twin: Path, root: Path, *, plan: Plan, foreign: list[str]) -> None:
    made = {""}

    def folder(path: str) -> None:
        for prefix in prefixes(path):
            if prefix not in made:
                os.mkdir(twin / prefix)
                made.add(prefix)

    for change in plan.changes:
        if change.kind is Kind.DELETE:
            continue
        if "/" in change.path:
            folder(change.path.rpartition("/")[0])
        if change.kind is Kind.KEEP:
            os.link(root / change.path, twin / change.path)
        else:
            write_new(twin / change.path, plan.files[change.path])
    for path in foreign:
        if "/" in path:
            folder(path.rpartition("/")[0])
        if not path.endswith("/"):
            _second_name(root / path, twin / path)
    for path in sorted(made, reverse=True):
        _dress(twin / path, root / path)


def _second_name(path: Path, twin: Path) -> None:
    if path.is_symlink():
        os.symlink(os.readlink(path), twin)
    else:
        os.link(path, twin)


def _dress(twin: Path, folder: Path) -> None:
    """Give a folder the owner, the mode and the attributes of the one that it replaces, but not its time."""
    if not folder.is_dir():
        return
    import shutil

    old, new = folder.stat(), twin.stat()
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        os.chown(twin, old.st_uid, old.st_gid)
    shutil.copystat(folder, twin)
    os.utime(twin)  # importers and watchers look at it to see that something changed


def _keep_late_changes(old: Path, root: Path, *, ours: Set[str]) -> None:
    """Carry over what was put into the old folder, and is not acpgen's, while its twin was made."""
    with suppress(OSError):  # too late to go back, and whoever writes there now would have had to hurry
        for path in _foreign(old, ours):
            if path.endswith("/"):
                os.makedirs(root / path, exist_ok=True)
            elif not _is_same(old / path, root / path):
                os.replace(old / path, root / path)


def _is_same(old: Path, new: Path) -> bool:
    return os.path.lexists(new) and (old.is_symlink() or os.path.samestat(old.lstat(), new.lstat()))
