"""Part `generation`: how long it takes to make code of the bundled schema of protocol 1."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.lab import OURS, Lab, acpgen_command, bundled_schema
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_timed

BUILD, SAME, CHECK = "cold build", "build, nothing changed", "check, nothing changed"
GENERATOR, TYPER, EMPTY = "official generator", "`import typer`", "empty interpreter"
Command = Sequence[str | Path]
Take = Callable[[], Sample]


def measure(lab: Lab) -> list[Measure]:
    """Each contender in a process of its own."""
    home = lab.folder / "generation"
    home.mkdir()
    built = lab.package
    cold: dict[str, Take] = {OURS: partial(_take, lab, BUILD, _acpgen("build", home / "cold", "--full"), 1)}
    if lab.peers.generator:
        cold[GENERATOR] = partial(_take, lab, BUILD, _official(home / "official", lab.peers.generator), 1)
    found = measures("generation", {BUILD: "s"}, _interleave(lab, cold))
    for name, command in ((SAME, _acpgen("build", built)), (CHECK, _acpgen("check", built))):
        commands = {OURS: command, TYPER: _python("import typer"), EMPTY: _python("pass")}
        taken = _interleave(lab, {who: partial(_take, lab, name, each, 1000) for who, each in commands.items()})
        found += measures("generation", {name: "ms"}, taken)
    return found


def _interleave(lab: Lab, takes: dict[str, Take]) -> dict[str, list[Sample]]:
    for take in takes.values() if lab.sizes.rounds > 1 else ():
        take()  # the first one may write bytecode
    return interleave(takes, lab.sizes.rounds)


def _take(lab: Lab, name: str, command: Command, factor: float) -> Sample:
    return {name: run_timed(command, log=lab.log) * factor}


def _python(code: str) -> Command:
    return [sys.executable, "-c", code]


def _acpgen(name: str, out: Path, *options: str) -> Command:
    return [*acpgen_command(), name, "--role", "agent", "--no-config", "--out", out, *options]


def _official(folder: Path, sdist: Path) -> Command:
    """The generator of the Python SDK, in a copy of its source, with our schema in place of the one it would fetch."""
    shutil.copytree(sdist, folder)
    (folder / "schema").mkdir(exist_ok=True)
    shutil.copy2(bundled_schema(), folder / "schema" / "schema.json")
    return [sys.executable, folder / "scripts" / "gen_schema.py"]
