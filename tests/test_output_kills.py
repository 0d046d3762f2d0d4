"""The output folder when a build is killed or fails anywhere, when several builds run at once, and on a full disk."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest

from acpgen.diagnostics import InputError
from acpgen.output import LOCK_NAME, STAGE_PREFIX, apply, plan, read_manifest, unchanged
from acpgen.text import MARKER, digest
from tests.needs import lacks
from tests.output_faults import CASES, FAULTS, tree
from tests.output_support import HEAD, NEW, OLD, build, codes, contents, old_package
from tests.project_support import Project, ping_schema
from tests.support import REPOSITORY

pytestmark = pytest.mark.full

APPLY = import_module("acpgen.output.apply")
"""The module; the package has the function of this name."""

POSIX = pytest.mark.needs("posix")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output folder that holds the old package and something of the user's."""
    return old_package(tmp_path / "acp")


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """A module of the tests, run by itself."""
    return subprocess.Popen(
        [sys.executable, "-B", "-m", *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


# --- faults everywhere --------------------------------------------------------------------------------------------


@POSIX
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_anywhere_leaves_whole_files_that_the_next_build_repairs(tmp_path: Path, case: str, fault: str) -> None:
    """Before the first replacement, all is the old package; what `check` compares with names each file that differs."""
    with start("tests.output_faults", case, fault, tmp_path) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, output
    found = json.loads(output.splitlines()[-1])
    print(f"{case}, {fault}: {found['faults']} faults")
    assert found["flaws"] == []
    assert found["faults"] > 10


@POSIX
def test_builds_that_are_killed_at_any_time(tmp_path: Path) -> None:
    """Not at a chosen place, but by a signal: what is left are whole files, and the next build repairs them."""
    folder = old_package(tmp_path / "acp")
    for turn in range(10):
        with start("tests.output_endless", folder) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.003 * turn)
            process.kill()
        manifest = read_manifest(folder)
        assert manifest is not None
        for path, text in contents_without_staged(folder).items():
            assert text in (OLD.get(path), NEW.get(path), "mine\n"), path
        assert (folder / "mine" / "notes.py").read_text() == "mine\n"
        interrupted = NEW if manifest.files.keys() == OLD.keys() else OLD
        build(interrupted, folder)
        assert contents_without_staged(folder) == {**interrupted, "mine/notes.py": "mine\n"}


def contents_without_staged(folder: Path) -> dict[str, str]:
    return {path: text for path, text in contents(folder).items() if STAGE_PREFIX not in path}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_check_names_what_a_killed_build_has_left_and_a_build_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nschema = "schema.json"\n')
    project.good("build")
    project.schema(ping_schema("Thing", "Other"))
    planned = project.good("build", "--dry-run").stdout.splitlines()
    changed = sorted((line.split(" ")[1] for line in planned), key=lambda path: (path == LOCK_NAME, path))
    with monkeypatch.context() as patch:
        kill_at(number, patch)
        with pytest.raises(KilledError):
            project.run("build")
    ran = project.run("check", "--format", "json")
    assert ran.code == 1
    (checked,) = json.loads(ran.stdout)
    named = {finding["path"] for finding in checked["findings"]}
    assert named == set(changed[number - 1 :])
    project.good("build")
    project.good("check")


class KilledError(BaseException):
    """Stands in for a signal: no part of acpgen handles it."""


def kill_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """End a build before its replacement `number`."""
    calls = 0
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KilledError
        real(source, target)

    patch.setattr(os, "replace", replace)


# --- what is not acpgen's -----------------------------------------------------------------------------------------


def test_all_that_is_not_acpgens_stays_as_it_is(out: Path) -> None:
    (out / "mine" / "empty" / "deep").mkdir(parents=True)
    (out / "sub" / "beside.txt").write_text("mine")
    (out / "link").symlink_to("mine/notes.py")
    (out / "dangling").symlink_to("nowhere")
    (out / "mine" / "script.sh").write_text("echo\n")
    (out / "mine" / "script.sh").chmod(0o750)
    (out / "mine").chmod(0o700)
    (out / f"{STAGE_PREFIX}folder").mkdir()
    out.chmod(0o750)
    for path in (out, *out.rglob("*")):
        os.utime(path, (1, 1), follow_symlinks=False)
    mine = [*(path for path in (out / "mine").rglob("*")), *(out / name for name in ("mine", "link", "dangling"))]
    mine += [out / "sub" / "beside.txt", out / f"{STAGE_PREFIX}folder"]
    before = [identity(path) for path in mine]
    folder = out.stat()
    build(NEW, out)
    assert [identity(path) for path in mine] == before
    assert (out.stat().st_ino, out.stat().st_mode) == (folder.st_ino, folder.st_mode)
    without_sub = {name: text for name, text in NEW.items() if not name.startswith("sub/")}
    build(without_sub, out)
    assert [identity(path) for path in mine] == before
    assert not (out / "sub" / "codec.py").exists()


def identity(path: Path) -> tuple[float, ...]:
    """All that shows that something was moved, linked, replaced, changed or given to another user."""
    found = path.lstat()
    return (found.st_ino, found.st_mode, found.st_uid, found.st_gid, found.st_nlink, found.st_mtime)


def test_what_is_put_there_during_a_build_is_not_lost(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def replace(source: Path, target: Path) -> None:
        (out / "late").mkdir(exist_ok=True)
        (out / "late" / "new.txt").write_text("mine\n")
        (out / "sub" / "mine.txt").write_text("mine\n")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    without_sub = {name: text for name, text in NEW.items() if not name.startswith("sub/")}
    build(without_sub, out)
    assert contents(out) == {
        **without_sub,
        "mine/notes.py": "mine\n",
        "sub/mine.txt": "mine\n",
        "late/new.txt": "mine\n",
    }


# --- not alone ----------------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from acpgen.diagnostics import InputError
from acpgen.text import MARKER
from acpgen.output import apply, plan

number, folder = sys.argv[1], Path(sys.argv[2])
for turn in range(int(sys.argv[3])):
    text = f"{MARKER}\\n{number} {turn}\\n"
    files = {"__init__.py": text, "types.py": text, "more/x.py": text}
    try:
        apply(plan(files, folder=folder, head={"run": f"{number} {turn}"}))
        print("done")
    except InputError as error:
        print(*(found.code for found in error.diagnostics))
"""


@POSIX
def test_builds_at_once_leave_one_package(tmp_path: Path) -> None:
    """At every moment, each file is whole; the next build leaves all files of one package."""
    folder = tmp_path / "acp"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(number), str(folder), "40"],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    looks = 0
    while any(writer.poll() is None for writer in writers):
        looks += sum(is_whole(path) for path in folder.rglob("*.py"))
    said = [line for writer in writers for line in writer.communicate()[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(said) == 160
    assert set(said) <= {"done", "write-failed"}
    assert said.count("done") >= 40
    subprocess.run([sys.executable, "-c", WRITER, "9", str(folder), "1"], cwd=REPOSITORY, check=True)
    assert looks > 20
    assert list(tmp_path.iterdir()) == [folder]
    recorded = json.loads((folder / LOCK_NAME).read_text())["files"]
    assert recorded == {path.relative_to(folder).as_posix(): digest(path.read_bytes()) for path in folder.rglob("*.py")}
    assert not list(folder.rglob(f"{STAGE_PREFIX}*"))


def is_whole(path: Path) -> bool:
    """Whether the file could be looked at; fails if there is a part of a text."""
    try:
        text = path.read_text()
    except FileNotFoundError:  # deleted in the meantime
        return False
    assert re.fullmatch(re.escape(MARKER) + r"\n\d \d+\n", text)
    return True


def test_a_build_that_another_one_has_done_already_is_done(out: Path) -> None:
    made = plan(NEW, folder=out, head=HEAD)
    build(NEW, out)
    before = contents(out)
    apply(made)
    assert contents(out) == before
    assert plan(NEW, folder=out, head=HEAD).is_clean


# --- real disks ---------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(kibibytes: int) -> Iterator[Path]:
    """A file system of that size; skips where none can be mounted."""
    with tempfile.TemporaryDirectory() as home:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "acpgen-test", home]
        try:
            mounted = subprocess.run(command, check=False, capture_output=True)
        except FileNotFoundError:
            lacks("root", "no mount(8)")
        if mounted.returncode != 0:
            lacks("root", "to mount a file system")
        try:
            yield Path(home)
        finally:
            subprocess.run(["umount", home], check=True)


def test_a_disk_of_any_size(tmp_path: Path) -> None:
    """From a disk for which the new package is too large to one on which it fits: the old package, or the new one."""
    big = {name: text + "#" * 9000 + "\n" if text else "" for name, text in NEW.items()}
    after = tree(build_at(tmp_path / "acp", big))
    outcomes: set[tuple[str, ...]] = set()
    for size in range(48, 160, 4):
        with small_disk(size) as disk:
            folder = old_package(disk / "acp")
            before = tree(folder)
            said = said_of(big, folder)
            assert tree(folder) == (before if said else after)
            outcomes.add(tuple(said))
            assert not list(disk.rglob(f"{STAGE_PREFIX}*"))
    assert outcomes == {(), ("write-failed",)}


def said_of(files: dict[str, str], folder: Path) -> list[str]:
    """The codes with which a build fails, if it does."""
    try:
        build(files, folder)
    except InputError as error:
        return codes(error.diagnostics)
    return []


def build_at(folder: Path, files: dict[str, str]) -> Path:
    old_package(folder)
    build(files, folder)
    return folder


AS_NOBODY = """
import os, sys
from pathlib import Path
from acpgen.diagnostics import InputError
from acpgen.output import apply, plan
from tests.output_support import HEAD, NEW
import fcntl
os.setgid(65534), os.setuid(65534)
try:
    apply(plan(NEW, folder=Path(sys.argv[1]), head=HEAD))
    print("done")
except InputError as error:
    print(*(found.code for found in error.diagnostics))
"""
"""The imports come first, because the other user may not be allowed to read the modules."""


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ((0o777, 0o777, 0o777), "done"),
        ((0o755, 0o777, 0o777), "done"),
        ((0o777, 0o555, 0o777), "folder-unwritable"),
        ((0o777, 0o777, 0o555), "folder-unwritable"),
        ((0o777, 0o777, 0o777, 0o555), "done"),  # no file is written to a folder of the user's
    ],
)
def test_folders_that_others_may_not_write_to(modes: tuple[int, ...], expected: str) -> None:
    if os.name != "posix" or os.geteuid() != 0:
        lacks("root", "to become another user")
    with tempfile.TemporaryDirectory() as home:
        folder = old_package(Path(home, "acp"))
        before = tree(folder)
        for path, mode in zip((Path(home), folder, folder / "sub", folder / "mine"), modes, strict=False):
            path.chmod(mode)
        os.chown(folder / "mine", 65534, 65534)
        command = [sys.executable, "-B", "-c", AS_NOBODY, str(folder)]
        said = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
        assert said.stdout.split() == [expected], said.stderr
        if expected == "done":
            assert contents(folder) == {**NEW, "mine/notes.py": "mine\n"}
            assert unchanged(folder, HEAD)
            assert not list(Path(home).rglob(f"{STAGE_PREFIX}*"))
        else:
            assert tree(folder) == before
