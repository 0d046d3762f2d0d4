"""What the extraction asks of the schema that the RFD extends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from acpgen.ir.model import Role
from acpgen.schema.document import split
from acpgen.schema.gates import Gate
from acpgen.schema.walk import definition_pointer, layers, referenced_definition, schema_list, schema_map, walk

_HANDSHAKE = "initialize"
"""The one method whose messages hold capabilities."""
_DEPTH = 6
"""How deep below the message capabilities are looked for."""
_MOST_SLOTS = 2_000
"""The schemas have about a hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A schema, with the gates that are known of it."""

    origin: str
    protocol: int
    definitions: Mapping[str, Any]
    gates: Mapping[str, Gate]

    @property
    def methods(self) -> frozenset[str]:
        """The methods by their name on the wire."""
        return frozenset(
            node["x-method"]
            for node in self.definitions.values()
            if isinstance(node, dict) and isinstance(node.get("x-method"), str)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A property somewhere below a message of the handshake: who sends it, and on which way it is reached."""

    root: str
    path: tuple[str, ...]
    owner: str
    node: Any
    sender: str | None


def other_side(side: str | None) -> str | None:
    """The peer of `side`; None for what is no side."""
    names = [role.value for role in Role]
    return names[1 - names.index(side)] if side in names else None


def capability_slots(definitions: Mapping[str, Any]) -> Iterator[Slot]:
    """Every property below the params and the result of the handshake, by way of the definitions that they refer to.

    There is a bound, as there may be very many ways through definitions that refer to one another.
    """
    return islice(_all_slots(definitions), _MOST_SLOTS)


def _all_slots(definitions: Mapping[str, Any]) -> Iterator[Slot]:
    for name, node in definitions.items():
        if isinstance(node, dict) and node.get("x-method") == _HANDSHAKE:
            side = node.get("x-side") if isinstance(node.get("x-side"), str) else None
            sender = side if name.endswith("Response") else other_side(side)
            yield from _slots(name, definitions, root=name, path=(), sender=sender)


def _slots(
    owner: str, definitions: Mapping[str, Any], *, root: str, path: tuple[str, ...], sender: str | None
) -> Iterator[Slot]:
    for holder, wire, node in properties_of(owner, definitions):
        yield Slot(root=root, path=(*path, wire), owner=holder, node=node, sender=sender)
        target = single_reference(node)
        if target is not None and target in definitions and len(path) < _DEPTH:
            yield from _slots(target, definitions, root=root, path=(*path, wire), sender=sender)


def properties_of(name: str, definitions: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """The properties of a definition, inherited ones too: the definition that has each, its name, its schema."""
    return [
        (split(pointer)[1], wire, node)
        for pointer, layer in layers(definitions[name], definition_pointer(name), definitions)
        for wire, node in schema_map(layer, "properties").items()
    ]


def required_of(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """The properties that a value of the definition must have."""
    parts = layers(definitions[name], definition_pointer(name), definitions)
    return {wire for _, layer in parts for wire in schema_list(layer, "required") if isinstance(wire, str)}


def single_reference(node: Any) -> str | None:
    """The definition that the values of `node` are of, null apart; None where there is none, or a choice."""
    for _, layer in layers(node, "", {}):
        if (name := referenced_definition(layer)) is not None:
            return name
    return None


def capability_owners(definitions: Mapping[str, Any]) -> frozenset[str]:
    """The definitions whose values say what a peer can do: those below the messages of the handshake."""
    return frozenset(slot.owner for slot in capability_slots(definitions) if len(slot.path) > 1)


def error_object(definitions: Mapping[str, Any]) -> str | None:
    """The definition of what stands under `error` in a response of JSON-RPC."""
    for node in definitions.values():
        for pointer, child in walk(node):
            if pointer.endswith("/properties/error") and (name := single_reference(child)) in definitions:
                wires = {wire for _, wire, _ in properties_of(str(name), definitions)}
                if {"code", "message"} <= wires:
                    return name
    return None
