"""The output folder: which folders and paths may be written, how files are read, and the errors about obstacles."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from acpgen.diagnostics import InputError, Report, input_error, internal_error
from acpgen.files import STAGE_PREFIX
from acpgen.text import MARKER

LOCK_NAME = "acpgen.lock"
"""The manifest, at the top of the output folder."""

MOST_READ = 64 * 1024 * 1024
"""The most bytes that are read of a file in the output folder. No generated file is near that size."""

_OTHER_FOLDER = "give the package a folder of its own, such as src/my_agent/acp"

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


def check_files(files: Mapping[str, str]) -> None:
    """Check the generated files (path to text).

    Raises `InternalError` for a path or a text that must not be written, and `InputError` for names that differ only
    in case.
    """
    for path, text in files.items():
        if flaw := path_flaw(path):
            raise internal_error(f"the generated path {path!a} is not usable: {flaw}")
        if text and not text.startswith(MARKER):  # the next build would take it for a user's file
            raise internal_error(f"the generated text of {path} does not start with the marker")
    _check_case(files)


def _check_case(paths: Iterable[str]) -> None:
    """Folders count, too: `A/x.py` and `a/y.py` are in one folder on some disks, and in two on others."""
    first_by_fold = {LOCK_NAME: LOCK_NAME}
    report = Report()
    for name in sorted({prefix for path in paths for prefix in prefixes(path)}):
        first = first_by_fold.setdefault(name.casefold(), name)
        if first != name:
            message = f"the generated {first} and {name} differ only in upper and lower case"
            hint = "they are one file on Windows and macOS: rename the definition that one of them comes from"
            report.error("case-clash", message, hint=hint)
    report.raise_errors()


def check_folder(folder: StrPath) -> None:
    """Raise `InputError` if the output folder cannot, or must not, hold a package."""
    name = Path(folder).as_posix()
    if "\0" in name:
        raise input_error("folder-refused", "the name of the output folder has a NUL character", hint=_OTHER_FOLDER)
    root = real_root(folder)
    if reason := _refusal(root):
        raise input_error("folder-refused", f"the output folder {name} {reason}", hint=_OTHER_FOLDER)
    existing = nearest_existing(root)
    if os.path.isdir(existing):
        return
    if existing == root:
        raise input_error("folder-is-file", f"the output folder {name} is not a folder", hint=_OTHER_FOLDER)
    raise input_error(
        "folder-unwritable",
        f"the output folder {name} cannot be created: {nearest_existing(Path(folder)).as_posix()} is not a folder",
        hint="choose another folder",
    )


def check_apart(folder: StrPath) -> None:
    """Raise `InputError` if the output folder has Python code of the user, and is not a package.

    Then it is where Python looks for modules, and the package's `types.py` would hide that of the standard library.
    """
    root = Path(folder)
    if (root / "__init__.py").exists():  # a generated one, or a file in the way
        return
    for path in sorted([*root.glob("*.py"), *root.glob("*/__init__.py")]):
        if path.is_file() and not path.read_bytes().startswith(MARKER.encode()):  # otherwise a build was killed
            message = f"the output folder {root.as_posix()} has the Python code {path.relative_to(root).as_posix()}"
            hidden = "which would import modules of the package in place of those of the standard library"
            raise input_error("folder-refused", f"{message}, {hidden}", hint=_OTHER_FOLDER)


def _refusal(root: Path) -> str | None:
    if root == root.parent:
        return "is the root of the file system"
    if root == real_root(os.path.expanduser("~")):
        return "is the home folder"
    if os.path.lexists(root / ".git"):
        return "is the top of a git checkout"
    if os.path.lexists(root / "pyproject.toml"):
        return "is the top of a project (it has a pyproject.toml)"
    return None


def check_writable(folder: StrPath, paths: Iterable[str]) -> None:
    """Raise `InputError` if one of the folders of `paths`, which are below `folder`, is not writable."""
    root, report = real_root(folder), Report()
    for found in sorted({nearest_existing((root / path).parent) for path in paths}):
        if not os.access(found, os.W_OK | os.X_OK):
            message = f"the folder {found.as_posix()} is not writable"
            hint = "make it writable, or choose another folder"
            report.error("folder-unwritable", message, hint=hint)
    report.raise_errors()


# --- Conflicts of a merge --------------------------------------------------------------------------------------------

_CONFLICT = re.compile(rb"^<{7}(?: |\r?$)", re.MULTILINE)
_CONFLICT_HEAD = 4096
"""The bytes in which the marker of acpgen must be if a conflict begins with the first line."""


def has_conflict(data: bytes) -> bool:
    """Whether git has left the two sides of a conflict in a file. A build makes generated ones again."""
    return _CONFLICT.search(data) is not None


def is_generated_in_conflict(data: bytes) -> bool:
    """Whether a file begins with a conflict of two generated files: then its first line is not that of acpgen."""
    return _CONFLICT.match(data) is not None and MARKER.encode() in data[:_CONFLICT_HEAD]
