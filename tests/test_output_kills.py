"""The output folder when a build is killed or refused anything anywhere, is not alone, or has no room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acpgen.diagnostics import InputError
from acpgen.output import LOCK_NAME, STAGE_PREFIX, apply, plan, replacing, unchanged
from acpgen.output.exchange import exchange
from acpgen.text import digest
from tests.output_faults import CASES, FAULTS, tree
from tests.output_support import HEAD, NEW, OLD, build, codes, contents, old_package, snapshot
from tests.support import REPOSITORY

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs fork and folders that can be opened")


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
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("case", CASES)
def test_a_fault_anywhere_leaves_the_old_package_or_the_new_one(tmp_path: Path, case: str, fault: str) -> None:
    """File by file, a killed run may leave files of both, each of them whole; everywhere the next build mends it."""
    with start("tests.output_faults", case, fault, tmp_path) as process:
        output, _ = process.communicate()
    assert process.returncode == 0, output
    found = json.loads(output.splitlines()[-1])
    print(f"{case}, {fault}: {found['faults']} faults")
    assert found["flaws"] == []
    assert found["faults"] > 10


# --- the folder as a whole ----------------------------------------------------------------------------------------


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, Path]]:
    """The pairs of folders that change places; skips where they cannot."""
    done: list[tuple[Path, Path]] = []

    def record(first: Path, second: Path) -> None:
        exchange(first, second)
        done.append((first, second))

    with tempfile.TemporaryDirectory() as home:
        first, second = Path(home, "first"), Path(home, "second")
        first.mkdir()
        second.mkdir()
        try:
            exchange(first, second)
        except OSError:
            pytest.skip("needs a system that can exchange two folders")
    monkeypatch.setattr(replacing, "exchange", record)
    return done


def test_a_folder_is_replaced_in_one_step(out: Path, exchanges: list[tuple[Path, Path]]) -> None:
    before = snapshot(out)
    build(NEW, out)
    ((twin, replaced),) = exchanges
    assert (twin.parent, replaced) == (out.parent, out)
    assert not twin.exists()
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}
    kept = ["py.typed", "mine/notes.py"]
    assert {name: snapshot(out)[name] for name in kept} == {name: before[name] for name in kept}


def test_all_that_is_not_acpgens_comes_along(out: Path, exchanges: list[tuple[Path, Path]]) -> None:
    (out / "mine" / "empty" / "deep").mkdir(parents=True)
    (out / "sub" / "beside.txt").write_text("mine")
    (out / "link").symlink_to("mine/notes.py")
    (out / "dangling").symlink_to("nowhere")
    (out / "mine" / "script.sh").write_text("echo\n")
    (out / "mine" / "script.sh").chmod(0o750)
    (out / "mine").chmod(0o700)
    out.chmod(0o750)
    build(NEW, out)
    assert len(exchanges) == 1
    assert (out / "mine" / "empty" / "deep").is_dir()
    assert (out / "sub" / "beside.txt").read_text() == "mine"
    assert [str((out / name).readlink()) for name in ("link", "dangling")] == ["mine/notes.py", "nowhere"]
    modes = [(out / name).stat().st_mode & 0o777 for name in ("mine/script.sh", "mine", ".")]
    assert modes == [0o750, 0o700, 0o750]


def test_what_is_put_there_meanwhile_is_not_lost(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(first: Path, second: Path) -> None:
        (second / "late").mkdir()
        (second / "late" / "new.py").write_text("mine\n")
        (second / "mine" / "notes.py").unlink()
        (second / "mine" / "notes.py").write_text("saved anew\n")
        exchange(first, second)

    monkeypatch.setattr(replacing, "exchange", late)
    build(NEW, out)
    assert (out / "late" / "new.py").read_text() == "mine\n"
    assert (out / "mine" / "notes.py").read_text() == "saved anew\n"


@pytest.mark.parametrize("reason", ["working folder", "below it", "much of the user's"])
def test_some_folders_stay_where_they_are(
    out: Path, exchanges: list[tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """A shell that sits in the folder must not find itself in one without a name."""
    if reason == "much of the user's":
        monkeypatch.setattr(replacing, "_MOST_FOREIGN", 1)
    else:
        monkeypatch.chdir(out if reason == "working folder" else out / "mine")
    inode = out.stat().st_ino
    build(NEW, out)
    assert exchanges == []
    assert out.stat().st_ino == inode
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


def test_what_is_put_into_a_folder_that_goes_is_not_lost_either(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(first: Path, second: Path) -> None:
        (second / "sub" / "mine.txt").write_text("mine\n")
        (second / "zz").mkdir()
        (second / "zz" / "new.txt").write_text("mine\n")
        (second / "mine" / "notes.py").unlink()
        exchange(first, second)

    monkeypatch.setattr(replacing, "exchange", late)
    without_sub = {name: text for name, text in NEW.items() if not name.startswith("sub/")}
    build(without_sub, out)
    assert contents(out) == {**without_sub, "sub/mine.txt": "mine\n", "zz/new.txt": "mine\n"}


def test_what_cannot_be_carried_over_stays_beside(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(first: Path, second: Path) -> None:
        (second / "late.txt").write_text("mine\n")
        exchange(first, second)
        monkeypatch.setattr(os, "replace", refuse)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(replacing, "exchange", late)
    build(NEW, out)
    (kept,) = out.parent.glob("acp.kept-*")
    assert (kept / "late.txt").read_text() == "mine\n"
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


def test_what_goes_meanwhile_is_gone(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link(source: Path, target: Path) -> None:
        if source.name == "notes.py":
            source.unlink()
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    build(NEW, out)
    assert contents(out) == NEW


def test_a_folder_in_which_somebody_works_stays(out: Path, exchanges: list[tuple[Path, Path]]) -> None:
    if not Path("/proc/self/cwd").exists():
        pytest.skip("needs a system that tells where processes work")
    with subprocess.Popen([sys.executable, "-c", "input()"], cwd=out / "mine", stdin=subprocess.PIPE) as process:
        build(NEW, out)
        process.communicate(b"\n")
    assert exchanges == []
    build(OLD, out)
    assert len(exchanges) == 1


def test_folders_keep_who_they_belong_to_and_only_changed_ones_have_a_new_time(
    out: Path, exchanges: list[tuple[Path, Path]]
) -> None:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("needs the right to give files away")
    for folder in (out, out / "sub", out / "mine"):
        os.chown(folder, 65534, 65534)
        folder.chmod(0o2775)
        os.utime(folder, (1, 1))
    build(NEW, out)
    assert len(exchanges) == 1
    found = {name: (out / name).stat() for name in (".", "sub", "mine")}
    assert {(each.st_uid, each.st_gid, each.st_mode & 0o7777) for each in found.values()} == {(65534, 65534, 0o2775)}
    assert {name: each.st_mtime > 1 for name, each in found.items()} == {".": True, "sub": True, "mine": False}
    assert (out / "sub" / "codec.py").stat().st_gid == 65534


# --- not alone ----------------------------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from acpgen.diagnostics import InputError
from acpgen.output.manifest import MARKER
from acpgen.output import apply, plan

number, folder = sys.argv[1], Path(sys.argv[2])
for turn in range(int(sys.argv[3])):
    text = f"{MARKER}\\n{number} {turn}\\n"
    files = {"__init__.py": text, "types.py": text, f"only_{number}_{turn % 2}.py": text}
    try:
        apply(plan(files, folder=folder, head={"run": f"{number} {turn}"}))
        print("done")
    except InputError as error:
        print(*(found.code for found in error.diagnostics))
"""


@POSIX
@pytest.mark.slow
def test_builds_at_once_leave_one_package_at_every_moment(tmp_path: Path, exchanges: list[tuple[Path, Path]]) -> None:
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
        looks += is_whole(folder)
    said = [line for writer in writers for line in writer.communicate()[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(said) == 160
    assert set(said) <= {"done", "output-changed"}
    assert said.count("done") >= 40
    assert looks > 20
    assert is_whole(folder)
    assert list(tmp_path.iterdir()) == [folder]
    assert sorted(json.loads((folder / LOCK_NAME).read_text())["files"]) == sorted(
        path.name for path in folder.iterdir() if path.name != LOCK_NAME
    )


def is_whole(folder: Path) -> bool:
    """Whether the folder could be looked at; fails if what is there is of two packages."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        recorded = json.loads(read_at(handle, LOCK_NAME))["files"]
        found = {name: digest(read_at(handle, name)) for name in recorded}
    except FileNotFoundError:  # it was replaced, and is being removed
        return False
    finally:
        os.close(handle)
    assert found == recorded
    return True


def read_at(handle: int, name: str) -> bytes:
    with os.fdopen(os.open(name, os.O_RDONLY, dir_fd=handle), "rb") as file:
        return file.read()


@POSIX
def test_a_build_waits_for_another_one_and_tells_when_it_does_not_end(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("acpgen.output.staging._LOCK_SECONDS", 0.1)
    handle = os.open(out.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    before = snapshot(out)
    with pytest.raises(InputError) as caught:
        build(NEW, out)
    assert codes(caught.value.diagnostics) == ["output-busy"]
    assert snapshot(out) == before
    os.close(handle)
    build(NEW, out)


@POSIX
def test_builds_below_a_folder_that_is_not_there_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one starts just before the first one puts its package in place."""
    folder = tmp_path / "src" / "acp"
    monkeypatch.setattr("acpgen.output.staging._LOCK_SECONDS", 0.1)
    said: list[str] = []
    replace = os.replace

    def start_another(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(InputError) as caught:
            build(OLD, folder)
        said.extend(codes(caught.value.diagnostics))
        replace(source, target)

    monkeypatch.setattr(os, "replace", start_another)
    build(NEW, folder)
    assert said == ["output-busy"]
    assert contents(folder) == NEW


def test_a_build_that_another_one_has_done_already_is_done(out: Path) -> None:
    made = plan(NEW, folder=out, head=HEAD)
    build(NEW, out)
    before = snapshot(out)
    apply(made)
    assert snapshot(out) == before


# --- real disks ---------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(kibibytes: int) -> Iterator[Path]:
    """A file system of that size; skips where none can be mounted."""
    with tempfile.TemporaryDirectory() as home:
        command = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "acpgen-test", home]
        try:
            mounted = subprocess.run(command, check=False, capture_output=True)
        except FileNotFoundError:
            pytest.skip("needs mount(8)")
        if mounted.returncode != 0:
            pytest.skip("needs the right to mount a file system")
        try:
            yield Path(home)
        finally:
            subprocess.run(["umount", home], check=True)


def test_a_disk_of_any_size(tmp_path: Path) -> None:
    """From one on which nothing fits to one on which all does: the old package, or the new one."""
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
            assert not list(disk.glob(f"{STAGE_PREFIX}*"))
    assert outcomes == {(), ("write-failed",)}


def test_a_file_system_below_the_folder_stays_where_it_is(out: Path) -> None:
    with small_disk(64) as disk:
        (disk / "db").mkdir()
        (out / "data").mkdir()
        subprocess.run(["mount", "--bind", disk, out / "data"], check=True)
        try:
            build(NEW, out)
            (out / "data" / "db" / "late").write_text("mine")
            build(OLD, out)
            assert (disk / "db" / "late").read_text() == "mine"
        finally:
            subprocess.run(["umount", out / "data"], check=True)
    assert [path.name for path in out.parent.iterdir()] == ["acp"]


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
import ctypes, fcntl, shutil
os.setgid(65534), os.setuid(65534)
try:
    apply(plan(NEW, folder=Path(sys.argv[1]), head=HEAD))
    print("done")
except InputError as error:
    print(*(found.code for found in error.diagnostics))
"""
"""Imports first: the other user may not be allowed to read them."""


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ((0o777, 0o777, 0o777), "done"),
        ((0o755, 0o777, 0o777), "done"),  # nothing can be put beside it: file by file
        ((0o777, 0o555, 0o777), "folder-unwritable"),
        ((0o777, 0o777, 0o555), "folder-unwritable"),
        ((0o777, 0o777, 0o777, 0o555), "done"),  # a folder of the user's that takes no changes needs none
    ],
)
def test_folders_that_others_may_not_write_to(modes: tuple[int, ...], expected: str) -> None:
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("needs the right to become another user")
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
            assert not list(Path(home).glob(f"{STAGE_PREFIX}*"))
        else:
            assert tree(folder) == before


@pytest.mark.full
@POSIX
def test_builds_that_are_killed_at_any_time(tmp_path: Path) -> None:
    """Not at a chosen place, but by a signal: what is left is whole, and can be built on."""
    folder = old_package(tmp_path / "acp")
    for turn in range(10):
        with start("tests.output_endless", folder) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.003 * turn)
            process.kill()
        assert is_whole(folder)
        assert (folder / "mine" / "notes.py").read_text() == "mine\n"
    build(OLD, folder)
    assert contents(folder) == {**OLD, "mine/notes.py": "mine\n"}
