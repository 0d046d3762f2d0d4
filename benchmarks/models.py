"""Part `models`: the twelve messages in models of pydantic, our own beside those of the Python SDK."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.lab import HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_for_output

MEASURES = {
    "decode_dict": "validate 12 dicts",
    "decode_line": "validate 12 texts",
    "encode_dict": "dump to 12 dicts",
    "encode_line": "dump to 12 texts",
}


def measure(lab: Lab) -> list[Measure]:
    """The microseconds that all messages take together."""
    contenders = {OURS: partial(_sample, lab, str(lab.models))}
    if lab.peers.has("agent-client-protocol"):
        contenders[PYTHON_SDK] = partial(_sample, lab)
    samples = interleave(contenders, lab.sizes.rounds)
    return measures("models", dict.fromkeys(MEASURES.values(), "µs"), samples)


def _sample(lab: Lab, *file: str) -> Sample:
    command = lab.in_python("workers/models.py", HERE / "corpus", str(lab.sizes.codec_seconds), *file)
    found: dict[str, dict[str, float]] = json.loads(run_for_output(command))
    return {MEASURES[name]: sum(taken.values()) for name, taken in found.items()}
