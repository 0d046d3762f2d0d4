"""The golden trees: which there are, how they are made again, how two trees are compared, and how one is accepted.

They repeat nothing: of a package, the files that are copies of `templates/runtime/` and `schema/helpers/` are compared
with their sources (`false_copies`), and left out; `v1_agent` alone is whole, to be read. Manifests, which have a digest
of each file, are left out, too.
"""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from acpgen.emit.helpers import FOLDER
from acpgen.emit.runtime import HEADER
from acpgen.output import LOCK_NAME
from acpgen.runtime_modules import place
from tests import package_cache
from tests.command_line import Outcome, build_package, run_acpgen, tree
from tests.support import REPOSITORY

GENERATED = REPOSITORY / "generated"
CASES = REPOSITORY / "tests" / "golden"

Files = Mapping[str, bytes]

WHOLE = "v1_agent"
"""The package in `generated/` that has all its files but the manifest."""

_RUNTIME = REPOSITORY / "templates" / "runtime"
_HELPERS = REPOSITORY / "schema" / "helpers"
_RUNTIME_FILES = {f"{place(path.stem)}.py": path for path in _RUNTIME.glob("*/**/*.py") if path.stem != "__init__"} | {
    f"_runtime/{path.relative_to(_RUNTIME).as_posix()}": path for path in _RUNTIME.rglob("__init__.py")
}
"""The files of the runtime by their place in a package."""
_OF_PACKAGE = re.compile(r"^from \.{2,3}[\w.]+ import (?:[^(\n]+|\([^)]*\))\n", re.MULTILINE)
"""Imports of a helper from its package, which may have the names in another module."""

_MOST_LINES = 60


def is_copy(path: str) -> bool:
    """Whether a file of a package is one of the runtime, or a helper: its text does not follow from the schema."""
    folder, _, name = path.rpartition("/")
    return path in _RUNTIME_FILES or (folder.rpartition("/")[2] == FOLDER and name != "__init__.py")


def false_copies(package: Files) -> list[str]:
    """The copies in a package that differ from their source, but for the head and the imports from the package."""
    return sorted(path for path, data in package.items() if is_copy(path) and not _is_true(path, data.decode()))


def _is_true(path: str, text: str) -> bool:
    if path in _RUNTIME_FILES:
        return text == f"{HEADER}\n{_RUNTIME_FILES[path].read_text(encoding='utf-8')}"
    sources = (found.read_text(encoding="utf-8") for found in _HELPERS.rglob(path.rpartition("/")[2]))
    return _OF_PACKAGE.sub("", text) in {f"{HEADER}\n{_OF_PACKAGE.sub('', source)}" for source in sources}


def built(name: str) -> Path:
    """A folder with a whole package of `generated/`, made once for all tests."""

    def build() -> dict[str, str]:
        with TemporaryDirectory() as folder:
            package = tree(build_package(Path(folder) / name, *builds()[name]))
        return {path: data.decode() for path, data in package.items()}

    return package_cache.folder(f"generated {builds()[name]}", build)


def committed(package: Files, *, whole: bool = False) -> dict[str, bytes]:
    """The files of a package that are kept in git."""
    left_out = {LOCK_NAME, "py.typed"}
    return {path: data for path, data in package.items() if path not in left_out and (whole or not is_copy(path))}


def builds() -> dict[str, list[str]]:
    """The packages in `generated/`: the name of the folder, and the options of `acpgen build`."""
    found: dict[str, list[str]] = json.loads((GENERATED / "builds.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Case:
    """A folder in `tests/golden/`.

    `cmd.json` has the arguments, what the case is `about`, and the exit code where it is not 0. The command runs in a
    copy of `input/`. `stderr.txt` and `stdout.txt` are what it prints, absent where that is nothing; `expected/` has
    the files of the package in the folder `out` that are `committed`.
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
        texts = {"stdout.txt": ran.stdout, "stderr.txt": ran.stderr}
        files = {name: text.encode() for name, text in texts.items() if text}
        if self.expects_package:
            files |= {f"expected/{path}": data for path, data in committed(tree(cwd / "out")).items()}
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
