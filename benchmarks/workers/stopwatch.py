"""What the workers of the codec share: they time calls for each message of the corpus, and print JSON.

Usage of a worker: python WORKER.py CORPUS SECONDS [FOLDER OF THE PACKAGE]
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATS = 5


@dataclass(frozen=True)
class Message:
    """One message: `payload` is its params or result, `line` the whole of it as it is received."""

    name: str
    type: str
    kind: str
    envelope: dict[str, Any]
    payload: Any
    line: bytes

    def around(self, payload: Any) -> dict[str, Any]:
        """The message with another payload, as a connection puts it together."""
        key = "result" if self.kind == "response" else "params"
        return {**self.envelope, key: payload}


@dataclass(frozen=True)
class Calls:
    """What is measured for one message. All take nothing, and what they return is dropped."""

    decode_dict: Callable[[], Any]
    decode_line: Callable[[], Any]
    encode_dict: Callable[[], Any]
    encode_line: Callable[[], Any]


def read(folder: Path) -> list[Message]:
    """The corpus."""
    found = []
    for path in sorted(folder.glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        message = entry["message"]
        key = "result" if entry["kind"] == "response" else "params"
        envelope = {name: value for name, value in message.items() if name != key}
        line = json.dumps(message, separators=(",", ":")).encode()
        found.append(Message(path.stem, entry["type"], entry["kind"], envelope, message[key], line))
    return found


def microseconds(call: Callable[[], Any], seconds: float) -> float:
    """What a call takes: the best of some repeats, each of which takes a share of `seconds`."""
    number = 1
    while (once := _timed(call, number)) < seconds / REPEATS / 4:
        number *= 2
    number = max(1, int(number * seconds / REPEATS / max(once, 1e-9)))
    return min(_timed(call, number) for _ in range(REPEATS)) / number * 1e6


def _timed(call: Callable[[], Any], number: int) -> float:
    rounds = range(number)
    start = time.perf_counter()
    for _ in rounds:
        call()
    return time.perf_counter() - start


def main(prepare: Callable[[Message], Calls]) -> None:
    """Measure what `prepare` makes of each message; microseconds by measure and message, as JSON on stdout."""
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    found: dict[str, dict[str, float]] = {name: {} for name in Calls.__dataclass_fields__}
    prepared = [(message, prepare(message)) for message in read(folder)]
    gc.collect()
    gc.freeze()  # what was imported is not looked at; the collector stays on, as in an agent
    for message, calls in prepared:
        for name, results in found.items():
            results[message.name] = microseconds(getattr(calls, name), seconds)
    print(json.dumps(found))
