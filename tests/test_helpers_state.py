"""`SessionState`: what a client knows of a session, after messages in any order.

Many sequences of messages, made from seeds, are compared with a model that shares nothing with it.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import json
import re
import shutil
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.schema.bundled import find_release
from tests.fidelity.subjects import Subject
from tests.runtime_support import EVERY_BASE, OLD, V1, V2, client_of, pair, run, unchecked
from tests.session_model import SESSION, Event, Json, expected
from tests.session_traffic import Traffic, as_json, feed, new_state, recorded, seen
from tests.support import REPOSITORY, Packages, fitting_fragments, import_folder, package_folder

SEQUENCES = 300
MANY_SEQUENCES = 10_000
OPEN = Options(keep_unknown=True, open=True)
EXTENDED = {
    number: SchemaChoice(protocol=number, release="2026-11-02", extensions=fitting_fragments(find_release(number)))
    for number in (1, 2)
}
"""The newest release of each protocol with all bundled extensions."""
PROTOCOLS = pytest.mark.parametrize("protocol", [1, 2])
BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])


def update(tag: str, **members: Json) -> Event:
    """A `session/update`."""
    return Event("session/update", {"sessionId": SESSION, "update": {"sessionUpdate": tag, **members}})


def text(content: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": content}


def after(acp: ModuleType, *events: Event, **options: Any) -> Any:
    """The state after these messages."""
    state = new_state(acp, **options)
    for event in events:
        feed(acp, state, event)
    return state


def shown(state: Any) -> list[str]:
    """The transcript in short: the class of each entry, and its text or title."""
    return [
        f"{type(entry).__name__}: {entry.text if hasattr(entry, 'text') else entry.title}" for entry in state.entries
    ]


# --- The model -------------------------------------------------------------------------------------------------------


class Screen:
    """A user interface that draws again just what it is given; it has what the state was then."""

    def __init__(self, acp: ModuleType) -> None:
        self._acp = acp
        self.drawn: dict[Any, Json] = {}
        self.calls = 0

    def draw(self, changed: Any) -> None:
        self.calls += 1
        if type(changed).__hash__ is not None:
            self.drawn[changed] = copy.deepcopy(self._of(changed))

    def _of(self, shown: Any) -> Json:
        plain = as_json(self._acp, shown)
        parts = ("entries", "usage", "plan", "plans", "terminals", "state", "onChange")
        return {name: value for name, value in plain.items() if name not in parts or not hasattr(shown, "on_change")}

    def check(self, state: Any) -> None:
        """Fail where the state has something that is not as it was drawn."""
        objects = [*state.entries, *getattr(state, "terminals", {}).values(), *([state.usage] if state.usage else [])]
        for each in objects:
            assert self.drawn[each] == self._of(each)
        if state in self.drawn:
            assert self.drawn[state] == self._of(state)


def check(acp: ModuleType, events: list[Event]) -> None:
    """Fail where a state is not what the model expects, where a message was changed, or something was not reported."""
    screen = Screen(acp)
    state = new_state(acp, on_change=screen.draw)
    taken = [(event, feed(acp, state, event)) for event in events]
    assert seen(acp, state) == expected(events, acp.PROTOCOL_VERSION)
    screen.check(state)
    for event, message in taken:
        assert acp.encode(message) == (event.params if event.result is None else event.result)


def check_many(acp: ModuleType, count: int) -> None:
    for seed in range(count):
        events = Traffic(seed, acp.PROTOCOL_VERSION).sequence()
        try:
            check(acp, events)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {smallest(acp, events)}") from error


def smallest(acp: ModuleType, events: list[Event]) -> list[Event]:
    """A part of `events` that fails, too, but with each message less does not."""
    for number in range(len(events)):
        fewer = events[:number] + events[number + 1 :]
        try:
            check(acp, fewer)
        except Exception:  # noqa: BLE001 (whatever it is)
            return smallest(acp, fewer)
    return events


@pytest.mark.every_python
@BOTH
def test_random_sequences_end_as_the_model_says(packages: Packages, sources: SchemaChoice) -> None:
    check_many(packages(sources), SEQUENCES)


@pytest.mark.full
@BOTH
def test_many_random_sequences_end_as_the_model_says(packages: Packages, sources: SchemaChoice) -> None:
    check_many(packages(sources), MANY_SEQUENCES)


@BOTH
def test_recorded_messages_end_as_the_model_says(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    events = recorded(acp.PROTOCOL_VERSION)
    assert len(events) > 20
    for start in range(len(events)):
        check(acp, events[start:] + events[:start])
    check(acp, events[::-1])


@BOTH
def test_every_kind_of_update_is_in_the_random_sequences(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    events = [event for seed in range(50) for event in Traffic(seed, acp.PROTOCOL_VERSION).sequence()]
    made = {event.params["update"]["sessionUpdate"] for event in events if event.method == "session/update"}
    bundled = {
        event.params["update"]["sessionUpdate"] for event in recorded(acp.PROTOCOL_VERSION) if "update" in event.params
    }
    assert bundled <= made
    assert {event.method for event in recorded(acp.PROTOCOL_VERSION)} <= {event.method for event in events}


# --- What agents of ours say -----------------------------------------------------------------------------------------

AGENTS = {
    "a project, v1": (V1, "schema/projects/v1/agent/src/new_project/agent.py"),
    "a project, v2": (V2, "schema/projects/v2/agent/src/new_project/agent.py"),
    "an example, v1": (V1, "examples/echo_agent_v1.py"),
    "an example, v2": (V2, "examples/echo_agent_v2.py"),
}


def imported_agent(sources: SchemaChoice, path: str, folder: Path) -> tuple[ModuleType, Any]:
    """The package for `sources`, and an agent of this repository that uses it."""
    folder.mkdir()
    shutil.copytree(package_folder(sources), folder / "acp")
    source = (REPOSITORY / path).read_text(encoding="utf-8")
    (folder / "agent.py").write_text(re.sub(r"from acp_echo_v\d", "from .acp", source), encoding="utf-8")
    (folder / "__init__.py").write_text("", encoding="utf-8")
    package = import_folder(folder)
    agent = importlib.import_module(f"{package.__name__}.agent").EchoAgent
    agent.pause = 0
    return importlib.import_module(f"{package.__name__}.acp"), agent


async def recording(acp: ModuleType, agent: Any, *prompts: str) -> list[Event]:
    """All messages of a session in which each of the prompts is done, and each permission is given."""
    said: list[tuple[str, Any]] = []
    is_idle = asyncio.Event()

    async def session_update(self: Any, params: Any) -> None:
        said.append(("session/update", params))
        if getattr(params.update, "state", "") == "idle":
            is_idle.set()

    async def session_request_permission(self: Any, params: Any) -> Any:
        said.append(("session/request_permission", params))
        outcome = acp.RequestPermissionOutcomeSelected(option_id=params.options[0].option_id)
        return acp.RequestPermissionResponse(outcome=outcome)

    client = client_of(acp, session_update=session_update, session_request_permission=session_request_permission)
    async with pair(acp, agent, client, client_options=unchecked(acp)) as peers:
        where = {"mcp_servers": []} if acp.PROTOCOL_VERSION == 1 else {}
        session = await peers.agent.session_new(acp.NewSessionRequest(cwd="/work", **where))
        events = [("session/new", session)]
        for prompt in prompts:
            is_idle.clear()
            blocks = [acp.ContentBlockText(text=prompt)]
            request = acp.PromptRequest(session_id=session.session_id, prompt=blocks)
            if acp.PROTOCOL_VERSION == 1:
                said.append(("session/prompt", request))
            await peers.agent.session_prompt(request)
            if acp.PROTOCOL_VERSION == 2:
                await is_idle.wait()
    found: list[Event] = []
    for method, message in events + said:
        plain = json.loads(json.dumps(acp.encode(message)).replace(session.session_id, SESSION))
        found.append(Event(method, None, plain) if method == "session/new" else Event(method, plain))
    return found


@pytest.mark.every_python
@pytest.mark.parametrize("name", AGENTS)
def test_what_our_agents_say_ends_as_the_model_says(name: str, tmp_path: Path) -> None:
    acp, agent = imported_agent(*AGENTS[name], tmp_path / re.sub(r"\W+", "_", name))
    events = run(recording(acp, agent, "Please edit it", "Thanks"))
    check(acp, events)
    check(acp, events[::-1])
    transcript = shown(after(acp, *events))
    edit = ["ToolCall: Edit notes.txt"] if "project" in name else []
    first, second = "Please edit it", "Thanks"
    assert transcript == [
        f"UserMessage: {first}",
        *edit,
        f"AgentMessage: {first}",
        f"UserMessage: {second}",
        f"AgentMessage: {second}",
    ]


# --- Protocol 1 ------------------------------------------------------------------------------------------------------

V1_BASES = pytest.mark.parametrize("sources", [V1, OLD], ids=["v1", "old v1"])


def say(tag: str, content: str, **more: Json) -> Event:
    return update(f"{tag}_chunk", content=text(content), **more)


@pytest.mark.every_python
@V1_BASES
def test_chunks_without_an_id_are_one_message_until_another_entry_comes(
    packages: Packages, sources: SchemaChoice
) -> None:
    state = after(
        packages(sources),
        Event("session/prompt", {"sessionId": SESSION, "prompt": [text("Hi")]}),
        Event("session/prompt", {"sessionId": SESSION, "prompt": [text("Hello?")]}),
        say("user_message", "echo"),
        say("agent_thought", "Hm"),
        say("agent_message", "I "),
        update("plan", entries=[]),
        say("agent_message", "see"),
        update("tool_call", toolCallId="c1", title="Look"),
        say("agent_message", "Do"),
        update("tool_call_update", toolCallId="c1", status="completed"),
        say("agent_message", "ne"),
    )
    assert shown(state) == [
        *("UserMessage: Hi", "UserMessage: Hello?", "UserMessage: echo", "Thought: Hm"),
        *("AgentMessage: I see", "ToolCall: Look", "AgentMessage: Done"),
    ]


def test_chunks_with_an_id_find_their_message(packages: Packages) -> None:
    state = after(
        packages(V1),
        say("agent_message", "A", messageId="m1"),
        say("agent_message", "B", messageId="m2"),
        say("agent_thought", "of another kind", messageId="m1"),
        say("agent_message", "a", messageId="m1"),
        say("agent_message", "none"),
        say("agent_message", " more", messageId=None),
        say("agent_message", "b", messageId="m2"),
    )
    assert shown(state) == [
        *("AgentMessage: Aa", "AgentMessage: Bb", "Thought: of another kind", "AgentMessage: none more"),
    ]


@pytest.mark.every_python
@V1_BASES
def test_null_keeps_what_is_known_of_a_tool_call(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    item = {"type": "content", "content": text("out")}
    call = {"toolCallId": "c1", "kind": "edit", "content": [item]}
    state = after(
        acp,
        Event("session/request_permission", {"sessionId": SESSION, "toolCall": call, "options": options}),
        update("tool_call", toolCallId="c1", title="Edit"),
        update("tool_call_update", toolCallId="c1", title=None, content=None, status="failed"),
    )
    (entry,) = state.tool_calls
    assert (entry.id, entry.title, entry.kind, entry.status) == ("c1", "Edit", "edit", "failed")
    assert acp.encode(entry.content) == [item]


@V1_BASES
def test_modes_and_options_of_results(packages: Packages, sources: SchemaChoice) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "go", "name": "Go"}]}
    acp = packages(sources)
    state = after(acp, Event("session/new", None, {"sessionId": SESSION, "modes": modes}))
    assert ([mode.name for mode in state.available_modes], state.current_mode_id) == (["Ask", "Go"], "ask")
    feed(acp, state, Event("session/set_mode", {"sessionId": SESSION, "modeId": "go"}))
    assert state.current_mode_id == "go"
    feed(acp, state, update("current_mode_update", currentModeId="ask"))
    assert state.current_mode_id == "ask"


# --- Protocol 2 ------------------------------------------------------------------------------------------------------


@pytest.mark.every_python
def test_absent_keeps_null_clears_a_value_replaces_and_chunks_append(packages: Packages) -> None:
    acp = packages(V2)
    events = [
        update("agent_message", messageId="m1", content=[text("A")], _meta={"a": 1, "b": 2}),
        say("agent_message", "B", messageId="m1"),
        update("agent_message", messageId="m1", _meta={"a": None}),
        update("agent_message", messageId="m1", content=[text("C")]),
        say("agent_message", "D", messageId="m1"),
        update("agent_message", messageId="m1", content=None, _meta=None),
        say("agent_message", "E", messageId="m1"),
    ]
    state = new_state(acp)
    found: list[tuple[str, Json]] = []
    for event in events:
        feed(acp, state, event)
        (entry,) = state.entries
        found.append((entry.text, dict(entry.meta)))
    b = {"b": 2}
    assert found == [("A", {"a": 1, **b}), ("AB", {"a": 1, **b}), ("AB", b), ("C", b), ("CD", b), ("", {}), ("E", {})]


def test_null_restores_the_defaults_of_a_tool_call(packages: Packages) -> None:
    acp = packages(V2)
    state = after(
        acp,
        update("tool_call_content_chunk", toolCallId="c1", content={"type": "terminal", "terminalId": "t1"}),
        update("tool_call_update", toolCallId="c1", title="Run", kind="edit", status="failed", rawInput=[1]),
    )
    (call,) = state.tool_calls
    assert (call.title, call.kind, call.status, call.raw_input) == ("Run", "edit", "failed", [1])
    assert call.content[0].terminal_id == "t1"
    cleared = dict.fromkeys(("title", "kind", "status", "content", "rawInput"))
    feed(acp, state, update("tool_call_update", toolCallId="c1", **cleared))
    assert (call.title, call.kind, call.status, call.raw_input) == (None, "other", "pending", None)
    assert call.content == []


def test_a_terminal_collects_bytes(packages: Packages) -> None:
    acp = packages(V2)
    euro = ["4oI=", "rA=="]  # a character in two parts
    chunks = [update("terminal_output_chunk", terminalId="t1", data=data) for data in euro]
    state = after(acp, *chunks, update("terminal_update", terminalId="t1", exitStatus={"exitCode": 0}))
    terminal = state.terminals["t1"]
    assert (terminal.output.decode(), terminal.exit_status.exit_code) == ("€", 0)
    feed(acp, state, update("terminal_update", terminalId="t1", output={"data": "aGk="}, exitStatus=None))
    assert (bytes(terminal.output), terminal.exit_status) == (b"hi", None)
    feed(acp, state, update("terminal_output_chunk", terminalId="t1", data="no base64 ä"))
    assert bytes(terminal.output) == b"hi"


def test_a_new_session_is_idle_unless_it_has_said_otherwise(packages: Packages) -> None:
    new = Event("session/new", None, {"sessionId": SESSION})
    running = update("state_update", state="running")
    assert [after(packages(V2), *events).state.state for events in ([new], [running, new], [new, running])] == [
        *("idle", "running", "running"),
    ]
    assert after(packages(V2), Event("session/resume", None, {})).state is None


def test_a_plan_of_an_extension_can_be_removed(packages: Packages) -> None:
    acp = packages(EXTENDED[2], options=OPEN)
    plan = {"type": "markdown", "planId": "p1", "content": "# Plan"}
    state = after(acp, update("plan_update", plan=plan))
    assert acp.encode(state.plans["p1"]) == plan
    feed(acp, state, update("plan_removed", planId="p1"))
    assert state.plans == {}


# --- Both ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sources", [OLD, EXTENDED[1], EXTENDED[2]], ids=["old v1", "v1", "v2"])
def test_unknown_updates_reach_the_callback_only(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources, options=OPEN)
    empty = seen(acp, new_state(acp))
    got: list[Any] = []
    unknown = ["hologram", "_own"]
    if sources is OLD:
        unknown += ["usage_update", "session_info_update", "compaction_update", "compaction_summary_chunk"]
    for tag in unknown:
        state = after(acp, update(tag, beams=3, content=text("x")), on_change=got.append)
        assert seen(acp, state) == empty
    assert [acp.encode(each)["sessionUpdate"] for each in got] == unknown


@PROTOCOLS
def test_no_valid_update_raises(packages: Packages, protocol: int) -> None:
    acp = packages(EXTENDED[protocol], options=OPEN)
    maker = Subject(label="extended", sources=EXTENDED[protocol], options=OPEN).maker
    name = "SessionNotification" if protocol == 1 else "UpdateSessionNotification"
    got: list[Any] = []
    state = new_state(acp, on_change=got.append)
    for seed in range(100):
        params = maker.value(name, Random(seed))
        feed(acp, state, Event("session/update", {**params, "sessionId": SESSION}))
    assert len(got) == 100
    assert len(state.entries) > 10


@EVERY_BASE
def test_messages_of_other_sessions_are_ignored(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    got: list[Any] = []
    events = [event for event in recorded(acp.PROTOCOL_VERSION) if event.result is None]
    known = [event for event in events if sources is not OLD or "update" not in event.params or is_old(event)]
    state = new_state(acp, on_change=got.append)
    state.session_id = "another"
    for event in known:
        feed(acp, state, event)
    assert (state.entries, got) == ([], [])


def is_old(event: Event) -> bool:
    """True for updates that the oldest bundled release has."""
    return event.params["update"]["sessionUpdate"].startswith(("tool_call", "plan", "agent_"))


@PROTOCOLS
def test_extensions_change_nothing(packages: Packages, protocol: int) -> None:
    acp = packages(EXTENDED[protocol], options=OPEN)
    for seed in range(20):
        events = Traffic(seed, protocol).sequence()
        assert seen(acp, after(acp, *events)) == expected(events, protocol)


def test_a_package_of_two_protocols_has_both(packages: Packages) -> None:
    acp = packages(V1, V2)
    for part in (importlib.import_module(f"{acp.__name__}.v{number}") for number in (1, 2)):
        events = Traffic("both", part.PROTOCOL_VERSION).sequence()
        assert seen(part, after(part, *events)) == expected(events, part.PROTOCOL_VERSION)
