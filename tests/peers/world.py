"""An agent that runs for the situations: its connection, its processes, and the folder in which it works."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from tests.peers import clients
from tests.peers.agents import Ready

START_SECONDS = 240.0
"""A loaded machine takes a minute for the slowest agent."""


class World:
    """An agent, the client that talks to it, and the user of that client."""

    def __init__(self, acp: Any, ready: Ready, folder: Path, *, protocol: int, heard: set[str]) -> None:
        self.acp, self.protocol, self.ready, self.folder = acp, protocol, ready, folder
        self.heard = heard
        """What the agent has told the model: see `model.Server`."""
        self.helpers: Any = __import__(f"{acp.__name__}.helpers", fromlist=["helpers"])
        self.user = clients.User()
        self.lines: list[tuple[str, bytes]] = []
        """All messages of the last connections, with their directions."""
        self.pid = 0
        self.starts = 0
        self.at_start: Callable[[], object] | None = None
        """Called once, when the next process has started."""
        self._kind = clients.client_class(acp, self.user)
        self._client: Any = None
        self._killed: Any = None
        self._spawned: Any = None
        self._numbers = itertools.count(1)

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self.ready.agent.name

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncGenerator[Any, None]:
        """The agent runs during the block, whose value is the keeper; at the end, none of its processes does."""
        policy = self.helpers.RecoveryPolicy(attempts=3, attempt_seconds=START_SECONDS, crashes=100)
        keeper = self.helpers.SessionKeeper(self._connect, self._start, policy=policy)
        former = self.pid, self._client
        try:
            async with keeper:
                yield keeper
        finally:
            end_group(self.pid)
            self.pid, self._client = former

    def _connect(self) -> Any:
        options = self.acp.ConnectionOptions(on_message=lambda way, line: self.lines.append((way, line)))
        self._spawned = self.acp.spawn_agent(
            self._kind, self.ready.command, env=self.ready.env, cwd=self.folder, stderr="discard", options=options
        )
        return self._spawned

    async def _start(self, client: Any) -> None:
        self.starts += 1
        self.pid, self._client = self._spawned.pid, client
        if self.at_start is not None:
            call, self.at_start = self.at_start, None
            call()
        await client.start("peers", "1.0.0")
        if self.ready.agent.login:
            await clients.authenticate(self.acp, client, self.ready.agent.login)

    async def open(self, keeper: Any) -> Any:
        """A new session in a new folder, in which the agent asks about commands and edits."""
        folder = self.folder / f"work{next(self._numbers)}"
        folder.mkdir()
        session = await asyncio.wait_for(keeper.open(str(folder)), START_SECONDS)
        mode = self.ready.agent.asking_mode
        if mode and clients.mode_of(session)[0] != mode:
            await clients.set_mode(self.acp, keeper.client, session, mode)
        return session

    async def age(self, session_from: float) -> None:
        """Wait until a session that was opened then can be loaded: one agent needs another minute on the clock."""
        if self.ready.agent.loads_next_minute:
            while int(time.time() // 60) == int(session_from // 60):
                await asyncio.sleep(1)

    def processes(self) -> list[int]:
        """All processes with the home of the agent, whatever their group is."""
        mark = f"HOME={self.ready.env['HOME']}\0".encode()
        return [
            int(path.name)
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and mark in _read(path / "environ")
        ]

    def sleeping(self, seconds: int) -> list[int]:
        """The processes of commands that sleep for so many seconds: shells of agents end without their children."""
        mark = f"sleep\0{seconds}\0".encode()
        return [pid for pid in self.processes() if mark in _read(Path(f"/proc/{pid}/cmdline"))]

    def kill(self, number: signal.Signals) -> None:
        """Send a signal to the agent and to all of its group."""
        self._killed = self._client
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    async def is_noticed(self, seconds: float = 30.0) -> bool:
        """True once the agent has ended, and its client has noticed: after a signal, it may take its time."""
        client = self._killed
        return await becomes(lambda: client is None or client.end is not None, seconds)

    @property
    def received(self) -> list[bytes]:
        """The messages of the agent."""
        return [line for way, line in self.lines if way == "in"]


async def becomes(condition: Callable[[], object], seconds: float) -> bool:
    """Wait until `condition` holds; False if it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


def end_group(group: int) -> None:
    """End the processes of a group."""
    if group > 1:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes() + b"\0"
    except OSError:
        return b""


def has_ended(pid: int) -> bool:
    """True if a process has ended, whether its parent has noticed or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
