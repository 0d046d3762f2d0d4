"""A build comes to the same with a second process and without one, and tells the same of what fails."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from acpgen.beside import beside
from acpgen.build import build
from acpgen.config import BuildOptions, Sources
from acpgen.diagnostics import InternalError, internal_error
from acpgen.ir.role import Role

OPTIONS = BuildOptions(sources=Sources(), roles=tuple(Role), out=Path("out"))

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of the threads of the test runner


def nothing() -> None:
    pass


only_here = pytest.mark.skipif(sys.platform != "linux", reason="no other system copies a process")


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were started: threads of the tests' own, and the number of processors, are left aside."""
    started: list[int] = []
    fork = os.fork

    def count() -> int:
        process = fork()
        started.append(process)
        return process

    monkeypatch.setattr(os, "fork", count)
    monkeypatch.setattr("acpgen.beside._threads", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return started


@only_here
def test_two_processes_make_the_same_bytes(forks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    alone = build(OPTIONS).plan
    assert not forks
    assert build(OPTIONS, parallel=True).plan == alone
    assert len(forks) == 1
    with pytest.raises(ChildProcessError):  # no process is left over
        os.waitpid(forks[0], 0)


@only_here
def test_where_no_process_can_be_started_the_build_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forks: list[int]
) -> None:
    def refuse() -> int:
        raise BlockingIOError("too many processes")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fork", refuse)
    assert build(OPTIONS, parallel=True).plan == build(OPTIONS).plan
    assert not forks


@only_here
def test_what_fails_in_the_second_process_is_told_by_the_first(
    forks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise internal_error("types differ")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("acpgen.emit.package.render_types", fail)
    with pytest.raises(InternalError, match="types differ"):
        build(OPTIONS, parallel=True)
    assert len(forks) == 1


@only_here
def test_a_process_that_is_killed_is_made_up_for(forks: list[int]) -> None:
    here = os.getpid()

    def work(value: str) -> Mapping[str, str]:
        if os.getpid() != here:
            os.kill(os.getpid(), 9)
        return {"a": value}

    with beside(nothing, work) as hand_over:
        assert hand_over("b")() == {"a": "b"}
    assert len(forks) == 1


@only_here
def test_a_block_that_fails_does_not_wait(forks: list[int]) -> None:
    def work(_: object) -> Mapping[str, str]:
        threading.Event().wait()
        return {}

    with pytest.raises(ZeroDivisionError), beside(nothing, work) as hand_over:
        assert hand_over("b") == 1 / 0
    assert len(forks) == 1


@only_here
@pytest.mark.parametrize("seconds", [0.0, 0.3])
def test_what_is_handed_over_may_be_large_and_early(forks: list[int], seconds: float) -> None:
    large = "b" * 10_000_000
    with beside(partial(time.sleep, seconds), lambda value: {"size": str(len(value)), "by": str(os.getpid())}) as give:
        assert give(large)() == {"size": "10000000", "by": str(forks[0])}


@only_here
def test_where_preparing_fails_the_work_is_done_here(forks: list[int]) -> None:
    with beside(partial(sys.exit, 3), lambda value: {"by": str(os.getpid()), "a": value}) as hand_over:
        assert hand_over("b")() == {"by": str(os.getpid()), "a": "b"}
