"""The agents of examples/frameworks/: the same conversation with each gives the same kinds of updates."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks_support import (
    CONVERSATION,
    EXAMPLES,
    KINDS,
    NOTES,
    SECONDS,
    Project,
    TypeScript,
    built,
    environment,
    open_calls,
)
from tests.interop import peers
from tests.runtime_support import V1, run
from tests.support import REPOSITORY, Packages, require

pytestmark = pytest.mark.full

AGENTS = sorted(path.name for path in EXAMPLES.glob("*_agent.py"))
CANCELLATIONS = 500 if os.environ.get("ACPGEN_DEEP") else 25
"""Of each example."""
POLLS = 200
"""How often is asked whether something still runs: a framework may clean up after the answer."""
HELLO = ["agent_message_chunk"] * 2
ABANDONED = {"pydantic_ai_agent.py": "ScopedTask.__init__.<locals>.run"}
"""The task of a run or a request of Pydantic AI 2.68 waits for ever if the turn is cancelled in the very step of the
event loop in which this task has told that it is ready."""
Start = Callable[[str], Project]


@pytest.fixture(scope="module")
def peers_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the frameworks and the official SDK are installed."""
    cache = getattr(request.config, "cache", None)
    default = cache.mkdir("interop-peers") if cache else tmp_path_factory.getbasetemp().parent / "interop-peers"
    return peers.home(Path(default))


@pytest.fixture(scope="module")
def start(peers_home: Path, tmp_path_factory: pytest.TempPathFactory, packages: Packages) -> Callable[[str], Project]:
    """A project for an example."""
    try:
        interpreter = environment(peers_home)
    except peers.MissingPeerError as error:
        require(None, str(error))
        raise
    home = built(tmp_path_factory.mktemp("frameworks") / "examples")
    acp = packages(V1)
    return lambda name: Project(acp, interpreter, home / name, tmp_path_factory.mktemp("project"))


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
    assert (project.folder / "notes.txt").read_text() == NOTES.replace("colour", "color")
    assert found["correct"].text == "I was told: notes.txt is written"
    assert found["count 3"].text == "The tool says: counted to 3"
    assert found["call greet"].text == "The tool says: hello"
    assert found["remember"].text == "You said: correct, count 3, call greet"
    assert not project.is_served()


def test_the_agent_of_langgraph_with_deepagents(start: Start) -> None:
    """As its docstring says: another function that makes the graph, which brings the list of what is to be done."""
    project = start("langgraph_agent.py")
    text = project.script.read_text()
    for old, new in (
        ("from langchain.agents import create_agent\n", "from deepagents import create_deep_agent as create_agent\n"),
        ("TodoListMiddleware(), ", ""),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    project.script = project.script.with_name("deep_agent.py")
    project.script.write_text(text)

    async def main() -> dict[str, Any]:
        async with project.talk() as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            return {each: (await client.prompt(session, each)).kinds for each in CONVERSATION}

    assert run(main(), seconds=SECONDS) == KINDS


def test_what_tool_calls_show(project: Project) -> None:
    async def main() -> Any:
        async with project.talk() as client:
            session = await client.open(str(project.folder))
            return (await client.prompt(session, "correct")).updates, await client.prompt(session, "count 2")

    updates, counted = run(main(), seconds=SECONDS)
    read, read_end, write, allowed, written = (each for each in updates if "toolCallId" in each)
    notes = str(project.folder / "notes.txt")
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


def test_a_refusal(project: Project) -> None:
    async def main() -> Any:
        async with project.talk(answer="reject_once") as client:
            session = await client.open(str(project.folder))
            return await client.prompt(session, "correct")

    answer = run(main(), seconds=SECONDS)
    statuses = [each["status"] for each in answer.updates if "toolCallId" in each]
    assert statuses == ["in_progress", "completed", "pending", "failed"]
    assert answer.stop_reason == "end_turn"
    assert answer.text.startswith("I was told: ")
    assert "written" not in answer.text
    assert (project.folder / "notes.txt").read_text() == NOTES


def test_a_restart(project: Project) -> None:
    """The conversation is replayed, the model remembers it, and what was allowed for good is not asked again."""

    async def main() -> Any:
        async with project.talk(answer="allow_always") as client:
            session = await client.open(str(project.folder))
            await client.prompt(session, "correct")
            before = client.updates(session)
        project.restore()
        async with project.talk() as client:
            replayed = await client.load(session, str(project.folder), mcpServers=project.servers)
            answers = [await client.prompt(session, each) for each in ("correct", "call greet", "remember")]
            return before, replayed, answers, client.calls("session/request_permission")

    before, replayed, (again, greeted, remembered), questions = run(main(), seconds=SECONDS)
    assert "".join(each["content"]["text"] for each in replayed if each["sessionUpdate"] == "agent_thought_chunk")
    assert {each["sessionUpdate"] for each in replayed} == {
        *(each["sessionUpdate"] for each in before),
        "user_message_chunk",
    }
    assert [each for each in replayed if "toolCallId" in each] == [each for each in before if "toolCallId" in each]
    assert again.kinds == KINDS["correct"][1:]
    assert questions == []
    assert greeted.text == "The tool says: hello"
    assert remembered.text == "You said: correct, correct, call greet"


async def cancelled(client: Any, session: str, *, count: int) -> Any:
    """The answer to a prompt that is cancelled after so many updates."""
    start = len(client.updates(session))
    prompt = asyncio.ensure_future(client.prompt(session, "count 100000"))
    await client.update(session, start + count)
    await client.cancel(session)
    return await prompt


def test_a_cancellation_in_the_middle_of_a_tool(project: Project) -> None:
    async def main() -> Any:
        async with project.talk() as client:
            session = await client.open(str(project.folder), mcpServers=project.servers)
            await client.prompt(session, "correct")
            answer = await cancelled(client, session, count=3)
            return answer, await client.prompt(session, "hello"), client.updates(session)

    answer, after, updates = run(main(), seconds=SECONDS)
    assert answer.stop_reason == "cancelled"
    assert answer.updates[-1]["status"] == "failed"
    assert open_calls(updates) == set()
    assert (after.stop_reason, after.text) == ("end_turn", "You said: hello")
    assert not project.is_served()


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
            for number in range(CANCELLATIONS):
                project.restore()
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


def test_a_client_of_the_official_sdk(project: Project, peers_home: Path) -> None:
    try:
        (interpreter,), _ = peers.python(peers_home)
    except peers.MissingPeerError as error:
        require(None, str(error))
        raise

    def talk(session: str, *prompts: str) -> list[dict[str, Any]]:
        peer = [interpreter, str(REPOSITORY / "tests" / "frameworks_peer.py"), str(project.folder)]
        ran = subprocess.run(
            [*peer, session, ",".join(prompts), *project.command],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    first = talk("", "correct", "count 3")
    session = str(first[0]["session"])
    assert by_prompt(first) == {each: KINDS[each] for each in ("correct", "count 3")}
    assert [each["end"] for each in first if "end" in each] == ["end_turn"] * 2
    assert [each["asked"] for each in first if "asked" in each] == [["allow_once", "allow_always", "reject_once"]]
    again = talk(session, "remember")
    assert again[0]["kind"] == "user_message_chunk"
    assert by_prompt(again) == {"remember": KINDS["remember"]}


def updates_in(log: list[Any]) -> list[Any]:
    return [each["params"]["update"] for each in log if each.get("method") == "session/update"]


def test_a_client_of_the_typescript_sdk(project: Project, peers_home: Path, tmp_path: Path) -> None:
    """It is told the same in the whole conversation, and when the session is loaded, and cancels a tool."""
    try:
        node, sdk = peers.typescript(peers_home)
    except peers.MissingPeerError as error:
        require(None, str(error))
        raise
    allowed = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
    answers = tmp_path / "answers.json"
    answers.write_text(json.dumps({"session/request_permission": {"result": allowed}}))
    session: dict[str, Any] = {"cwd": str(project.folder), "mcpServers": project.servers}
    found: dict[str, list[str]] = {}

    def begin(client: TypeScript, text: str) -> int:
        blocks = [{"type": "text", "text": text}]
        return client.begin("session/prompt", sessionId=session["sessionId"], prompt=blocks)

    with TypeScript(node, sdk, answers, project.command) as client:
        session["sessionId"] = client.ask("session/new", **session)["sessionId"]
        for prompt in CONVERSATION:
            before = len(client.log())
            assert client.end(begin(client, prompt))["stopReason"] == "end_turn"
            found[prompt] = [each["sessionUpdate"] for each in updates_in(client.log()[before:])]
        assert sum(each.get("method") == "session/request_permission" for each in client.log()) == 1
        counting = begin(client, "count 100000")
        client.log(len(client.log()) + 3)
        client.ask("session/cancel", sessionId=session["sessionId"])
        assert client.end(counting)["stopReason"] == "cancelled"
        assert open_calls(updates_in(client.log())) == set()
    assert found == KINDS
    with TypeScript(node, sdk, answers, project.command) as client:
        client.ask("session/load", **session)
        replayed = updates_in(client.log())
    assert {each["sessionUpdate"] for each in replayed} == {"user_message_chunk", *itertools.chain(*KINDS.values())}
    assert open_calls(replayed) == set()


def by_prompt(told: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The kinds of the updates by the prompt before them."""
    found: dict[str, list[str]] = {}
    for each in told:
        if "prompt" in each:
            found[each["prompt"]] = []
        elif "kind" in each and found:
            found[[*found][-1]].append(each["kind"])
    return found


@pytest.mark.parametrize("name", AGENTS)
def test_an_example_is_short_and_listed(name: str) -> None:
    lines = len((EXAMPLES / name).read_text(encoding="utf-8").splitlines())
    assert lines <= 150
    row = f"[`{name}`](../examples/frameworks/{name}) | {lines} |"
    assert row in (REPOSITORY / "docs" / "frameworks.md").read_text(encoding="utf-8")
    assert f"[`{name}`]({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
