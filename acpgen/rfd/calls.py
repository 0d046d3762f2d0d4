"""Find the methods that an RFD adds: their definitions, the side that handles each, and its capability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Location, input_error
from acpgen.rfd.base import Base, Slot, capability_slots, lower_words
from acpgen.rfd.entries import Entry
from acpgen.rfd.values import Call
from acpgen.schema.walk import schema_map

ENDINGS = {"Request": "params", "Response": "result", "Notification": "params"}
"""The endings of the names of definitions, with the part of a method that each defines."""
_MAX_METHODS = 500
"""The limit for new methods; a text with more is a schema, not an RFD."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """A method that the text adds. `definitions` has its types by ending, `gate` the capability that has its name."""

    name: str
    location: Location
    is_notification: bool
    definitions: Mapping[str, str]
    gate: Slot | None

    @property
    def side(self) -> str | None:
        """The side that handles it: the one that advertises its capability. A notification may go either way."""
        return self.gate.sender if self.gate and not self.is_notification else None

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the definitions that it needs."""
        return ("Notification",) if self.is_notification else ("Request", "Response")


def find_methods(entries: Mapping[str, Entry], calls: Iterable[Call], base: Base) -> list[Method]:
    """The new methods in the order of the text."""
    places: dict[str, Location] = {}
    kinds: dict[str, set[bool]] = {}
    for entry in entries.values():
        if method := _stated_method(entry):
            places.setdefault(method, entry.location)
    for call in calls:
        kinds.setdefault(call.method, set()).add(call.is_request)
        if call.method not in base.methods:
            places.setdefault(call.method, call.location)
    if len(places) > _MAX_METHODS:
        raise input_error("rfd-too-large", f"the text has more than {_MAX_METHODS} new methods")
    owners = _owners(entries, list(places))
    # a capability enables the method whose name has the words of an end of its path
    gates = [
        (slot, {lower_words(".".join(slot.path[start:])) for start in range(len(slot.path))})
        for slot in _new_capabilities(entries, base)
    ]
    found = []
    for name, location in sorted(places.items(), key=lambda item: (item[1], item[0])):
        words, definitions = lower_words(name), owners.get(name, {})
        named = [slot for slot, names in gates if words in names]
        are_requests = {*kinds.get(name, ()), *(ending != "Notification" for ending in definitions)}
        found.append(
            Method(
                name=name,
                location=location,
                is_notification=are_requests == {False},
                definitions=definitions,
                gate=named[0] if len(named) == 1 else None,
            )
        )
    return found


def _stated_method(entry: Entry) -> str | None:
    stated = entry.node.get("x-method") if isinstance(entry.node, dict) else None
    return stated if isinstance(stated, str) else None


def _owners(entries: Mapping[str, Entry], methods: list[str]) -> dict[str, dict[str, str]]:
    """The new definitions by method and ending."""
    found: dict[str, dict[str, str]] = {}
    for name, entry in entries.items():
        ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
        if ending is None or entry.is_change:
            continue
        if method := _stated_method(entry) or method_of(name.removesuffix(ending), methods):
            found.setdefault(method, {}).setdefault(ending, name)
    return found


def method_of(stem: str, methods: Iterable[str]) -> str | None:
    """The one method whose name ends with the words of `stem`, in any order.

    `NewSession` and `SessionNew` both belong to `session/new` or `_vendor/session/new`.
    """
    wanted = sorted(lower_words(stem))
    found = [method for method in methods if wanted and sorted(lower_words(method)[-len(wanted) :]) == wanted]
    return found[0] if len(found) == 1 else None


def _new_capabilities(entries: Mapping[str, Entry], base: Base) -> list[Slot]:
    """The capabilities that the text adds."""
    known = {(slot.root, slot.path) for slot in capability_slots(base.definitions)}
    slots = capability_slots(_composed(entries, base))
    return [slot for slot in slots if (slot.root, slot.path) not in known]


def _composed(entries: Mapping[str, Entry], base: Base) -> dict[str, Any]:
    """The definitions of the base and of the text. A change adds only its properties."""
    found = dict(base.definitions)
    for name, entry in entries.items():
        if not entry.is_change:
            found[name] = entry.node
        elif isinstance(found.get(name), dict):
            properties = {**schema_map(found[name], "properties"), **schema_map(entry.node, "properties")}
            found[name] = {**found[name], "properties": properties}
    return found
