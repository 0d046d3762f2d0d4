"""Times updates that pass a proxy in a process of its own, beside `loads` and `dumps`, and beside a plain pump.

Usage: python passing.py FOLDER_OF_THE_PACKAGE BYTES ENTRIES... -- COUNT RATES...

Prints microseconds as JSON: the CPU time by update of each size, then of the smallest at the first rate; and the median
time on the way at each rate.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

AGENTS = Path(__file__).resolve().parent.parent / "agents"
TIME = b'"_t":'
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'
MOST = 20_000
"""The most updates of a size."""
SMALL = 3
"""The entries of an update whose time on the way is measured."""


def command(folder: str, *agent: int) -> tuple[list[str], list[str]]:
    """The commands of an agent, and of a proxy that starts it."""
    python = [sys.executable, "-I"]
    flooding = [*python, str(AGENTS / "agent_flooding.py"), *map(str, agent)]
    return flooding, [*python, str(AGENTS / "proxy_acpgen.py"), folder, *flooding]


def cpu(folder: str, entries: int, count: int, rate: int = 0) -> tuple[float, list[bytes]]:
    """The seconds of CPU time of a proxy for its whole life, and the lines that it has written."""
    proxy_command, pipe = command(folder, entries, count, rate)[1], subprocess.PIPE
    with subprocess.Popen(proxy_command, stdin=pipe, stdout=pipe, stderr=pipe) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        assert proxy.stderr is not None
        proxy.stdin.write(HELLO)
        proxy.stdin.flush()  # it stays open until the agent has ended
        lines = proxy.stdout.read().splitlines()[1:]
        return float(proxy.stderr.read()), lines


def passed(folder: str, entries: int, count: int, rate: int = 0) -> tuple[float, float]:
    """The CPU time of an update in a proxy, and that of `loads` and `dumps`."""
    least, _ = cpu(folder, entries, 0)
    whole, lines = cpu(folder, entries, count, rate)
    if len(lines) != count:
        raise SystemExit(f"{len(lines)} of {count} updates have arrived")
    start = time.process_time()
    for each in lines:
        json.dumps(json.loads(each), ensure_ascii=False, separators=(",", ":")).encode()
    return max(0.0, whole - least) / count * 1e6, (time.process_time() - start) / count * 1e6


def number_of(folder: str, entries: int, size: int) -> int:
    """How many updates have so many bytes together."""
    _, (line,) = cpu(folder, entries, 1)
    return min(MOST, max(1, size // len(line)))


def on_the_way(agent: list[str], pump: list[str] | None) -> float:
    """The median time of an update from its agent to here, by way of a pump or of what starts the agent itself."""
    source = subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert source.stdin is not None
    assert source.stdout is not None
    last = subprocess.Popen(pump, stdin=source.stdout, stdout=subprocess.PIPE) if pump else source
    assert last.stdout is not None
    source.stdin.write(HELLO)
    source.stdin.flush()
    last.stdout.readline()
    found = []
    for line in last.stdout:
        arrived = time.monotonic_ns()
        found.append(arrived - int(line[line.rindex(TIME) + len(TIME) : line.rindex(b"}")]))
    source.stdin.close()
    for process in {source, last}:
        process.wait()
    return statistics.median(found) / 1000


def main() -> None:
    """Measure each size and each rate once; the contenders in turn."""
    at = sys.argv.index("--")
    folder, size, *sizes = sys.argv[1:at]
    count, *rates = map(int, sys.argv[at + 1 :])
    pairs = [passed(folder, int(each), number_of(folder, int(each), int(size))) for each in sizes]
    pairs.append(passed(folder, int(sizes[0]), min(count, 2 * rates[0]), rates[0]))
    ways = [command(folder, SMALL, min(count, rate), rate) for rate in rates]
    trips = [(on_the_way(proxy, None), on_the_way(agent, ["cat"])) for agent, proxy in ways]
    names = ("passed", "alone", "proxy", "pump")
    columns = (*zip(*pairs, strict=True), *zip(*trips, strict=True))
    print(json.dumps(dict(zip(names, columns, strict=True))))


main()
