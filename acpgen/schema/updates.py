"""Facts about updates: the notification that reports what happens in a session, the turns and the tasks it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.walk import definition_pointer, find_property, layers, methods_of, schema_list, schema_map

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


def read_updates(raw: Mapping[str, Any]) -> Updates:
    """The updates from their notation in JSON."""
    turn, tasks = raw.get("turn"), raw.get("tasks")
    return Updates(
        method=raw["method"],
        property=raw["property"],
        turn=turn and Turn(request=turn["request"], cancel=turn["cancel"], tags=tuple(turn["tags"])),
        tasks=tasks and Tasks(id=tasks["id"], status=tasks["status"], ended=tuple(tasks["ended"])),
    )


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


def fitting_updates(root: Mapping[str, Any], updates: Updates | None) -> Updates | None:
    """The part of `updates` that also holds in the schema `root`."""
    if updates is None or not _holds(root, replace(updates, turn=None, tasks=None)):
        return None
    turn, tasks = updates.turn, updates.tasks
    if turn is not None:
        alone = replace(updates, tasks=None)
        tags = tuple(each for each in turn.tags if _holds(root, replace(alone, turn=replace(turn, tags=(each,)))))
        turn = replace(turn, tags=tags) if tags else None
    if tasks is not None and not _holds(root, replace(updates, turn=None)):
        tasks = None
    return replace(updates, turn=turn, tasks=tasks)


def _holds(root: Mapping[str, Any], updates: Updates) -> bool:
    report = Report()
    check_updates(root, updates, report)
    return not report.errors


def _check_turn(
    turn: Turn, members: Members, calls: Mapping[str, str], *, definitions: Mapping[str, Any], report: Report
) -> None:
    for method in (turn.request, turn.cancel):
        if method not in calls:
            report.error(
                "updates-turn", f"the facts about turns name {method!r}, which the schema does not have", at=""
            )
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
    known = {value for pointer, node in found for value in _values(node, pointer, definitions)}
    for value in tasks.ended:
        if value not in known:
            report.error("updates-tasks", f"no update with {tasks.id!r} has the {tasks.status!r} {value!r}", at="")


def _members(name: str, wire: str, definitions: Mapping[str, Any]) -> Members:
    """The members of the union in a property of the definition `name`."""
    found = find_property(definitions.get(name), definition_pointer(name), wire, definitions)
    parts = layers(found[1], found[0], definitions) if found else ()
    return [
        (f"{pointer}/{key}/{index}", member)
        for pointer, layer in parts
        for key in ("oneOf", "anyOf")
        for index, member in enumerate(schema_list(layer, key))
    ]


def _constants(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[Any]:
    """The constant values of the properties of `node`."""
    for _, layer in layers(node, pointer, definitions):
        yield from (each["const"] for each in schema_map(layer, "properties").values() if "const" in each)


def _values(node: Any, pointer: str, definitions: Mapping[str, Any]) -> Iterator[Any]:
    """The constant values of `node`, a union of them."""
    for _, layer in layers(node, pointer, definitions):
        for key in ("oneOf", "anyOf"):
            members = [each for each in schema_list(layer, key) if isinstance(each, dict)]
            yield from (each["const"] for each in members if "const" in each)
