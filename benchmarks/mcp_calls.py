"""Part `mcp`: a call of a tool that goes through the connection, beside the same in memory by the package `mcp`."""

from __future__ import annotations

import json

from benchmarks.lab import OURS, Lab
from benchmarks.rounds import Measure, Sample, measures
from benchmarks.spawn import run_for_output

CALL = "call a tool through the connection"
ALONE = "mcp in memory + a round trip"
DIRECT = "mcp without a transport"


def missing(lab: Lab) -> list[str]:
    """The library that this part needs, if it is not there."""
    return [name for name in ("mcp",) if not lab.peers.has(name)]


def measure(lab: Lab) -> list[Measure]:
    """The CPU time of one call, in microseconds: all contenders in one process, a new one each round."""
    if missing(lab):
        return []
    samples: dict[str, list[Sample]] = {OURS: [], ALONE: [], DIRECT: []}
    for _ in range(lab.sizes.rounds):
        for who, taken in _sample(lab).items():
            samples[who].append(taken)
    return measures("mcp", {CALL: "µs"}, samples)


def _sample(lab: Lab) -> dict[str, Sample]:
    command = lab.in_python("workers/mcp_calls.py", lab.package_for_mcp, str(lab.sizes.mcp_calls))
    found: dict[str, float] = json.loads(run_for_output(command))
    times = {OURS: found["over"], ALONE: found["memory"] + found["trip"], DIRECT: found["direct"]}
    return {who: {CALL: time} for who, time in times.items()}
