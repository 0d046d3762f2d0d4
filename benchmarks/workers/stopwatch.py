"""What the workers of the codec share: they check and time calls for each message of the corpus, and print JSON.

Usage of a worker: python WORKER.py CORPUS SECONDS [FOLDER OF THE PACKAGE]
"""

from __future__ import annotations

import copy
import functools
import gc
import json
import operator
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPEATS = 5
MEASURED = ("decode_dict", "decode_line", "encode_dict", "encode_line")


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
    """What is measured for one message. All take nothing.

    `back` makes a payload of what is decoded, from a dict or from a line.
    """

    decode_dict: Callable[[], Any]
    decode_line: Callable[[], Any]
    encode_dict: Callable[[], Any]
    encode_line: Callable[[], bytes]
    back: Callable[[Any], Any]


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


def check(message: Message, calls: Calls, left_out: Iterable[str] = ()) -> None:
    """Raise `ValueError` unless each call does its work, and gives the whole message but what is known to be missing.

    `left_out` has the paths, with `/` between the keys, of what is not encoded, as it has the value of its default.
    """
    payload = copy.deepcopy(message.payload)
    for path in left_out:
        *keys, last = path.split("/")
        del functools.reduce(operator.getitem, keys, payload)[last]
    whole = json.dumps(message.around(payload), sort_keys=True)
    decoded = [calls.decode_line(), calls.decode_dict()]
    encoded = [*map(calls.back, decoded), calls.encode_dict()]
    line = calls.encode_line()
    if line.count(b"\n") != 1 or not line.endswith(b"\n"):
        raise ValueError(f"{message.name}: {line!r} is not a line")
    if any(isinstance(value, dict) for value in decoded):
        raise ValueError(f"{message.name}: a dict is not decoded")
    for found in (json.loads(line), *map(message.around, encoded)):
        if json.dumps(found, sort_keys=True) != whole:
            raise ValueError(f"{message.name}: got {found} instead of {whole}")


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


def main(prepare: Callable[[Message], Calls], left_out: Mapping[str, Iterable[str]] | None = None) -> None:
    """Check and measure what `prepare` makes of each message; microseconds by measure and message, as JSON on stdout.

    `left_out` is what `check` takes, by message.
    """
    folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
    found: dict[str, dict[str, float]] = {}
    prepared = [(message, prepare(message)) for message in read(folder)]
    for message, calls in prepared:
        check(message, calls, (left_out or {}).get(message.name, ()))
    gc.collect()
    gc.freeze()  # what was imported is not looked at; the collector stays on, as in an agent
    for message, calls in prepared:
        for name in MEASURED:
            found.setdefault(name, {})[message.name] = microseconds(getattr(calls, name), seconds)
    print(json.dumps(found))
