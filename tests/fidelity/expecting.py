"""What decoding and encoding again has to come to: JSON Schema, and what the README adds to it.

The verdict on each part is the validator's. Around it stand the rules that JSON Schema does not know: which member of a
union is taken, what `x-deserialize-…` forgives, that absent properties get their defaults, and that properties without
a declaration are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.fidelity.schemas import Layers, Schema, properties_of, required_of, same, says_nothing, types_of

Path: TypeAlias = tuple[str | int, ...]
ABSENT: Any = object()
"""Stands for a property that is not there."""
NOTHING: Any = object()
"""Stands in for nothing: a value that does not fit is refused."""
ON_ERROR, SKIP, ON_NULL = (
    f"x-deserialize-{rest}" for rest in ("default-on-error", "skip-invalid-items", "default-on-null")
)
OMITS_NULL = "x-omits-null"
OMITS_ANY_NULL = "x-omits-any-null"
"""Also where any JSON may be: an error without data is one whose data is null."""
"""Marks a property of which null says no more than leaving it out."""


class MisfitError(Exception):
    """The value does not fit, and nothing forgives it."""


@dataclass(slots=True)
class Expected:
    """What comes out of a value: its JSON after a round trip, the paths that were dropped, and whether null was.

    `passed_over` says that a later member of a union would have taken the value without forgiving anything.
    """

    value: Any
    drops: list[Path] = field(default_factory=list)
    null_forgiven: bool = False
    passed_over: bool = False

    @property
    def forgiven(self) -> bool:
        """Whether the value was not valid as it came."""
        return bool(self.drops) or self.null_forgiven

    def take(self, step: str | int, inner: Expected) -> Any:
        """Note what happened in a part of this value; its own value is returned."""
        self.drops += [(step, *path) for path in inner.drops]
        self.null_forgiven |= inner.null_forgiven
        self.passed_over |= inner.passed_over
        return inner.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Expecting:
    """Works out what to expect of values of one schema; `keeps_unknown` where the package keeps every property."""

    schema: Schema
    keeps_unknown: bool = False

    def of(self, name: str, value: Any) -> Expected:
        """What to expect of `value` as the definition `name`; raises `MisfitError` where it must be refused."""
        return self._read(value, self.schema.definitions[name])

    def _read(self, value: Any, *nodes: Any) -> Expected:
        choices = self._in_order(self.schema.choices(*nodes), value)
        takes_any = any(map(says_nothing, choices))
        fitting: list[Expected] = []
        for layers in choices:
            try:
                found = self._fitting(value, layers)
            except MisfitError:
                continue
            if takes_any and (found.forgiven or not _holds(found.value, value)):
                continue  # where any JSON is welcome, nothing of it may be lost
            fitting.append(found)
            if not found.forgiven:
                break
        if not fitting:
            raise MisfitError
        fitting[0].passed_over |= not fitting[-1].forgiven and len(fitting) > 1
        return fitting[0]

    def _in_order(self, choices: list[Layers], value: Any) -> list[Layers]:
        """The members of unions in the order of trial: first that of the tag, then in the order of the schema."""
        if len(choices) == 1 or not isinstance(value, dict):
            return choices
        return sorted(choices, key=lambda layers: -len(_tags(layers) & _strings(value)))

    def _fitting(self, value: Any, layers: Layers) -> Expected:
        found = Expected(value)
        if says_nothing(layers):
            return found
        if isinstance(value, list):
            items = [layer["items"] for layer in layers if "items" in layer]
            found.value = [found.take(index, self._read(item, *items)) for index, item in enumerate(value)]
        if not all(self.schema.fits_flatly(layer, value) for layer in layers):
            raise MisfitError
        if isinstance(value, dict):
            self._object(found, layers)
        return found

    # --- Objects -------------------------------------------------------------------------------------------------

    def _object(self, found: Expected, layers: Layers) -> None:
        declared = properties_of(layers)
        raw, members = found.value, {}
        for wire, nodes in declared.items():
            after = self._property(found, raw.get(wire, ABSENT), wire, nodes, required=wire in required_of(layers))
            if after is not ABSENT:
                members[wire] = after
        rest = {key: item for key, item in raw.items() if key not in declared}
        if not declared and not self.schema.is_marker(layers):
            values = [layer["additionalProperties"] for layer in layers if "additionalProperties" in layer]
            members |= {key: found.take(key, self._read(item, *values)) for key, item in rest.items()}
        elif self.keeps_unknown or _keeps_the_rest(layers):
            members |= rest
        found.value = members

    def _property(self, found: Expected, value: Any, wire: str, nodes: list[Any], *, required: bool) -> Any:
        """The property after a round trip, or ABSENT."""
        if value is ABSENT:
            if required:
                raise MisfitError
            return self._default(nodes)
        stand_in = self._stand_in(nodes, required=required)
        if value is None and _says(nodes, ON_NULL) and stand_in is not NOTHING:
            found.null_forgiven = True
            return stand_in
        try:
            inner = self._skipping(value, nodes) if _says(nodes, SKIP) else self._read(value, *nodes)
        except MisfitError:
            if not _says(nodes, ON_ERROR) or stand_in is NOTHING:
                raise
            found.drops.append((wire,))
            return stand_in
        omits_null = _says(nodes, OMITS_ANY_NULL) or (_says(nodes, OMITS_NULL) and self._says_null(nodes))
        if inner.value is None and not required and omits_null:
            found.take(wire, inner)
            return self._default(nodes)
        return found.take(wire, inner)

    def _says_null(self, nodes: list[Any]) -> bool:
        """True if null is a type of its own among the others; where any JSON may be, it is a value."""
        return not any(map(says_nothing, self.schema.choices(*nodes)))

    def _default(self, nodes: list[Any]) -> Any:
        """What stands for the property where it is absent: its default, with the defaults in that, or nothing."""
        for node in nodes:
            if isinstance(node, dict) and "default" in node:
                return self._read(node["default"], *nodes).value
        return ABSENT

    def _stand_in(self, nodes: list[Any], *, required: bool) -> Any:
        """What replaces a value that does not fit: the default, else absence, else null or what is empty."""
        default = self._default(nodes)
        if default is not ABSENT or not required:
            return default
        choices = self.schema.choices(*nodes)
        kinds = set().union(*(types_of(layers) or () for layers in choices))
        if "null" in kinds:
            return None
        if len(kinds) > 1 or any(map(properties_of, choices)):
            return NOTHING
        return [] if kinds == {"array"} else {} if kinds == {"object"} else NOTHING

    def _skipping(self, value: Any, nodes: list[Any]) -> Expected:
        """A list or map without what does not fit in it; what is left has to be enough."""
        if not isinstance(value, (list, dict)):
            return self._read(value, *nodes)
        key = "items" if isinstance(value, list) else "additionalProperties"
        for layers in self.schema.choices(*nodes):
            below = [layer[key] for layer in layers if key in layer]
            if below:
                return self._without_misfits(value, layers, below)
        return self._read(value, *nodes)

    def _without_misfits(self, value: Any, layers: Layers, below: list[Any]) -> Expected:
        found = Expected(value)
        left: dict[Any, Any] = {}
        for step, item in enumerate(value) if isinstance(value, list) else value.items():
            try:
                left[step] = found.take(step, self._read(item, *below))
            except MisfitError:
                found.drops.append((step,))
        found.value = list(left.values()) if isinstance(value, list) else left
        if not all(self.schema.fits_flatly(layer, found.value) for layer in layers):
            raise MisfitError
        return found


def _says(nodes: list[Any], keyword: str) -> bool:
    return any(isinstance(node, dict) and node.get(keyword) is True for node in nodes)


def _tags(layers: Layers) -> set[tuple[str, str]]:
    """The constants among the required properties."""
    return {
        (wire, node["const"])
        for wire, nodes in properties_of(layers).items()
        for node in nodes
        if isinstance(node, dict) and isinstance(node.get("const"), str) and wire in required_of(layers)
    }


def _strings(value: dict[str, Any]) -> set[tuple[str, str]]:
    return {(key, item) for key, item in value.items() if isinstance(item, str)}


def _holds(after: Any, before: Any) -> bool:
    """Whether nothing of a value is lost, at any depth."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and _holds(after[key], item) for key, item in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(_holds, after, before))
    return same(after, before)


def _keeps_the_rest(layers: Layers) -> bool:
    """Whether the schema says that other properties are expected: a member for tags of the future."""
    return any(layer.get(key) is True for layer in layers for key in ("additionalProperties", "unevaluatedProperties"))
