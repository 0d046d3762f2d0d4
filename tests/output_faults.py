"""Runs builds that are killed, or refused by the system, at each thing they ask of it, and looks at what was left.

A program of its own, because it forks, and because an audit hook stays for good:
`python -m tests.output_faults CASE FAULT FOLDER`. Prints JSON: how many faults there were, and what must not have been.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from acpgen.diagnostics import InputError
from acpgen.output import STAGE_PREFIX, apply, plan, replacing, unchanged
from tests.output_support import HEAD, NEW, old_package

FAULTS = ("killed", "full disk", "not permitted", "full disk from here on")
CASES = ("replaced", "file by file", "new")

ERRORS = {
    "full disk": errno.ENOSPC,
    "full disk from here on": errno.ENOSPC,
    "not permitted": errno.EPERM,
}
KILLED, REFUSED, BROKEN = 9, 2, 99
NEW_HEAD = {**HEAD, "options": {"role": "client"}}

Tree = dict[str, bytes | None]


def tree(folder: Path) -> Tree | None:
    """Every file below `folder` but staging folders, with its bytes; None where there is no folder."""
    if not folder.exists():
        return None
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: path.read_bytes() if path.is_file() else None
        for name, path in found.items()
        if not any(part.startswith(STAGE_PREFIX) for part in name.split("/"))
    }


def _is_file_operation(event: str) -> bool:
    return event == "open" or event.startswith(("os.", "fcntl."))


def outcome(action: Callable[[], None], number: int, fault: str) -> tuple[int, bool]:
    """The exit status of `action` in a child with the fault, and whether it got as far as the fault."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(action, number, fault=fault, writer=writer)
    os.close(writer)
    reached = os.read(reader, 1)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), bool(reached)


def _child(action: Callable[[], None], number: int, *, fault: str, writer: int) -> None:
    events = 0
    is_killing = fault == "killed"

    def hook(event: str, _: object) -> None:
        nonlocal events
        if not is_killing and not _is_file_operation(event):
            return
        events += 1
        if events == number:
            os.write(writer, b"x")
            if is_killing:
                os._exit(KILLED)
        if events == number or (events > number and fault.endswith("from here on")):
            raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))

    status = 0
    try:
        sys.addaudithook(hook)
        action()
    except InputError:
        status = REFUSED
    except BaseException:  # noqa: BLE001 - told by the status, and shown
        traceback.print_exc()
        status = BROKEN
    os._exit(status)


class Case:
    """One way to write, tried in folders that are alike."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
        if name == "file by file":
            replacing.exchange = _no_exchange
        self.before = tree(self.prepare("before"))
        after = self.prepare("after")
        self.build(after)
        self.after = tree(after)

    def prepare(self, name: str) -> Path:
        """A fresh folder for one fault, with a neighbour that must stay as it is."""
        parent = self.home / name
        parent.mkdir()
        (parent / "neighbour.py").write_text("mine\n")
        return parent / "acp" if self.name == "new" else old_package(parent / "acp")

    def build(self, folder: Path) -> None:
        """The build that faults are put into."""
        apply(plan(NEW, folder=folder, head=NEW_HEAD))

    def faults(self, fault: str) -> Iterator[str | None]:
        """For each event of a build, what went wrong when the fault was put there, or None."""
        number = 0
        while True:
            number += 1
            folder = self.prepare(f"{number}")
            made = plan(NEW, folder=folder, head=NEW_HEAD)
            status, reached = outcome(lambda made=made: apply(made), number, fault)  # type: ignore[misc]
            if not reached:
                return
            flaw = self._flaw(folder, status, fault)
            yield f"{fault} at {number}: {flaw}" if flaw else None

    def _flaw(self, folder: Path, status: int, fault: str) -> str | None:
        if status not in ({KILLED} if fault == "killed" else {0, REFUSED}):
            return f"status {status}"
        found = tree(folder)
        if status == 0 and found != self.after:
            return "said to be done, and is not"
        if status == REFUSED and found != self.before and not fault.endswith("from here on"):
            return "said to have failed, and is not as it was"
        if not self._is_sound(found, fault):
            return f"a mix: {sorted(found or {})}"
        if (folder.parent / "neighbour.py").read_text() != "mine\n":
            return "the neighbour was changed"
        beside = {path.name for path in folder.parent.iterdir()} - {"neighbour.py", "acp"}
        # what others did meanwhile cannot be known where the old folder cannot be read: it stays, by another name
        kept = "acp.kept-" if found == self.after else STAGE_PREFIX
        if extra := {name for name in beside if not name.startswith((STAGE_PREFIX, kept))}:
            return f"left beside it: {extra}"
        self.build(folder)  # no fault this time
        if tree(folder) != self.after or not unchanged(folder, NEW_HEAD):
            return "the next build did not mend it"
        return None

    def _is_sound(self, found: Tree | None, fault: str) -> bool:
        if found in (self.before, self.after):
            return True
        if self.name != "file by file" or found is None or fault not in ("killed", "full disk from here on"):
            return False
        # one file after the other: each is the old or the new one, and what is not acpgen's is untouched
        assert self.before is not None and self.after is not None  # noqa: PT018
        return all(data in (self.before.get(name), self.after.get(name)) for name, data in found.items()) and all(
            found[name] == self.before[name]
            for name in self.before.keys() & self.after.keys()
            if name.startswith("mine")
        )


def _no_exchange(first: Path, second: Path) -> None:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def main() -> None:
    """Run one case with one fault everywhere."""
    name, fault, home = sys.argv[1:]
    # what a kill leaves is in the system's memory: waiting for the disk would only take time, yet may fail, too
    os.fsync = lambda handle: sys.audit("os.fsync", handle)
    found = list(Case(name, Path(home)).faults(fault))
    print(json.dumps({"faults": len(found), "flaws": [flaw for flaw in found if flaw]}))


if __name__ == "__main__":
    main()
