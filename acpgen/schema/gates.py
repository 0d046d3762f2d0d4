"""Gates: the capability that must be advertised before a method may be called, or a value sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from acpgen.diagnostics import Report
from acpgen.schema.document import join
from acpgen.schema.walk import constants_in, definition_pointer, find_property, item_of, layers, methods_of, schema_map
from acpgen.text import did_you_mean

_LEAVES = frozenset({"boolean", "object", "array"})
"""The types whose values can open a gate: true, an object (even an empty one), an array that is not empty."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: it is open if any of `paths`, property names below the definition `root`, leads to a value that says yes.

    Of an array, members of a union that have one of the tags `but` do not count: `methods!=terminal` in the notation.
    `pointer` is the place of the gate in the composed schema, for diagnostics; empty for facts about a base. `source`
    is where the text says so: the pointer of a description in the same schema or extension, or the address of a page.
    A gate of an extension that is `optional` is left out where the schema does not have what it names.
    """

    root: str
    paths: tuple[tuple[str, ...], ...]
    but: tuple[str, ...] = field(default=(), kw_only=True, compare=False)
    pointer: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    optional: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.needs} of {self.root}"

    @property
    def needs(self) -> str:
        """The paths in words."""
        others = f" (other than {' and '.join(self.but)})" if self.but else ""
        return " or ".join(".".join(path) for path in self.paths) + others


Gates: TypeAlias = Mapping[str, Gate]
"""Gates by what they are of: a method, or a value in the notation of `value_gates.py`."""


def gate_pointer(root: str, gated: str, *, section: str = "gates") -> str:
    """The pointer of the gate of `gated` in a file."""
    return join("", section, root, gated)


def read_gates(gates: Mapping[str, Mapping[str, Any]], *, section: str | None = None) -> dict[str, Gate]:
    """Read the gates by method or value from JSON; with the name of their `section` in the file, each keeps its place.

    Paths are sorted: their order has no effect. What has a gate under two roots gets the last one: check for that with
    `gated_twice` first.
    """
    return {
        gated: _read_gate(root, raw, gate_pointer(root, gated, section=section) if section else "")
        for root, all_gated in gates.items()
        for gated, raw in all_gated.items()
    }


def _read_gate(root: str, raw: str | list[str] | dict[str, Any], pointer: str) -> Gate:
    if isinstance(raw, dict):
        gate = _read_gate(root, raw["needs"], pointer)
        return replace(gate, source=raw.get("source", ""), optional=raw.get("optional", False))
    stated = [path.partition("!=") for path in ([raw] if isinstance(raw, str) else raw)]
    paths = sorted({tuple(path.split(".")) for path, _, _ in stated})
    return Gate(root, tuple(paths), pointer, but=tuple(sorted(tag for _, mark, tag in stated if mark)))


def gated_twice(gates: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The pairs of a root and what has a gate there, and at an earlier root, too."""
    seen: set[str] = set()
    twice = []
    for root, methods in gates.items():
        twice += [(root, method) for method in methods if method in seen]
        seen.update(methods)
    return twice


def check_gates(root: dict[str, Any], gates: Gates, report: Report) -> None:
    """Report every gate whose method or capability the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    stated = {method for _, method in methods_of(definitions)}
    for method, gate in sorted(gates.items()):
        if method not in stated:
            report.error(
                "gate-method",
                f"a gate is stated for the method {method!r}, which the schema does not have",
                at=gate.pointer,
                hint=did_you_mean(method, stated),
            )
        else:
            check_capability(method, gate, definitions, report)


def check_capability(gated: str, gate: Gate, definitions: Mapping[str, Any], report: Report) -> None:
    """Report a gate of a method or value whose capability is not among the definitions."""
    if gate.root not in definitions:
        report.error(
            "gate-root",
            f"the gate of {gated!r} starts at the definition {gate.root!r}, which the schema does not have",
            at=gate.pointer,
            hint="name the params or the result of `initialize`",
        )
        return
    for path in gate.paths:
        _check_path(gated, gate, path, definitions=definitions, report=report)


Check: TypeAlias = Callable[[dict[str, Any], Gates, Report], None]


def fitting_gates(root: dict[str, Any], gates: Gates, check: Check = check_gates) -> Gates:
    """The gates and paths of another release that also hold in the schema `root`: `check` finds nothing wrong."""
    fitting = {}
    for gated, gate in gates.items():
        but = tuple(tag for tag in gate.but if _holds(root, gated, replace(gate, but=(tag,)), check))
        single = (replace(gate, paths=(path,), but=but) for path in gate.paths)
        if paths := tuple(each.paths[0] for each in single if _holds(root, gated, each, check)):
            fitting[gated] = replace(gate, paths=paths, but=but)
    return fitting


def _holds(root: dict[str, Any], gated: str, gate: Gate, check: Check) -> bool:
    report = Report()
    check(root, {gated: gate}, report)
    return not report.errors


def _check_path(
    gated: str, gate: Gate, path: tuple[str, ...], *, definitions: Mapping[str, Any], report: Report
) -> None:
    pointer, node = definition_pointer(gate.root), definitions[gate.root]
    for wire in path:
        found = find_property(node, pointer, wire, definitions)
        if found is None:
            names = {
                name for _, layer in layers(node, pointer, definitions) for name in schema_map(layer, "properties")
            }
            report.error(
                "gate-path",
                f"the gate of {gated!r}, {'.'.join(path)}, fails at {wire!r}: {pointer} has no such property",
                at=gate.pointer or pointer,
                hint=did_you_mean(wire, names) or f"there are: {', '.join(sorted(names)) or 'none'}",
            )
            return
        pointer, node = found
    known = _constants_of_items(node, pointer, definitions)
    for tag in sorted({*gate.but} - known):
        report.error(
            "gate-tag",
            f"the gate of {gated!r}, {'.'.join(path)}!={tag}, fails: no member at {pointer} has this tag",
            at=gate.pointer or pointer,
            hint=did_you_mean(tag, known) or f"there are: {', '.join(sorted(known)) or 'none'}",
        )
    if not any(_LEAVES & _types(layer) for _, layer in layers(node, pointer, definitions)):
        report.error(
            "gate-leaf",
            f"the gate of {gated!r}, {'.'.join(path)}, ends at a value that cannot open it ({pointer})",
            at=gate.pointer or pointer,
            hint="a gate is a boolean, an object or an array",
        )


def _constants_of_items(node: Any, pointer: str, definitions: Mapping[str, Any]) -> set[str]:
    """The tags of the members that an array may have."""
    place, item = item_of(pointer, node, definitions)
    return {value for _, value in constants_in(item, place, definitions)}


def _types(layer: Mapping[str, Any]) -> set[str]:
    stated = layer.get("type")
    names = {stated} if isinstance(stated, str) else set(stated) if isinstance(stated, list) else set()
    return names | ({"object"} if "properties" in layer else set())
