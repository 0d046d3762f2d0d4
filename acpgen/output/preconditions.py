"""Checks before a plan: that the generated files may be written, and that the folder may hold them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from acpgen.diagnostics import Report, input_error, internal_error
from acpgen.output.paths import LOCK_NAME, StrPath, nearest_existing, path_flaw, prefixes, real_root
from acpgen.text import MARKER

_OTHER_FOLDER = "give the package a folder of its own, such as src/my_agent/acp"


def check_files(files: Mapping[str, str]) -> None:
    """Check the generated files (path to text).

    Raises `InternalError` for a path or a text that must not be written, and `InputError` for names that differ only
    in case.
    """
    for path, text in files.items():
        if flaw := path_flaw(path):
            raise internal_error(f"the generated path {path!a} is not usable: {flaw}")
        if flaw := _text_flaw(text):
            raise internal_error(f"the generated text of {path} is not usable: {flaw}")
    _check_case(files)


def _text_flaw(text: str) -> str | None:
    if text and not text.startswith(MARKER):
        return "it does not start with the marker"  # the next build would take it for a user's file
    if "\r" in text:
        return "it has a carriage return"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"it is not UTF-8: {error}"
    return None


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
        f"the output folder {name} cannot be created: {_obstacle(Path(folder), existing)} is not a folder",
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


def _obstacle(folder: Path, existing: Path) -> str:
    """The name of the file in the way: as a part of the path that the user wrote, if it is one."""
    named = nearest_existing(folder)
    return (named if real_root(named) == existing else existing).as_posix()


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


def check_folders_writable(root: Path, paths: Iterable[str]) -> None:
    """Raise `InputError` if one of the folders of `paths`, which are below `root`, is not writable."""
    folders = {nearest_existing((root / path).parent) for path in paths}
    report = Report()
    for folder in folders:
        if not os.access(folder, os.W_OK | os.X_OK):
            message = f"the folder {folder.as_posix()} is not writable"
            hint = "make it writable, or choose another folder"
            report.error("folder-unwritable", message, hint=hint)
    report.raise_errors()
