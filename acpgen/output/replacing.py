"""Replaces the whole output folder in one step: whoever looks, and whenever a run is killed, it is the old or the new.

A twin of the folder is made beside it, and both change places.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path

from acpgen.output.exchange import exchange
from acpgen.output.plan import Plan
from acpgen.output.staging import make_stage, remove_tree
from acpgen.output.twin import Twin, foreign_files

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
    if _is_in_use(root):
        raise CannotReplaceError
    ours = frozenset(change.path for change in plan.changes)
    stage: Path | None = None
    try:
        foreign = _few(foreign_files(root, ours))
        stage = make_stage(root.parent, suffix=f".{root.name}")
        Twin(stage, root).fill(plan, foreign)
        exchange(stage, root)
        # from here on, the old folder has the name of the stage
        if not _catch_up(stage, root, ours=ours, foreign=foreign):
            stage = None
    except OSError as error:
        if error.errno in _CANNOT:
            raise CannotReplaceError from error
        raise
    finally:
        if stage is not None:
            remove_tree(stage)


def _is_in_use(root: Path) -> bool:
    """Whether something hangs on this very folder, and not on its name: a process that works in it, or a mount."""
    used = [*_working_folders(), *_mount_points()]
    return any(place == root or root in place.parents for place in used)


def _working_folders() -> Iterator[Path]:
    """Those of the processes that this one may look at, its own at least: a shell would find itself nowhere."""
    with suppress(OSError):
        yield Path(os.path.realpath(os.getcwd()))
    with suppress(OSError):  # a system without it
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError):
                    yield Path(os.readlink(f"/proc/{name}/cwd"))


def _mount_points() -> Iterator[Path]:
    with suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            yield Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split(" ")[4]))


def _few(found: Iterator[str]) -> list[str]:
    paths: list[str] = []
    for path in found:
        paths.append(path)
        if len(paths) > _MOST_FOREIGN:
            raise CannotReplaceError
    return paths


def _catch_up(old: Path, root: Path, *, ours: Set[str], foreign: list[str]) -> bool:
    """Do in `root` what others did in the old folder, with what is not acpgen's, while the twin was made.

    Whether that went well; if not, the old folder has got a name under which nothing removes it.
    """
    try:
        now = list(foreign_files(old, ours))
        for path in now:
            if path.endswith("/"):
                os.makedirs(root / path, exist_ok=True)
            elif not _is_same(old / path, root / path):
                os.makedirs((root / path).parent, exist_ok=True)
                os.replace(old / path, root / path)
        for path in sorted(set(foreign) - set(now), reverse=True):
            with suppress(FileNotFoundError):
                os.rmdir(root / path) if path.endswith("/") else os.unlink(root / path)
    except OSError:
        with suppress(OSError):
            os.rename(old, old.with_name(f"{root.name}.kept-{os.urandom(4).hex()}"))
        return False
    return True


def _is_same(old: Path, new: Path) -> bool:
    return os.path.lexists(new) and (old.is_symlink() or os.path.samestat(old.lstat(), new.lstat()))
