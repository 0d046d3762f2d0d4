"""Do something again whenever a file changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from acpgen.diagnostics import input_error

_LOOK_MILLISECONDS = 1000
"""How often to look even where nothing is reported: some disks do not, and a change may fall between two waits."""

_Stamps = Mapping[Path, tuple[int, int, int] | None]


def run_on_changes(run: Callable[[], object], files: Callable[[], Collection[Path]]) -> None:
    """Call `run` now, and after each change of one of `files`, which is asked again each time; until Ctrl-C.

    Changes that come together count as one. Raises `InputError` where the library that watches is not installed.
    """
    wait = _waiter()
    seen: _Stamps | None = None
    try:
        while True:
            found = _stamps(files())
            if found != seen:
                seen = found
                run()
                print(f"watching {len(seen)} files; Ctrl-C ends it", file=sys.stderr)
            else:
                wait(found)
    except KeyboardInterrupt:
        return


def _waiter() -> Callable[[Collection[Path]], None]:
    try:
        from watchfiles import watch
    except ImportError:
        hint = 'pip install "acpgen[watch]"'
        raise input_error("watch-missing", "--watch needs the package watchfiles", hint=hint) from None

    def wait(files: Collection[Path]) -> None:
        # folders, because editors put a new file in the place of the old one
        folders = {file.parent for file in files if file.parent.is_dir()}
        names = {str(file) for file in files}
        changes = watch(
            *sorted(folders),
            watch_filter=lambda _, path: path in names,
            recursive=False,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
        )
        next(changes)
        changes.close()

    return wait


def _stamps(files: Collection[Path]) -> _Stamps:
    return {Path(os.path.realpath(file)): _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
