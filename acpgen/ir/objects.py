"""Flatten a schema node to an object shape: its properties, and branches with alternatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeVar

from acpgen.ir import names
from acpgen.schema.document import join
from acpgen.schema.walk import definition_pointer, description, own_references, referenced_definition, references, walk

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """One entry of `properties`, with the definitions on the way to it, outermost first."""

    wire: str
    node: Any
    pointer: str
    required: bool
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subschema:
    """A schema inside another one: a member of a `oneOf` or `anyOf`, or a `not`."""

    node: Any
    pointer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The shape of objects that a node describes.

    `branches` are unions that an instance must satisfy as well, each with its members. `owners` are the definitions
    that form the shape. `required` may name properties that only an enclosing shape declares. `open` means that other
    properties are expected.
    """

    properties: tuple[Property, ...] = ()
    branches: tuple[tuple[Subschema, ...], ...] = ()
    exclusions: tuple[Subschema, ...] = ()
    owners: tuple[str, ...] = ()
    docs: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    open: bool = False

    def __add__(self, inner: Shape) -> Shape:
        """Combine two shapes: this one around `inner`, whose branches come first."""
        required = self.required | inner.required
        properties = _distinct(self.properties + inner.properties, lambda each: each.pointer)
        return Shape(
            properties=tuple(replace(each, required=each.wire in required) for each in properties),
            branches=_distinct(inner.branches + self.branches, lambda each: each[0].pointer),
            exclusions=_distinct(self.exclusions + inner.exclusions, lambda each: each.pointer),
            owners=_distinct(self.owners + inner.owners, lambda each: each),
            docs=self.docs + tuple(doc for doc in inner.docs if doc not in self.docs),
            required=required,
            open=self.open or inner.open,
        )


class Definitions:
    """The definitions of a composed schema and their references."""

    def __init__(self, nodes: Mapping[str, Any]) -> None:
        self.nodes = nodes
        # cached: the number of paths is exponential
        self._defines_object = cache(lambda name: self.is_object(nodes[name]))
        self._defines_null = cache(lambda name: self.is_null(nodes[name]))
        self._shape = cache(lambda name: self.shape(nodes[name], definition_pointer(name), (name,)))

    def shape(self, node: Any, pointer: str, owners: tuple[str, ...] = ()) -> Shape:
        """The shape of `node`; `$ref` and `allOf` are followed, `oneOf` and `anyOf` become branches."""
        if not isinstance(node, dict):
            return Shape()
        shape = Shape(
            properties=_own_properties(node, pointer, owners),
            branches=tuple(
                tuple(Subschema(member, join(pointer, key, index)) for index, member in enumerate(node[key]))
                for key in ("oneOf", "anyOf")
                if key in node
            ),
            exclusions=(Subschema(node["not"], join(pointer, "not")),) if "not" in node else (),
            owners=owners[-1:],
            docs=(text,) if (text := description(node)) else (),
            required=frozenset(node.get("required", ())),
            open=any(node.get(key) is True for key in ("additionalProperties", "unevaluatedProperties")),
        )
        parts = [shape, *(self._conjunct(part, where, owners) for part, where in _conjuncts(node, pointer))]
        while len(parts) > 1:  # in pairs: adding one after the other takes quadratic time
            parts = [parts[at] + parts[at + 1] if at + 1 < len(parts) else parts[at] for at in range(0, len(parts), 2)]
        return parts[0]

    def _conjunct(self, node: Any, pointer: str, owners: tuple[str, ...]) -> Shape:
        name = referenced_definition(node)
        if name is None:
            return self.shape(node, pointer, owners)
        shape = self.definition_shape(name)
        properties = (replace(each, owners=(*owners, *each.owners)) for each in shape.properties)
        return replace(shape, properties=tuple(properties))

    def definition_shape(self, name: str) -> Shape:
        """The shape of the definition `name`, which is the outermost owner of each property."""
        return self._shape(name)

    def is_object(self, node: Any) -> bool:
        """True if `node` describes objects with named properties, or a union of such objects."""
        if not isinstance(node, dict):
            return False
        if (name := referenced_definition(node)) is not None:
            return self._defines_object(name)
        if "properties" in node:
            return True
        if node.get("type", "object") != "object":
            return False
        unions = [node[key] for key in ("oneOf", "anyOf") if key in node]
        parts = node.get("allOf", [])
        if unions or parts:
            return all(all(map(self.is_object, union)) for union in unions) and all(map(self.is_object, parts))
        return False

    def is_class(self, node: Any) -> bool:
        """True if `node` becomes a class or a union of classes."""
        if self.is_object(node):
            return True
        # an object without properties is a class, too: later releases may add some
        return isinstance(node, dict) and node.get("type") == "object" and "additionalProperties" not in node

    def is_null(self, node: Any) -> bool:
        """True if null is the only instance of `node`, judged by its types, constants and unions."""
        if not isinstance(node, dict):
            return False
        if (name := referenced_definition(node)) is not None:
            return self._defines_null(name)
        if "const" in node:
            return node["const"] is None
        members = [member for key in ("oneOf", "anyOf", "allOf") for member in node.get(key, [])]
        return node.get("type") == "null" or (bool(members) and all(map(self.is_null, members)))

    @cached_property
    def envelopes(self) -> frozenset[str]:
        """The definitions of JSON-RPC envelopes: marked `x-docs-ignore` and used only by other envelopes."""
        marked = {name for name, node in self.nodes.items() if isinstance(node, dict) and node.get("x-docs-ignore")}
        used = {target for name, node in self.nodes.items() if name not in marked for target in references(node)}
        return frozenset(marked - used)

    @cached_property
    def absorbed(self) -> frozenset[str]:
        """The definitions that are the payload of one union member only: they need no class of their own."""
        nodes = [node for name, node in self.nodes.items() if name not in self.envelopes]
        uses = Counter(target for node in nodes for target in references(node))
        payloads = {target for node in nodes for target in _payloads(node)}
        return frozenset(
            name
            for name in payloads
            if uses[name] == 1 and self.is_object(self.nodes[name]) and "x-method" not in self.nodes[name]
        )

    @cached_property
    def class_names(self) -> frozenset[str]:
        """The Python names of the definitions with a type of their own."""
        return frozenset(
            names.class_name(name) for name in self.nodes if name not in self.envelopes and name not in self.absorbed
        )

    def base_of(self, owners: tuple[str, ...]) -> str | None:
        """The first of `owners` with a class of its own, which can be a base."""
        classes = (each for each in owners if each not in self.absorbed and self.is_class(self.nodes[each]))
        return next((each for each in classes if not self.definition_shape(each).branches), None)


def _distinct(parts: tuple[T, ...], key: Callable[[T], str]) -> tuple[T, ...]:
    """The parts in order, without duplicates."""
    found: dict[str, T] = {}
    for part in parts:
        found.setdefault(key(part), part)
    return tuple(found.values())


def _conjuncts(node: dict[str, Any], pointer: str) -> Iterator[tuple[Any, str]]:
    if "$ref" in node:
        yield {"$ref": node["$ref"]}, pointer
    for index, part in enumerate(node.get("allOf", [])):
        yield part, join(pointer, "allOf", index)


def _own_properties(node: dict[str, Any], pointer: str, owners: tuple[str, ...]) -> tuple[Property, ...]:
    required = node.get("required", [])
    return tuple(
        Property(
            wire=wire,
            node=child,
            pointer=join(pointer, "properties", wire),
            required=wire in required,
            owners=owners,
        )
        for wire, child in node.get("properties", {}).items()
    )


def _payloads(definition: Any) -> Iterator[str]:
    """The definitions to which a union in `definition` adds properties: those of a member or those around the union."""
    for _, node in walk(definition):
        if not isinstance(node, dict):
            continue
        for key in ("oneOf", "anyOf"):
            for member in node.get(key, []):
                if isinstance(member, dict) and ("properties" in node or "properties" in member):
                    yield from own_references(member)
