"""Facts about sessions: the methods that open, use and end one, and the updates that report what happens in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.roles import HANDLERS, Side
from acpgen.schema.walk import (
    constants_in,
    definition_pointer,
    find_property,
    has_property,
    layers,
    methods_of,
    schema_map,
    union_members,
)

PARTS = ("open", "attach", "scoped", "end")
"""The lists of methods, as facts.json and `SessionFacts` name them."""

_AGENT_SIDES = frozenset(value for value, sides in HANDLERS.items() if Side.AGENT in sides)
"""The values of `x-side` of what an agent handles."""

Members = list[tuple[str, Any]]
"""The members of a union, each with its pointer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The request that lasts as long as a turn. Updates with one of the `tags` are sent before its answer.

    The notification `cancel` ends the turn early, and what has not ended in it is not reported.
    """

    request: str
    cancel: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What has an id, a status and an end: the two properties of updates, and the values of `status` at the end."""

    id: str
    status: str
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Updates:
    """The notification `method`. The `property` of its params has the update, a union told apart by tags."""

    method: str
    property: str
    turn: TurnFacts | None = None
    tasks: TaskFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
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


def read_sessions(raw: Mapping[str, Any]) -> SessionFacts:
    """The sessions from their notation in JSON. A list that is absent is empty."""
    updates = raw.get("updates")
    lists = {part: tuple(raw.get(part, ())) for part in PARTS}
    return SessionFacts(key=raw["id"], updates=updates and _read_updates(updates), **lists)


def _read_updates(raw: Mapping[str, Any]) -> Updates:
    """The updates from their notation in JSON."""
    turn, tasks = raw.get("turn"), raw.get("tasks")
    return Updates(
        method=raw["method"],
        property=raw["property"],
        turn=turn and TurnFacts(request=turn["request"], cancel=turn["cancel"], tags=tuple(turn["tags"])),
        tasks=tasks and TaskFacts(id=tasks["id"], status=tasks["status"], ended=tuple(tasks["ended"])),
    )


def fitting_sessions(root: Mapping[str, Any], sessions: SessionFacts) -> SessionFacts | None:
    """The part of `sessions` that holds in the schema `root`; None if no method is left."""
    definitions = schema_map(root, "$defs")
    uses = [use for use in sessions.uses() if _is_used(*use, sessions.key, definitions)]
    lists = {part: tuple(method for each, method in uses if each == part) for part in PARTS}
    updates = sessions.updates and _fitting_updates(definitions, sessions.updates)
    return SessionFacts(key=sessions.key, updates=updates, **lists) if uses else None


def _is_used(part: str, method: str, key: str, definitions: Mapping[str, Any]) -> bool:
    """Whether an agent handles a method of the list `part`, and the message with the id of the session has `key`."""
    is_open = part == "open"
    called = dict(_calls(definitions, ("Request",) if is_open else ("Request", "Notification"))).get(method)
    owner = dict(_calls(definitions, ("Response",))).get(method) if is_open else called
    return called is not None and owner is not None and has_property(owner, key, "string", definitions)


def _calls(definitions: Mapping[str, Any], suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The methods that an agent handles, each with its definition of one of the suffixes."""
    for name, method in methods_of(definitions):
        if name.endswith(suffixes) and definitions[name].get("x-side") in _AGENT_SIDES:
            yield method, name


# --- Updates --------------------------------------------------------------------------------------------------------


def _fitting_updates(definitions: Mapping[str, Any], updates: Updates) -> Updates | None:
    """The part of `updates` that holds; None if its property is no union."""
    calls = {method: name for name, method in methods_of(definitions) if not name.endswith("Response")}
    carrier = calls.get(updates.method, "")
    place = find_property(definitions.get(carrier), definition_pointer(carrier), updates.property, definitions)
    if place is None or not (members := _members(place[1], place[0], definitions)):
        return None
    turn, tasks = updates.turn, updates.tasks
    if turn is not None:
        known = _constants(place, definitions)
        tags = tuple(tag for tag in turn.tags if tag in known)
        turn = replace(turn, tags=tags) if tags and {turn.request, turn.cancel} <= calls.keys() else None
    if tasks is not None and not set(tasks.ended) <= _states(tasks, members, definitions):
        tasks = None
    return replace(updates, turn=turn, tasks=tasks)


def _states(tasks: TaskFacts, members: Members, definitions: Mapping[str, Any]) -> set[str]:
    """The values of the status of updates that have the id of a task."""
    with_id = [place for place in members if find_property(place[1], place[0], tasks.id, definitions)]
    found = (find_property(node, pointer, tasks.status, definitions) for pointer, node in with_id)
    return set[str]().union(*(_constants(status, definitions) for status in found if status))


def _members(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Members:
    """The members of a union."""
    return [found for place, layer in layers(node, pointer, definitions) for found in union_members(layer, place)]


def _constants(place: tuple[str, Any], definitions: Mapping[str, Any]) -> set[str]:
    """The constants of a value, or the tags of its members."""
    return {value for _, value in constants_in(place[1], place[0], definitions)}
