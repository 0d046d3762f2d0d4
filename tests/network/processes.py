"""Servers as processes, on a port of 127.0.0.1 that the system chooses, and what is left in them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.network.package import remote_package
from tests.runtime_agents import PATIENCE, complaints

FOLDER = Path(__file__).resolve().parent


def environment(**more: str) -> dict[str, str]:
    """The environment of a script of this folder, which imports the package by the name in `ACP_PACKAGE`."""
    package = Path(str(remote_package().__file__)).parent
    paths = os.pathsep.join([str(FOLDER), str(package.parent)])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", "ACP_PACKAGE": package.name, **more}


class ServerProcess:
    """A server on a socket that the test keeps: one that is started again finds the connections that wait there."""

    def __init__(self, kind: str, log: Path, settings: dict[str, Any]) -> None:
        self._kind = kind
        self._log = log
        self._settings = settings
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self.process = self._start()

    @property
    def output(self) -> str:
        """What the server has written."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _start(self) -> subprocess.Popen[bytes]:
        env = environment(ACP_SETTINGS=json.dumps(self._settings))
        descriptor = self._socket.fileno()
        if self._kind == "granian":  # listens itself
            descriptor = self.port
            self._socket.close()
        command = [sys.executable, str(FOLDER / "server.py"), self._kind, str(descriptor)]
        passed = () if self._kind == "granian" else (descriptor,)
        with self._log.open("ab") as log:
            return subprocess.Popen(command, env=env, stderr=log, stdout=log, pass_fds=passed, start_new_session=True)

    def restart(self) -> None:
        """Start the server again after it has ended."""
        assert self.process.poll() is not None
        self.process = self._start()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        self.process.send_signal(number)

    async def ended(self) -> int:
        """Wait for the end; returns the exit code."""
        return await asyncio.to_thread(self.process.wait, PATIENCE)

    def close(self) -> None:
        """End the server, whatever it does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)
        self._socket.close()

    async def state(self) -> dict[str, Any]:
        """What is left in the server; waits for its start."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    return await self._ask_state()
                assert self.process.poll() is None, self.output
                await asyncio.sleep(0.05)

    async def _ask_state(self) -> dict[str, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"GET /state HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            found: dict[str, Any] = json.loads(await reader.read())
            return found
        finally:
            writer.close()
            await writer.wait_closed()

    async def settled(self, before: dict[str, Any]) -> dict[str, Any]:
        """Wait until nothing is left that was not there before; returns the state."""
        kept = ("connections", "tasks", "descriptors")
        now: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while {name: now.get(name) for name in kept} != {name: before[name] for name in kept}:
                    await asyncio.sleep(0.05)
                    now = await self.state()
        except TimeoutError:
            raise AssertionError(f"left in the server: {now}; before: {before}") from None
        assert now["closed"] == now["made"]
        assert not now["closed_twice"]
        assert not complaints(self.output), self.output
        return now


@contextlib.contextmanager
def serving(kind: str, folder: Path, **settings: Any) -> Iterator[ServerProcess]:
    """A server during the block. `settings` are `limits`, `options`, and `server`, which are those of its program."""
    server = ServerProcess(kind, folder / f"{kind}.log", settings)
    try:
        yield server
    finally:
        server.close()
