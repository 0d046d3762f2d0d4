"""What a session should look like, computed anew from the list of all its messages, in plain JSON.

Nothing here is shared with `SessionState`: it has no state, and looks for the last message that says something.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

Json = Any

SESSION = "s1"
TOOL_FIELDS = {"title": None, "name": None, "kind": None, "status": "pending", "locations": []}
TOOL_FIELDS_2 = {**TOOL_FIELDS, "capabilities": None}
TERMINAL_FIELDS = {"command": None, "cwd": None, "exitStatus": None, "size": None, "capabilities": None}
KINDS = {"user_message": "UserMessage", "agent_message": "AgentMessage", "agent_thought": "Thought"}


class Event(NamedTuple):
    """A message of a session: a notification or a request with `params`, or what the client's request returned."""

    method: str
    params: Json
    result: Json = None


@dataclass(frozen=True)
class Said:
    """What one message says of one entry: `changes` to its fields, or an `item` to append."""

    key: tuple[str, str]
    changes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    item: Json = None
    asks: bool = False
    """True for a question, which takes nothing back."""


def without_nulls(value: Json) -> Json:
    """A value without the properties that are null: encoding leaves out those that say nothing."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def expected(events: list[Event], protocol: int) -> Json:
    """The state after these messages, as `tests.session_traffic.seen` shows one."""
    about = [event for event in events if (event.params or {}).get("sessionId", SESSION) == SESSION]
    updates = [event.params["update"] for event in about if event.method == "session/update"]
    said = _entries_1(about) if protocol == 1 else _entries_2(about)
    keys = list(dict.fromkeys(each.key for each in said))
    entries = [
        _entry(key, [each for each in said if each.key == key], protocol) for key in keys if key[0] != "Terminal"
    ]
    plans = [each for each in updates if each["sessionUpdate"] == "plan"]
    found: Json = {
        "entries": entries,
        **_session(about, updates, protocol),
        "usage": _usage([each for each in updates if each["sessionUpdate"] == "usage_update"]),
        **(
            {"plan": plans[-1] if plans else None, "plans": {}}
            if protocol == 1
            else {
                "plans": {each["plan"]["planId"]: each["plan"] for each in _tagged(updates, "plan_update")},
                "terminals": {key[1]: _terminal(key[1], said) for key in keys if key[0] == "Terminal"},
                "state": _state(about),
            }
        ),
    }
    return without_nulls(found)


# --- Entries ---------------------------------------------------------------------------------------------------------


def _entries_1(events: list[Event]) -> list[Said]:
    """What each message says of entries, in protocol 1. Messages without an id get one of the model's own."""
    said: list[Said] = []
    order: list[tuple[str, str]] = []  # of entries, by when they first appeared
    prompt: tuple[str, str] = ("", "")
    unechoed: list[Json] = []  # of the last prompt: what the agent has not repeated
    for number, event in enumerate(events):
        update = event.params["update"] if event.method == "session/update" else {}
        tag = update.get("sessionUpdate", "")
        new: Said | None = None
        if event.method == "session/prompt":
            prompt, unechoed = ("UserMessage", f"prompt {number}"), _atoms(event.params["prompt"])
            new = Said(prompt, {"content": event.params["prompt"]})
        elif tag == "user_message_chunk" and order[-1:] == [prompt] and _echoes(update, prompt, unechoed, order):
            unechoed = unechoed[len(_atoms([update["content"]])) :]
            if isinstance(update.get("messageId"), str):
                named = (prompt[0], "id " + update["messageId"])
                said = [replace(each, key=named) if each.key == prompt else each for each in said]
                order[-1] = prompt = named
        elif event.method == "session/request_permission":
            new = replace(_question(event.params["toolCall"]), asks=True)
        elif tag in ("tool_call", "tool_call_update"):
            new = _tool(update)
        elif tag.endswith("_chunk") and tag.removesuffix("_chunk") in KINDS:
            kind = KINDS[tag.removesuffix("_chunk")]
            if isinstance(update.get("messageId"), str):
                key = (kind, "id " + update["messageId"])
            elif order and order[-1][0] == kind and order[-1] != prompt:
                key = order[-1]
            else:
                key = (kind, f"none {number}")
            new = Said(key, item=update["content"])
        else:
            new = _compaction(update)
        if new is not None:
            said.append(new)
            order += [new.key] if new.key not in order else []
    return said


def _atoms(blocks: list[Json]) -> list[Json]:
    """The blocks, with the characters of each text by themselves."""
    return [atom for block in blocks for atom in ([*block["text"]] if block["type"] == "text" else [block])]


def _echoes(update: Json, prompt: tuple[str, str], unechoed: list[Json], order: list[tuple[str, str]]) -> bool:
    """Whether a chunk repeats the prompt where the agent has come to in it, under no other id."""
    atoms, name = _atoms([update["content"]]), update.get("messageId")
    has_id = isinstance(name, str)
    is_other = has_id and (prompt[0], f"id {name}") in order and prompt[1] != f"id {name}"
    is_renamed = has_id and prompt[1].startswith("id ") and prompt[1] != f"id {name}"
    return bool(atoms) and unechoed[: len(atoms)] == atoms and not is_other and not is_renamed


def _entries_2(events: list[Event]) -> list[Said]:
    said: list[Said | None] = []
    for event in events:
        update = event.params["update"] if event.method == "session/update" else {}
        tag = update.get("sessionUpdate", "")
        name = tag.removesuffix("_chunk")
        if event.method == "session/request_permission":
            subject = event.params.get("subject") or {}
            said.append(
                replace(_question(subject["toolCall"]), asks=True) if subject.get("type") == "tool_call" else None
            )
        elif name in KINDS:
            key = (KINDS[name], "id " + update["messageId"])
            said.append(Said(key, update) if name == tag else Said(key, item=update["content"]))
        elif tag == "tool_call_update":
            said.append(_tool(update))
        elif tag == "tool_call_content_chunk":
            said.append(Said(("ToolCall", "id " + update["toolCallId"]), item=update["content"]))
        elif tag == "terminal_update":
            said.append(Said(("Terminal", update["terminalId"]), update))
        elif tag == "terminal_output_chunk":
            said.append(Said(("Terminal", update["terminalId"]), item=update))
        else:
            said.append(_compaction(update))
    return [each for each in said if each is not None]


def _tool(update: Json) -> Said:
    return Said(("ToolCall", "id " + update["toolCallId"]), update)


def _is_nothing(raw: Json) -> bool:
    inner = list(raw.values()) if isinstance(raw, dict) else raw
    return all(map(_is_nothing, inner)) if isinstance(inner, list) else raw is None or raw == ""


def _question(call: Json) -> Said:
    """A question takes back nothing that it leaves empty."""
    raw = ("rawInput", "rawOutput")
    said = {
        name: value
        for name, value in call.items()
        if not (_is_nothing(value) if name in raw else value is None or value in ("", []))
    }
    return _tool(said)


def _compaction(update: Json) -> Said | None:
    match update.get("sessionUpdate"):
        case "compaction_update":
            return Said(("Compaction", "id " + update["compactionId"]), update)
        case "compaction_summary_chunk":
            return Said(("Compaction", "id " + update["compactionId"]), item=update["content"])
    return None


def _entry(key: tuple[str, str], said: list[Said], protocol: int) -> Json:
    kind, name = key
    entry = {"is": kind, "id": name[3:] if name.startswith("id ") else ""}
    keeps = kind == "ToolCall" and protocol == 1
    changes: list[dict[str, Json]] = []
    for each in said:
        told = {name: value for name, value in each.changes.items() if not ((keeps or each.asks) and value is None)}
        changes.append(_asked(told, changes) if each.asks and changes else told)
    entry["_meta"] = _meta(changes)
    if kind == "ToolCall":
        fields = {**(TOOL_FIELDS if protocol == 1 else TOOL_FIELDS_2), "rawInput": None, "rawOutput": None}
    else:
        fields = {"status": "in_progress", "error": None} if kind == "Compaction" else {}
    entry |= {name: _last(changes, name, default) for name, default in fields.items()}
    items = "summary" if kind == "Compaction" else "content"
    return {**entry, items: _items(said, changes, items)}


def _asked(told: dict[str, Json], changes: list[dict[str, Json]]) -> dict[str, Json]:
    """What a question adds to what is known of a call: nothing that is less. One that has ended is another call."""
    ends, status = ("completed", "failed", "cancelled"), _last(changes, "status", "pending")
    if status in ends:
        return told
    rank = {"pending": 0, **dict.fromkeys(ends, 2)}
    if rank.get(told.get("status", status), 1) <= rank.get(status, 1):
        told.pop("status", None)
    whole = ("_meta", "capabilities")  # merged by key; of the client's side
    found = {name: value for name, value in told.items() if name in whole or value not in (None, "", [], {})}
    known = _last(changes, "rawInput", None)
    if isinstance(known, dict) and isinstance(found.get("rawInput"), dict):
        more = {name: value for name, value in found["rawInput"].items() if value not in (None, "", [], {})}
        found["rawInput"] = {**known, **more}
    return found


def _last(changes: Iterable[Mapping[str, Json]], name: str, default: Json) -> Json:
    """The last value that `name` got; null stands for the default."""
    values = [change[name] for change in changes if name in change]
    return default if not values or values[-1] is None else values[-1]


def _items(said: list[Said], changes: list[dict[str, Json]], name: str) -> list[Json]:
    """The last whole list, and what was appended since."""
    at = max((number for number, change in enumerate(changes) if name in change), default=-1)
    whole = changes[at][name] if at >= 0 else None
    return [*(whole or []), *(each.item for each in said[at + 1 :] if each.item is not None)]


def _meta(changes: Iterable[Mapping[str, Json]]) -> Json:
    result: dict[str, Json] = {}
    for change in changes:
        if "_meta" in change:
            result = {} if change["_meta"] is None else {**result, **change["_meta"]}
    return {key: value for key, value in result.items() if value is not None}


def _terminal(name: str, said: list[Said]) -> Json:
    mine = [each for each in said if each.key == ("Terminal", name)]
    changes = [dict(each.changes) for each in mine]
    at = max((number for number, change in enumerate(changes) if "output" in change), default=-1)
    whole = changes[at]["output"] if at >= 0 else None
    parts = [whole] if whole else []
    parts += [each.item for each in mine[at + 1 :] if each.item is not None]
    fields = {name: _last(changes, name, default) for name, default in TERMINAL_FIELDS.items()}
    return {"id": name, "_meta": _meta(changes), **fields, "output": b"".join(map(_bytes, parts)).hex()}


def _bytes(output: Json) -> bytes:
    return b"" if output["data"] == "=" else b64decode(output["data"], validate=True)


# --- The rest --------------------------------------------------------------------------------------------------------


def _tagged(updates: Iterable[Json], tag: str) -> list[Json]:
    return [each for each in updates if each["sessionUpdate"] == tag]


def _session(events: list[Event], updates: list[Json], protocol: int) -> Json:
    infos = _tagged(updates, "session_info_update")
    options: list[Json] = []  # everything that says something of options, commands or modes
    for event in events:
        if event.method == "session/update":
            options += [event.params["update"]]
        elif event.result is not None:
            options += [event.result, event.result.get("modes") or {}]
        elif event.method == "session/set_mode":
            options += [{"currentModeId": event.params["modeId"]}]
    session = {
        "configOptions": _last(options, "configOptions", []),
        "availableCommands": _last(options, "availableCommands", []),
        "title": _last(infos, "title", None),
        "updatedAt": _last(infos, "updatedAt", None),
        "_meta": _meta(infos),
    }
    if protocol == 1:
        session["currentModeId"] = _last(options, "currentModeId", None)
        session["availableModes"] = _last(options, "availableModes", [])
        session |= {"availableModels": [], "currentModelId": None}  # the base has no models
    return session


def _usage(updates: list[Json]) -> Json:
    return {name: _last(updates, name, None) for name in ("used", "size", "cost")} if updates else None


def _state(events: list[Event]) -> Json:
    """The last state; that of a new session is idle unless something was said before its result."""
    state: Json = None
    for event in events:
        if event.method == "session/update" and event.params["update"]["sessionUpdate"] == "state_update":
            state = event.params["update"]
        elif event.method == "session/new" and state is None:
            state = {"sessionUpdate": "state_update", "state": "idle"}
    return state
