"""Part `stored`: sessions of `StoredAgent`, beside an agent that keeps nothing."""

from __future__ import annotations

import json

from benchmarks.lab import OURS, Lab
from benchmarks.rounds import Measure, Sample, measures
from benchmarks.spawn import run_for_output

SEND = "send and save updates"
LOAD = "load a session of these updates"
MEASURES = (SEND, LOAD)
UNSAVED = "sending, unsaved"


def measure(lab: Lab) -> list[Measure]:
    """The time of all updates, in seconds: all contenders in one process, a new one each round."""
    samples: dict[str, list[Sample]] = {OURS: [], UNSAVED: []}
    for _ in range(lab.sizes.rounds):
        found = _sample(lab)
        samples[OURS].append({SEND: found["send"], LOAD: found["load"]})
        samples[UNSAVED].append(dict.fromkeys(MEASURES, found["unsaved"]))
    return measures("stored", dict.fromkeys(MEASURES, "s"), samples)


def _sample(lab: Lab) -> dict[str, float]:
    command = lab.in_python("workers/stored.py", lab.package_for_both, str(lab.sizes.stored_updates))
    found: dict[str, float] = json.loads(run_for_output(command))
    return found
