"""Run something again after each change of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from acpgen.diagnostics import input_error

_LOOK_MILLISECONDS = 1000
"""The interval of a look without an event: some disks report none, and a change may fall between two waits."""

_Stamps = Mapping[Path, tuple[int, int, int] | None]


def run_on_changes(run: Callable[[], object], files: Callable[[], Collection[Path]]) -> None:
    """Call `run` now, and after each change of one of `files`, until Ctrl-C. `files` is called again each time.

    Changes at the same time count as one. Raises `InputError` if the package watchfiles is not installed.
    """
    wait = _waiter()
    seen: _Stamps | None = None
    try:
        while True:
            found = _stamps(files())
            if found != seen:
                seen = found
                run()
                print(f"watching {len(seen)} files; press Ctrl-C to stop", file=sys.stderr)
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
        # folders, because editors replace the file by a new one
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
