"""Paths below the output folder: which are safe, how to read them, and the errors about files in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from acpgen.diagnostics import InputError, input_error

LOCK_NAME = "acpgen.lock"
"""The manifest, at the top of the output folder."""

STAGE_PREFIX = ".acpgen-stage-"
"""The start of the name of a staged file."""

MOST_READ = 64 * 1024 * 1024
"""The most bytes that are read of a file in the output folder. No generated file is near that size."""

StrPath = str | os.PathLike[str]


class ObstacleError(InputError):
    """Something in the output folder is not a regular file, or not a folder where one must be."""


def path_flaw(path: str) -> str | None:
    """The reason why `path` must not be used below the output folder; None for a safe relative POSIX path.

    The rules are the same on every system: a manifest may be written on one and read on another.
    """
    parts = path.split("/")
    if "\\" in path or ":" in path or not path.isprintable():
        return "it has a backslash, a colon or a control character"
    if "" in parts:
        return "it is absolute or has an empty part"
    if any(part.endswith((".", " ")) for part in parts):
        # This includes `.` and `..`. Windows drops trailing dots and spaces, so that `.. ` would be `..` there.
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


def read_below(folder: StrPath, path: str, *, limit: int = MOST_READ) -> bytes | None:
    """Read the first `limit` bytes of the regular file at `path` below the output folder; None if there is nothing.

    No link below the folder is followed. Raises `ObstacleError` if something else is in the way, and another
    `InputError` if the system refuses.
    """
    try:
        for prefix in prefixes(path):
            mode = os.lstat(os.path.join(folder, prefix)).st_mode
            wanted = stat.S_ISREG(mode) if prefix == path else stat.S_ISDIR(mode)
            if not wanted:
                found = _link(folder, prefix) if stat.S_ISLNK(mode) else foreign_file(folder, prefix)
                raise ObstacleError(found.diagnostics)
        with open(os.path.join(folder, path), "rb") as file:
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(folder, error) from error


def real_root(folder: StrPath) -> Path:
    """The output folder with all links resolved: the user may name it through links."""
    return Path(os.path.realpath(folder))


def missing_folders(folder: Path) -> list[Path]:
    """Those of `folder` and its parents that do not exist, outermost first."""
    missing: list[Path] = []
    # On a drive that does not exist, no parent exists either.
    while not os.path.lexists(folder) and folder != folder.parent:
        missing.insert(0, folder)
        folder = folder.parent
    return missing


def nearest_existing(folder: Path) -> Path:
    """`folder`, or its nearest parent that exists."""
    missing = missing_folders(folder)
    return missing[0].parent if missing else folder


def shown(folder: StrPath, path: str) -> str:
    """The name of a file in messages: the folder as the user wrote it, with slashes on every system."""
    return (Path(folder) / path).as_posix()


def foreign_file(folder: StrPath, path: str) -> InputError:
    """The error for a file that is in the way and was not written by acpgen."""
    message = f"{shown(folder, path)} is in the way: it was not written by acpgen"
    return input_error("foreign-file", message, hint="move the file, or choose another folder")


def _link(folder: StrPath, path: str) -> InputError:
    message = f"{shown(folder, path)} is a symbolic link, and acpgen does not write through links"
    return input_error("symlink-in-output", message, hint="replace the link with its target, or choose another folder")


def unreadable(folder: StrPath, error: OSError) -> InputError:
    """The error for an output folder that cannot be read."""
    return input_error(
        "folder-unreadable",
        f"cannot read the output folder {Path(folder).as_posix()}: {error.strerror or error}",
        hint="make it readable, or choose another folder",
    )
