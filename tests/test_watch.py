"""`acpgen build --watch`: builds again when a schema, an extension or the configuration changes, until Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acpgen.cli import watch
from tests.project_support import Project, ping_schema
from tests.support import REPOSITORY

pytest.importorskip("watchfiles")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")

ONE = 'out = "acp"\nschema = "schema.json"\nruntime = false\n'


@contextmanager
def watching(project: Project, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """acpgen, watching in the project, with its stderr in a file there; ended with Ctrl-C."""
    with (project.path / "stderr.txt").open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "acpgen", "build", "--watch", *arguments],
            cwd=project.path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stderr=stderr,
            # ignored where the tests run in the background, and inherited
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0, said(project)
        finally:
            process.kill()
            process.wait()


def said(project: Project) -> str:
    return (project.path / "stderr.txt").read_text()


def wait_for(condition: Callable[[], bool], project: Project) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, said(project)
        time.sleep(0.05)


def names(project: Project) -> list[str]:
    return list(project.lock("acp")["names"])


def test_changes_are_built_and_mistakes_do_not_end_it(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", ONE)
    with watching(project):
        wait_for(lambda: "watching 2 files" in said(project), project)
        assert "Thing" in names(project)

        project.schema(ping_schema("Second"))
        wait_for(lambda: "Second" in names(project), project)

        (project.path / "schema.json").write_text("{")
        wait_for(lambda: "[bad-json]" in said(project), project)
        assert "Second" in names(project)

        # as editors do: another file in the place of the old one
        project.schema(ping_schema("Third"), "new.json")
        (project.path / "new.json").rename(project.path / "schema.json")
        wait_for(lambda: "Third" in names(project), project)

        project.schema(ping_schema("Fourth"), "other.json")
        project.config(ONE.replace("schema.json", "other.json"))
        wait_for(lambda: "Fourth" in names(project), project)
        project.schema(ping_schema("Fifth"), "other.json")
        wait_for(lambda: "Fifth" in names(project), project)

        project.config("mistake = 1\n")
        wait_for(lambda: "[config-unknown-key]" in said(project), project)
        project.config(ONE)
        wait_for(lambda: "Third" in names(project), project)


def test_changes_that_come_together_are_one_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: a wait that returns after many changes, and one that returns after none."""
    file = tmp_path / "schema.json"
    file.write_text("0")
    builds: list[str] = []
    waits = 0

    def wait(_: object) -> None:
        nonlocal waits
        waits += 1
        if waits == 2:
            for number in range(5):
                file.write_text(str(number) * (number + 2))
        if waits == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_waiter", lambda: wait)
    watch.run_on_changes(lambda: builds.append(file.read_text()), lambda: [file])
    assert builds == ["0", "444444"]


def test_a_change_during_a_build_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "schema.json"
    file.write_text("old")
    builds: list[str] = []

    def run() -> None:
        builds.append(file.read_text())
        if len(builds) == 1:
            file.write_text("newer")

    def wait(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watch, "_waiter", lambda: wait)
    watch.run_on_changes(run, lambda: [file])
    assert builds == ["old", "newer"]


def test_without_the_library_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    project = Project(tmp_path / "p", ONE)
    ran = project.run("build", "--watch")
    assert ran.code == 2
    assert 'pip install "acpgen[watch]"' in ran.stderr
