"""The output folder after a build that failed midway; `test_output_kills` has failures at every event."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from acpgen.diagnostics import InputError
from acpgen.output import LOCK_NAME, STAGE_PREFIX
from tests.output_support import NEW, OLD, build, codes, contents, old_package, snapshot


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

REPLACED = ["__init__.py", "x.py", "codec.py", LOCK_NAME]
"""The names of the files that an update replaces, in order. The deletion comes before the last one."""


def test_the_manifest_is_replaced_last(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    replace, unlink = os.replace, os.unlink

    def record_replace(source: Path, target: Path) -> None:
        assert source.parent == target.parent
        assert source.name.startswith(STAGE_PREFIX)
        done.append(target.name)
        replace(source, target)

    def record_unlink(path: Path) -> None:
        if not path.name.startswith(STAGE_PREFIX):
            done.append(f"delete {path.name}")
        unlink(path)

    monkeypatch.setattr(os, "replace", record_replace)
    monkeypatch.setattr(os, "unlink", record_unlink)
    build(NEW, out)
    assert done == [*REPLACED[:-1], "delete gone.py", REPLACED[-1]]


@pytest.mark.parametrize(("function", "call"), [("urandom", 1), ("urandom", 4), ("mkdir", 1), ("replace", 1)])
def test_a_failure_before_the_first_replacement_leaves_the_old_package(
    out: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int
) -> None:
    before = snapshot(out)
    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail_at(call, getattr(os, function), FULL))
        with pytest.raises(InputError, match="No space left on device") as caught:
            build(NEW, out)
    assert codes(caught.value.diagnostics) == ["write-failed"]
    assert "nothing in the folder has changed" in str(caught.value.diagnostics[0].hint)
    assert snapshot(out) == before
    build(NEW, out)
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


@pytest.mark.parametrize("call", range(2, len(REPLACED) + 1))
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt(), RuntimeError("a bug")])
def test_a_failure_between_two_replacements_leaves_whole_files(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: int, error: BaseException
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at(call, os.replace, error))
        with pytest.raises(InputError if error is FULL else type(error)) as caught:
            build(NEW, out)
    if isinstance(caught.value, InputError):
        done = call if call == len(REPLACED) else call - 1  # the deletion counts, too
        assert f"{done} of 5 changes are made" in str(caught.value.diagnostics[0].hint)
    new = set(REPLACED[: call - 1])
    expected = {path: text for path, text in OLD.items() if Path(path).name not in new}
    expected |= {path: text for path, text in NEW.items() if Path(path).name in new}
    if call == len(REPLACED):
        del expected["gone.py"]
    assert contents(out) == {**expected, "mine/notes.py": "mine\n"}
    build(NEW, out)
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


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
    assert (out / "more" / "x.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("function", "call"), [("replace", 1), ("urandom", 1), ("urandom", 5), ("mkdir", 2), ("mkdir", 4)]
)
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
