"""Runs builds that are killed, or refused by the system, at each of their audit events, and checks what is left.

A program of its own, because it forks, and because an audit hook cannot be removed:
`python -m tests.output_faults CASE FAULT FOLDER`. It prints JSON: the number of faults, and the flaws that were found.
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
from acpgen.output import STAGE_PREFIX, apply, plan, unchanged
from tests.output_support import HEAD, NEW, old_package

FAULTS = ("killed", "full disk", "not permitted", "full disk from here on")
CASES = ("update", "new")

ERRORS = {
    "full disk": errno.ENOSPC,
    "full disk from here on": errno.ENOSPC,
    "not permitted": errno.EPERM,
}
KILLED, REFUSED, BROKEN = 9, 2, 99
NEW_HEAD = {**HEAD, "options": {"role": "client"}}

Tree = dict[str, bytes | None]


def tree(folder: Path) -> Tree:
    """Every file and folder below `folder` but staged files, with the bytes of files; nothing for no folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not path.name.startswith(STAGE_PREFIX)
    }


def _is_file_operation(event: str) -> bool:
    return event == "open" or event.startswith(("os.", "fcntl."))


def outcome(action: Callable[[], None], number: int, fault: str) -> tuple[int, tuple[str, ...]]:
    """The exit status of `action` in a child with the fault at its event `number`, and its events until then.

    The events are empty if the child had fewer.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(action, number, fault=fault, writer=writer)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        events = tuple(pipe.read().split())
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), events


def _child(action: Callable[[], None], number: int, *, fault: str, writer: int) -> None:
    events: list[str] = []
    is_killing = fault == "killed"

    def hook(event: str, _: object) -> None:
        if not is_killing and not _is_file_operation(event):
            return
        events.append(event)
        if len(events) == number:
            os.write(writer, "\n".join(events).encode())
            if is_killing:
                os._exit(KILLED)
        if len(events) == number or (len(events) > number and fault.endswith("from here on")):
            raise OSError(ERRORS[fault], os.strerror(ERRORS[fault]))

    status = 0
    try:
        sys.addaudithook(hook)
        action()
    except InputError:
        status = REFUSED
    except BaseException:  # noqa: BLE001 - the exit status and stderr report it
        traceback.print_exc()
        status = BROKEN
    os._exit(status)


class Case:
    """One kind of build, repeated in equal folders."""

    def __init__(self, name: str, home: Path) -> None:
        self.name = name
        self.home = home
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
        """The build that gets the faults."""
        apply(plan(NEW, folder=folder, head=NEW_HEAD))

    def faults(self, fault: str) -> Iterator[str | None]:
        """For each event of a build, the flaw that a fault at this event causes, or None."""
        number = 0
        while True:
            number += 1
            folder = self.prepare(f"{number}")
            made = plan(NEW, folder=folder, head=NEW_HEAD)
            status, events = outcome(lambda made=made: apply(made), number, fault)  # type: ignore[misc]
            if not events:
                return
            # the fault comes before its own event, and a renaming is one replacement
            has_begun = "os.rename" in events[:-1] or "os.remove" in events[:-1]
            flaw = self._flaw(folder, status, fault, has_begun=has_begun)
            yield f"{fault} at {number}, {events[-1]}: {flaw}" if flaw else None

    def _flaw(self, folder: Path, status: int, fault: str, *, has_begun: bool) -> str | None:
        if status not in ({KILLED} if fault == "killed" else {0, REFUSED}):
            return f"status {status}"
        found = tree(folder)
        if status == 0 and found != self.after:
            return "reported success, and is not done"
        if status == REFUSED and found == self.after and self.before != self.after:
            return "reported a failure, and is done"
        if status != 0 and not has_begun and self._without_empty(found) != self._without_empty(self.before):
            return "changed before the first replacement"
        if flaw := self._mix_flaw(found):
            return flaw
        if [*_neighbours(folder)] != [("neighbour.py", "mine\n")]:
            return "something beside the folder was changed"
        if plan(NEW, folder=folder, head=NEW_HEAD).is_clean != (found == self.after):
            return "`check` would be wrong"
        self.build(folder)  # no fault this time
        if tree(folder) != self.after or not unchanged(folder, NEW_HEAD):
            return "the next build did not repair it"
        return None

    @staticmethod
    def _without_empty(found: Tree) -> Tree:
        """The tree without folders: a killed run may leave those that it made, empty."""
        return {path: data for path, data in found.items() if data is not None}

    def _mix_flaw(self, found: Tree) -> str | None:
        """Each file must be the old or the new one, and whole; what is not acpgen's must be there as it was."""
        for path, data in found.items():
            allowed = [each[path] for each in (self.before, self.after) if path in each]
            if data not in allowed:
                return f"{path} is neither old nor new"
        if missing := [path for path in self.before.keys() & self.after.keys() if path not in found]:
            return f"missing: {sorted(missing)}"
        return None


def _neighbours(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.parent.iterdir():
        if path != folder:
            yield path.name, path.read_text()


def main() -> None:
    """Run one case with one fault at each event."""
    name, fault, home = sys.argv[1:]
    found = list(Case(name, Path(home)).faults(fault))
    print(json.dumps({"faults": len(found), "flaws": [flaw for flaw in found if flaw]}))


if __name__ == "__main__":
    main()
