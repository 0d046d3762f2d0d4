"""A file of JSON objects that several processes read and change: none of them loses what another has written."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

__all__: list[str] = []

MAX_BYTES: Final = 8 << 20
_LOCK_SECONDS: Final = 5.0
_RETRY_SECONDS: Final = 0.005
_AT_OPENING: Final[int] = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would hang
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)

Stamp: TypeAlias = tuple[int, int, int]
"""Tells a version of the file from others."""


class FileBusyError(Exception):
    """Another process has the lock of the file."""


class PermissionFile:
    """The file at `path`, of which links are followed once. It is replaced as a whole; only the user can read it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path: Final = Path(os.path.realpath(path))

    def stamp(self) -> Stamp | None:
        """The version of the file; None if there is none. Raises `OSError`."""
        try:
            return _stamp(os.stat(self.path))
        except FileNotFoundError:
            return None

    def read(self) -> tuple[list[dict[str, Any]], Stamp | None]:
        """The objects, and the version of the file that they are of.

        Raises `OSError`, and `ValueError` if it has something else, or is no regular file.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | _AT_OPENING)
        except FileNotFoundError:
            return [], None
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            os.close(handle)
            raise ValueError("it is no regular file")
        with open(handle, "rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ValueError("it is too large")
        objects: Any = json.loads(data)
        if not isinstance(objects, list):
            raise ValueError("it has no list")
        return cast("list[dict[str, Any]]", objects), _stamp(found)

    def change(
        self, make: Callable[[list[dict[str, Any]]], Sequence[dict[str, Any]]], *, wait: bool = True
    ) -> Stamp | None:
        """Replace the objects by what `make` returns for them, while no other process does; returns the version.

        Without objects, the file is deleted. Raises `OSError` and `ValueError`, as `read` does, and unless it may
        `wait` for other processes, which takes up to five seconds, `FileBusyError`.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked(wait=wait):
            objects = make(self.read()[0])
            if objects:
                self._write("[\n " + ",\n ".join(map(json.dumps, objects)) + "\n]\n")
            else:
                self.path.unlink(missing_ok=True)
            return self.stamp()

    def remove(self) -> None:
        """Delete the file, whatever it has; may wait as `change` does. Raises `OSError`."""
        if self.path.parent.is_dir():
            with self._locked(wait=True):
                self.path.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        beside = self.path.with_name(f".{self.path.name}.{os.urandom(4).hex()}")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "w", encoding="ascii") as file:
                file.write(text)
            _replace(beside, self.path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise

    @contextmanager
    def _locked(self, *, wait: bool) -> Generator[None, None, None]:
        """Hold the lock, a file beside it that stays: the file itself is replaced.

        Raises `TimeoutError`, and `FileBusyError` if it may not wait.
        """
        beside = self.path.with_name(f".{self.path.name}.lock")
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | _AT_OPENING
        handle = os.open(beside, flags, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while not _try_to_lock(handle):
                if not wait:
                    raise FileBusyError
                if time.monotonic() > deadline:
                    raise TimeoutError(errno.ETIMEDOUT, "another process does not release the lock", str(beside))
                time.sleep(_RETRY_SECONDS)
            try:
                yield
            finally:
                _unlock(handle)
        finally:
            os.close(handle)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino


if sys.platform == "win32":
    import msvcrt

    def _try_to_lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_UNLCK, 1)

    def _replace(new: Path, old: Path) -> None:
        for _ in range(100):  # it is refused while another process reads the old one
            with suppress(PermissionError):
                os.replace(new, old)
                return
            time.sleep(_RETRY_SECONDS)
        os.replace(new, old)

else:
    import fcntl

    def _try_to_lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)

    def _replace(new: Path, old: Path) -> None:
        os.replace(new, old)
