"""Facts that a schema states only in prose or not at all, as JSON files beside the bundled releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from acpgen.diagnostics import Report
from acpgen.schema.gates import Gate, check_gates, read_gates
from acpgen.schema.session_facts import Sessions, fitting_sessions, read_sessions
from acpgen.schema.walk import definition_pointer, find_property, layers, methods_of, schema_map
from acpgen.text import did_you_mean

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """The error for an unsupported version: its code, the definition of its `data`, and two properties of that.

    `requested` holds the requested version, `supported` the array of supported versions.
    """

    code: int
    definition: str
    requested: str
    supported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiation:
    """The `method` that negotiates the version, and the property of its params that holds it.

    Without `unsupported`, a request for an unsupported version is answered with another version.
    """

    method: str
    version: str
    unsupported: Unsupported | None


def read_negotiation(raw: Mapping[str, Any]) -> Negotiation:
    """The negotiation from its notation in JSON."""
    error = raw.get("unsupported")
    return Negotiation(
        method=raw["method"],
        version=raw["version"],
        unsupported=error
        and Unsupported(
            code=error["code"],
            definition=error["data"],
            requested=error["requested"],
            supported=error["supported"],
        ),
    )


def check_negotiation(root: dict[str, Any], negotiation: Negotiation, report: Report) -> None:
    """Report names in `negotiation` that the composed schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    _check_method(negotiation, definitions, report)
    if negotiation.unsupported is not None:
        check_unsupported(root, negotiation.unsupported, report)


def _check_method(negotiation: Negotiation, definitions: Mapping[str, Any], report: Report) -> None:
    requests = {method: name for name, method in methods_of(definitions) if name.endswith("Request")}
    params = requests.get(negotiation.method)
    if params is None:
        report.error(
            "negotiation-method",
            f"the version is negotiated by the request {negotiation.method!r}, which the schema does not have",
            at="",
            hint=did_you_mean(negotiation.method, requests),
        )
    else:
        _check_property(params, negotiation.version, "integer", definitions=definitions, report=report)


def check_unsupported(root: dict[str, Any], unsupported: Unsupported, report: Report) -> None:
    """Report names in the error for an unsupported version that the schema `root` does not define."""
    definitions = schema_map(root, "$defs")
    if unsupported.definition not in definitions:
        report.error(
            "negotiation-data",
            f"the data of the error {unsupported.code} is {unsupported.definition}, which the schema does not have",
            at="",
            hint=did_you_mean(unsupported.definition, definitions),
        )
        return
    _check_property(unsupported.definition, unsupported.requested, "integer", definitions=definitions, report=report)
    _check_property(unsupported.definition, unsupported.supported, "array", definitions=definitions, report=report)


def _check_property(owner: str, wire: str, kind: str, *, definitions: Mapping[str, Any], report: Report) -> None:
    pointer = definition_pointer(owner)
    found = find_property(definitions[owner], pointer, wire, definitions)
    if found is None or not any(layer.get("type") == kind for _, layer in layers(found[1], found[0], definitions)):
        report.error(
            "negotiation-property",
            f"the negotiation of the version needs the property {wire!r} of {owner}, of the type {kind}",
            at=pointer,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The gates by method; the negotiation of the version and the methods of sessions, if they are known."""

    gates: Mapping[str, Gate] = field(default_factory=dict)
    negotiation: Negotiation | None = None
    sessions: Sessions | None = None


NO_FACTS = Facts()


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """The facts from their notation in JSON."""
    negotiation, sessions = raw.get("negotiation"), raw.get("sessions")
    return Facts(
        gates=read_gates(raw.get("gates", {})),
        negotiation=negotiation and read_negotiation(negotiation),
        sessions=sessions and read_sessions(sessions),
    )


def fitting_facts(root: dict[str, Any], facts: Facts) -> Facts:
    """The facts of another release that also hold in the schema `root`."""
    gates = {}
    for method, gate in facts.gates.items():
        single = [replace(gate, paths=(path,)) for path in gate.paths]
        paths = tuple(each.paths[0] for each in single if _holds(check_gates, root, {method: each}))
        if paths:
            gates[method] = replace(gate, paths=paths)
    sessions = facts.sessions and fitting_sessions(root, facts.sessions)
    return Facts(gates=gates, negotiation=_fitting_negotiation(root, facts.negotiation), sessions=sessions)


def _holds(check: Callable[[dict[str, Any], T, Report], None], root: dict[str, Any], facts: T) -> bool:
    """True if `check` reports no error for these facts."""
    report = Report()
    check(root, facts, report)
    return not report.errors


def _fitting_negotiation(root: dict[str, Any], negotiation: Negotiation | None) -> Negotiation | None:
    if negotiation is None:
        return None
    if negotiation.unsupported is not None and not _holds(check_unsupported, root, negotiation.unsupported):
        negotiation = replace(negotiation, unsupported=None)
    return negotiation if _holds(check_negotiation, root, negotiation) else None


def ungated(root: dict[str, Any], known: Facts, kept: Facts) -> list[str]:
    """The methods of `root` that have a gate in `known` but none in the facts that were kept."""
    stated = {method for _, method in methods_of(schema_map(root, "$defs"))}
    return sorted(stated & (known.gates.keys() - kept.gates.keys()))
