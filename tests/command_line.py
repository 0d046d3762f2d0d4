"""Runs the real command line within this process, which spares the second that a new interpreter takes to import."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import typer

from acpgen.cli import main
from acpgen.cli.app import make_app

make_command = cache(lambda: typer.main.get_command(make_app()))
"""The commands with their options, which typer makes of their signatures: a process needs them once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of the command line came to."""

    code: int
    stdout: str
    stderr: str


def run_acpgen(*arguments: str | Path, cwd: Path, columns: int = 100) -> Outcome:
    """What `acpgen ARGUMENTS` does in the folder `cwd`, for a terminal with so many columns."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["acpgen", *map(str, arguments)]
    with ExitStack() as changed:
        changed.enter_context(_within(cwd))
        changed.enter_context(patch("acpgen.cli.make_app", make_command))
        changed.enter_context(patch.object(sys, "argv", argv))
        changed.enter_context(patch.dict(os.environ, COLUMNS=str(columns)))
        changed.enter_context(redirect_stdout(out))
        changed.enter_context(redirect_stderr(err))
        code = _exit_code(main)
    return Outcome(code, out.getvalue(), err.getvalue())


def build_package(out: Path, *arguments: str | Path) -> Path:
    """The folder `out` with a package built into it; fails with what acpgen has to say."""
    ran = run_acpgen("build", *arguments, "--out", out, cwd=out.parent)
    assert ran.code == 0, ran.stderr
    return out


def _exit_code(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


@contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below `folder` by its path, but for what Python caches beside the modules that it imports."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
