"""The rules by which `SessionState` applies messages: one by one, as docs and specification have them."""

from __future__ import annotations

import asyncio
import importlib
from random import Random
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.schema.bundled import find_release
from tests.fidelity.subjects import Subject
from tests.runtime_support import EVERY_BASE, OLD, V1, V2, example_of, raw_peer, run, unchecked
from tests.session_model import SESSION, Event, Json, expected
from tests.session_traffic import Traffic, after, feed, new_state, recorded, say, seen, shown, text, update
from tests.support import Packages, fitting_fragments

OPEN = Options(keep_unknown=True, open=True)
EXTENDED = {
    number: SchemaChoice(protocol=number, release="2026-11-02", extensions=fitting_fragments(find_release(number)))
    for number in (1, 2)
}
"""The newest release of each protocol with all bundled extensions."""
PROTOCOLS = pytest.mark.parametrize("protocol", [1, 2])

# --- Protocol 1 ------------------------------------------------------------------------------------------------------

V1_BASES = pytest.mark.parametrize("sources", [V1, OLD], ids=["v1", "old v1"])


def asking(protocol: int, **call: Any) -> Event:
    """A question about the call c1."""
    about = {"toolCallId": "c1", **call}
    options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
    subject: Any = {"toolCall": about} if protocol == 1 else {"subject": {"type": "tool_call", "toolCall": about}}
    title: Any = {} if protocol == 1 else {"title": "May I?"}
    return Event("session/request_permission", {"sessionId": SESSION, "options": options, **title, **subject})


@pytest.mark.every_python
@PROTOCOLS
def test_a_question_takes_nothing_back(packages: Packages, protocol: int) -> None:
    """What it leaves empty, or knows less of; opencode asks with a part of the input, and nulls and empty lists."""
    known = {"rawInput": {"cwd": "/work"}, "locations": [{"path": "/work"}], "status": "in_progress", "kind": "execute"}
    state = after(
        packages({1: V1, 2: V2}[protocol]),
        update("tool_call" if protocol == 1 else "tool_call_update", toolCallId="c1", title="Run", **known),
        asking(protocol, title="", locations=[], content=[], status="pending", rawInput={"command": "ls", "cwd": ""}),
        asking(protocol, title=None, rawInput={}, kind=None),
    )
    (call,) = state.entries
    assert (call.title, call.kind, call.status) == ("Run", "execute", "in_progress")
    assert call.raw_input == {"cwd": "/work", "command": "ls"}
    assert [each.path for each in call.locations] == ["/work"]


@pytest.mark.every_python
@PROTOCOLS
def test_a_question_about_a_call_that_has_ended_is_about_another(packages: Packages, protocol: int) -> None:
    """Some agents number the calls of each turn anew: what the first one was must not be taken for this one."""
    state = after(
        packages({1: V1, 2: V2}[protocol]),
        update("tool_call_update", toolCallId="c1", title="Run", status="completed", rawInput={"command": "ls"}),
        asking(protocol, title="Write", status="pending", rawInput={"path": "/x"}),
    )
    (call,) = state.entries
    assert (call.title, call.status, call.raw_input) == ("Write", "pending", {"path": "/x"})


@pytest.mark.every_python
@PROTOCOLS
@pytest.mark.parametrize("first", ["question", "end"])
def test_the_first_news_of_a_call_may_be_its_question_or_its_end(packages: Packages, protocol: int, first: str) -> None:
    """gemini-cli reports no start of a call."""
    said = asking(protocol, title="Run") if first == "question" else None
    end = update("tool_call_update", toolCallId="c1", status="completed", title="Run")
    state = after(packages({1: V1, 2: V2}[protocol]), *[each for each in (said, end) if each is not None])
    assert [(each.title, each.status) for each in state.entries] == [("Run", "completed")]


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
    assert (call.title, call.kind, call.status, call.raw_input) == (None, None, "pending", None)
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
    for data in ("no base64 ä", "no base64!", "YQ==YQ==", "aGk"):
        feed(acp, state, update("terminal_output_chunk", terminalId="t1", data=data))
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


def test_a_plan_of_protocol_2_and_the_state_are_reported_as_what_has_changed(packages: Packages) -> None:
    acp = packages(EXTENDED[2], options=OPEN)
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    got: list[Any] = []
    plan = update("plan_update", plan={"type": "markdown", "planId": "p1", "content": "# Plan"})
    removed = update("plan_removed", planId="p1")
    state = after(acp, update("state_update", state="running"), plan, removed, removed, on_change=got.append)
    assert got[0] == helpers.AttributesChange(names=frozenset({"state"}))
    assert (acp.encode(got[1].plan)["content"], got[1].plan_id) == ("# Plan", "p1")
    assert got[2] == helpers.PlanChange(plan=None, plan_id="p1")
    assert acp.encode(got[3]) == removed.params["update"]
    feed(acp, state, update("session_info_update", title="T"))
    assert got[4:] == [helpers.AttributesChange(names=frozenset({"title"}))]


# --- Changes ---------------------------------------------------------------------------------------------------------


@V1_BASES
def test_changes_of_protocol_1_name_what_is_new(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    got: list[Any] = []
    modes = {"currentModeId": "ask", "availableModes": []}
    after(
        acp,
        Event("session/new", None, {"sessionId": SESSION, "modes": modes}),
        Event("session/prompt", {"sessionId": SESSION, "prompt": [text("Hi"), text("!")]}),
        update("plan", entries=[]),
        update("current_mode_update", currentModeId="go"),
        update("available_commands_update", availableCommands=[]),
        Event("session/set_mode", {"sessionId": SESSION, "modeId": "ask"}),
        on_change=got.append,
    )
    opened, prompted, planned, *attributes = got
    assert opened.names == {"available_modes", "current_mode_id"}
    assert (prompted.text, prompted.is_whole, type(prompted.entry).__name__) == ("Hi!", True, "UserMessage")
    assert (type(planned), planned.plan_id, acp.encode(planned.plan)["entries"]) == (helpers.PlanChange, "", [])
    assert [each.names for each in attributes] == [{"current_mode_id"}, {"available_commands"}, {"current_mode_id"}]


@PROTOCOLS
def test_a_chat_prints_each_word_once(packages: Packages, protocol: int) -> None:
    acp = packages({1: V1, 2: V2}[protocol])
    words = ["It ", "is ", "42."]
    printed: list[str] = []
    state = after(
        acp,
        *(say("agent_message", word, messageId="m") for word in words),
        on_change=lambda change: printed.append(change.text),
    )
    assert printed == words
    assert state.entries[0].text == "".join(words)


def test_a_message_of_protocol_2_is_whole_when_it_is_new_or_replaced(packages: Packages) -> None:
    got: list[Any] = []
    after(
        packages(V2),
        say("agent_message", "A", messageId="m"),
        say("agent_message", "B", messageId="m"),
        update("agent_message", messageId="m", _meta={"a": 1}),
        update("agent_message", messageId="m", content=[text("C")]),
        update("agent_message", messageId="m", content=None),
        update("terminal_output_chunk", terminalId="t", data="aGk="),
        update("terminal_output_chunk", terminalId="t", data="IQ=="),
        update("terminal_update", terminalId="t", output={"data": "aGk="}),
        on_change=got.append,
    )
    assert [(each.text, each.is_whole) for each in got[:5]] == [
        *(("A", True), ("B", False), ("", False), ("C", True), ("", True)),
    ]
    assert [(each.output, each.is_whole) for each in got[5:]] == [(b"hi", True), (b"!", False), (b"hi", True)]


@pytest.mark.every_python
@PROTOCOLS
def test_a_tool_call_starts_changes_and_ends(packages: Packages, protocol: int) -> None:
    got: list[Any] = []
    statuses = ["pending", "in_progress", "completed", "failed"]
    after(
        packages({1: V1, 2: V2}[protocol]),
        *(update("tool_call_update", toolCallId="c", status=status) for status in statuses),
        update("tool_call_update", toolCallId="short", status="failed"),
        on_change=got.append,
    )
    assert [(each.call.id, each.is_new, each.has_ended) for each in got] == [
        *(("c", True, False), ("c", False, False), ("c", False, True), ("c", False, False), ("short", True, True)),
    ]


@pytest.mark.every_python
@PROTOCOLS
def test_reading_the_text_after_each_chunk_reads_each_block_once(packages: Packages, protocol: int) -> None:
    acp = packages({1: V1, 2: V2}[protocol])
    reads = 0

    class Counting(acp.ContentBlockText):  # type: ignore[misc, name-defined]
        def __getattribute__(self, name: str) -> Any:
            nonlocal reads
            reads += name == "text"
            return super().__getattribute__(name)

    texts: list[str] = []
    state = new_state(acp, on_change=lambda change: texts.append(change.entry.text))
    kind = acp.SessionNotification if protocol == 1 else acp.UpdateSessionNotification
    for _ in range(500):
        chunk = acp.SessionUpdateAgentMessageChunk(message_id="m", content=Counting(text="x"))
        state.update(kind(session_id=SESSION, update=chunk))
    assert texts == ["x" * count for count in range(1, 501)]
    assert reads <= 1_000


def test_text_is_that_of_the_content_after_any_change(packages: Packages) -> None:
    acp = packages(V2)
    state = after(acp, update("agent_message", messageId="m", content=[text("A"), text("B")]))
    (entry,) = state.entries
    assert entry.text == "AB"
    entry.content = [*entry.content, acp.ContentBlockText(text="C")]
    assert entry.text == "ABC"
    entry.content.clear()
    assert entry.text == ""


# --- Extensions ------------------------------------------------------------------------------------------------------


def test_models_of_an_extension_are_kept(packages: Packages) -> None:
    acp = packages(EXTENDED[1], options=OPEN)
    models = {"currentModelId": "m1", "availableModels": [{"modelId": "m1", "name": "One"}]}
    got: list[Any] = []
    state = after(acp, Event("session/new", None, {"sessionId": SESSION, "models": models}), on_change=got.append)
    assert ([model.name for model in state.available_models], state.current_model_id) == (["One"], "m1")
    state.set_model(acp.SetSessionModelRequest(session_id=SESSION, model_id="m2"))
    assert state.current_model_id == "m2"
    assert [each.names for each in got] == [{"available_models", "current_model_id"}, {"current_model_id"}]


def test_plans_of_an_extension_of_protocol_1_are_kept(packages: Packages) -> None:
    acp = packages(EXTENDED[1], options=OPEN)
    got: list[Any] = []
    plan = {"type": "markdown", "planId": "p1", "content": "# Plan"}
    state = after(acp, update("plan_update", plan=plan), on_change=got.append)
    assert acp.encode(state.plans["p1"]) == plan
    feed(acp, state, update("plan_removed", planId="p1"))
    assert state.plans == {}
    assert [(each.plan_id, each.plan is None) for each in got] == [("p1", False), ("p1", True)]


# --- The documentation -----------------------------------------------------------------------------------------------


def example_client(acp: Any) -> Any:
    """A client with the methods of the example in the docstring."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    class Client(example_of(helpers.SessionState, acp, acp.Client)):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.sessions: dict[str, Any] = {}
            self.drawn: list[Any] = []

        def draw(self, changed: Any) -> None:
            self.drawn.append(changed)

    return Client


@pytest.mark.every_python
@PROTOCOLS
def test_the_example_of_the_docstring(packages: Packages, protocol: int) -> None:
    acp = packages({1: V1, 2: V2}[protocol])
    at_once = say("agent_message", "Hello", messageId="m").params

    async def main() -> None:
        async with raw_peer(acp, example_client(acp), options=unchecked(acp)) as peer:
            client = peer.handler
            where = {"mcp_servers": []} if protocol == 1 else {}

            async def open_session() -> None:
                client.opened(await client.agent.session_new(acp.NewSessionRequest(cwd="/work", **where)))

            opening = asyncio.create_task(open_session())
            request = await peer.receive()
            await peer.answer(request["id"], result={"sessionId": SESSION})
            await peer.notify("session/update", at_once)
            await peer.notify("session/update", {**at_once, "sessionId": "invented"})
            await peer.ping()
            await opening
            assert {name: shown(state) for name, state in client.sessions.items()} == {SESSION: ["AgentMessage: Hello"]}
            opened, said = client.drawn
            assert type(opened).__name__ == "AttributesChange"
            assert (said.entry, said.text) == (client.sessions[SESSION].entries[0], "Hello")

    run(main())


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
