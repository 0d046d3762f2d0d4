"""What is left of the output folder after a failure midway, where its files are replaced one by one.

That is how it is done where the system cannot exchange two folders; `test_output_kills` has those that can.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from acpgen.diagnostics import InputError
from acpgen.output import LOCK_NAME, STAGE_PREFIX
from tests.output_support import NEW, OLD, build, codes, contents, old_package, snapshot


@pytest.fixture(autouse=True)
def no_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two folders."""
    monkeypatch.setattr("acpgen.output.replacing.exchange", fail_at(1, lambda: None, CANNOT, forever=True))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output folder that holds the old package and something of the user's."""
    return old_package(tmp_path / "acp")


def fail_at(
    wanted: int, real: Callable[..., object], error: BaseException, *, forever: bool = False
) -> Callable[..., object]:
    """`real`, but its `wanted`-th call raises `error`; with `forever`, all later ones do too."""
    calls = 0

    def call(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == wanted or (forever and calls > wanted):
            raise error
        return real(*args, **kwargs)

    return call


FULL = OSError(errno.ENOSPC, "No space left on device")
CANNOT = OSError(errno.ENOSYS, "Function not implemented")


CHANGES_IN_UPDATE = 5
"""Two updates, a creation, a deletion, and the manifest."""


@pytest.mark.parametrize("call", range(1, CHANGES_IN_UPDATE + 1))
@pytest.mark.parametrize("hard_links", [True, False])
def test_a_failed_update_leaves_the_old_package(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: int, hard_links: bool
) -> None:
    before = snapshot(out)
    if not hard_links:
        monkeypatch.setattr(os, "link", fail_at(1, os.link, OSError(errno.EPERM, "no links here"), forever=True))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at(call, os.replace, FULL))
        with pytest.raises(InputError, match="No space left on device") as caught:
            build(NEW, out)
    assert codes(caught.value.diagnostics) == ["write-failed"]
    assert snapshot(out) == before
    build(NEW, out)
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


def test_an_update_renames_as_often_as_the_test_above_thinks(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    real = os.replace

    def record(source: Path, target: Path) -> None:
        renamed.append(Path(source if STAGE_PREFIX in str(target) else target).name)
        real(source, target)

    monkeypatch.setattr(os, "replace", record)
    build(NEW, out)
    assert len(renamed) == CHANGES_IN_UPDATE
    assert renamed[-1] == LOCK_NAME


@pytest.mark.parametrize("function", ["fsync", "mkdir", "link"])
@pytest.mark.parametrize("call", [1, 2])
def test_a_failure_before_the_renaming(out: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int) -> None:
    before = snapshot(out)
    monkeypatch.setattr("shutil.copy2", fail_at(1, lambda *_: None, FULL, forever=True))
    monkeypatch.setattr(os, function, fail_at(call, getattr(os, function), FULL))
    with pytest.raises(InputError, match="No space left on device"):
        build(NEW, out)
    assert snapshot(out) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_any_exception_puts_the_old_package_back(
    out: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    before = snapshot(out)
    monkeypatch.setattr(os, "replace", fail_at(4, os.replace, error))
    with pytest.raises(type(error)):
        build(NEW, out)
    assert snapshot(out) == before


def test_a_failure_does_not_remove_what_another_process_has_made(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def race(source: Path, target: Path) -> None:
        if target.name == "x.py":
            target.write_text("mine\n")
            raise FULL
        real(source, target)

    monkeypatch.setattr(os, "replace", race)
    with pytest.raises(InputError):
        build(NEW, out)
    assert contents(out) == {**OLD, "more/x.py": "mine\n", "mine/notes.py": "mine\n"}


def test_what_cannot_be_put_back_is_named_and_kept(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", fail_at(2, os.replace, FULL, forever=True))
    with pytest.raises(InputError) as caught:
        build(NEW, out)
    (stage,) = out.glob(f"{STAGE_PREFIX}*")
    hint = caught.value.diagnostics[0].hint or ""
    assert "__init__.py" in hint
    assert stage.as_posix() in hint
    assert OLD["__init__.py"] in {path.read_text() for path in stage.glob("*.old")}


@pytest.mark.parametrize(("function", "call"), [("replace", 1), ("fsync", 1), ("fsync", 5), ("mkdir", 2), ("mkdir", 4)])
def test_a_failed_creation_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail_at(call, getattr(os, function), FULL))
        with pytest.raises(InputError, match="No space left on device"):
            build(NEW, tmp_path / "a" / "b" / "acp")
    assert list(tmp_path.iterdir()) == []
    build(NEW, tmp_path / "a" / "b" / "acp")
    assert contents(tmp_path / "a" / "b" / "acp") == NEW


def test_a_new_folder_appears_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[tuple[Path, Path]] = []
    real = os.replace

    def record(source: Path, target: Path) -> None:
        assert not (tmp_path / "acp").exists()
        renamed.append((source, target))
        real(source, target)

    monkeypatch.setattr(os, "replace", record)
    build(NEW, tmp_path / "acp")
    ((source, target),) = renamed
    assert source.parent == tmp_path
    assert source.name.startswith(STAGE_PREFIX)
    assert source.name.endswith(".acp")
    assert target == tmp_path / "acp"
    assert list(tmp_path.iterdir()) == [target]


def test_leftovers_of_killed_runs_are_swept_after_an_hour(out: Path) -> None:
    two_hours_ago = time.time() - 7200
    beside, inside = out.parent, out
    swept = [inside / f"{STAGE_PREFIX}1", beside / f"{STAGE_PREFIX}2.acp"]
    kept = [inside / ".acpgen", beside / f"{STAGE_PREFIX}3.other", beside / f"{STAGE_PREFIX}4.x.acp"]
    young = [inside / f"{STAGE_PREFIX}5", beside / f"{STAGE_PREFIX}6.acp"]
    for folder in [*swept, *kept, *young]:
        folder.mkdir()
        (folder / "0.old").write_text("left over")
    for folder in [*swept, *kept]:
        os.utime(folder, (two_hours_ago, two_hours_ago))
    (inside / f"{STAGE_PREFIX}link").symlink_to(kept[1])
    os.utime(inside / f"{STAGE_PREFIX}link", (two_hours_ago, two_hours_ago), follow_symlinks=False)
    build(OLD, out)
    assert [folder.exists() for folder in swept] == [False] * 2
    assert all((folder / "0.old").exists() for folder in [*kept, *young])
