"""The golden trees: which there are, how they are made again, how two trees are compared, and how one is accepted."""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from acpgen.emit.runtime import remote_modules
from acpgen.ir.options import Role
from acpgen.output import LOCK_NAME
from tests.command_line import Outcome, run_acpgen, tree
from tests.support import REPOSITORY

GENERATED = REPOSITORY / "generated"
CASES = REPOSITORY / "tests" / "golden"

Files = Mapping[str, bytes]

REMOTE = frozenset(f"{module}.py" for module in remote_modules(tuple(Role)))
"""The modules that `--remote` copies."""
_COPIED = REPOSITORY / "templates" / "runtime"
RUNTIME = frozenset({"py.typed", *(path.relative_to(_COPIED).as_posix() for path in _COPIED.rglob("*.py"))}) - REMOTE
"""The files that are the same in all packages; a case leaves them out, `generated/` has them."""

_TIMING = re.compile(r" *\w+ +\d+ ms\n")
_MOST_LINES = 60


def builds() -> dict[str, list[str]]:
    """The packages in `generated/`: the name of the folder, and the options of `acpgen build`."""
    found: dict[str, list[str]] = json.loads((GENERATED / "builds.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """A folder in `tests/golden/`.

    `cmd.json` has the arguments, what the case is `about`, and the exit code where it is not 0. The command runs in a
    copy of `input/`. `stderr.txt` and `stdout.txt` are what it prints, absent where that is nothing; `expected/` is
    the package in the folder `out`, without the files of `RUNTIME` and the manifest.
    """

    folder: Path
    arguments: tuple[str, ...]
    code: int

    @property
    def name(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @property
    def expects_package(self) -> bool:
        """Whether the case is about the files that are written."""
        return (self.folder / "expected").is_dir()

    def run(self, cwd: Path) -> Outcome:
        """What the command does in `cwd`, which becomes a copy of the input."""
        if (self.folder / "input").is_dir():
            shutil.copytree(self.folder / "input", cwd, dirs_exist_ok=True)
        before = tree(cwd)
        ran = run_acpgen(*self.arguments, cwd=cwd)
        if not self.expects_package:
            assert tree(cwd) == before, "the command wrote something, and no `expected/` says what"
        return ran

    def found(self, ran: Outcome, cwd: Path) -> dict[str, bytes]:
        """What the case compares: the text that was printed, and the files of the package."""
        texts = {"stdout.txt": ran.stdout, "stderr.txt": _TIMING.sub("", ran.stderr)}
        files = {name: text.encode() for name, text in texts.items() if text}
        if self.expects_package:
            package = tree(cwd / "out")
            files |= {f"expected/{path}": data for path, data in package.items() if path not in {LOCK_NAME, *RUNTIME}}
        return files

    def wanted(self) -> dict[str, bytes]:
        """What `found` has to be."""
        names = ("stdout.txt", "stderr.txt")
        files = {name: path.read_bytes() for name in names if (path := self.folder / name).exists()}
        if self.expects_package:
            files |= {f"expected/{path}": data for path, data in tree(self.folder / "expected").items()}
        return files

    def accept(self, found: Files) -> None:
        """Make `found` what the case wants."""
        kept = {path: data for path, data in tree(self.folder).items() if path.startswith(("input/", "cmd.json"))}
        replace_tree(self.folder, kept | dict(found))


def cases() -> list[Case]:
    """All cases by name."""
    return [_read_case(path.parent) for path in sorted(CASES.glob("*/cmd.json"))]


def _read_case(folder: Path) -> Case:
    command = json.loads((folder / "cmd.json").read_text(encoding="utf-8"))
    assert command.keys() <= {"about", "args", "exit"}, f"{folder.name}/cmd.json has unknown keys"
    return Case(folder=folder, arguments=tuple(command["args"]), code=command.get("exit", 0))


def replace_tree(folder: Path, files: Files) -> None:
    """Make `folder` hold exactly `files`; what is the same already is not touched."""
    present = tree(folder)
    for path in present.keys() - files.keys():
        (folder / path).unlink()
    for path, data in files.items():
        if present.get(path) != data:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)


def check_golden(wanted: Files, found: Files, *, test: str) -> None:
    """Fail where the trees differ in any file, with the start of the difference and the command to accept it."""
    __tracebackhide__ = True
    report = differences(wanted, found)
    if report:
        accept = f"pytest '{test}' --accept-goldens"
        pytest.fail("\n".join([*report, "", f"to accept: {accept}"]), pytrace=False)


def differences(wanted: Files, found: Files) -> list[str]:
    """What a reader has to know of two trees that differ; nothing where they are equal."""
    report = [f"missing: {path}" for path in sorted(wanted.keys() - found.keys())]
    report += [f"extra: {path}" for path in sorted(found.keys() - wanted.keys())]
    lines: list[str] = []
    for path in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(path, b""), found.get(path, b"")
        if one != other:
            report += [f"changed: {path}"] if path in wanted and path in found else []
            lines += difflib.unified_diff(_lines(one), _lines(other), f"golden/{path}", f"built/{path}", lineterm="")
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} more lines"]
    return report + lines


def _lines(data: bytes) -> list[str]:
    # split at the ends of lines alone, and shown as they are: a stray carriage return has to be seen
    return [repr(line)[1:-1] if "\r" in line else line for line in data.decode(errors="backslashreplace").split("\n")]
