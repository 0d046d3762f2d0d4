"""Gates: the capability that a peer must advertise before a method may be called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.document import join
from acpgen.schema.walk import definition_pointer, find_property, layers, methods_of, schema_map
from acpgen.text import did_you_mean

_LEAVES = frozenset({"boolean", "object", "array"})
"""The types whose values can open a gate: true, an object (even an empty one), an array that is not empty."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate: it is open if any of `paths`, property names below the definition `root`, leads to a value that says yes.

    `pointer` is the place of the gate in the composed schema, for diagnostics; empty for facts about a base.
    """

    root: str
    paths: tuple[tuple[str, ...], ...]
    pointer: str = field(default="", compare=False)

    def __str__(self) -> str:
        return " or ".join(".".join(path) for path in self.paths) + f" of {self.root}"


def gate_pointer(root: str, method: str) -> str:
    """The pointer of the gate of `method` in a file."""
    return join("", "gates", root, method)


def read_gates(gates: Mapping[str, Mapping[str, str | list[str]]], *, pointers: bool = False) -> dict[str, Gate]:
    """Read the gates by method from JSON; with `pointers`, each keeps its place.

    Paths are sorted: their order has no effect. A method under two roots gets the last one: check for that with
    `gated_twice` first.
    """
    return {
        method: Gate(
            root,
            tuple(sorted(tuple(path.split(".")) for path in ([paths] if isinstance(paths, str) else paths))),
            gate_pointer(root, method) if pointers else "",
        )
        for root, methods in gates.items()
        for method, paths in methods.items()
    }


def gated_twice(gates: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The pairs (root, method) whose method has a gate at an earlier root, too."""
    seen: set[str] = set()
    twice = []
    for root, methods in gates.items():
        twice += [(root, method) for method in methods if method in seen]
        seen.update(methods)
    return twice


def check_gates(root: dict[str, Any], gates: Mapping[str, Gate], report: Report) -> None:
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
        elif gate.root not in definitions:
            report.error(
                "gate-root",
                f"the gate of {method!r} starts at the definition {gate.root!r}, which the schema does not have",
                at=gate.pointer,
                hint="name the params or the result of `initialize`",
            )
        else:
            for path in gate.paths:
                _check_path(method, gate, path, definitions=definitions, report=report)


def fitting_gates(root: dict[str, Any], gates: Mapping[str, Gate]) -> Mapping[str, Gate]:
    """The gates and paths of another release that also hold in the schema `root`."""
    fitting = {}
    for method, gate in gates.items():
        single = (replace(gate, paths=(path,)) for path in gate.paths)
        if paths := tuple(each.paths[0] for each in single if _holds(root, method, each)):
            fitting[method] = replace(gate, paths=paths)
    return fitting


def _holds(root: dict[str, Any], method: str, gate: Gate) -> bool:
    report = Report()
    check_gates(root, {method: gate}, report)
    return not report.errors


def _check_path(
    method: str, gate: Gate, path: tuple[str, ...], *, definitions: Mapping[str, Any], report: Report
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
                f"the gate of {method!r}, {'.'.join(path)}, fails at {wire!r}: {pointer} has no such property",
                at=gate.pointer or pointer,
                hint=did_you_mean(wire, names) or f"there are: {', '.join(sorted(names)) or 'none'}",
            )
            return
        pointer, node = found
    if not any(_LEAVES & _types(layer) for _, layer in layers(node, pointer, definitions)):
        report.error(
            "gate-leaf",
            f"the gate of {method!r}, {'.'.join(path)}, ends at a value that cannot open it ({pointer})",
            at=gate.pointer or pointer,
            hint="a gate is a boolean, an object or an array",
        )


def _types(layer: Mapping[str, Any]) -> set[str]:
    stated = layer.get("type")
    names = {stated} if isinstance(stated, str) else set(stated) if isinstance(stated, list) else set()
    return names | ({"object"} if "properties" in layer else set())
