"""Part `remote`: the same agent on each SDK behind the same ASGI servers, and the client of the same SDK."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial

from benchmarks.lab import OURS, PYTHON_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures
from benchmarks.spawn import FailedError, environment, run_for_output

START_SECONDS, STOP_SECONDS = 60, 10
UPDATES, TRIP = "updates", "round trip"
KEYS = {UPDATES: "updates", TRIP: "trip"}
UNITS = {UPDATES: "/s", TRIP: "µs"}
SDKS = {OURS: "acpgen", PYTHON_SDK: "python_sdk"}
ALONE = "libraries alone"
"""Round trips of the server and the libraries of acpgen's clients, without any SDK."""
LIBRARIES = ("agent-client-protocol", "httpx", "httpx2", "websockets")


@dataclass(frozen=True)
class Way:
    """A transport, and the server that speaks it."""

    transport: str
    scheme: str
    server: str

    def named(self, quantity: str) -> str:
        """The name of a measure."""
        return f"{quantity}: {self.transport}, {self.server}"


WAYS = (
    Way("WebSocket", "ws", "uvicorn"),
    Way("WebSocket", "ws", "hypercorn"),
    Way("SSE", "http", "hypercorn"),
    Way("SSE", "http", "granian"),
)
MEASURES = tuple(way.named(quantity) for quantity in UNITS for way in WAYS)


def missing(lab: Lab) -> list[str]:
    """The libraries and servers that this part needs, and that are not there."""
    needed = (*LIBRARIES, *dict.fromkeys(way.server for way in WAYS))
    return [name for name in needed if not lab.peers.has(name)]


def measure(lab: Lab) -> list[Measure]:
    """All pairs of a transport and a server; for each, the SDKs in turn."""
    if missing(lab):
        return []
    found = []
    for way in WAYS:
        contenders = {who: partial(_sample, lab, name, way) for who, name in SDKS.items()}
        contenders[ALONE] = partial(_sample_alone, lab, way)
        units = {way.named(quantity): unit for quantity, unit in UNITS.items()}
        found += measures("remote", units, interleave(contenders, lab.sizes.rounds))
    return found


def _sample(lab: Lab, sdk: str, way: Way) -> Sample:
    sizes = lab.sizes
    numbers = map(str, (sizes.remote_updates, sizes.remote_trips, sizes.remote_warm_up))
    with _served(lab, f"app_{sdk}", way) as url:
        worker = lab.in_python(f"workers/remote_{sdk}.py", url, *numbers, lab.package_of_both_sides.parent)
        found = json.loads(run_for_output(worker))
    return {way.named(quantity): found[key] for quantity, key in KEYS.items()}


def _sample_alone(lab: Lab, way: Way) -> Sample:
    numbers = map(str, (lab.sizes.remote_trips, lab.sizes.remote_warm_up))
    with _served(lab, "app_alone", way) as url:
        found = json.loads(run_for_output(lab.in_python("workers/remote_alone.py", url, *numbers)))
    return {way.named(TRIP): found[KEYS[TRIP]]}


@contextlib.contextmanager
def _served(lab: Lab, application: str, way: Way) -> Generator[str, None, None]:
    """A server: the URL of the application. The end of the block ends it."""
    command = lab.in_python("agents/serve.py", lab.package_of_both_sides.parent, application, way.server)
    with lab.log.open("wb") as stderr:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env=environment(), start_new_session=True
        )
    assert process.stdout is not None
    try:
        with process.stdout as stdout:
            port = int(stdout.readline() or 0)
        _wait_for(port, process, lab)
        yield f"{way.scheme}://127.0.0.1:{port}/acp"
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what it has left behind
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], lab: Lab) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.02)
    raise FailedError(f"no server\n{lab.log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
