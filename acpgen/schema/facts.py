"""Facts: what a schema says in prose alone, or not at all, and acpgen has written down for the bundled releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.gates import Gate, check_gates, read_gates
from acpgen.schema.layers import schema_map
from acpgen.schema.negotiation import Negotiation, check_negotiation, check_unsupported, read_negotiation


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The gates by method, and how the version is negotiated, where that is known."""

    gates: Mapping[str, Gate] = field(default_factory=dict)
    negotiation: Negotiation | None = None


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """The facts from their notation in JSON."""
    negotiation = raw.get("negotiation")
    return Facts(
        gates=read_gates(raw.get("gates", {})),
        negotiation=negotiation and read_negotiation(negotiation),
    )


def fitting_facts(root: dict[str, Any], facts: Facts) -> Facts:
    """Those of the facts of another release that hold in the schema `root`, too."""
    gates = {
        method: replace(gate, paths=paths)
        for method, gate in facts.gates.items()
        if (paths := tuple(path for path in gate.paths if _holds(root, method, replace(gate, paths=(path,)))))
    }
    return Facts(gates=gates, negotiation=_fitting_negotiation(root, facts.negotiation))


def _holds(root: dict[str, Any], method: str, gate: Gate) -> bool:
    report = Report()
    check_gates(root, {method: gate}, report)
    return not report.errors


def _fitting_negotiation(root: dict[str, Any], negotiation: Negotiation | None) -> Negotiation | None:
    if negotiation is None:
        return None
    if negotiation.unsupported is not None:
        report = Report()
        check_unsupported(root, negotiation.unsupported, report)
        if report.errors:
            negotiation = replace(negotiation, unsupported=None)
    report = Report()
    check_negotiation(root, negotiation, report)
    return None if report.errors else negotiation


def ungated(root: dict[str, Any], known: Facts, kept: Facts) -> list[str]:
    """The methods of `root` that have a gate by the facts `known`, and none by those that were kept."""
    nodes = schema_map(root, "$defs").values()
    methods = {node["x-method"] for node in nodes if isinstance(node, dict) and "x-method" in node}
    return sorted(methods & (known.gates.keys() - kept.gates.keys()))
