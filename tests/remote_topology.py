"""The topology of examples/remote without containers: two replicas under hypercorn, and HAProxy in front of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.needs import find_program, need
from tests.support import REPOSITORY

SECONDS = 60.0
TOKENS = {"alice": "correct-horse", "bob": "battery-staple"}
EXAMPLE = REPOSITORY / "examples" / "remote"
SERVICES: dict[str, Any] = yaml.safe_load((EXAMPLE / "compose.yaml").read_text(encoding="utf-8"))["services"]


def instructions(kind: str) -> list[str]:
    """The arguments of the instructions of one kind in the Dockerfile."""
    lines = (EXAMPLE / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    parts = [line.partition(" ") for line in lines if not line.startswith("#")]
    return [rest.strip() for name, _, rest in parts if name == kind]


def haproxy() -> str:
    """The load balancer of the system."""
    need("haproxy")
    program = find_program("haproxy")
    assert program is not None
    return program


def free_addresses(count: int) -> list[str]:
    """Addresses on the loopback device that nothing listens at."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]


@dataclass
class Topology:
    """Processes that run: the replicas by name, and the load balancer."""

    folder: Path
    proxy: str
    """The address of the load balancer."""
    addresses: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def log(self, name: str) -> str:
        """What a process has printed so far."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8")

    def _start(self, name: str, command: list[str], address: str, environment: Mapping[str, str]) -> None:
        """Start a process, and wait until it listens."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self.processes[name] = process
        host, _, port = address.rpartition(":")
        deadline = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection((host, int(port)), SECONDS):
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} does not listen: {self.log(name)}")

    def start_replica(self, name: str) -> None:
        """Start a replica by the command of the image, at an address of its own."""
        (text,) = instructions("CMD")
        *command, app = json.loads(text)
        tokens = " ".join(f"{who}={token}" for who, token in TOKENS.items())
        own = {"ACP_REPLICA": name, "ACP_HOSTS": "127.0.0.1", "ACP_TOKENS": tokens}
        assert own.keys() == SERVICES[name]["environment"].keys()
        environment = {**os.environ, **own, "PYTHONUNBUFFERED": "1"}
        address = self.addresses[name]
        self._start(name, [sys.executable, "-m", *command, "--bind", address, app], address, environment)

    def start_proxy(self) -> None:
        """Start the load balancer, with the variables that Compose gives it."""
        replicas = {f"REPLICA_{name[-1]}": address for name, address in self.addresses.items()}
        environment = {"BIND": self.proxy, **replicas}
        assert environment.keys() == SERVICES["proxy"]["environment"].keys()
        command = [haproxy(), "-db", "-f", "haproxy.cfg"]
        self._start("proxy", command, self.proxy, {**os.environ, **environment})

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a process, and those that it has started: hypercorn has a worker."""
        process = self.processes.pop(name)
        os.killpg(process.pid, how)
        try:
            process.wait(SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def topology(folder: Path) -> Iterator[Topology]:
    """Run two replicas and the load balancer in a copy of the example with its package; afterwards all have ended."""
    haproxy()  # before anything is started
    proxy, *replicas = free_addresses(3)
    found = Topology(folder, proxy, dict(zip(("replica-1", "replica-2"), replicas, strict=True)))
    try:
        for name in found.addresses:
            found.start_replica(name)
        found.start_proxy()
        yield found
    finally:
        for name in list(found.processes):
            found.stop(name, signal.SIGKILL)
