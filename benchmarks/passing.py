"""Part `passing`: what a proxy that overrides nothing takes for an update, and how long that is on its way."""

from __future__ import annotations

import json

from benchmarks.lab import OURS, Lab
from benchmarks.rounds import Measure, Sample, measures
from benchmarks.spawn import run_for_output

ALLOWED = 30
"""What a message may take besides reading and writing its JSON, in microseconds."""
ALONE = f"loads + dumps + {ALLOWED} µs"
PUMP = "cat"
SIZES = {"pass on an update of 0.3 KB": 3, "pass on an update of 16 KB": 200, "pass on an update of 163 KB": 2000}
"""The entries of the plan in each update."""
PACED = "pass on an update of 0.3 KB, of 1,000 a second"
RATES = {"on its way, of 1,000 a second": 1000, "on its way, of 10,000 a second": 10_000}
MEASURES = (*SIZES, PACED, *RATES)


def measure(lab: Lab) -> list[Measure]:
    """The CPU time of one update, and the median time from the agent to the client, in microseconds."""
    samples: dict[str, list[Sample]] = {OURS: [], ALONE: [], PUMP: []}
    for _ in range(lab.sizes.rounds):
        for who, taken in _sample(lab).items():
            samples[who].append(taken)
    return measures("passing", dict.fromkeys(MEASURES, "µs"), samples)


def _sample(lab: Lab) -> dict[str, Sample]:
    sizes = [str(each) for each in SIZES.values()]
    rates = [str(each) for each in RATES.values()]
    arguments = (str(lab.sizes.passing_bytes), *sizes, "--", str(lab.sizes.passing_updates), *rates)
    command = lab.in_python("workers/passing.py", lab.package_for_proxy, *arguments)
    found: dict[str, list[float]] = json.loads(run_for_output(command))
    return {
        OURS: dict(zip(MEASURES, found["passed"] + found["proxy"], strict=True)),
        ALONE: {name: taken + ALLOWED for name, taken in zip((*SIZES, PACED), found["alone"], strict=True)},
        PUMP: dict(zip(RATES, found["pump"], strict=True)),
    }
