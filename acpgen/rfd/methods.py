"""Find out about the methods of an RFD: which definitions each has, who handles it, and which capability opens it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.diagnostics import Location, input_error
from acpgen.ir.model import Role
from acpgen.rfd.base import Base, Slot, capability_slots
from acpgen.rfd.entries import Entry
from acpgen.rfd.messages import Message, MessageKind, belongs_to, lower_words
from acpgen.schema.walk import layers, schema_map

ENDINGS = ("Request", "Response", "Notification")
MAX_METHODS = 500
"""More than this is a schema, not an RFD."""
_ASKING = ("Request", "Response")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Method:
    """A method that the text adds. `definitions` has its types by ending; `sides` who handles it, by what is said."""

    name: str
    location: Location
    is_notification: bool
    definitions: Mapping[str, str]
    sides: frozenset[str]

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the definitions that it has to have."""
        return ENDINGS[2:] if self.is_notification else _ASKING


def find_methods(
    entries: Mapping[str, Entry],
    messages: Iterable[Message],
    drawn: Iterable[tuple[str, str, Location]],
    *,
    base: Base,
) -> tuple[list[Method], list[str]]:
    """The methods that are new, in the order of the text, and definitions that belong to one which nothing names.

    Raises `InputError` for too many.
    """
    messages = list(messages)
    names = _names(entries, messages, base)
    if len(names) > MAX_METHODS:
        raise input_error("rfd-too-large", f"the text has more than {MAX_METHODS} new methods")
    owners, orphans = _owners(entries, list(names))
    handlers: dict[str, set[str]] = {}
    for method, handler, _ in drawn:
        handlers.setdefault(method, set()).add(handler)
    for message in messages:
        is_call = message.kind in (MessageKind.REQUEST, MessageKind.NOTIFICATION)
        if is_call and message.method and message.handler:
            handlers.setdefault(message.method, set()).add(message.handler)
    return [
        _method(name, location, owners=owners, entries=entries, messages=messages, handlers=handlers.get(name, set()))
        for name, location in names.items()
    ], orphans


def _names(entries: Mapping[str, Entry], messages: list[Message], base: Base) -> dict[str, Location]:
    """The methods that definitions or examples name, and where the first of them does."""
    found = {
        entry.node["x-method"]: entry.location
        for entry in reversed(list(entries.values()))
        if isinstance(entry.node, dict) and isinstance(entry.node.get("x-method"), str)
    }
    for message in messages:
        is_call = message.kind in (MessageKind.REQUEST, MessageKind.NOTIFICATION)
        if is_call and message.method and message.method not in base.methods:
            found.setdefault(message.method, message.location)
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def _owners(entries: Mapping[str, Entry], methods: list[str]) -> tuple[dict[tuple[str, str], str], list[str]]:
    """The definitions by method and ending, and those with such an ending that belong to none."""
    found: dict[tuple[str, str], str] = {}
    orphans = []
    for name, entry in entries.items():
        ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
        if ending is None or entry.is_change:
            continue
        stated = entry.node.get("x-method") if isinstance(entry.node, dict) else None
        method = stated if isinstance(stated, str) else belongs_to(name.removesuffix(ending), methods)
        if method is None:
            orphans.append(name)
        else:
            found.setdefault((method, ending), name)
    return found, orphans


def _method(
    name: str,
    location: Location,
    *,
    owners: Mapping[tuple[str, str], str],
    entries: Mapping[str, Entry],
    messages: list[Message],
    handlers: set[str],
) -> Method:
    definitions = {ending: owners[name, ending] for ending in ENDINGS if (name, ending) in owners}
    kinds = {message.kind for message in messages if message.method == name}
    nodes = [entries[definition].node for definition in definitions.values()]
    sides = [node.get("x-side") for node in nodes if isinstance(node, dict)]
    stated = {side for side in sides if isinstance(side, str)}
    is_asking = MessageKind.REQUEST in kinds or bool(set(_ASKING) & definitions.keys())
    return Method(
        name=name,
        location=location,
        is_notification=not is_asking and ("Notification" in definitions or MessageKind.NOTIFICATION in kinds),
        definitions=definitions,
        sides=frozenset(stated or handlers),
    )


@dataclass(frozen=True, slots=True)
class Leaf:
    """A capability that can say yes, with the words of all ends of its path, and its description."""

    slot: Slot
    ends: frozenset[tuple[str, ...]]
    text: str


def find_leaves(slots: Iterable[Slot], definitions: Mapping[str, Any]) -> list[Leaf]:
    """Those of `slots` that can say yes."""
    return [
        Leaf(slot, frozenset(_ends(slot.path)), _description(slot)) for slot in slots if _can_say_yes(slot, definitions)
    ]


def find_gate(method: Method, leaves: Iterable[Leaf]) -> Slot | None:
    """The one capability that says whether a peer has the method; None where there is not just one.

    It has the words of the method's name in its path, or names the method in its description.
    """
    leaves = list(leaves)
    wanted = lower_words(method.name)
    name = re.compile(rf"(?<![\w/]){re.escape(method.name)}(?![\w/])")
    by_name = [leaf.slot for leaf in leaves if wanted in leaf.ends]
    by_text = [leaf.slot for leaf in leaves if method.name in leaf.text and name.search(leaf.text)]
    for candidates in (by_name, by_text):
        if len({(slot.root, slot.path) for slot in candidates}) == 1:
            return candidates[0]
    return None


def _ends(path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return (lower_words(".".join(path[start:])) for start in range(len(path)))


def _can_say_yes(slot: Slot, definitions: Mapping[str, Any]) -> bool:
    for _, layer in layers(slot.node, "", definitions):
        stated = layer.get("type")
        kinds = stated if isinstance(stated, list) else [stated]
        if "boolean" in kinds or "object" in kinds:
            return True
    return False


def _description(slot: Slot) -> str:
    text = slot.node.get("description") if isinstance(slot.node, dict) else None
    return text if isinstance(text, str) else ""


def new_slots(entries: Mapping[str, Entry], definitions: Mapping[str, Any]) -> list[Slot]:
    """The capabilities that the text adds, on every way that leads to them."""
    return [slot for slot in capability_slots(definitions) if _is_new(slot, entries)]


def _is_new(slot: Slot, entries: Mapping[str, Entry]) -> bool:
    entry = entries.get(slot.owner)
    if entry is None:
        return False
    return not entry.is_change or slot.path[-1] in schema_map(entry.node, "properties")


def side_of(method: Method, gate: Slot | None) -> str | None:
    """Who handles the method: by what is said, else, for a request, whoever says that it has the capability."""
    known = method.sides & {role.value for role in Role} if len(method.sides) > 1 else method.sides
    if len(known) == 1:
        return next(iter(known))
    if not known and gate is not None and not method.is_notification:
        return gate.sender
    return None
