"""Lets two folders change places in one step, where the system can: nobody ever sees a part of one in the other."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""`renameat2(2)` of Linux."""
_RENAME_SWAP = 2
"""`renamex_np(2)` of macOS."""


def exchange(first: Path, second: Path) -> None:
    """Give each of two folders on one file system the name of the other, at once.

    Raises `OSError`, and has done nothing, where the folders are no such pair or the system has no such call.
    """
    import ctypes  # slow to import, and an unchanged build does not need it

    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    names = os.fsencode(first), os.fsencode(second)
    try:
        if sys.platform == "darwin":
            status = library.renamex_np(*names, _RENAME_SWAP)  # type: ignore[union-attr]
        else:
            status = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE)  # type: ignore[union-attr]
    except AttributeError:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(second))
