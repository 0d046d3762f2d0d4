"""Paths below the output folder: which ones are sound, what stands there, and how to talk about what is in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from acpgen.diagnostics import Diagnostic, InputError, Severity, input_error

LOCK_NAME = "acpgen.lock"
"""The manifest, at the top of the output folder."""

STAGE_PREFIX = ".acpgen-stage-"
"""How the name of a staging folder starts."""

MOST_READ = 64 * 1024 * 1024
"""Bytes of a file in the output folder; none that acpgen writes is near that, but anybody's may be there."""

StrPath = str | os.PathLike[str]


class ObstacleError(Exception):
    """Something other than the wanted file stands at `path`, which is relative to the output folder."""

    def __init__(self, path: str, *, is_symlink: bool) -> None:
        super().__init__(path)
        self.path = path
        self.is_symlink = is_symlink

    def diagnostic(self, folder: StrPath) -> Diagnostic:
        """The error to report for an obstacle below `folder`."""
        if not self.is_symlink:
            return foreign_file(folder, self.path)
        return Diagnostic(
            code="symlink-in-output",
            severity=Severity.ERROR,
            message=f"{shown(folder, self.path)} is a symbolic link; acpgen does not write through links",
            hint="replace the link by what it points to, or choose another folder",
        )


def path_flaw(path: str) -> str | None:
    """Why `path` must not be used below the output folder, or None for a sound relative posix path.

    Strict on every platform alike: a manifest may come from one system and be read on another.
    """
    parts = path.split("/")
    if "\\" in path or ":" in path or not path.isprintable():
        return "it has a backslash, a colon or a control character"
    if "" in parts:
        return "it is absolute or has an empty part"
    if any(part.endswith((".", " ")) for part in parts):
        # Covers `.` and `..`; Windows drops trailing dots and spaces, so that `.. ` would be `..` there.
        return "a part of it ends with a dot or a space"
    if any(part.casefold() == ".git" or part.casefold().startswith(STAGE_PREFIX) for part in parts):
        return "a part of it is reserved"
    if parts[0].casefold() == LOCK_NAME:
        return "it is the place of the manifest"
    return None


def prefixes(path: str) -> Iterator[str]:
    """The folders above `path`, outermost first, then `path` itself."""
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def read_below(root: StrPath, path: str, *, limit: int = MOST_READ) -> bytes | None:
    """The first `limit` bytes of the regular file at `path` below `root`, or None if there is nothing.

    Follows no link below `root`. Raises `ObstacleError` where something else is in the way, and `OSError` where the
    disk refuses.
    """
    for prefix in prefixes(path):
        try:
            mode = os.lstat(os.path.join(root, prefix)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        wanted = stat.S_ISREG(mode) if prefix == path else stat.S_ISDIR(mode)
        if not wanted:
            raise ObstacleError(prefix, is_symlink=stat.S_ISLNK(mode))
    with open(os.path.join(root, path), "rb") as file:
        return file.read(limit)


def real_root(folder: StrPath) -> Path:
    """The output folder with the links on the way to it resolved: the user may name it through links."""
    return Path(os.path.realpath(folder))


def missing_folders(folder: Path) -> list[Path]:
    """`folder` and the folders above it that do not exist, outermost first."""
    missing: list[Path] = []
    # A drive that is not there has no existing parent to stop at.
    while not os.path.lexists(folder) and folder != folder.parent:
        missing.insert(0, folder)
        folder = folder.parent
    return missing


def nearest_existing(folder: Path) -> Path:
    """`folder`, or the closest thing above it that exists."""
    missing = missing_folders(folder)
    return missing[0].parent if missing else folder


def shown(folder: StrPath, path: str) -> str:
    """How messages name a file: the folder as the user wrote it, with slashes everywhere."""
    return (Path(folder) / path).as_posix()


def foreign_file(folder: StrPath, path: str, *, is_recorded: bool = False) -> Diagnostic:
    """The error for something that acpgen would have to overwrite but did not write.

    `is_recorded` says that the manifest has a file of that name, whose first line must have been edited.
    """
    if is_recorded:
        return Diagnostic(
            code="foreign-file",
            severity=Severity.ERROR,
            message=f"{shown(folder, path)} is in {LOCK_NAME}, but does not start with acpgen's marker any more",
            hint="delete it and build again; keep a copy if there is something in it that you need",
        )
    return Diagnostic(
        code="foreign-file",
        severity=Severity.ERROR,
        message=f"{shown(folder, path)} was not written by acpgen and is in the way",
        hint="move it away, or choose another folder",
    )


def unreadable(folder: StrPath, error: OSError) -> InputError:
    """The error for an output folder that cannot be read."""
    return input_error(
        "folder-unreadable",
        f"cannot read the output folder {Path(folder).as_posix()}: {error.strerror or error}",
        hint="make it readable, or choose another folder",
    )
