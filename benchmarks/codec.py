"""Part `codec`: twelve messages, from JSON to objects and back."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.lab import HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_for_output

DECODE, RECEIVE, ENCODE, SEND = "decode 12 dicts", "decode 12 lines", "encode to 12 dicts", "encode to 12 lines"
SUMS = {"decode_dict": DECODE, "decode_line": RECEIVE, "encode_dict": ENCODE, "encode_line": SEND}
WORKERS = {
    OURS: ("codec_acpgen.py", None),
    PYTHON_SDK: ("codec_pydantic.py", "agent-client-protocol"),
}


def measure(lab: Lab) -> list[Measure]:
    """The microseconds that all messages take together."""
    package = lab.package_of_both_sides  # the messages are of both directions
    workers = {who: script for who, (script, needs) in WORKERS.items() if needs is None or lab.peers.has(needs)}
    contenders = {who: partial(_sample, lab, who, script, str(package)) for who, script in workers.items()}
    return measures("codec", dict.fromkeys(SUMS.values(), "µs"), interleave(contenders, lab.sizes.rounds))


def _sample(lab: Lab, who: str, script: str, package: str) -> Sample:
    seconds = str(lab.sizes.codec_seconds)
    command = lab.in_python(f"workers/{script}", HERE / "corpus", seconds, *([package] if who == OURS else []))
    found: dict[str, dict[str, float]] = json.loads(run_for_output(command))
    return {SUMS[name]: sum(taken.values()) for name, taken in found.items()}
