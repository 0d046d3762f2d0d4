"""Measure what `acpgen trace --out` adds to a message on its way: `python -m benchmarks.tracing`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep

ECHO = "import os\nwhile data := os.read(0, 65536):\n    while data:\n        data = data[os.write(1, data):]\n"
MESSAGES = 1_000
PAUSE = 0.002
MIB = 64


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process with pipes."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        yield process


def round_trip(command: list[str], size: int) -> float:
    """The milliseconds from before a message is written until it has come back, with a pause between them."""
    text = json.dumps({"jsonrpc": "2.0", "method": "m", "params": "x" * size}).encode() + b"\n"
    taken = []
    with running(command) as process:
        for _ in range(MESSAGES):
            sleep(PAUSE)
            start = perf_counter()
            process.stdin.write(text)  # type: ignore[union-attr]
            left = len(text)
            while left:
                left -= len(process.stdout.read(left))  # type: ignore[union-attr]
            taken.append((perf_counter() - start) * 1000)
        process.stdin.close()  # type: ignore[union-attr]
    return median(taken[100:])


def throughput(command: list[str]) -> float:
    """The MiB a second that go there and back, in lines of 1,000 bytes."""
    chunk = (json.dumps({"jsonrpc": "2.0", "method": "m", "params": "x" * 952}).encode() + b"\n") * 1000
    with running(command) as process:

        def write() -> None:
            for _ in range(MIB):
                process.stdin.write(chunk)  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]

        start = perf_counter()
        writer = threading.Thread(target=write)
        writer.start()
        while process.stdout.read(2**20):  # type: ignore[union-attr]
            pass
        writer.join()
        return MIB * len(chunk) / 2**20 / (perf_counter() - start)


def main() -> None:
    """Print both, without and with a recorder between."""
    plain = [sys.executable, "-c", ECHO]
    with tempfile.TemporaryDirectory() as folder:
        traced = [sys.executable, "-m", "acpgen", "trace", "--out", str(Path(folder) / "trace"), "--", *plain]
        for name, command in (("alone", plain), ("traced", traced)):
            for size in (300, 30_000):
                print(f"{size} bytes, {name}: {round_trip(command, size):.3f} ms")
            print(f"{name}: {throughput(command):.0f} MiB/s")


if __name__ == "__main__":
    main()
