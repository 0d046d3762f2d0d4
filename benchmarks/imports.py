"""Part `imports`: how long a process takes that imports something and ends, with bytecode at hand."""

from __future__ import annotations

import ast
import statistics
from functools import partial

from benchmarks.lab import BARE, HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_timed

WITH = "import, with .pyc files"
EMPTY = "empty interpreter"


def measure(lab: Lab) -> list[Measure]:
    """Processes that import, and an empty one. Ours imports what an agent names, for that is all that it waits for."""
    there = f"import sys; sys.path.insert(0, {str(lab.package.parent)!r})"
    codes = {EMPTY: "pass", BARE: "import asyncio, json", OURS: f"{there}; {agent_import()}"}
    if lab.peers.has("agent-client-protocol"):
        codes[PYTHON_SDK] = "import acp"
    starts = {who: partial(_sample, lab, code) for who, code in codes.items()}
    for start in starts.values():
        start()  # writes bytecode, and brings files into memory
    return measures("imports", {WITH: "ms"}, interleave(starts, lab.sizes.rounds))


def agent_import() -> str:
    """The statement with which the agent of the part `stdio` imports what it uses."""
    tree = ast.parse((HERE / "agents" / "agent_acpgen.py").read_text(encoding="utf-8"))
    return next(ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "demo")


def _sample(lab: Lab, code: str) -> Sample:
    command = [lab.peers.python, "-I", "-c", code]
    return {WITH: statistics.median(run_timed(command, log=lab.log) * 1000 for _ in range(lab.sizes.starts))}
