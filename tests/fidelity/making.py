"""Make values that fit a schema: every choice is drawn from a `Random`, hypothesis' own or a seeded one."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.fidelity.schemas import Layers, Schema, properties_of, required_of, says_nothing, types_of

TEXTS = ("", "a", "text", "null", "1", "äß€😀", "a\nb\r\t", "\x00", "\u2028", '"\\', "{{ x }}", "x" * 70, "\ufeff é")
KEYS = ("", "_meta2", "x", "extra", "self", "a.b", "a b", "$ref", "[0]", "ключ", "\x00", "\u2028", "__class__", "type2")
INTEGERS = (0, 1, -1, 7, 255, 65535, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63), 2**64, 10**30)
NUMBERS = (0.5, -2.25, 0.0, -0.0, 1.0, 1e300, 5e-324, 3)
ATTEMPTS = 200


class Maker:
    """Makes values of the definitions of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def value(self, name: str, random: Random) -> Any:
        """A value of the definition `name`; fails where none is found."""
        for attempt in range(ATTEMPTS):
            value = _Draw(self._schema, random, plainly=attempt > ATTEMPTS // 2).node(0, self._schema.definitions[name])
            if self._schema.is_valid(name, value):
                return value
        raise AssertionError(f"no valid value of {name} was found")


class _Draw:
    def __init__(self, schema: Schema, random: Random, *, plainly: bool) -> None:
        self._schema = schema
        self._random = random
        self._plainly = plainly

    def _often(self, share: float) -> bool:
        return self._random.random() < share

    def node(self, depth: int, *nodes: Any) -> Any:
        """A value that fits all `nodes`, or nearly so: `not` and patterns are left to the caller."""
        layers = self._random.choice(self._schema.choices(*nodes))
        if says_nothing(layers):
            return self.json(depth)
        for layer in layers:
            if "const" in layer:
                return layer["const"]
            if "enum" in layer:
                return self._random.choice(layer["enum"])
        implied = {"array"} if any("items" in layer for layer in layers) else {"object"}
        return self._of_type(self._random.choice(sorted(types_of(layers) or implied)), layers, depth)

    def _of_type(self, kind: str, layers: Layers, depth: int) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                return self._often(0.5)
            case "string":
                return self._string(layers)
            case "integer" | "number":
                return self._number(layers, INTEGERS if kind == "integer" else INTEGERS + NUMBERS)
            case "array":
                return self._array(layers, depth)
            case _:
                return self._object(layers, depth)

    def _string(self, layers: Layers) -> str:
        least = max((layer.get("minLength", 0) for layer in layers), default=0)
        if any("pattern" in layer for layer in layers):
            return "EUR"  # the only pattern that was ever published is that of currencies
        text = self._random.choice(TEXTS)
        return text if len(text) >= least else text + "y" * (least - len(text))

    def _number(self, layers: Layers, pool: tuple[float, ...]) -> float:
        minimum = max((layer["minimum"] for layer in layers if "minimum" in layer), default=None)
        maximum = min((layer["maximum"] for layer in layers if "maximum" in layer), default=None)
        edges = [edge for edge in (minimum, maximum) if edge is not None]
        fitting = [
            each
            for each in (*pool, *edges)
            if (minimum is None or each >= minimum) and (maximum is None or each <= maximum)
        ]
        chosen = self._random.choice(fitting)
        return float(chosen) if abs(chosen) < 2**53 and self._often(0.1) else chosen

    def _array(self, layers: Layers, depth: int) -> list[Any]:
        items = [layer["items"] for layer in layers if "items" in layer]
        least = max((layer.get("minItems", 0) for layer in layers), default=0)
        most = 0 if self._plainly else self._random.choice((0, 1, 1, 2, 3) if depth < 3 else (0, 1))
        return [self.node(depth + 1, *items) if items else self.json(depth + 1) for _ in range(max(least, most))]

    def _object(self, layers: Layers, depth: int) -> dict[str, Any]:
        required = required_of(layers)
        share = 0.0 if self._plainly else (0.7, 0.5, 0.35, 0.25)[min(depth, 3)]
        declared = properties_of(layers)
        found = {
            wire: self.node(depth + 1, *each)
            for wire, each in declared.items()
            if wire in required or self._often(share)
        }
        values = [layer["additionalProperties"] for layer in layers if "additionalProperties" in layer]
        if self._often(share / 2 if declared else 0.7):
            for key in self._random.sample(KEYS, self._random.choice((1, 2))):
                if key not in declared:
                    found[key] = self.node(depth + 1, *values) if values else self.json(depth + 1)
        return found

    def json(self, depth: int) -> Any:
        """Any JSON value."""
        kind = self._random.choice(("null", "text", "integer", "number", "boolean", "array", "object"))
        match kind:
            case "null":
                return None
            case "text":
                return self._random.choice(TEXTS)
            case "integer":
                return self._random.choice(INTEGERS)
            case "number":
                return self._random.choice(NUMBERS)
            case "boolean":
                return self._often(0.5)
        size = self._random.choice((0, 1, 2)) if depth < 4 else 0
        if kind == "array":
            return [self.json(depth + 1) for _ in range(size)]
        return {key: self.json(depth + 1) for key in self._random.sample(KEYS, size)}
