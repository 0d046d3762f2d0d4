"""The agents of examples/frameworks/: the same conversation with each gives the same kinds of updates."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.frameworks_support import (
    AGENTS,
    CONVERSATION,
    EXAMPLES,
    KINDS,
    NOTES,
    SECONDS,
    Project,
    Start,
    home_of_peers,
    open_calls,
    starter,
)
from tests.runtime_support import run
from tests.support import REPOSITORY, Packages, deep_except

pytestmark = pytest.mark.full

CANCELLATIONS = 500 if os.environ.get("ACPGEN_DEEP") else 25
"""Of each example."""
POLLS = 200
"""How often is asked whether something still runs: a framework may clean up after the answer."""
HELLO = ["agent_message_chunk"] * 2
ABANDONED = {"pydantic_ai_agent.py": "ScopedTask.__init__.<locals>.run"}
"""The task of a run or a request of Pydantic AI 2.68 waits for ever if the turn is cancelled in the very step of the
event loop in which this task has told that it is ready."""


@pytest.fixture(scope="module")
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, packages: Packages) -> Start:
    """A project for an example."""
    return starter(home_of_peers(request, tmp_path_factory), tmp_path_factory, packages)


@pytest.fixture(params=AGENTS)
def project(request: pytest.FixtureRequest, start: Start) -> Project:
    return start(request.param)


def test_a_whole_conversation(project: Project) -> None:
    """Thoughts, plan, tools with their start, progress and end, a question, an MCP server, and text."""

    async def main() -> dict[str, Any]:
        async with project.talk() as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            found = {each: await client.prompt(session, each) for each in CONVERSATION}
            assert len(client.calls("session/request_permission")) == 1
            assert project.is_served()
            return found

    found = run(main(), seconds=SECONDS)
    assert {prompt: answer.stop_reason for prompt, answer in found.items()} == dict.fromkeys(CONVERSATION, "end_turn")
    assert {prompt: answer.kinds for prompt, answer in found.items()} == KINDS
    assert project.notes.read_text() == NOTES.replace("colour", "color")
    check_tool_calls(project, found["correct"].updates, found["count 3"].updates)
    assert found["correct"].text == "I was told: notes.txt is written"
    assert found["count 3"].text == "The tool says: counted to 3"
    assert found["call greet"].text == "The tool says: hello"
    assert found["remember"].text == "You said: correct, count 3, call greet"
    assert not project.is_served()


def check_tool_calls(project: Project, updates: Sequence[Any], counted: Sequence[Any]) -> None:
    """What is shown of the tools that read and write a file, and of one that counts."""
    read, read_end, write, allowed, written = (each for each in updates if "toolCallId" in each)
    notes = str(project.notes)
    assert (read["kind"], read["status"], read["rawInput"]) == ("read", "in_progress", {"path": "notes.txt"})
    assert read_end["status"] == "completed"
    assert read_end["content"] == [{"type": "content", "content": {"type": "text", "text": NOTES}}]
    assert (write["kind"], write["status"], write["locations"]) == ("edit", "pending", [{"path": notes}])
    diff = {"type": "diff", "path": notes, "oldText": NOTES, "newText": NOTES.replace("colour", "color")}
    assert write["content"] == [diff]
    assert [allowed["status"], written["status"]] == ["in_progress", "completed"]
    shown = [each["content"][0]["content"]["text"] for each in counted[1:4]]
    assert shown == ["1 of 3", "2 of 3", "3 of 3"]
    plans = [[entry["status"] for entry in each["entries"]] for each in updates if each["sessionUpdate"] == "plan"]
    assert plans == [["pending"] * 2, ["completed"] * 2]


def test_the_agent_of_langgraph_with_deepagents(start: Start) -> None:
    """As its docstring says: another function that makes the graph."""
    project = start("langgraph_agent.py")
    text = project.script.read_text()
    old, new = "from langchain.agents import create_agent", "from deepagents import create_deep_agent as create_agent"
    assert text.count(f"{old}\n") == 1
    project.script = project.script.with_name("deep_agent.py")
    project.script.write_text(text.replace(old, new))

    async def main() -> dict[str, Any]:
        async with project.talk() as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            return {each: (await client.prompt(session, each)).kinds for each in CONVERSATION}

    assert run(main(), seconds=SECONDS) == KINDS
    saved = b"".join(path.read_bytes() for path in project.home.glob("sessions.db*"))
    assert b"Updated todo list" in saved  # a tool that deepagents has not would have failed


async def settled(client: Any, allowed: dict[str, Any], abandoned: str | None) -> None:
    """Wait until nothing runs in the agent but what is allowed, and tasks that the framework has `abandoned`."""
    left: Any = None
    for _ in range(POLLS):
        alive = await client.request("_alive")
        left = {name: Counter(alive[name]) - Counter(allowed[name]) for name in allowed}
        if not {*left["tasks"], *left["children"]} - {abandoned}:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"this runs on after the turn: {left}")


async def cancel_at_random(client: Any, session: str, chance: random.Random) -> tuple[str, str]:
    """Cancel a turn after some updates, and some time; returns its prompt and how it has ended."""
    text = chance.choice(["count 100000", "correct", "call greet", "call linger"])
    start, wanted = len(client.updates(session)), chance.randrange(8)
    prompt = asyncio.ensure_future(client.prompt(session, text))
    many = asyncio.ensure_future(client.update(session, start + wanted))
    seen = asyncio.create_task(asyncio.wait({prompt, many}, return_when=asyncio.FIRST_COMPLETED))
    with contextlib.suppress(asyncio.TimeoutError):  # a tool that says nothing
        await asyncio.wait_for(seen, 1)
    await asyncio.sleep(chance.choice([0, 0, 0.01, 0.05]) * chance.random())
    await client.cancel(session)
    answer = await prompt
    many.cancel()
    return text, answer.stop_reason


# each example is cancelled in `test_frameworks_clients.py`, too; this framework leaves the most behind: see `ABANDONED`
@pytest.mark.parametrize(
    "project", deep_except({"pydantic_ai_agent.py"}, {name: name for name in AGENTS}), indirect=True
)
def test_random_cancellations(project: Project) -> None:
    """No tool call is left open, no task and no process goes on, and the next prompt works."""
    chance = random.Random(project.script.name)
    ended: list[tuple[str, str]] = []

    async def slowly(params: Any) -> Any:
        await asyncio.sleep(chance.choice([0, 0.02]))
        return choose(chance.choice(["allow_once", "reject_once"]))(params)

    async def main() -> None:
        async with project.talk(slowly, watched=True) as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            assert (await client.prompt(session, "call greet")).text == "The tool says: hello"
            before = await client.request("_alive")
            mode = {"sessionId": session, "configId": "mode"}
            for number in range(CANCELLATIONS):
                project.restore()
                await client.request("session/set_config_option", **mode, value=chance.choice(["ask", "edit"]))
                ended.append(await cancel_at_random(client, session, chance))
                assert open_calls(client.updates(session)) == set()
                await settled(client, before, ABANDONED.get(project.script.name))
                quiet = len(client.updates(session))
                assert (await client.prompt(session, f"hello {number}")).text == f"You said: hello {number}"
                assert [each["sessionUpdate"] for each in client.updates(session)[quiet:]] == HELLO

    choose = project.helpers.choose
    run(main(), seconds=SECONDS if CANCELLATIONS < 100 else 40 * SECONDS)
    print(Counter(ended))
    assert {text for text, how in ended if how == "cancelled"} >= {"count 100000", "call linger"}
    assert not project.is_served()


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_is_short_and_listed(name: str) -> None:
    lines = len((EXAMPLES / name).read_text(encoding="utf-8").splitlines())
    assert lines <= 150
    row = f"[`{name}`](../examples/frameworks/{name}) | {lines} |"
    assert row in (REPOSITORY / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"[`{name}`]({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
