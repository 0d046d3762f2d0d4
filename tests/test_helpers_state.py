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
from types import ModuleType
from typing import Any, get_args

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role
from acpgen.scaffold import Project, project_files
from tests.runtime_support import V1, V2, client_of, pair, run, unchecked
from tests.session_model import SESSION, Event, Json, expected
from tests.session_traffic import Traffic, after, as_json, feed, new_state, recorded, seen, shown
from tests.support import DEEP, REPOSITORY, Packages, import_folder, package_folder

SEQUENCES = 300
MANY_SEQUENCES = 5_000 if DEEP else 2_000
FINAL = ("completed", "failed", "cancelled")
BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])


# --- The model -------------------------------------------------------------------------------------------------------


class Screen:
    """A user interface that is drawn from the changes alone: it never looks at what they do not say."""

    def __init__(self, acp: ModuleType, state: Any) -> None:
        self._acp, self._state = acp, state
        self._helpers = importlib.import_module(f"{acp.__name__}.helpers")
        self.messages: dict[Any, list[Json]] = {}
        self.texts: dict[Any, str] = {}
        self.outputs: dict[Any, bytes] = {}
        self.others: dict[Any, Json] = {}
        self.plans: dict[str, Json] = {}
        self.attributes = {name: self._of(getattr(state, name)) for name in get_args(self._helpers.SessionAttribute)}

    def draw(self, change: Any) -> None:
        match type(change).__name__:
            case "MessageChange":
                drawn = ([], "") if change.is_whole else (self.messages[change.entry], self.texts[change.entry])
                self.messages[change.entry] = drawn[0] + self._of(list(change.content))
                self.texts[change.entry] = drawn[1] + change.text
            case "TerminalChange":
                drawn_output = b"" if change.is_whole else self.outputs[change.terminal]
                self.outputs[change.terminal] = drawn_output + change.output
                self.others[change.terminal] = copy.deepcopy(self._of(change.terminal))
            case "ToolCallChange":
                assert change.is_new == (change.call not in self.others)
                before = self.others.get(change.call, {}).get("status")
                assert change.has_ended == (change.call.status in FINAL and before not in FINAL)
                self.others[change.call] = copy.deepcopy(self._of(change.call))
            case "CompactionChange":
                self.others[change.compaction] = copy.deepcopy(self._of(change.compaction))
            case "PlanChange" if change.plan is None:
                del self.plans[change.plan_id]
            case "PlanChange":
                self.plans[change.plan_id] = self._of(change.plan)
            case "AttributesChange":
                values = {name: self._of(getattr(self._state, name)) for name in change.names}
                self.attributes |= copy.deepcopy(values)
            case _:
                assert type(change).__module__.endswith(".types")

    def _of(self, shown: Any) -> Json:
        return as_json(self._acp, shown)

    def check(self) -> None:
        """Fail where the state has something that is not as it was drawn."""
        state = self._state
        messages = [entry for entry in state.entries if isinstance(entry, self._helpers.Message)]
        assert self.messages == {entry: self._of(entry.content) for entry in messages}
        assert self.texts == {entry: entry.text for entry in messages}
        terminals = getattr(state, "terminals", {}).values()
        assert self.outputs == {terminal: bytes(terminal.output) for terminal in terminals}
        others = [*(entry for entry in state.entries if entry not in messages), *terminals]
        assert self.others == {each: self._of(each) for each in others}
        plans = {**state.plans, **({"": state.plan} if getattr(state, "plan", None) else {})}
        assert self.plans == {name: self._of(plan) for name, plan in plans.items()}
        assert self.attributes == {name: self._of(getattr(state, name)) for name in self.attributes}


def check(acp: ModuleType, events: list[Event]) -> None:
    """Fail where a state is not what the model expects, where a message was changed, or something was not reported."""
    state = new_state(acp)
    screen = Screen(acp, state)
    state.on_change = screen.draw
    taken = [(event, feed(acp, state, event)) for event in events]
    assert seen(acp, state) == expected(events, acp.PROTOCOL_VERSION)
    screen.check()
    for event, message in taken:
        assert message == acp.decode(type(message), event.params if event.result is None else event.result)


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

VERSIONS = {"v1": V1, "v2": V2}
AGENTS = [f"{kind}, {version}" for kind in ("a project", "an example") for version in VERSIONS]


def imported_agent(name: str, folder: Path) -> tuple[ModuleType, Any]:
    """An agent of this repository, and the package that it uses."""
    version = name[-2:]
    folder.mkdir()
    shutil.copytree(package_folder(VERSIONS[version]), folder / "acp")
    for file, text in (project_modules(version) if "project" in name else example_modules(version)).items():
        (folder / file).write_text(text, encoding="utf-8")
    package = import_folder(folder)
    return importlib.import_module(f"{package.__name__}.acp"), importlib.import_module(f"{package.__name__}.agent")


def project_modules(version: str) -> dict[str, str]:
    project = Project(folder=Path("demo"), role=Role.AGENT, sources=(VERSIONS[version],))
    modules = {Path(path).name: text for path, text in project_files(project) if path.startswith("src/")}
    return {**modules, "work.py": modules["work.py"].replace("PAUSE = 0.05", "PAUSE = 0")}


def example_modules(version: str) -> dict[str, str]:
    source = (REPOSITORY / f"examples/echo_agent_{version}.py").read_text(encoding="utf-8")
    return {"__init__.py": "", "agent.py": re.sub(r"from acp_echo_v\d", "from .acp", source)}


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
    async with pair(acp, agent, client, agent_options=unchecked(acp), client_options=unchecked(acp)) as peers:
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
    acp, module = imported_agent(name, tmp_path / re.sub(r"\W+", "_", name))
    events = run(recording(acp, module.EchoAgent, "Please edit it", "Thanks"))
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
