"""Agents and clients in files of their own, and how to run them: as processes, in the dev modes of Python."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parent
PATIENCE = 120.0
"""Seconds after which a test gives up to wait for a process."""

COMPLAINTS = ("Warning", "never awaited", "never retrieved", "unclosed", "was destroyed", "Exception ignored")
"""What Python and asyncio print in their dev modes where something was not done in order."""


def command(script: str, *arguments: str) -> list[str]:
    """How to run a script of this folder."""
    return [sys.executable, "-X", "dev", str(FOLDER / script), *arguments]


def environment(package: ModuleType, **more: str) -> dict[str, str]:
    """The environment of such a script, in which `package` can be imported under the name in `ACP_PACKAGE`."""
    assert package.__file__ is not None
    folder = Path(package.__file__).parent
    # what is written to stdout has to wait in a buffer, as it usually does
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {
        **inherited,
        "PYTHONPATH": os.pathsep.join([str(FOLDER), str(folder.parent)]),
        "PYTHONASYNCIODEBUG": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ACP_PACKAGE": folder.name,
        **more,
    }


def complaints(stderr: str) -> list[str]:
    """The lines of a process that tell of something not done in order."""
    return [line for line in stderr.splitlines() if any(word in line for word in COMPLAINTS)]


def is_running(pid: int) -> bool:
    """Whether there is such a process; a zombie is one, too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until_gone(pid: int) -> None:
    """Return when the process, which need not be a child of this one, is gone."""
    deadline = time.monotonic() + PATIENCE
    while is_running(pid):
        assert time.monotonic() < deadline, f"process {pid} does not end"
        time.sleep(0.01)


class Lines:
    """Lines that come over a pipe, in time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def next(self) -> str | None:
        """The next line; None at the end."""
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "nothing came in time"
            try:
                chunk = os.read(self._descriptor, 2**16)
            except OSError:  # how a terminal says that the other end is closed
                chunk = b""
            if not chunk:
                assert not self._rest, f"half a line: {self._rest!r}"
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode()


class Diary:
    """What a process notes down as it goes, in a named pipe: for what cannot be seen on the wire."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "diary"
        os.mkfifo(self.path)
        # open for both, so that it has no end before the test has
        self._descriptor = os.open(self.path, os.O_RDWR)
        self._lines = Lines(self._descriptor)

    def next(self) -> str | None:
        """The next entry."""
        return self._lines.next()

    def rest(self) -> list[str]:
        """All entries left when the process has ended."""
        os.write(self._descriptor, b"(end)\n")
        found: list[str] = []
        while (line := self.next()) not in (None, "(end)"):
            found.append(str(line))
        return found

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._descriptor)


class AgentProcess:
    """An agent that runs, and the wire to it: raw JSON, for it is the agent that is tested."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], log: Path, **streams: Any) -> None:
        self._log = log
        with log.open("wb") as file:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": file} | streams
            self.process = subprocess.Popen(arguments, env=env, bufsize=0, **pipes)
        self._lines = Lines(self.process.stdout.fileno()) if self.process.stdout else None
        self._next_id = 0

    @property
    def stderr(self) -> str:
        """What it has written to stderr."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def write(self, *messages: Mapping[str, Any]) -> None:
        """Send messages, with a stream that takes a part of them at a time."""
        assert self.process.stdin is not None
        data = memoryview(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))
        while data:
            data = data[self.process.stdin.write(data) :]  # type: ignore[attr-defined]

    def ask(self, method: str, **params: Any) -> int:
        """Send a request; returns its id."""
        self._next_id += 1
        self.write({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def prompt(self, text: str) -> int:
        """Send a prompt; returns the id of the request."""
        return self.ask("session/prompt", sessionId="s", prompt=[{"type": "text", "text": text}])

    def line(self) -> str | None:
        """The next line, which need be no message; None at the end."""
        assert self._lines is not None
        return self._lines.next()

    def read(self) -> Any:
        """The next message; None at the end."""
        line = self.line()
        return None if line is None else json.loads(line)

    def update(self) -> str:
        """The text of the next message, which has to be an update."""
        return str(self.read()["params"]["update"]["content"]["text"])

    def answer(self, number: int) -> Any:
        """The answer to a request, which has to be the next message."""
        message = self.read()
        assert message["id"] == number, message
        return message

    def close_stdin(self) -> None:
        """Say that nothing more comes."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> int:
        """Wait for the end; returns the exit code."""
        return self.process.wait(PATIENCE)

    def __enter__(self) -> AgentProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
