"""The twin of an output folder: what will take its place, with second names for all that stays.

What is in the folder and is not acpgen's ("foreign") gets second names (hard links), too, so that it is in both until
the old one is removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from acpgen.output.paths import prefixes
from acpgen.output.plan import Kind, Plan
from acpgen.output.staging import write_new


def folders_of(paths: Set[str]) -> set[str]:
    """The folders above files, without the root."""
    return {prefix for path in paths for prefix in prefixes(path) if prefix != path}


def foreign_files(root: Path, ours: Set[str]) -> Iterator[str]:
    """What is in `root` and in no package, relative to it: folders end with a slash and come before their content."""
    folders = folders_of(ours)
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root / folder) as entries:
            found = sorted((f"{folder}{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries)
        for path, is_folder in found:
            if is_folder:
                waiting.append(f"{path}/")
                if path not in folders:
                    yield f"{path}/"
            elif path not in ours:
                yield path


@dataclass(frozen=True, slots=True)
class Twin:
    """A folder that is to become what `root` is after a plan."""

    folder: Path
    root: Path

    def fill(self, plan: Plan, foreign: list[str]) -> None:
        """Put in the files of the plan, and all that is foreign."""
        ours = frozenset(change.path for change in plan.changes)
        kept = [change for change in plan.changes if change.kind is not Kind.DELETE]
        made = {"": self._open("")}
        for path in sorted(folders_of(frozenset(change.path for change in kept)) | _folders_among(foreign)):
            os.mkdir(self.folder / path)
            made[path] = self._open(path)
        for change in kept:
            if change.kind is Kind.KEEP:
                os.link(self.root / change.path, self.folder / change.path)
            else:
                write_new(self.folder / change.path, plan.files[change.path])
        for path in foreign:
            if not path.endswith("/"):
                self._add_name(path)
        changed = {"", *folders_of(ours)}
        for path in sorted(made, reverse=True):
            if made[path]:
                self._close(path, keep_time=path not in changed)

    def _open(self, path: str) -> bool:
        """Give a new folder the owner of the old one, before there is anything in it; whether there is an old one."""
        try:
            old, new = (self.root / path).stat(), (self.folder / path).stat()
        except FileNotFoundError:
            return False
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.chown(self.folder / path, old.st_uid, old.st_gid)
        os.chmod(self.folder / path, stat.S_IMODE(old.st_mode) | stat.S_IRWXU)  # files inherit the group by it
        return True

    def _close(self, path: str, *, keep_time: bool) -> None:
        import shutil  # slow to import, and an unchanged build does not need it

        with suppress(FileNotFoundError):
            shutil.copystat(self.root / path, self.folder / path)
        if not keep_time:
            os.utime(self.folder / path)  # importers and watchers look at it to see that something changed

    def _add_name(self, path: str) -> None:
        with suppress(FileNotFoundError):  # it has gone meanwhile
            if (self.root / path).is_symlink():
                os.symlink(os.readlink(self.root / path), self.folder / path)
            else:
                os.link(self.root / path, self.folder / path)


def _folders_among(foreign: list[str]) -> set[str]:
    above = folders_of(frozenset(path.rstrip("/") for path in foreign))
    return above | {path.rstrip("/") for path in foreign if path.endswith("/")}
