"""Facts about sessions: the methods that open, use and end one. A transport routes messages by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Report
from acpgen.roles import HANDLERS, Side
from acpgen.schema.updates import Updates, check_updates, fitting_updates, read_updates
from acpgen.schema.walk import definition_pointer, find_property, layers, methods_of, schema_map
from acpgen.text import did_you_mean

PARTS = ("open", "attach", "scoped", "end")
"""The lists of methods, as facts.json and `Sessions` name them."""

_AGENT_SIDES = frozenset(value for value, sides in HANDLERS.items() if Side.AGENT in sides)
"""The values of `x-side` of what an agent handles."""


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


def check_sessions(root: dict[str, Any], sessions: Sessions, report: Report) -> None:
    """Report names in `sessions` that the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    for part, method in sessions.uses():
        _check_use(part, method, sessions.key, definitions=definitions, report=report)
    if sessions.updates is not None:
        check_updates(root, sessions.updates, report)


def fitting_sessions(root: dict[str, Any], sessions: Sessions) -> Sessions | None:
    """The part of `sessions` that also holds in the schema `root`; None if no method is left."""
    definitions = schema_map(root, "$defs")

    def fits(part: str, method: str) -> bool:
        report = Report()
        _check_use(part, method, sessions.key, definitions=definitions, report=report)
        return not report.errors

    found = Sessions(
        key=sessions.key,
        open=tuple(method for method in sessions.open if fits("open", method)),
        attach=tuple(method for method in sessions.attach if fits("attach", method)),
        scoped=tuple(method for method in sessions.scoped if fits("scoped", method)),
        end=tuple(method for method in sessions.end if fits("end", method)),
        updates=fitting_updates(root, sessions.updates),
    )
    return found if any(found.uses()) else None


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
    else:
        _check_key(owner, method, key, definitions=definitions, report=report)


def _calls(definitions: Mapping[str, Any], suffixes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The methods that an agent handles, each with its definition of one of the suffixes."""
    for name, method in methods_of(definitions):
        if name.endswith(suffixes) and definitions[name].get("x-side") in _AGENT_SIDES:
            yield method, name


def _check_key(owner: str, method: str, key: str, *, definitions: Mapping[str, Any], report: Report) -> None:
    pointer = definition_pointer(owner)
    found = find_property(definitions[owner], pointer, key, definitions)
    if found is None or not any(layer.get("type") == "string" for _, layer in layers(found[1], found[0], definitions)):
        report.error(
            "session-property",
            f"the facts about {method!r} need the property {key!r} of {owner}, of the type string",
            at=pointer,
        )
