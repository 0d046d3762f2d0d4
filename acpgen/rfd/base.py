"""The schema that an RFD extends: its properties and capabilities, and the layout of bundled fragments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from acpgen.ir.names import words
from acpgen.roles import Side
from acpgen.schema.document import split
from acpgen.schema.equality import canonical
from acpgen.schema.gates import Gate
from acpgen.schema.walk import (
    LISTS_OF_SCHEMAS,
    MAPS_OF_SCHEMAS,
    SINGLE_SCHEMAS,
    definition_pointer,
    layers,
    methods_of,
    referenced_definition,
    schema_list,
    schema_map,
)

_HANDSHAKE = "initialize"
"""The method whose messages hold capabilities."""
_MAX_DEPTH = 6
"""The limit for the nesting of capabilities."""
_MAX_SLOTS = 2_000
"""The limit for capabilities: definitions that refer to one another have very many paths. ACP has about 100."""

_FIRST = (
    *("title", "description", "$ref", "type", "const", "enum", "format", "pattern", "items", "properties", "required"),
    *("allOf", "anyOf", "oneOf", "not", "default"),
)
_LAST = (
    *("x-deserialize-default-on-error", "x-deserialize-skip-invalid-items", "additionalProperties"),
    *("x-side", "x-method"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A schema, with its known gates."""

    origin: str
    protocol: int
    definitions: Mapping[str, Any]
    gates: Mapping[str, Gate]

    @property
    def methods(self) -> frozenset[str]:
        """The methods by wire name."""
        return frozenset(method for _, method in methods_of(self.definitions))

    def properties(self, name: str) -> set[str]:
        """The names of the properties of a definition; none if there is no such definition."""
        return {wire for _, wire, _ in properties_of(name, self.definitions)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A property below the handshake message `root`: its path, the definition that has it, and who sends it."""

    root: str
    path: tuple[str, ...]
    owner: str
    sender: str | None


def capability_slots(definitions: Mapping[str, Any]) -> Iterator[Slot]:
    """All properties below the params and the result of the handshake, up to a limit."""
    roots = [name for name, method in methods_of(definitions) if method == _HANDSHAKE]
    slots = (_slots(name, definitions, root=name, path=(), sender=_sender(name, definitions)) for name in roots)
    return islice(chain.from_iterable(slots), _MAX_SLOTS)


def _sender(message: str, definitions: Mapping[str, Any]) -> str | None:
    """The side that sends a message of the handshake: `x-side` is the one that handles the method."""
    handler = next((side for side in Side if side.value == definitions[message].get("x-side")), None)
    return handler and (handler if message.endswith("Response") else handler.peer).value


def _slots(
    owner: str, definitions: Mapping[str, Any], *, root: str, path: tuple[str, ...], sender: str | None
) -> Iterator[Slot]:
    for holder, wire, node in properties_of(owner, definitions):
        yield Slot(root=root, path=(*path, wire), owner=holder, sender=sender)
        target = single_reference(node)
        if target in definitions and len(path) < _MAX_DEPTH:
            yield from _slots(str(target), definitions, root=root, path=(*path, wire), sender=sender)


def properties_of(name: str, definitions: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """The properties of a definition, inherited ones included: the definition that has each, its name, its schema."""
    return [
        (split(pointer)[1], wire, node)
        for pointer, layer in layers(definitions.get(name), definition_pointer(name), definitions)
        for wire, node in schema_map(layer, "properties").items()
    ]


def single_reference(node: Any) -> str | None:
    """The definition that `node` refers to, apart from null; None if there is none or a choice."""
    return next((name for _, layer in layers(node, "", {}) if (name := referenced_definition(layer))), None)


def styled(node: Any) -> Any:
    """`node` with the order of keywords that the bundled fragments have, and `_meta` as the last property."""
    if not isinstance(node, dict):
        return node
    others = [key for key in node if key not in (*_FIRST, *_LAST)]
    return {key: _styled_value(key, node[key]) for key in [*_FIRST, *others, *_LAST] if key in node}


def _styled_value(key: str, value: Any) -> Any:
    if key in MAPS_OF_SCHEMAS and isinstance(value, dict):
        return {name: styled(value[name]) for name in sorted(value, key=lambda name: name == "_meta")}
    if key in LISTS_OF_SCHEMAS and isinstance(value, list):
        return [styled(child) for child in value]
    if key in SINGLE_SCHEMAS:
        return styled(value)
    if key == "type" and isinstance(value, list):
        return value[0] if len(value) == 1 else sorted(value, key=lambda name: name == "null")
    return value


def without_prose(node: Any) -> Any:
    """`node` in the same order, without descriptions and leniency markers."""
    return styled(canonical(node))


def nullable(node: Mapping[str, Any]) -> dict[str, Any]:
    """A schema for the values of `node` and null."""
    kind = node.get("type")
    if {"type": "null"} in schema_list(node, "anyOf") or (isinstance(kind, list) and "null" in kind):
        return dict(node)
    if isinstance(kind, str) and not ({"const", "enum"} & node.keys()):
        return {**node, "type": kind if kind == "null" else [kind, "null"]}
    if not node:
        return {}
    members = node["anyOf"] if node.keys() == {"anyOf"} else [dict(node)]
    return {"anyOf": [*members, {"type": "null"}]}


def reference(name: str) -> dict[str, Any]:
    """A reference to the definition `name`."""
    return {"$ref": "#/$defs/" + name.replace("~", "~0").replace("/", "~1")}


def described(node: Any, doc: str) -> Any:
    """`node` with a description; a reference is wrapped in `allOf` to have one. Marks stay as they are."""
    if not doc or not isinstance(node, dict):
        return node
    return {"description": doc, **({"allOf": [node]} if "$ref" in node else node)}


@lru_cache(maxsize=2_000)
def lower_words(text: str) -> tuple[str, ...]:
    """The words of a name in lower case."""
    return tuple(word.lower() for word in words(text))
