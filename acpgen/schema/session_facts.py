"""Facts about sessions: the methods that open, use and end one, and the updates that report what happens in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Report, passes
from acpgen.roles import HANDLERS, Side
from acpgen.schema.walk import (
    definition_pointer,
    find_property,
    has_property,
    layers,
    methods_of,
    schema_list,
    schema_map,
)
from acpgen.text import did_you_mean

PARTS = ("open", "attach", "scoped", "end")
"""The lists of methods, as facts.json and `Sessions` name them."""

_AGENT_SIDES = frozenset(value for value, sides in HANDLERS.items() if Side.AGENT in sides)
"""The values of `x-side` of what an agent handles."""

Members = list[tuple[str, Any]]
"""The members of a union, each with its pointer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The request that lasts as long as a turn. Updates with one of the `tags` are sent before its answer.

    The notification `cancel` ends the turn early, and what has not ended in it is not reported.
    """

    request: str
    cancel: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """What has an id, a status and an end: the two properties of updates, and the values of `status` at the end."""

    id: str
    status: str
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """The notification `method`. The `property` of its params has the update, a union told apart by tags."""

    method: str
    property: str
    turn: Turn | None = None
    tasks: Tasks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Methods that an agent handles, by what they do with a session; `key` is the property that holds its id.

    The id is in the result of `open` methods, and in the params of the others. `open` methods make a session. `attach`
    methods take up one that another connection may have opened. `scoped` methods need a session of their connection.
    `end` methods end one. A method may be in several lists. `updates` says how the agent reports what it does.
    """

    key: str
    open: tuple[str, ...]
    attach: tuple[str, ...]
    scoped: tuple[str, ...]
    end: tuple[str, ...]
    updates: Updates | None = None

    def uses(self) -> Iterator[tuple[str, str]]:
        """The pairs of a list and a method in it."""
        for part in PARTS:
            for method in getattr(self, part):
                yield part, method


def read_sessions(raw: Mapping[str, Any]) -> Sessions:
    """The sessions from their notation in JSON. A list that is absent is empty."""
    updates = raw.get("updates")
    lists = {part: tuple(raw.get(part, ())) for part in PARTS}
    return Sessions(key=raw["id"], updates=updates and read_updates(updates), **lists)


def read_updates(raw: Mapping[str, Any]) -> Updates:
    """The updates from their notation in JSON."""
    turn, tasks = raw.get("turn"), raw.get("tasks")
    return Updates(
        method=raw["method"],
        property=raw["property"],
        turn=turn and Turn(request=turn["request"], cancel=turn["cancel"], tags=tuple(turn["tags"])),
        tasks=tasks and Tasks(id=tasks["id"], status=tasks["status"], ended=tuple(tasks["ended"])),
    )


def check_sessions(root: dict[str, Any], sessions: Sessions, report: Report) -> None:
    """Report names in `sessions` that the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    for part, method in sessions.uses():
        _check_use(part, method, sessions.key, definitions=definitions, report=report)
    if sessions.updates is not None:
        check_updates(root, sessions.updates, report)


def fitting_sessions(root: dict[str, Any], sessions: Sessions) -> Sessions | None:
    """The part of `sessions` that also holds in the schema `root`; None if no method is left."""
    key, updates = sessions.key, sessions.updates and _fitting_updates(root, sessions.updates)
    uses = [use for use in sessions.uses() if passes(check_sessions, root, _sessions(key, [use]))]
    return _sessions(key, uses, updates) if uses else None


def _sessions(key: str, uses: Sequence[tuple[str, str]], updates: Updates | None = None) -> Sessions:
    lists = {part: tuple(method for each, method in uses if each == part) for part in PARTS}
    return Sessions(key=key, updates=updates, **lists)


def _fitting_updates(root: dict[str, Any], updates: Updates) -> Updates | None:
    """The part of `updates` that also holds in the schema `root`."""
    alone = replace(updates, turn=None, tasks=None)
    if not passes(check_updates, root, alone):
        return None
    turn, tasks = updates.turn, updates.tasks
    if turn is not None:
        each = (replace(turn, tags=(tag,)) for tag in turn.tags)
        tags = tuple(one.tags[0] for one in each if passes(check_updates, root, replace(alone, turn=one)))
        turn = replace(turn, tags=tags) if tags else None
    if tasks is not None and not passes(check_updates, root, replace(alone, tasks=tasks)):
        tasks = None
    return replace(updates, turn=turn, tasks=tasks)


# --- Methods --------------------------------------------------------------------------------------------------------


def _check_use(part: str, method: str, key: str, *, definitions: Mapping[str, Any], report: Report) -> None:
    """Report a method of the list `part` that the agent does not handle, or whose message has no property `key`."""
    suffixes = ("Request",) if part == "open" else ("Request", "Notification")
    called = dict(_calls(definitions, suffixes))
    if method not in called:
        kind = "request" if part == "open" else "request or notification"
        report.error(
            "session-method",
            f"the facts about sessions name the {kind} {method!r}, which the schema does not have for agents",
            at="",
            hint=did_you_mean(method, called),
        )
        return
    owner = dict(_calls(definitions, ("Response",))).get(method) if part == "open" else called[method]
    if owner is None:
        report.error(
            "session-result",
            f"the request {method!r} opens sessions, but the schema has no result for it",
            at=definition_pointer(called[method]),
        )
    elif not has_property(owner, key, "string", definitions):
        report.error(
            "session-property",
            f"the facts about {method!r} need the property {key!r} of {owner}, of the type string",
            at=definition_pointer(owner),
        )


def _calls(definitions: Mapping[str, Any], suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The methods that an agent handles, each with its definition of one of the suffixes."""
    for name, method in methods_of(definitions):
        if name.endswith(suffixes) and definitions[name].get("x-side") in _AGENT_SIDES:
            yield method, name


# --- Updates --------------------------------------------------------------------------------------------------------


def check_updates(root: Mapping[str, Any], updates: Updates, report: Report) -> None:
    """Report names in `updates` that the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    calls = {method: name for name, method in methods_of(definitions) if not name.endswith("Response")}
    members = _members(calls.get(updates.method, ""), updates.property, definitions)
    if not members:
        fact = f"the facts about updates name {updates.method!r}, whose property {updates.property!r} is no union"
        report.error("updates-method", fact, at="")
        return
    if updates.turn is not None:
        _check_turn(updates.turn, members, calls, definitions=definitions, report=report)
    if updates.tasks is not None:
        _check_tasks(updates.tasks, members, definitions=definitions, report=report)


def _check_turn(
    turn: Turn, members: Members, calls: Mapping[str, str], *, definitions: Mapping[str, Any], report: Report
) -> None:
    for method in (turn.request, turn.cancel):
        if method not in calls:
            fact = f"the facts about turns name {method!r}, which the schema does not have"
            report.error("updates-turn", fact, at="")
    known = {value for pointer, node in members for value in _constants(node, pointer, definitions)}
    for tag in turn.tags:
        if tag not in known:
            report.error("updates-turn", f"the facts about turns name the update {tag!r}, which no member has", at="")


def _check_tasks(tasks: Tasks, members: Members, *, definitions: Mapping[str, Any], report: Report) -> None:
    found = [
        status
        for pointer, node in members
        if find_property(node, pointer, tasks.id, definitions)
        and (status := find_property(node, pointer, tasks.status, definitions))
    ]
    values = [node for pointer, status in found for _, node in _union_members(status, pointer, definitions)]
    known = {value["const"] for value in values if isinstance(value, dict) and "const" in value}
    for value in tasks.ended:
        if value not in known:
            report.error("updates-tasks", f"no update with {tasks.id!r} has the {tasks.status!r} {value!r}", at="")


def _members(name: str, wire: str, definitions: Mapping[str, Any]) -> Members:
    """The members of the union in a property of the definition `name`."""
    found = find_property(definitions.get(name), definition_pointer(name), wire, definitions)
    return _union_members(found[1], found[0], definitions) if found else []


def _union_members(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Members:
    return [
        (f"{place}/{key}/{index}", member)
        for place, layer in layers(node, pointer, definitions)
        for key in ("oneOf", "anyOf")
        for index, member in enumerate(schema_list(layer, key))
    ]


def _constants(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[Any]:
    """The constant values of the properties of `node`."""
    for _, layer in layers(node, pointer, definitions):
        properties = schema_map(layer, "properties").values()
        yield from (each["const"] for each in properties if isinstance(each, dict) and "const" in each)
