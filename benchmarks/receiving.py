"""Part `receiving`: what a client pays for structured updates, beside reading and decoding them alone."""

from __future__ import annotations

import json

from benchmarks.lab import OURS, Lab
from benchmarks.rounds import Measure, Sample, measures
from benchmarks.spawn import run_for_output

ALONE = "loads + decode"
ENTRIES = {"receive a plan of 1.7 KB": 20, "receive a plan of 16 KB": 200, "receive a plan of 163 KB": 2000}
"""The entries of the plan in each update."""


def measure(lab: Lab) -> list[Measure]:
    """The CPU time of one update, in microseconds: both contenders in one process, a new one each round."""
    samples: dict[str, list[Sample]] = {OURS: [], ALONE: []}
    for _ in range(lab.sizes.rounds):
        for who, taken in _sample(lab).items():
            samples[who].append(taken)
    return measures("receiving", dict.fromkeys(ENTRIES, "µs"), samples)


def _sample(lab: Lab) -> dict[str, Sample]:
    sizes = [str(entries) for entries in ENTRIES.values()]
    command = lab.in_python("workers/receiving.py", lab.package_for_client, str(lab.sizes.receiving_bytes), *sizes)
    found: dict[str, list[float]] = json.loads(run_for_output(command))
    return {who: dict(zip(ENTRIES, found[key], strict=True)) for who, key in ((OURS, "received"), (ALONE, "alone"))}
