"""Part `codec`: twelve messages, from JSON to objects and back."""

from __future__ import annotations

import json
from functools import partial

from benchmarks.lab import HERE, OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import run_for_output

MSGSPEC, JSON = "msgspec", "json alone"
DECODE, RECEIVE, ENCODE, SEND = "decode a dict", "per received line", "encode to a dict", "per sent line"
NAMES = {"decode_dict": DECODE, "decode_line": RECEIVE, "encode_dict": ENCODE, "encode_line": SEND}
WORKERS = {
    OURS: ("codec_acpgen.py", None),
    PYTHON_SDK: ("codec_pydantic.py", "agent-client-protocol"),
    MSGSPEC: ("codec_msgspec.py", "msgspec"),
    JSON: ("codec_json.py", None),
}
LINES_ALONE = {JSON: (RECEIVE, SEND)}


def measure(lab: Lab) -> list[Measure]:
    """The microseconds that all messages take together, and each of them alone (`part` is `codec: NAME` then)."""
    package = lab.package
    workers = {who: script for who, (script, needs) in WORKERS.items() if needs is None or lab.peers.has(needs)}
    contenders = {who: partial(_sample, lab, who, script, str(package)) for who, script in workers.items()}
    samples = interleave(contenders, lab.sizes.rounds)
    totals = measures("codec", dict.fromkeys(NAMES.values(), "µs"), samples)
    for found in totals:
        for who, wanted in LINES_ALONE.items():
            if found.name not in wanted:
                del found.values[who]
    return totals + _by_message(samples)


def _sample(lab: Lab, who: str, script: str, package: str) -> Sample:
    seconds = str(lab.sizes.codec_seconds)
    command = lab.in_python(f"workers/{script}", HERE / "corpus", seconds, *([package] if who == OURS else []))
    found: dict[str, dict[str, float]] = json.loads(run_for_output(command))
    single = {f"{NAMES[name]}/{message}": value for name, taken in found.items() for message, value in taken.items()}
    return {**{NAMES[name]: sum(taken.values()) for name, taken in found.items()}, **single}


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
