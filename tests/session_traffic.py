"""Traffic of sessions, made from a seed or recorded, for the tests of `SessionState`; and its state as JSON."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass
from random import Random
from types import ModuleType
from typing import Any

from tests.interop import values_v1, values_v2
from tests.interop.values import BLOCKS, OPTIONS, PLAN
from tests.session_model import SESSION, Event, Json, without_nulls

TEXTS = [{"type": "text", "text": text} for text in ("a", "b", "", "é\n")]
METAS = [{"a": 1}, {"a": None, "b": [2]}, {"b": {"deep": None}}, {}]
RESULTS = {
    1: ("session/new", "session/load", "session/resume", "session/set_config_option"),
    2: ("session/new", "session/resume", "session/set_config_option"),
}
RESULT_TYPES = {
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
}
PARAM_TYPES = {
    "session/request_permission": "RequestPermissionRequest",
    "session/prompt": "PromptRequest",
    "session/set_mode": "SetSessionModeRequest",
}


# --- What agents and clients say -------------------------------------------------------------------------------------


def recorded(protocol: int) -> list[Event]:
    """The messages of a session that the official SDKs send and accept in the tests of conversations."""
    known = {*RESULTS[protocol], "session/update", "session/request_permission"}
    found = [each for each in (values_v1 if protocol == 1 else values_v2).EXCHANGES if each.method in known]
    return [Event(each.method, each.params, each.result if each.caller == "client" else None) for each in found]


class Traffic:
    """Makes messages at random, with few ids, so that they meet."""

    def __init__(self, seed: object, protocol: int) -> None:
        self._random = Random(f"{seed} {protocol}")
        self._protocol = protocol
        self._recorded = recorded(protocol)
        self._blocks = [*TEXTS, *BLOCKS.values()]
        self._contents: list[Json] = (values_v1 if protocol == 1 else values_v2).CONTENT
        self._config: list[Json] = (values_v1 if protocol == 1 else values_v2).CONFIG

    def sequence(self) -> list[Event]:
        """Up to 30 messages in any order: an agent may tell of everything at any time."""
        return [self._event() for _ in range(self._random.randint(1, 30))]

    def _event(self) -> Event:
        choice = self._random.random()
        if choice < 0.1:
            return self._random.choice(self._recorded)
        if choice < 0.16:
            return self._result()
        if choice < 0.24:
            return self._question()
        if choice < 0.3 and self._protocol == 1:
            return self._of_client()
        make = self._update_1 if self._protocol == 1 else self._update_2
        update = make(self._any(TAGS[self._protocol])) or self._of_session(self._any(OF_SESSION[: 6 + self._protocol]))
        return Event("session/update", {"sessionId": "s2" if choice > 0.98 else SESSION, "update": update})

    # --- Values ---

    def _patch(self, **options: list[Json]) -> dict[str, Json]:
        """Some of these members, each with one of its values, or null."""
        patch = {name: None if self._often(0.25) else self._any(of) for name, of in options.items() if self._often(0.4)}
        return patch | ({"_meta": self._any([*METAS, None])} if self._often(0.25) else {})

    def _often(self, share: float) -> bool:
        return self._random.random() < share

    def _any(self, of: list[Json]) -> Json:
        return self._random.choice(of)

    def _some(self, of: list[Json]) -> list[Json]:
        return [self._any(of) for _ in range(self._random.randint(0, 3))]

    def _lists(self, of: list[Json]) -> list[Json]:
        return [self._some(of)]

    def _id(self, letter: str) -> str:
        return self._any([f"{letter}1", f"{letter}2"])

    def _plan(self) -> list[Json]:
        return self._some(PLAN)

    # --- Messages ---

    def _result(self) -> Event:
        method = self._any([*RESULTS[self._protocol]])
        result: Json = {**({"sessionId": SESSION} if method == "session/new" else {}), **self._patch()}
        if method == "session/set_config_option" or self._often(0.5):
            result["configOptions"] = self._some(self._config)
        if self._protocol == 2 and "option" not in method and self._often(0.5):
            result["availableCommands"] = self._some(values_v2.COMMANDS)
        if self._protocol == 1 and "option" not in method:
            result |= {"configOptions": None} if self._often(0.2) else {}
            result |= {"modes": self._any([None, values_v1.MODES, {**values_v1.MODES, "availableModes": []}])}
        return Event(method, {"sessionId": SESSION}, result)

    def _question(self) -> Event:
        params: Json = {"sessionId": SESSION, "options": OPTIONS}
        if self._protocol == 1:
            return Event("session/request_permission", {**params, "toolCall": self._call()})
        subject = self._any([{"type": "tool_call", "toolCall": self._call()}, {"type": "_own", "x": 1}, None])
        return Event("session/request_permission", {**params, "title": "May I?", "subject": subject})

    def _of_client(self) -> Event:
        if self._often(0.5):
            return Event("session/prompt", {"sessionId": SESSION, "prompt": self._some(self._blocks)})
        return Event("session/set_mode", {"sessionId": SESSION, "modeId": self._any(["ask", "code"])})

    def _call(self) -> Json:
        more: Json = {} if self._protocol == 1 else {"capabilities": [{}, {"cancel": {}}]}
        return {
            "toolCallId": self._id("c"),
            **self._patch(
                title=["Edit", ""],
                name=["edit_file"],
                kind=["edit", "read"],
                status=["in_progress", "completed", "failed"],
                content=self._lists(self._contents),
                locations=self._lists([{"path": "/a", "line": 3}, {"path": "/b"}]),
                rawInput=[1, {"x": [None]}, [1, 2], "", False],
                rawOutput=["done", []],
                **more,
            ),
        }

    def _update_1(self, tag: str) -> Json:
        update: Json = {"sessionUpdate": tag}
        match tag:
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk":
                ids: Json = self._any([{}, {}, {"messageId": None}, {"messageId": self._id("m")}])
                return {**update, **ids, "content": self._any(self._blocks), **self._patch()}
            case "tool_call":
                call = {name: value for name, value in self._call().items() if value is not None}
                return {**call, "title": self._any(["Call", "Run"]), **update}
            case "tool_call_update":
                return {**self._call(), **update}
            case "plan":
                return {**update, "entries": self._plan()}
            case "current_mode_update":
                return {**update, "currentModeId": self._any(["ask", "code"]), **self._patch()}
        return None

    def _update_2(self, tag: str) -> Json:
        update: Json = {"sessionUpdate": tag}
        match tag:
            case "user_message" | "agent_message" | "agent_thought":
                return {**update, "messageId": self._id("m"), **self._patch(content=self._lists(self._blocks))}
            case "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk":
                return {**update, "messageId": self._id("m"), "content": self._any(self._blocks), **self._patch()}
            case "tool_call_update":
                return {**self._call(), **update}
            case "tool_call_content_chunk":
                return {**update, "toolCallId": self._id("c"), "content": self._any(self._contents)}
            case "terminal_update":
                patch = self._patch(
                    command=["make", ""],
                    cwd=["/work"],
                    output=[{"data": data} for data in DATA],
                    exitStatus=[{}, {"exitCode": 1, "signal": None}],
                    size=[{"cols": 80, "rows": 25}],
                    capabilities=[{}, {"cancel": {}}],
                )
                return {**update, "terminalId": self._id("t"), **patch}
            case "terminal_output_chunk":
                return {**update, "terminalId": self._id("t"), "data": self._any(DATA)}
            case "plan_update":
                forms: list[Json] = [{"type": "items", "entries": self._plan()}, {"type": "_own", "text": "…"}]
                return {**update, "plan": {"planId": self._id("p"), **self._any(forms)}}
            case "state_update":
                idle = {"state": "idle", "stopReason": "end_turn"}
                return {**update, **self._any([{"state": "running"}, idle, {"state": "_x"}])}
        return None

    def _of_session(self, tag: str) -> Json:
        update: Json = {"sessionUpdate": tag}
        match tag:
            case "available_commands_update":
                commands = {"name": "go", "description": "Go"}
                typed = values_v2.COMMANDS if self._protocol == 2 else [commands, {**commands, "name": "run"}]
                return {**update, "availableCommands": self._some(typed), **self._patch()}
            case "config_option_update":
                return {**update, "configOptions": self._some(self._config), **self._patch()}
            case "session_info_update":
                return {**update, **self._patch(title=["T", "U"], updatedAt=["2026-01-02T03:04:05Z"])}
            case "usage_update":
                cost = {"amount": 0.25, "currency": "EUR"}
                return {**update, "used": self._random.randint(0, 9), "size": 9, **self._patch(cost=[cost])}
            case "compaction_update":
                patch = self._patch(summary=self._lists(self._blocks), error=["Oh"])
                return {**update, "compactionId": self._id("k"), "status": self._any(["completed", "failed"]), **patch}
            case "compaction_summary_chunk":
                return {**update, "compactionId": self._id("k"), "content": self._any(self._blocks)}
            case "notice":
                return {**update, "severity": "info", "title": "Hello"}
        return {"sessionUpdate": "_vendor", "text": "an update of their own"}


DATA = ["aGk=", "", "/w==", "="]
"""Output of terminals: text, nothing, a byte that is no text, and what is not base64."""
OF_SESSION = [
    "available_commands_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "compaction_update",
    "compaction_summary_chunk",
    "notice",
    "_vendor",  # protocol 2 knows what is not known
]
_CHUNKS = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]
_REST = ["of the session"] * 3
TAGS = {
    1: [*_CHUNKS, *_CHUNKS, "tool_call", "tool_call_update", "tool_call_update", "plan", "current_mode_update", *_REST],
    2: [
        *(*_CHUNKS, "user_message", "agent_message", "agent_thought", "tool_call_update", "tool_call_update"),
        *("tool_call_content_chunk", "terminal_update", "terminal_update", "terminal_output_chunk"),
        *("plan_update", "state_update", *_REST),
    ],
}


def update(tag: str, **members: Json) -> Event:
    """A `session/update`."""
    return Event("session/update", {"sessionId": SESSION, "update": {"sessionUpdate": tag, **members}})


def text(content: str) -> Json:
    """A block of text."""
    return {"type": "text", "text": content}


def say(tag: str, content: str, **more: Json) -> Event:
    """A chunk of a message."""
    return update(f"{tag}_chunk", content=text(content), **more)


# --- States ----------------------------------------------------------------------------------------------------------


def new_state(acp: ModuleType, **options: Any) -> Any:
    """A state of the package `acp`, or of its part for one version."""
    return importlib.import_module(f"{acp.__name__}.helpers").SessionState(SESSION, **options)


def feed(acp: ModuleType, state: Any, event: Event) -> Any:
    """Decode a message and pass it to the state, as a client does; returns what was decoded."""
    if event.result is not None:
        message = acp.decode(getattr(acp, RESULT_TYPES[event.method]), event.result)
        state.apply(message)
        return message
    name = "SessionNotification" if acp.PROTOCOL_VERSION == 1 else "UpdateSessionNotification"
    message = acp.decode(getattr(acp, PARAM_TYPES.get(event.method, name)), event.params)
    takers = {"session/update": "update", "session/request_permission": "ask", "session/prompt": "prompt"}
    getattr(state, takers.get(event.method, "set_mode"))(message)
    return message


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


def seen(acp: ModuleType, state: Any) -> Json:
    """A state as JSON, in the form of `tests.session_model.expected`."""
    plain = as_json(acp, state)
    shown = {name: value for name, value in plain.items() if name not in ("sessionId", "onChange")}
    entries = [{"is": type(entry).__name__, **as_json(acp, entry)} for entry in state.entries]
    return without_nulls({**shown, "entries": entries})


def as_json(acp: ModuleType, value: Any) -> Json:
    """Anything in a state as JSON: what the package encodes, and dataclasses of the helpers by their fields."""
    if type(value).__module__.endswith(".types"):
        return acp.encode(value)
    if isinstance(value, list):
        return [as_json(acp, each) for each in value]
    if isinstance(value, dict):
        return {key: as_json(acp, each) for key, each in value.items()}
    if isinstance(value, bytearray):
        return value.hex()
    if is_dataclass(value):
        names = (each.name for each in fields(value) if each.name != "reported")  # for permissions, and not shown
        public = [each for each in names if not each.startswith("_")]
        return {on_wire(name): as_json(acp, getattr(value, name)) for name in public}
    return value


def on_wire(name: str) -> str:
    first, *rest = name.split("_")
    return "_meta" if name == "meta" else first + "".join(map(str.title, rest))
