"""Part `generation`: how long it takes to make code of the bundled schema of protocol 1."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.lab import OURS, Lab, acpgen_command, bundled_schema
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import FailedError, run_timed

BUILD, SAME, CHECK, STAGES = "cold build", "build, nothing changed", "check, nothing changed", "stages of a cold build"
GENERATOR, CODEGEN, TYPER, EMPTY = "official generator", "datamodel-codegen", "`import typer`", "empty interpreter"
Command = Sequence[str | Path]
Take = Callable[[], Sample]


def measure(lab: Lab) -> list[Measure]:
    """Each contender in a process of its own; the stages of the cold builds as `--verbose` tells them."""
    home = lab.folder / "generation"
    home.mkdir()
    built = lab.package
    cold: dict[str, Take] = {OURS: partial(_cold, lab, home / "cold")}
    if lab.peers.generator:
        cold[GENERATOR] = partial(_take, lab, BUILD, _official(home / "official", lab.peers.generator), 1)
    cold[CODEGEN] = partial(_take, lab, BUILD, _codegen(home / "codegen.py"), 1)
    samples = _interleave(lab, cold)
    found = measures("generation", {BUILD: "s"}, samples)
    for name, command in ((SAME, _acpgen("build", built)), (CHECK, _acpgen("check", built))):
        commands = {OURS: command, TYPER: _python("import typer"), EMPTY: _python("pass")}
        taken = _interleave(lab, {who: partial(_take, lab, name, each, 1000) for who, each in commands.items()})
        found += measures("generation", {name: "ms"}, taken)
    stages = [name for name in samples[OURS][0] if name != BUILD]
    values = {stage: [sample[stage] for sample in samples[OURS]] for stage in stages}
    return [*found, Measure("generation", STAGES, "ms", values)]


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


def _cold(lab: Lab, out: Path) -> Sample:
    """The seconds of all, and the milliseconds of each stage by its name."""
    shutil.rmtree(out, ignore_errors=True)
    seconds = run_timed(_acpgen("build", out, "--full", "--verbose"), log=lab.log)
    stages = re.findall(r"^ *(\w+) +(\d+) ms$", lab.log.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not stages:
        raise FailedError("acpgen does not tell its stages")
    return {BUILD: seconds, **{stage: float(milliseconds) for stage, milliseconds in stages}}


def _codegen(out: Path) -> Command:
    options = ["--input-file-type", "jsonschema", "--output-model-type", "dataclasses.dataclass"]
    files = ("--input", bundled_schema(), "--output", out)
    return [sys.executable, "-m", "datamodel_code_generator", *files, *options, "--formatters", "builtin"]


def _official(folder: Path, sdist: Path) -> Command:
    """The generator of the Python SDK, in a copy of its source, with our schema in place of the one it would fetch."""
    shutil.copytree(sdist, folder)
    (folder / "schema").mkdir(exist_ok=True)
    shutil.copy2(bundled_schema(), folder / "schema" / "schema.json")
    return [sys.executable, folder / "scripts" / "gen_schema.py"]
