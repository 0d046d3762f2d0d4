"""Part `growth`: what happens when a schema has many times the definitions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.lab import Lab, acpgen_command, bundled_schema
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_timed, run_weighed

BUILD, IMPORT, MEMORY = "build time", "import time", "memory of the build"
UNITS = {BUILD: "s", IMPORT: "ms", MEMORY: "MiB"}
Json = Any


def measure(lab: Lab) -> list[Measure]:
    """A build, and an import of its result, for each factor; the contenders are the factors."""
    sizes = lab.sizes
    home = lab.folder / "growth"
    home.mkdir()
    base = json.loads(bundled_schema().read_text(encoding="utf-8"))
    if sizes.growth_definitions:
        base = part_of(base, sizes.growth_definitions)
    contenders = {}
    for factor in sizes.growth:
        schema = home / f"{factor}.json"
        schema.write_text(json.dumps(grown(base, factor)), encoding="utf-8")
        contenders[times(factor)] = partial(_sample, lab, schema, home / f"times_{factor}")
    return measures("growth", UNITS, interleave(contenders, max(1, sizes.rounds // sizes.growth_share)))


def times(factor: int) -> str:
    """What the contender is called that has each definition so often."""
    return "once" if factor == 1 else f"{factor} times"


def _sample(lab: Lab, schema: Path, out: Path) -> Sample:
    shutil.rmtree(out, ignore_errors=True)
    options = ["--role", "agent", "--full", "--no-config"]
    seconds, memory = run_weighed([*acpgen_command(), "build", *options, "--schema", schema, "--out", out])
    code = f"import sys; sys.path.insert(0, {str(out.parent)!r}); import {out.name}"
    command = [lab.peers.python, "-I", "-c", code]
    run_timed(command, log=lab.log)  # writes the bytecode
    return {BUILD: seconds, IMPORT: run_timed(command, log=lab.log) * 1000, MEMORY: memory}


def grown(schema: Json, factor: int) -> Json:
    """The schema with each of its definitions `factor` times: the copies refer to each other, and have other methods.

    What stands for messages as such, and not for what is in them, is not copied.
    """
    own = [name for name, node in schema["$defs"].items() if not node.get("x-docs-ignore")]
    definitions = dict(schema["$defs"])
    for copy in range(2, factor + 1):
        names = {name: f"Copy{copy}{name}" for name in own}
        for name in own:
            definitions[names[name]] = _renamed(schema["$defs"][name], names, f"_{copy}")
    return {**schema, "$defs": definitions}


def _renamed(node: Json, names: Mapping[str, str], suffix: str) -> Json:
    match node:
        case dict():
            return {key: _renamed_value(key, value, names, suffix) for key, value in node.items()}
        case list():
            return [_renamed(item, names, suffix) for item in node]
    return node


def _renamed_value(key: str, value: Json, names: Mapping[str, str], suffix: str) -> Json:
    match key, value:
        case "$ref", str():
            start, name = value.rsplit("/", 1)
            return f"{start}/{names.get(name, name)}"
        case "x-method", str():
            return value + suffix
    return _renamed(value, names, suffix)


def part_of(schema: Json, count: int) -> Json:
    """A schema with the first `count` definitions, and those that they need."""
    wanted = [name for name, node in schema["$defs"].items() if not node.get("x-docs-ignore")][:count]
    for name in wanted:  # grows meanwhile
        wanted += [found for found in _references(schema["$defs"][name]) if found not in wanted]
    return {"$schema": schema["$schema"], "$defs": {name: schema["$defs"][name] for name in dict.fromkeys(wanted)}}


def _references(node: Json) -> list[str]:
    match node:
        case {"$ref": str(target)}:
            return [target.rsplit("/", 1)[1]]
        case dict():
            return [name for value in node.values() for name in _references(value)]
        case list():
            return [name for value in node for name in _references(value)]
    return []
