"""Part `generation`: how long it takes to make code of the bundled schema of protocol 1."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.lab import OURS, Lab, acpgen_command, bundled_schema
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import FailedError, environment, run_for_output, run_timed

BUILD, SAME, CHECK, STAGES = "cold build", "build, nothing changed", "check, nothing changed", "stages of a cold build"
GENERATOR, CODEGEN, TYPER, EMPTY = "official generator", "datamodel-codegen", "`import typer`", "empty interpreter"
Run = Callable[[], float]


def measure(lab: Lab) -> list[Measure]:
    """Each contender in a process of its own; the stages as `--verbose` tells them."""
    built = lab.folder / "generation" / "built"
    built.parent.mkdir()
    run_for_output(_build(built))
    unchanged = _build(built)
    cold: dict[str, Run] = {OURS: partial(_cold, lab)}
    if lab.peers.generator:
        cold[GENERATOR] = partial(_seconds, lab, _official(lab, lab.peers.generator))
    cold[CODEGEN] = partial(_seconds, lab, _codegen(lab))
    little = {TYPER: [sys.executable, "-c", "import typer"], EMPTY: [sys.executable, "-c", "pass"]}
    warm: dict[str, Run] = {name: partial(_milliseconds, lab, command) for name, command in little.items()}
    same: dict[str, Run] = {OURS: partial(_milliseconds, lab, unchanged), **warm}
    check: dict[str, Run] = {OURS: partial(_milliseconds, lab, _check(built)), **warm}
    found = []
    for name, unit, runs in ((BUILD, "s", cold), (SAME, "ms", same), (CHECK, "ms", check)):
        for run in runs.values():
            run()
        samples = interleave({who: partial(_sample, name, run) for who, run in runs.items()}, lab.sizes.rounds)
        found += measures("generation", {name: unit}, samples)
    return [*found, _stages(lab)]


def _sample(name: str, run: Run) -> Sample:
    return {name: run()}


def _seconds(lab: Lab, command: list[str | Path]) -> float:
    return run_timed(command, log=lab.log)[0]


def _milliseconds(lab: Lab, command: list[str | Path]) -> float:
    return _seconds(lab, command) * 1000


def _build(out: Path) -> list[str | Path]:
    return [*acpgen_command(), "build", "--role", "agent", "--no-config", "--out", out]


def _check(out: Path) -> list[str | Path]:
    return [*acpgen_command(), "check", "--role", "agent", "--no-config", "--out", out]


def _cold(lab: Lab) -> float:
    out = lab.folder / "generation" / "cold"
    shutil.rmtree(out, ignore_errors=True)
    return _seconds(lab, [*_build(out), "--full"])


def _codegen(lab: Lab) -> list[str | Path]:
    options = [
        "--input-file-type",
        "jsonschema",
        "--output-model-type",
        "dataclasses.dataclass",
        "--formatters",
        "builtin",
    ]
    out = lab.folder / "generation" / "codegen.py"
    return [sys.executable, "-m", "datamodel_code_generator", "--input", bundled_schema(), "--output", out, *options]


def _official(lab: Lab, sdist: Path) -> list[str | Path]:
    """The generator of the Python SDK, in a copy of its source, with our schema in place of the one it would fetch."""
    folder = lab.folder / "generation" / "official"
    shutil.copytree(sdist, folder)
    (folder / "schema").mkdir(exist_ok=True)
    shutil.copy2(bundled_schema(), folder / "schema" / "schema.json")
    return [sys.executable, folder / "scripts" / "gen_schema.py"]


def _stages(lab: Lab) -> Measure:
    """The stages have one column each: `values` by stage instead of contender."""
    values: dict[str, list[float]] = {}
    for _ in range(lab.sizes.rounds):
        out = lab.folder / "generation" / "stages"
        shutil.rmtree(out, ignore_errors=True)
        command = [*_build(out), "--full", "--verbose"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment())
        found = re.findall(r"^ *(\w+) +(\d+) ms$", done.stderr, flags=re.MULTILINE)
        if done.returncode or not found:
            raise FailedError(done.stderr[-2000:])
        for stage, milliseconds in found:
            values.setdefault(stage, []).append(float(milliseconds))
    return Measure("generation", STAGES, "ms", values)
