"""Part `imports`: how long a process takes that imports something and ends."""

from __future__ import annotations

import ast
import shutil
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.lab import BARE, HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_for_output, run_timed

WITH, WITHOUT = "import, with .pyc files", "import, without .pyc files"
EMPTY, TYPES, PACKAGE = "empty interpreter", "types alone", "`import demo`"
TWO = "one of two versions"

NO_BYTECODE = shutil.ignore_patterns("__pycache__")
LOADED = """
import sysconfig, sys
before = set(sys.modules)
import acp
site = sysconfig.get_path("purelib"), sysconfig.get_path("platlib")
print(*{name.partition(".")[0] for name, module in sys.modules.items() if name not in before
        and str(getattr(module, "__file__", "")).startswith(site)}, site[0])
"""


def measure(lab: Lab) -> list[Measure]:
    """Processes started with bytecode at hand, and with none for what is not of the standard library."""
    found = []
    for name, run in ((WITH, _with_bytecode(lab)), (WITHOUT, _without_bytecode(lab))):
        for start in run.values():
            start()  # writes bytecode where it is wanted, and brings files into memory
        samples = interleave({who: partial(_sample, lab, name, start) for who, start in run.items()}, lab.sizes.rounds)
        found += measures("imports", {name: "ms"}, samples)
    return found


def _sample(lab: Lab, name: str, start: Callable[[], float]) -> Sample:
    return {name: statistics.median(start() for _ in range(lab.sizes.starts))}


def _with_bytecode(lab: Lab) -> dict[str, Callable[[], float]]:
    codes = {EMPTY: "pass", BARE: "import asyncio, json", **_of_package(lab.package), TWO: _of_two(lab.package_of_two)}
    if lab.peers.has("agent-client-protocol"):
        codes[PYTHON_SDK] = "import acp"
    return {who: partial(_milliseconds, lab, code) for who, code in codes.items()}


def _without_bytecode(lab: Lab) -> dict[str, Callable[[], float]]:
    """Copies without bytecode, and `-B`, so that none is written; that of the standard library stays."""
    home = lab.folder / "without_bytecode"
    shutil.copytree(lab.package, home / "demo", ignore=NO_BYTECODE)
    codes = _of_package(home / "demo")
    if lab.peers.has("agent-client-protocol"):
        _copy_sdk(lab, home / "sdk")
        codes[PYTHON_SDK] = f"import sys; sys.path.insert(0, {str(home / 'sdk')!r}); import acp"
    return {who: partial(_milliseconds, lab, code, "-B") for who, code in codes.items()}


def _copy_sdk(lab: Lab, folder: Path) -> None:
    """The SDK and all that it imports but the standard library."""
    *names, site = run_for_output([lab.peers.python, "-I", "-c", LOADED]).split()
    folder.mkdir()
    for path in Path(site).iterdir():
        if path.name.split(".")[0] in names and path.suffix != ".dist-info":
            if path.is_dir():
                shutil.copytree(path, folder / path.name, ignore=NO_BYTECODE)
            else:
                shutil.copy2(path, folder)


def _of_package(package: Path) -> dict[str, str]:
    """What is run for a generated package. The headline is what an agent names, for that is all it waits for.

    The types alone are imported below an empty module in place of the package, whose `__init__` imports all the rest.
    """
    there = f"import sys; sys.path.insert(0, {str(package.parent)!r})"
    name = package.name
    empty = f"sys.modules[{name!r}] = module = type(sys)({name!r}); module.__path__ = [{str(package)!r}]"
    return {
        TYPES: f"{there}; {empty}; import {name}.types",
        PACKAGE: f"{there}; import {name}",
        OURS: f"{there}; {agent_import()}",
    }


def _of_two(package: Path) -> str:
    """A package of two versions, and one of them."""
    there = f"import sys; sys.path.insert(0, {str(package.parent)!r})"
    return f"{there}; import {package.name}; from {package.name} import v1"


def agent_import() -> str:
    """The statement with which the agent of the part `stdio` imports what it uses."""
    tree = ast.parse((HERE / "agents" / "agent_acpgen.py").read_text(encoding="utf-8"))
    return next(ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "demo")


def _milliseconds(lab: Lab, code: str, *options: str) -> float:
    return run_timed([lab.peers.python, "-I", *options, "-c", code], log=lab.log) * 1000
