"""`on_demand/properties.py`: what `types` does not say of properties, for the JSON Schemas of other libraries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from acpgen.emit.source import Code, literal
from acpgen.ir import model as ir


class PropertyTable:
    """The names on the wire that do not follow from the attributes, and the limits, of all classes of `model`."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._structs = [each for each in model.definitions if isinstance(each, ir.Struct)]

    @property
    def names(self) -> list[Code]:
        """The items of a dict: by attribute, or by class and attribute where classes differ."""
        wires = defaultdict[str, set[str]](set)
        for struct in self._structs:
            for field in struct.fields:
                wires[field.name].add(field.wire)
        found = {
            field.name if len(wires[field.name]) == 1 else f"{struct.name}.{field.name}": field.wire
            for struct in self._structs
            for field in struct.fields
            if field.wire != camel(field.name)
        }
        return [Code(f"{literal(key)}: {literal(wire)},") for key, wire in found.items()]

    @property
    def limits(self) -> list[Code]:
        """The items of a dict: by class and attribute, keywords of JSON Schema."""
        found = {
            f"{struct.name}.{field.name}": limits
            for struct in self._structs
            for field in struct.fields
            if (limits := self._limits(field.type, frozenset()))
        }
        return [Code(f"{literal(key)}: {_dict(limits)},") for key, limits in found.items()]

    def _limits(self, expression: ir.TypeExpr, seen: frozenset[str]) -> dict[str, Any]:
        """Keywords that hold beside those for the type itself: they say nothing of null, or of other types."""
        match expression:
            case ir.Scalar():
                return dict(_of_scalar(expression))
            case ir.Nullable(inner):
                return self._limits(inner, seen)
            case ir.ListOf(item=item, min_items=least):
                of_items = self._limits(item, seen)
                return {**({"minItems": least} if least else {}), **({"items": of_items} if of_items else {})}
            case ir.MapOf(value):
                of_values = self._limits(value, seen)
                return {"additionalProperties": of_values} if of_values else {}
            case ir.Ref(name) if name not in seen and isinstance(alias := self._model.by_name[name], ir.Alias):
                return self._limits(alias.type, seen | {name})
            case _:
                return {}


def camel(attribute: str) -> str:
    """The name on the wire that most attributes have; the runtime has the same rule."""
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _of_scalar(scalar: ir.Scalar) -> Iterator[tuple[str, str | float]]:
    yield from ((camel(name), bound) for name, bound in scalar.bounds.items())
    yield from scalar.annotations


def _dict(known: dict[str, Any]) -> Code:
    items = (
        f"{literal(key)}: {_dict(each) if isinstance(each, dict) else literal(each)}" for key, each in known.items()
    )
    return Code("{" + ", ".join(items) + "}")
