"""Reads and writes the files that users name: regular files alone, so that no pipe or device is waited for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from acpgen.diagnostics import InputError, input_error

_KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}
STAGE_PREFIX = ".acpgen-stage-"
"""The start of the name of a staged file."""

_WITHOUT_WAITING = getattr(os, "O_NONBLOCK", 0)


def open_file(path: Path, *, label: str, code: str = "file-unreadable") -> BinaryIO:
    """Open the regular file `path`, or the one that a link leads to, to read it.

    Raises `InputError` with the code `code`, which calls the file `label`, if there is none, if the system refuses, or
    if it is a folder, a pipe, a device or a socket.
    """
    try:
        _check_kind(path.stat().st_mode, label, code)  # first: the mere opening of a device may do something
        stream = open(path, "rb", opener=_open)  # noqa: SIM115 - the caller closes it
    except OSError as error:
        raise input_error(code, f"cannot read {label}: {error.strerror or error}") from None
    try:
        _check_kind(os.fstat(stream.fileno()).st_mode, label, code)
    except InputError:
        stream.close()
        raise
    return stream


def read_file(path: Path, *, label: str, most: int, code: str = "file-unreadable") -> bytes:
    """Read the regular file `path`.

    Raises `InputError` as `open_file` does, and for a file of more than `most` bytes, of which nothing is read.
    """
    with open_file(path, label=label, code=code) as stream:
        if os.fstat(stream.fileno()).st_size > most:
            raise too_large(label, most)
        try:
            data = stream.read(most + 1) or b""  # None for a file without size that would have to be waited for
        except OSError as error:
            raise input_error(code, f"cannot read {label}: {error.strerror or error}") from None
    if len(data) > most:
        raise too_large(label, most)
    return data


def too_large(label: str, most: int) -> InputError:
    """The error for a file of more than `most` bytes."""
    limit = f"{most // 1024**2} MiB" if most >= 1024**2 else f"{most // 1024} KiB" if most >= 1024 else f"{most} bytes"
    return input_error("file-too-large", f"{label} is larger than {limit}", hint="is this the right file?")


def write_file(target: Path, parts: Iterable[str], *, replaces: bool = False, mode: int = 0o666) -> None:
    """Write the single file `target`, with the permissions `mode`. An existing file is replaced only with `replaces`.

    Raises `InputError`, without any change, if the file exists, is not a regular file, or the system refuses.
    """
    name = target.as_posix()
    if os.path.lexists(target):
        if target.is_symlink() or not target.is_file():
            hint = "choose another name"
            raise input_error("foreign-file", f"{name} is in the way: it is not a regular file", hint=hint)
        if not replaces:
            hint = "choose another name, or delete the file"
            raise input_error("file-exists", f"{name} exists already", hint=hint)
    try:
        with ExitStack() as cleanup:
            stage(target, parts, cleanup, mode=mode).replace(target)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error("write-failed", f"cannot write {name}: {reason}") from None


def stage(target: Path, parts: Iterable[str], cleanup: ExitStack, *, mode: int = 0o666) -> Path:
    """Write the text `parts` to a new file beside `target`; `cleanup` removes it if it is still there.

    Raises `OSError`.
    """
    staged = target.parent / f"{STAGE_PREFIX}{os.urandom(8).hex()}"
    cleanup.callback(_remove_file, staged)
    with open(staged, "x", encoding="utf-8", newline="", opener=lambda path, flags: os.open(path, flags, mode)) as file:
        file.writelines(parts)
    return staged


def _remove_file(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _WITHOUT_WAITING)


def _check_kind(mode: int, label: str, code: str) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "special file")
        hint = "name a file in it" if stat.S_ISDIR(mode) else "copy what it gives into a file, and name that"
        raise input_error(code, f"cannot read {label}: it is a {kind}, and no file", hint=hint)
