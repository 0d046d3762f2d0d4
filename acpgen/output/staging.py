"""Staging folders: made beside what they will replace, and removed whatever happens."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.output.paths import STAGE_PREFIX, missing_folders

_LEFTOVER_AGE = 3600.0
"""Seconds after which a staging folder is taken for one of a run that was killed."""

_LOCK_SECONDS = 20.0
"""How long a run waits for another one that writes to the same place. Writing takes some milliseconds."""


def make_stage(parent: Path, *, suffix: str = "") -> Path:
    """A new folder in `parent`. Beside an output folder, `suffix` has its name: a neighbour's are not ours to sweep."""
    stage = parent / f"{STAGE_PREFIX}{os.urandom(8).hex()}{suffix}"
    os.mkdir(stage)
    return stage


def make_folders(folder: Path, undo: ExitStack) -> None:
    """Make `folder` and what is missing above it; `undo` removes those again that are empty then."""
    for missing in missing_folders(folder):
        try:
            os.mkdir(missing)
        except FileExistsError:  # another run was faster
            continue
        undo.callback(remove_folder, missing)


def write_new(target: Path, text: str) -> None:
    """Write a file that does not exist yet, and have it on the disk."""
    # Opened by hand and not with tempfile, whose files nobody but the owner may read.
    with open(target, "xb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def remove_folder(folder: Path) -> None:
    """Remove `folder` if it is empty: someone else may have put something there."""
    with suppress(OSError):
        folder.rmdir()


def remove_tree(folder: Path) -> None:
    """Remove as much of `folder` as the system lets go; nothing behind links, and nothing of another file system."""
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(folder).st_mode):
            _remove_tree(folder, os.lstat(folder).st_dev)


def _remove_tree(folder: Path, device: int) -> None:
    with suppress(OSError):
        os.chmod(folder, stat.S_IRWXU)  # else nothing in it can be removed, and it would stay for ever
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        with suppress(OSError):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
            elif entry.stat(follow_symlinks=False).st_dev == device:
                _remove_tree(Path(entry.path), device)
    os.rmdir(folder)


def sweep(root: Path) -> None:
    """Remove the staging folders that killed runs for `root` have left, in it or beside it."""
    inside = [root / name for name in _names(root) if name.startswith(STAGE_PREFIX)]
    beside = [
        root.parent / name
        for name in _names(root.parent)
        if name.startswith(STAGE_PREFIX) and name.removeprefix(STAGE_PREFIX).partition(".")[2] == root.name
    ]
    for stage in [*inside, *beside]:
        with suppress(OSError):
            if time.time() - stage.lstat().st_mtime > _LEFTOVER_AGE:
                remove_tree(stage)


def _names(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


@contextmanager
def writing_alone(root: Path) -> Iterator[None]:
    """Keep other runs of acpgen from writing to `root` within the block; the system forgets a run that is killed.

    The folders above `root` are made first, so that all runs lock the same one; they go again where the block raises,
    unless something is in them. Where the system or the disk knows no such locks, there is none. Raises `InputError`
    if another run does not end, and `OSError` where the folders cannot be made.
    """
    with ExitStack() as held, ExitStack() as undo:
        while True:
            make_folders(root.parent, undo)
            handle = _open_folder(root.parent)
            if handle is None:
                break
            held.callback(os.close, handle)
            _wait_for_lock(handle, root)
            if _is_open(handle, root.parent):
                break
        yield
        undo.pop_all()


def _is_open(handle: int, folder: Path) -> bool:
    """Whether `handle` is one on `folder`: the run that made it may have failed meanwhile, and removed it."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False


def _open_folder(folder: Path) -> int | None:
    """A handle on `folder`, which outlives the exchange of what is in it; None where folders have no handles."""
    if os.name != "posix":
        return None
    with suppress(OSError):
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    return None


def _wait_for_lock(handle: int, root: Path) -> None:
    lock = _locker()
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return lock(handle)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
                return None  # a disk without locks
        if time.monotonic() > end:
            raise _busy(root)
        time.sleep(0.02)


def _locker() -> Callable[[int], None]:
    import fcntl  # not on every system

    return lambda handle: fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _busy(root: Path) -> InputError:
    return input_error(
        "output-busy",
        f"another run of acpgen has been writing beside {root.as_posix()} for {_LOCK_SECONDS:.0f} seconds",
        hint="wait until it has ended, or end it, and run acpgen again",
    )
