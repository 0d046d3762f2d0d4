"""Part `codec`: twelve messages, from JSON to objects and back."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.lab import HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_for_output

MSGSPEC, JSON = "msgspec", "json alone"
DECODE, RECEIVE, ENCODE, SEND = "decode 12 dicts", "decode 12 lines", "encode to 12 dicts", "encode to 12 lines"
SUMS = {"decode_dict": DECODE, "decode_line": RECEIVE, "encode_dict": ENCODE, "encode_line": SEND}
SINGLE = {
    "decode_dict": "decode a dict",
    "decode_line": "decode a line",
    "encode_dict": "encode to a dict",
    "encode_line": "encode to a line",
}
WORKERS = {
    OURS: ("codec_acpgen.py", None),
    PYTHON_SDK: ("codec_pydantic.py", "agent-client-protocol"),
    MSGSPEC: ("codec_msgspec.py", "msgspec"),
    JSON: ("codec_json.py", None),
}


def measure(lab: Lab) -> list[Measure]:
    """The microseconds that all messages take together, and each of them alone (`part` is `codec: NAME` then)."""
    package = lab.package
    workers = {who: script for who, (script, needs) in WORKERS.items() if needs is None or lab.peers.has(needs)}
    contenders = {who: partial(_sample, lab, who, script, str(package)) for who, script in workers.items()}
    samples = interleave(contenders, lab.sizes.rounds)
    return measures("codec", dict.fromkeys(SUMS.values(), "µs"), samples) + _by_message(samples)


def _sample(lab: Lab, who: str, script: str, package: str) -> Sample:
    seconds = str(lab.sizes.codec_seconds)
    command = lab.in_python(f"workers/{script}", HERE / "corpus", seconds, *([package] if who == OURS else []))
    found: dict[str, dict[str, float]] = json.loads(run_for_output(command))
    single = {f"{SINGLE[name]}/{message}": value for name, taken in found.items() for message, value in taken.items()}
    return {**{SUMS[name]: sum(taken.values()) for name, taken in found.items()}, **single}


def _by_message(samples: dict[str, list[Sample]]) -> list[Measure]:
    keys = [key for key in next(iter(samples.values()))[0] if "/" in key]
    found = []
    for key in keys:
        name, message = key.split("/")
        found += [
            Measure(f"codec: {message}", name, each.unit, each.values)
            for each in measures("codec", {key: "µs"}, samples)
        ]
    return found
