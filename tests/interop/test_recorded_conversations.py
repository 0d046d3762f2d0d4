"""`acpgen trace` of what the official SDKs and our packages say: no mistake is found, and planted ones are."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import run_acpgen
from tests.interop.pairs import HERE, OF_ONE, Json, Pair, Setup, Stage, open_pair
from tests.interop.remote_pairs import OVER_HTTP, OVER_HTTP2, OVER_WEBSOCKET, open_remote_pair
from tests.interop.theatre import VALUES, Theatre, answers_of
from tests.interop.values import SESSION, TEXT

pytestmark = pytest.mark.full

SETUPS = (
    Setup("ts", 1, "agent", agent_of="ts"),
    Setup("py", 1, "agent", agent_of="py"),
    Setup("ts", 1, "agent", agent_of="py"),
    Setup("py", 1, "agent", agent_of="ts"),
    Setup("ts", 2, "agent", agent_of="ts"),
)

USUAL = {"initialize", "session/new", "session/prompt", "session/update", "session/request_permission"}


def with_trace(stage: Stage, trace: Path) -> Stage:
    """The same, with a recorder before the agent."""
    assert stage.other is not None
    command, sdk = stage.other
    return replace(stage, other=((sys.executable, str(HERE / "tee.py"), str(trace), *command), sdk))


async def play(pair: Pair, setup: Setup) -> None:
    """Each method once, and then a turn with text, a tool call, and a question."""
    values = VALUES[setup.version]
    await pair.initialize({**values.OPENING, "protocolVersion": setup.version})
    done: set[str] = set()
    for each in values.EXCHANGES:
        if each.method in done or each.method in ("session/update", "session/prompt", "$/cancel_request"):
            continue
        done.add(each.method)
        await pair.reset(**answers_of(setup))
        await pair.open_session(SESSION["sessionId"], {"cwd": "/", "mcpServers": []})
        await pair.reset(**answers_of(setup))
        await pair.say(each.caller, each.method, each.params)
    await turn(pair, setup)


async def turn(pair: Pair, setup: Setup) -> None:
    exchanges = VALUES[setup.version].EXCHANGES
    prompt = next(each for each in exchanges if each.method == "session/prompt")
    asked = next(each for each in exchanges if each.method == "session/request_permission")
    call = {"sessionUpdate": "tool_call" if setup.version == 1 else "tool_call_update", "toolCallId": "c", "title": "t"}
    updates = [
        {"sessionUpdate": "agent_message_chunk", "content": TEXT, "messageId": "m1"},
        {**call, "status": "pending"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"},
    ]
    said = [{"method": "session/update", "params": {**SESSION, "update": each}} for each in updates]
    said.insert(2, {"method": asked.method, "params": asked.params})
    answers = {"session/prompt": {"first": said, "result": prompt.result}, asked.method: {"result": asked.result}}
    await pair.reset(**answers_of(setup))
    await pair.open_session(SESSION["sessionId"], {"cwd": "/", "mcpServers": []})
    await pair.reset(**answers)
    assert "result" in await pair.say("client", "session/prompt", prompt.params)


def lines(file: Path) -> list[Json]:
    # not those of `str.splitlines`, which also splits where a text has U+2028
    return [json.loads(line) for line in file.read_bytes().splitlines()]


def traced(trace: Path) -> list[Json]:
    """The findings, without those about the methods with which the tests control the agent."""
    found = json.loads(run_acpgen("trace", trace, "--format", "json", cwd=trace.parent).stderr)
    return [each for each in found if each["severity"] != "note"]


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_conversations_of_the_official_sdks_have_no_mistakes(theatre: Theatre, setup: Setup, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    stage = with_trace(theatre.stage(setup), trace)

    async def scenario() -> None:
        async with open_pair(setup, stage) as pair:
            await play(pair, setup)

    asyncio.run(asyncio.wait_for(scenario(), 120))
    assert traced(trace) == []
    found = lines(trace)
    said = {each["msg"]["method"] for each in found if "method" in each["msg"]}
    assert said >= USUAL
    late = ["after-turn"] if setup.version == 1 else []  # in version 2, updates may come at any time
    assert planted(found, trace) == ["unanswered", *late, "wrong-value"]


def planted(found: list[Json], trace: Path) -> list[str]:
    """What is found if a question of the agent has no answer, and a piece of text is sent late, as a number."""
    messages = [each["msg"] for each in found]
    question = max(at for at, each in enumerate(messages) if each.get("method") == "session/request_permission")
    answer = next(at for at in range(question, len(found)) if is_answer(found[at], messages[question]))
    piece = next(each for each in found if tag_of(each["msg"]) == "agent_message_chunk")
    late = json.loads(json.dumps(piece))
    late["msg"]["params"]["update"]["content"]["text"] = 5
    kept = [*found[:answer], *found[answer + 1 :], late]
    trace.write_text("".join(json.dumps(each) + "\n" for each in kept), encoding="utf-8")
    return [each["code"] for each in traced(trace)]


def is_answer(line: Json, asked: Json) -> bool:
    message = line["msg"]
    return bool(line["from"] == "client" and "method" not in message and message["id"] == asked["id"])


def tag_of(message: Json) -> Json:
    """The tag of an update."""
    params = message.get("params")
    return params["update"].get("sessionUpdate") if isinstance(params, dict) and "update" in params else None


@pytest.mark.parametrize("setup", OF_ONE, ids=str)
def test_conversations_of_our_packages_have_no_mistakes(
    theatre: Theatre, setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each SDK on the other side; the package records them itself."""
    trace = tmp_path / "trace.jsonl"
    stage = theatre.stage(setup)
    monkeypatch.setenv("ACP_TRACE", str(trace))

    async def scenario() -> None:
        async with open_pair(setup, stage) as pair:
            await play(pair, setup)

    asyncio.run(asyncio.wait_for(scenario(), 120))
    found = lines(trace)
    said = {each["msg"]["method"] for each in found if "method" in each.get("msg", {})}
    assert said >= USUAL
    assert {each["from"] for each in found if "msg" in each} == {"agent", "client"}
    assert traced(trace) == []


@pytest.mark.parametrize("setup", [*OVER_HTTP, *OVER_HTTP2, *OVER_WEBSOCKET], ids=str)
def test_conversations_on_the_network_have_no_mistakes(
    theatre: Theatre, setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each SDK on one side; the package on the other one records them itself."""
    trace = tmp_path / "trace.jsonl"
    stage = theatre.stage(setup)
    monkeypatch.setenv("ACP_TRACE", str(trace))

    async def scenario() -> None:
        async with open_remote_pair(setup, stage) as pair:
            await play(pair, setup)

    asyncio.run(asyncio.wait_for(scenario(), 120))
    messages = [each for each in lines(trace) if "msg" in each]
    assert {each["msg"]["method"] for each in messages if "method" in each["msg"]} >= USUAL
    assert {each["from"] for each in messages} == {"agent", "client"}
    assert traced(trace) == []
