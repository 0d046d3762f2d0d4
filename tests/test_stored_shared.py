"""One session that is open at two agents: what one of them has answered is not overwritten by the other's copy."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_agents import command, environment
from tests.runtime_support import acp_log, run
from tests.stored_support import Editor, editor, helpers_of
from tests.support import DEEP, Packages
from tests.test_stored_options import choose, chooser, values
from tests.turns_support import PROTOCOLS, is_v1

pytestmark = pytest.mark.every_python

KILLS, PARTS = (100, 10) if DEEP else (12, 1)


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


def ready(acp: Any, file: Path) -> type[Any]:
    """An agent with options, whose turns end at once."""

    class Ready(chooser(acp, file)):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.go = asyncio.Event()
            self.go.set()

        async def initialize(self, params: Any) -> Any:
            info = acp.Implementation(name="ready", version="1")
            more = {"agent_info": info} if is_v1(acp) else {"info": info}
            return acp.advertise(self, acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, **more))

    return Ready


@asynccontextmanager
async def ready_editor(acp: Any, agent: type[Any]) -> AsyncGenerator[Editor, None]:
    """A client that can show all options."""
    async with editor(acp, agent) as client:
        can = {"session": {"configOptions": {"boolean": {}}}}
        name = "clientCapabilities" if is_v1(acp) else "capabilities"
        more = {} if is_v1(acp) else {"info": {"name": "editor", "version": "1"}}
        await client.ask("initialize", protocolVersion=acp.PROTOCOL_VERSION, **{name: can}, **more)
        yield client


async def shared(first: Editor, second: Editor, *, prompts: int = 1) -> str:
    """A session that is open at both."""
    session = await first.new()
    for _ in range(prompts):
        await first.prompt(session, "Hello")
    await second.load(session)
    second.updates.clear()
    return session


async def told(client: Editor, kind: str) -> dict[str, Any]:
    """The next update of this kind."""
    while True:
        for update in client.updates:
            if update["sessionUpdate"] == kind:
                client.updates.clear()
                return update
        client.updates.append((await client.peer.receive())["params"]["update"])


@pytest.mark.parametrize("prompts", [0, 1], ids=["new", "prompted"])
def test_what_one_has_chosen_is_not_overwritten_by_the_other(acp: Any, file: Path, prompts: int) -> None:
    """Each option by itself, and what the agent fills in when it opens a session is no choice."""

    async def main() -> list[Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await shared(first, second, prompts=prompts)
            found = [
                await choose(first, session, "model", "large"),
                await choose(second, session, "search", True),
                await choose(first, session, "effort", "high"),
            ]
        async with ready_editor(acp, ready(acp, file)) as third:
            return [*found, values(await third.load(session))]

    expected = [("large", False, "low"), ("large", True, "low"), ("large", True, "high"), ("large", True, "high")]
    assert run(main()) == expected


def test_a_choice_holds_for_the_next_turn_at_the_other_and_its_client_is_told(acp: Any, file: Path) -> None:
    async def main() -> tuple[str, Any, Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await shared(first, second)
            await choose(second, session, "model", "large")
            first.updates.clear()
            await first.prompt(session, "Go")
            said = str(first.said())
            update = await told(first, "config_option_update")
            again = values(await first.load(session))
            assert "config_option_update" not in str(first.updates), "what is told is not a part of the conversation"
            return said, values(update), again

    said, update, again = run(main())
    assert "large now" in said
    assert "small" not in said
    assert update == again == ("large", False, "low")


def test_a_choice_during_a_turn_of_the_other_is_kept_when_that_saves(acp: Any, file: Path) -> None:
    """The turn began before: it sees the choice in `session.data`, which is one object."""

    async def main() -> tuple[Any, Any, Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await shared(first, second)
            agent = first.peer.handler
            agent.go.clear()
            data = agent.session(session).data
            turn = asyncio.ensure_future(first.prompt(session, "Go"))
            while not agent.turns.has_turns(session) or agent.session(session).data is not data:
                await asyncio.sleep(0)
            chosen = await choose(second, session, "model", "large")
            agent.go.set()
            await turn
            return chosen, dict(data), values(await told(first, "config_option_update"))

    chosen, data, update = run(main())
    assert chosen == update == ("large", False, "low")
    assert (data["model"], data["turns"]) == ("large", 2)


def test_a_title_and_folders_are_not_overwritten(acp: Any, file: Path) -> None:
    """The folders of a connection are those that its client has named; the store has the last ones of any."""

    async def main() -> tuple[Any, Any, Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await shared(first, second)
            mine, other = first.peer.handler.session(session), second.peer.handler.session(session)
            other.title = "Another title"
            other.move_to(("/added",))
            await other.save()
            first.updates.clear()
            await choose(first, session, "model", "large")
            update = await told(first, "session_info_update")
            stored = await ready(acp, file).store.get(session)
            return update["title"], mine.directories, (mine.title, stored.title, stored.directories)

    title, folders, last = run(main())
    assert (title, folders) == ("Another title", ())
    assert last == ("Another title", "Another title", ("/added",))


def test_permissions_that_both_remember_are_both_there(acp: Any, file: Path) -> None:
    """In a list: what either has added is there, what either has removed is not."""

    async def main() -> tuple[Any, Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await first.new()
            mine = first.peer.handler.session(session)
            mine.data["permissions"] = [{"answer": "old"}, {"answer": "revoked"}]
            await mine.save()
            await first.prompt(session, "Hello")
            await second.load(session)
            other = second.peer.handler.session(session)
            kept = mine.data["permissions"]  # as `PermissionMemory` has it
            kept.append({"answer": "mine"})
            other.data["permissions"].remove({"answer": "revoked"})
            other.data["permissions"].append({"answer": "theirs"})
            await other.save()
            await mine.save()
            stored = await ready(acp, file).store.get(session)
            return kept, json.loads(stored.data)["permissions"]

    kept, stored = run(main())
    assert kept == stored == [{"answer": each} for each in ("old", "theirs", "mine")]


def test_one_that_was_overtaken_chooses_nothing(acp: Any, file: Path) -> None:
    """The other has gone on with the conversation: here a choice is an error, and a prompt, until it is loaded."""

    async def main() -> tuple[Any, Any, Any]:
        async with ready_editor(acp, ready(acp, file)) as first, ready_editor(acp, ready(acp, file)) as second:
            session = await shared(first, second)
            await second.prompt(session, "More")
            wrong = await choose(first, session, "model", "large")
            assert values(await first.load(session)) == ("small", False, "low")
            return wrong, await choose(first, session, "model", "large"), await first.prompt(session, "Again")

    with acp_log():
        wrong, right, end = run(main())
    assert "changed or deleted by somebody else" in wrong["message"]
    assert (right, end) == (("large", False, "low"), "end_turn")


def test_a_store_that_cannot_compare_is_read_before_each_save(acp: Any, file: Path) -> None:
    class Old:
        """A store of the six methods that there were first."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        async def save(self, session: Any, entries: Any) -> None:
            await self.inner.save(session, entries)

    class Agent(ready(acp, file)):  # type: ignore[misc]
        store = Old(helpers_of(acp).SqliteStore(file))

    async def main() -> list[Any]:
        async with ready_editor(acp, Agent) as first, ready_editor(acp, Agent) as second:
            session = await shared(first, second)
            await choose(first, session, "model", "large")
            second.peer.handler.session(session).data["search"] = True
            await second.peer.handler.session(session).save()
            return [await choose(first, session, "effort", "high")]

    assert run(main()) == [("large", True, "high")]


# --- Processes that are killed ---------------------------------------------------------------------------------------


class Process:
    """An agent in a process of its own, which has the session open; it is asked by requests that may wait."""

    def __init__(self, acp: Any, file: Path, session: str) -> None:
        self.version = acp.PROTOCOL_VERSION
        arguments = [part for part in command("chooser.py", str(file)) if part not in ("-X", "dev")]
        env = {**environment(acp), "PYTHONASYNCIODEBUG": "", "PYTHONDONTWRITEBYTECODE": ""}
        self.process = subprocess.Popen(arguments, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.session = session
        self.number = 0
        self.asked: dict[int, tuple[str, str]] = {}
        """What was chosen in requests that are not answered."""
        where = {"cwd": "/project", "mcpServers": []}
        self.send("session/resume" if session else "session/new", **where)
        opened = self.answer()
        self.session = session or opened["sessionId"]
        self.values = _values(opened)

    def send(self, method: str, **params: Any) -> None:
        """Send a request."""
        known = {"sessionId": self.session} if self.session else {}
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": {**known, **params}}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        self.number += 1

    def choose(self, option: str, value: str) -> None:
        """Choose a value, and do not wait."""
        self.asked[self.number] = (option, value)
        more = {} if self.version == 1 else {"type": "id"}
        self.send("session/set_config_option", configId=option, value=value, **more)

    def answer(self) -> Any:
        """The next result; what is not an answer is left out."""
        while "id" not in (message := json.loads(self.process.stdout.readline())):  # type: ignore[union-attr]
            pass
        self.asked.pop(message["id"], None)
        return message["result"]

    def kill(self) -> list[tuple[str, str]]:
        """Kill it; returns what it has answered since it was last asked for an answer."""
        self.process.kill()
        out, _ = self.process.communicate()
        messages = [json.loads(line) for line in out.split(b"\n")[:-1]]
        assert not [message for message in messages if "error" in message]
        return [self.asked.pop(message["id"]) for message in messages if message.get("id") in self.asked]


def _values(result: Any) -> dict[str, str]:
    key = "id" if "id" in result["configOptions"][0] else "configId"
    return {each[key]: each["currentValue"] for each in result["configOptions"]}


class Rivals:
    """Two processes with one session: `mode` is chosen at either, `a` and `b` each at one of them."""

    def __init__(self, acp: Any, file: Path, stack: ExitStack) -> None:
        self.acp, self.file = acp, file
        self.stack = stack
        self.possible = {name: {"0"} for name in ("mode", "a", "b")}
        """The values that may be there: what was answered last, and what was asked later."""
        self.first = self._start("")
        self.session = self.first.session
        self.second = self._start(self.session)

    def _start(self, session: str) -> Process:
        process = Process(self.acp, self.file, session)
        self.stack.callback(process.kill)
        return process

    def run(self, chance: random.Random) -> None:
        """Choose at both, kill one of them, and compare what a new process finds, and what the other one has."""
        one, other = chance.sample([self.first, self.second], 2)
        value = chance.choice("0123456789")
        one.choose("mode", value)
        assert _values(one.answer())["mode"] == value
        self.possible["mode"] = {value}
        for process, name in ((self.first, "a"), (self.second, "b")):
            for value in chance.choices("0123456789", k=chance.randrange(1, 6)):
                process.choose(name, value)
        time.sleep(chance.random() * 0.02)
        self._know(one.kill(), one)
        while other.asked:
            found = _values(other.answer())
            assert found["mode"] in self.possible["mode"]
        name = "a" if other is self.first else "b"
        self.possible[name] = {found[name]}
        new = self._start(self.session)
        assert all(new.values[each] in self.possible[each] for each in new.values), (new.values, self.possible)
        self.possible = {each: {value} for each, value in new.values.items()}
        self.first, self.second = (new, other) if one is self.first else (other, new)

    def _know(self, answered: list[tuple[str, str]], killed: Process) -> None:
        for name, value in answered:
            self.possible[name] = {value}
        for name, value in killed.asked.values():
            self.possible[name].add(value)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("base", PROTOCOLS.values(), ids=PROTOCOLS.keys())
def test_kills_lose_no_choice_that_was_answered(packages: Packages, file: Path, base: Any, part: int) -> None:
    chance = random.Random(part)
    with ExitStack() as stack:
        rivals = Rivals(packages(base), file, stack)
        for _ in range(KILLS):
            rivals.run(chance)
