"""Agents that are killed at random points: at the start, in a turn, between two, in a replay. No prompt runs twice."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
from collections import Counter
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.client_sessions import helpers_of
from tests.interop import peers
from tests.needs import lacks
from tests.recovery_support import read, shown
from tests.runtime_agents import environment
from tests.runtime_support import V1, V2, run
from tests.support import DEEP, Packages

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("posix"),
]
BASES = {1: V1, 2: V2}
AGENT = Path(__file__).with_name("recovery_agent.py")
PUBLISHED = "pydantic-acp==1.10.0"
KILLS = 125 if DEEP else 6
"""How often each of our four is killed."""
PUBLISHED_KILLS = 50 if DEEP else 3
"""How often each of the two published ones is killed, which take long to start."""
TURNS = 12
"""The turns of a session."""
SECONDS = 3600.0 if DEEP else 600.0
OPENINGS = 100
"""How often to open a session may fail in a row."""


class Executioner:
    """Starts the processes of an agent, and kills them: after some time, some updates, or between two turns."""

    def __init__(self, acp: ModuleType, command: list[str], env: dict[str, str], chance: random.Random) -> None:
        self.acp, self.command, self.env, self.chance = acp, command, env, chance
        self.places = Counter[str]()
        """How often it has killed, by what went on."""
        self.place = "start"
        self.limit = 0
        self._plan = ""
        self._updates = 0
        self._timer: asyncio.TimerHandle | None = None
        self._connection: Any = None
        helpers = helpers_of(acp)
        executioner = self

        class Kept(helpers.KeptClient):  # type: ignore[misc, name-defined]
            async def session_update(self, params: Any) -> None:
                await super().session_update(params)
                executioner.count()

        self.kind = Kept

    def connect(self) -> Any:
        """A connection to a new process."""
        self._connection = self.acp.spawn_agent(self.kind, self.command, env=self.env, stderr="log")
        return self._connection

    async def start(self, client: Any) -> None:
        """Start the client; perhaps the agent does not live to see the end of it."""
        self.place, self._updates = "start", self.chance.randint(1, 40)
        self._plan = self.chance.choice(["start", "updates", "updates", "updates", "between"])
        if not self.limit:
            self._plan = "between"  # the failure of the first connection is no outage
        if self._plan == "start":
            self._timer = asyncio.get_running_loop().call_later(self.chance.uniform(0, 1), self.kill)
        await client.start("tests", "1")
        self.place = "replay"

    def count(self) -> None:
        """An update has come."""
        self._updates -= 1
        if self._updates == 0 and self._plan == "updates":
            self.kill()

    def ended(self) -> None:
        """A turn has ended."""
        self.place = "between"
        if self._plan == "between":
            self.kill()

    def kill(self) -> None:
        """Kill the process, unless there were enough of them."""
        self.stop()
        if sum(self.places.values()) < self.limit and self._connection.returncode is None:
            self.places[self.place] += 1
            self._plan = ""
            os.kill(self._connection.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Forget the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Conversation:
    """Turns in sessions that outlive their agent, and what must hold of each."""

    def __init__(self, executioner: Executioner, notes: Path, by: str, cwd: str) -> None:
        self.executioner, self.notes, self.by, self.cwd = executioner, notes, by, cwd
        self.helpers = helpers_of(executioner.acp)
        self.sent: list[str] = []
        self.ended: dict[str, str] = {}
        self.ways = Counter[str]()

    async def go(self, kills: int) -> None:
        """Talk until the agent was killed so often, in one session after the other."""
        executioner = self.executioner
        policy = self.helpers.RecoveryPolicy(
            first_seconds=0.0, crashes=10_000, attempts=10_000, attempt_seconds=600.0, prefer=self.by, young_seconds=0.0
        )
        keeper = self.helpers.SessionKeeper(executioner.connect, executioner.start, policy=policy)
        async with keeper:
            executioner.limit = kills
            while sum(executioner.places.values()) < kills:
                session = await self.opened(keeper)
                first = len(self.sent)
                for _ in range(TURNS):
                    await self.turn(session)
                await self.compare(session, self.sent[first:])
                with suppress(executioner.acp.MethodNotFoundError):  # pydantic-acp advertises it, and has it not
                    await session.close()
            executioner.stop()

    async def opened(self, keeper: Any) -> Any:
        """A session: to open one is no prompt, and may be tried again."""
        for _ in range(OPENINGS):
            with suppress(self.executioner.acp.ConnectionClosed):
                return await keeper.open(self.cwd)
        raise AssertionError("no session could be opened")

    async def turn(self, session: Any) -> None:
        """A turn, and a check of what an interruption says; a prompt is sent once."""
        name = f"p{len(self.sent)}"
        self.sent.append(name)
        self.executioner.place = "turn"
        changes, error = await read(session.prompt(f"{name} one two three four five six"))
        said = "".join(change.text for change in changes if is_said(self.helpers, change))
        if error is None:
            self.ended[name] = said
            self.executioner.ended()
            return
        assert isinstance(error, self.helpers.TurnInterruptedError), error
        assert isinstance(error.outcome, self.helpers.SessionRecovered), error
        assert error.prompt.prompt[0].text.startswith(name)
        self.ways[error.outcome.by] += 1
        assert said in "".join(text for kind, text in shown(error.outcome.before) if kind == "AgentMessage")
        ended = {call.status for call in error.outcome.before.tool_calls}
        assert ended <= {"completed", "failed", "cancelled"}

    async def compare(self, session: Any, names: list[str]) -> None:
        """The state is that of a fresh load: all of it after a replay; after resuming, the turns that have ended."""
        acp, executioner = self.executioner.acp, self.executioner
        kind = type("Fresh", (self.helpers.SessionClient,), {})
        async with (spawned := acp.spawn_agent(kind, executioner.command, env=executioner.env, stderr="log")):
            await spawned.handler.start("tests", "1")
            fresh = await spawned.handler.load(session.id, self.cwd)
            while not session.is_open:  # the agent was killed after the last turn, and the replay is not over
                await asyncio.sleep(0.01)
            found, expected = by_prompt(session.state), by_prompt(fresh.state)
        for name in names:
            if name in self.ended:
                assert found[name] == expected[name], name
                assert self.ended[name] == "".join(text for kind, text in found[name] if kind == "AgentMessage")
        if self.by == "load":
            assert found == expected
        ran = Counter(self.notes.read_text().split())
        assert [name for name, count in ran.items() if count > 1] == []
        assert {*self.ended} <= {*ran}


def is_said(helpers: Any, change: Any) -> bool:
    """True for what the agent has said."""
    return isinstance(change, helpers.MessageChange) and isinstance(change.entry, helpers.AgentMessage)


def by_prompt(state: Any) -> dict[str, list[tuple[str, str]]]:
    """The entries after each prompt, by its name; messages that follow each other are one, as without ids."""
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, entries in groupby(shown(state), key=lambda each: each[0]):
        texts = [text for _, text in entries]
        if kind == "UserMessage":
            names = [word for word in "".join(texts).replace("p", " p").split() if word.startswith("p")]
            found |= {name: [] for name in names}
        else:
            whole = texts if kind == "ToolCall" else ["".join(texts)]
            found[[*found][-1]] += [(kind, text) for text in whole]
    return found


@pytest.mark.parametrize("by", ["resume", "load"])
@pytest.mark.parametrize("version", [1, 2])
def test_ours_is_killed(packages: Packages, version: int, by: str, tmp_path: Path) -> None:
    """Everywhere, and nothing is done twice or lost."""
    acp = packages(BASES[version])
    folder, name = Path(str(acp.__file__)).parents[1], acp.__name__
    notes = tmp_path / "notes"
    command = [sys.executable, str(AGENT), "ours", str(folder), name, str(tmp_path / "store.db"), str(notes)]
    executioner = Executioner(acp, command, environment(acp), random.Random(version * 10 + len(by)))
    talk = Conversation(executioner, notes, by, str(tmp_path))
    run(talk.go(KILLS), seconds=SECONDS)
    report(f"ours, protocol {version}, {by}", talk)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter with the published agent."""
    folder = peers.home(Path(tmp_path_factory.getbasetemp().parent, "recovery-peers")) / "pydantic-acp"
    interpreter = folder / "venv" / "bin" / "python"
    pip: tuple[str | Path, ...] = (interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if uv := shutil.which("uv"):
        pip = (uv, "pip", "install", "--quiet", "--python", interpreter)
    try:
        peers.install(folder, PUBLISHED, (sys.executable, "-m", "venv", folder / "venv"), (*pip, PUBLISHED))
    except peers.MissingPeerError as error:
        lacks("registry", error)
    return str(interpreter)


@pytest.mark.parametrize("by", ["resume", "load"])
def test_a_published_agent_is_killed(packages: Packages, published: str, by: str, tmp_path: Path) -> None:
    """One with a store of its own: pydantic-acp."""
    acp = packages(V1)
    notes, store = tmp_path / "notes", tmp_path / "sessions"
    command = [published, str(AGENT), "pydantic-acp", str(store), str(notes)]
    executioner = Executioner(acp, command, dict(os.environ), random.Random(len(by)))
    talk = Conversation(executioner, notes, by, str(tmp_path))
    run(talk.go(PUBLISHED_KILLS), seconds=SECONDS)
    report(f"{PUBLISHED}, {by}", talk)


def report(name: str, talk: Conversation) -> None:
    """Print the figures, for `pytest -s`."""
    places = dict(talk.executioner.places)
    print(f"{name}: killed {places}, {len(talk.ended)} turns ended, {sum(talk.ways.values())} interrupted")
