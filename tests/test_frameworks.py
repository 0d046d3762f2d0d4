"""The agents of examples/frameworks/: the same conversation with each gives the same kinds of updates."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
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
from tests.support import REPOSITORY, Packages

pytestmark = pytest.mark.full

CANCELLATIONS = 40 if os.environ.get("ACPGEN_DEEP") else 5


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
    assert found["correct"].text == "I was told: notes.txt is written"
    assert found["count 3"].text == "The tool says: counted to 3"
    assert found["call greet"].text == "The tool says: hello"
    assert found["remember"].text == "You said: correct, count 3, call greet"
    assert not project.is_served()


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


def test_what_tool_calls_show(project: Project) -> None:
    async def main() -> Any:
        async with project.talk() as client:
            session = await client.open(str(project.folder))
            return (await client.prompt(session, "correct")).updates, await client.prompt(session, "count 2")

    updates, counted = run(main(), seconds=SECONDS)
    read, read_end, write, allowed, written = (each for each in updates if "toolCallId" in each)
    notes = str(project.notes)
    assert (read["kind"], read["status"], read["rawInput"]) == ("read", "in_progress", {"path": "notes.txt"})
    assert read_end["status"] == "completed"
    assert read_end["content"] == [{"type": "content", "content": {"type": "text", "text": NOTES}}]
    assert (write["kind"], write["status"], write["locations"]) == ("edit", "pending", [{"path": notes}])
    diff = {"type": "diff", "path": notes, "oldText": NOTES, "newText": NOTES.replace("colour", "color")}
    assert write["content"] == [diff]
    assert [allowed["status"], written["status"]] == ["in_progress", "completed"]
    shown = [each["content"][0]["content"]["text"] for each in counted.updates[1:3]]
    assert shown == ["1 of 2", "2 of 2"]
    plans = [[entry["status"] for entry in each["entries"]] for each in updates if each["sessionUpdate"] == "plan"]
    assert plans == [["pending"] * 2, ["completed"] * 2]


def test_random_cancellations(project: Project) -> None:
    """No tool call is left open, no task goes on, and the session goes on."""

    async def main() -> Any:
        async with project.talk() as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            for seed in range(CANCELLATIONS):
                chance = random.Random(seed)
                text = chance.choice(["count 100000", "correct", "call greet"])
                prompt = asyncio.ensure_future(client.prompt(session, text))
                if chance.random() < 0.5:
                    await client.update(session, len(client.updates(session)) + 1)
                await asyncio.sleep(chance.random() * 0.1)
                await client.cancel(session)
                await prompt
                assert open_calls(client.updates(session)) == set()
            assert (await client.prompt(session, "hello")).text == "You said: hello"
            quiet = len(client.updates(session))
            await client.prompt(session, "count 20")  # while it counts, what was left behind would be seen
            assert len(client.updates(session)) == quiet + 24
            return client.updates(session)

    assert open_calls(run(main(), seconds=SECONDS)) == set()
    with contextlib.suppress(FileNotFoundError):  # the server may not have been started before all was over
        assert not project.is_served()


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_is_short_and_listed(name: str) -> None:
    lines = len((EXAMPLES / name).read_text(encoding="utf-8").splitlines())
    assert lines <= 150
    row = f"[`{name}`](../examples/frameworks/{name}) | {lines} |"
    assert row in (REPOSITORY / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"[`{name}`]({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
