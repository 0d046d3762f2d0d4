"""Read a composed schema by JSON Schema alone: what the tests know of it comes from here, and not from acpgen's model.

A value has to satisfy a node and all that it refers to: its *layers*. Where some of them are unions, each way to choose
one member of every union gives one list of layers; a value fits the node if it fits one of these lists.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.needs import need

need("jsonschema_rs")
import jsonschema_rs  # noqa: E402

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HOME = "urn:schema"
JOINING = ("$ref", "allOf", "anyOf", "oneOf")
"""The keywords that lead to other nodes for the same value."""
DEEPER = ("properties", "items", "additionalProperties")
"""The keywords that lead to nodes for its parts."""
SAYING = (*DEEPER, "type", "const", "enum", "not", "required", "unevaluatedProperties")

Layers = tuple[dict[str, Any], ...]


class Schema:
    """A schema document, with a validator for each definition and each layer."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.definitions: dict[str, Any] = root["$defs"]
        self._registry = jsonschema_rs.Registry([(HOME, root)])
        self._validators: dict[str, Any] = {}
        self._choices: dict[tuple[int, ...], list[Layers]] = {}
        self._flat: dict[int, Any] = {}
        self._kept: list[Any] = []  # what is known by its id has to live as long as this

    def is_valid(self, name: str, value: Any) -> bool:
        """What the validator says of `value` as an instance of the definition `name`."""
        if name not in self._validators:
            schema = {"$schema": DIALECT, "$ref": f"{HOME}#/$defs/{name}"}
            self._validators[name] = jsonschema_rs.validator_for(schema, registry=self._registry)
        return bool(self._validators[name].is_valid(value))

    def fits_flatly(self, layer: dict[str, Any], value: Any) -> bool:
        """What the validator says of `value`, as far as `layer` speaks of it and not of its parts."""
        key = id(layer)
        if key not in self._flat:
            said = {name: part for name, part in layer.items() if name not in (*JOINING, *DEEPER, "default")}
            self._flat[key] = jsonschema_rs.validator_for({"$schema": DIALECT, **said})
            self._kept.append(layer)
        return bool(self._flat[key].is_valid(value))

    def choices(self, *nodes: Any) -> list[Layers]:
        """The lists of layers that a value of all `nodes` may satisfy, in the order of the schema."""
        key = tuple(map(id, nodes))
        if key not in self._choices:
            self._choices[key] = [tuple(itertools.chain(*each)) for each in itertools.product(*map(self._of, nodes))]
            self._kept.append(nodes)
        return self._choices[key]

    def _of(self, node: Any) -> list[Layers]:
        if not isinstance(node, dict):
            return [()]
        parts: list[list[Layers]] = [[(node,)]]
        if "$ref" in node:
            parts.append(self.choices(self.target(node)))
        parts += [self.choices(part) for part in node.get("allOf", ())]
        for key in ("oneOf", "anyOf"):
            if key in node:
                parts.append([layers for member in node[key] for layers in self.choices(member)])
        return [tuple(itertools.chain(*each)) for each in itertools.product(*parts)]

    def target(self, node: dict[str, Any]) -> Any:
        """The definition that `node` refers to."""
        return self.definitions[node["$ref"].removeprefix("#/$defs/")]

    def is_marker(self, layers: Layers) -> bool:
        """Whether the layers are a definition of an object without a word about properties: its presence matters."""
        return any(
            layer.get("type") == "object" and "additionalProperties" not in layer and layer is known
            for layer in layers
            for known in self.definitions.values()
        )

    def reachable(self, name: str) -> str:
        """All that the definition `name` is made of, as text: where it is the same, so is the type."""
        found: dict[str, Any] = {}
        pending = [name]
        while pending:
            current = pending.pop()
            if current not in found:
                found[current] = self.definitions[current]
                pending += [each["$ref"].rpartition("/")[2] for each in nodes(found[current]) if "$ref" in each]
        return json.dumps(found, sort_keys=True)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """`node`, and the schemas in it."""
    if not isinstance(node, dict):
        return
    yield node
    below: list[Any] = [node.get(key) for key in ("items", "additionalProperties", "not")]
    below += itertools.chain(*(node.get(key, ()) for key in ("allOf", "anyOf", "oneOf")))
    below += node.get("properties", {}).values()
    for child in below:
        yield from nodes(child)


def mapped(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """`node` with `change` made to it, and before to the schemas in it; what is in a `not` counts the other way."""
    if not isinstance(node, dict):
        return node
    inner = dict(node)
    for key in ("items", "additionalProperties"):
        if key in node:
            inner[key] = mapped(node[key], change)
    for key in ("allOf", "anyOf", "oneOf"):
        if key in node:
            inner[key] = [mapped(member, change) for member in node[key]]
    for key in ("properties", "$defs"):
        if key in node:
            inner[key] = {name: mapped(child, change) for name, child in node[key].items()}
    return change(inner)


def properties_of(layers: Layers) -> dict[str, list[Any]]:
    """The declared properties of an object, each with all that is said of it."""
    found: dict[str, list[Any]] = {}
    for layer in layers:
        for wire, node in layer.get("properties", {}).items():
            found.setdefault(wire, []).append(node)
    return found


def required_of(layers: Layers) -> set[str]:
    """The properties that must be there."""
    return set(itertools.chain(*(layer.get("required", ()) for layer in layers)))


def types_of(layers: Layers) -> set[str] | None:
    """The JSON types that all layers allow; None where none is named."""
    named = [layer["type"] for layer in layers if "type" in layer]
    allowed = [set([each] if isinstance(each, str) else each) for each in named]
    return set.intersection(*allowed) if allowed else None


def says_nothing(layers: Sequence[dict[str, Any]]) -> bool:
    """Whether any JSON value fits."""
    return not any(key in layer for layer in layers for key in SAYING)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: `1` and `1.0` are, `1` and `true` are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
