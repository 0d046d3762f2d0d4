"""Facts that a schema states only in prose or not at all, as JSON files beside the bundled releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.gates import Gates, check_gates, fitting_gates, read_gates
from acpgen.schema.session_facts import SessionFacts, fitting_sessions, read_sessions
from acpgen.schema.value_gates import check_value_gates, stated_values
from acpgen.schema.walk import has_property, methods_of, schema_map


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedFacts:
    """The error for an unsupported version: its code, the definition of its `data`, and two properties of that.

    `requested` holds the requested version, `supported` the array of supported versions.
    """

    code: int
    data: str
    requested: str
    supported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntroductionFacts:
    """The properties of a message in which a peer says what it can do, and which program it is, if any."""

    capabilities: str | None = None
    info: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationFacts:
    """The `method` that negotiates the version, and the property of its params that holds it.

    In its `params`, the peer that sends it introduces itself, and in its `result` the other one. Without `unsupported`,
    a request for an unsupported version is answered with another version.
    """

    method: str
    version: str
    params: IntroductionFacts = IntroductionFacts()
    result: IntroductionFacts = IntroductionFacts()
    unsupported: UnsupportedFacts | None = None


def read_negotiation(raw: Mapping[str, Any]) -> NegotiationFacts:
    """The negotiation from its notation in JSON."""
    error = raw.get("unsupported")
    return NegotiationFacts(
        method=raw["method"],
        version=raw["version"],
        params=IntroductionFacts(**raw.get("params", {})),
        result=IntroductionFacts(**raw.get("result", {})),
        unsupported=error and UnsupportedFacts(**error),
    )


def fitting_negotiation(root: Mapping[str, Any], negotiation: NegotiationFacts) -> NegotiationFacts | None:
    """The part of `negotiation` that holds in the schema `root`; None if it does not."""
    definitions = schema_map(root, "$defs")
    messages = [name for name, method in methods_of(definitions) if method == negotiation.method]
    params, result = (next((each for each in messages if each.endswith(end)), None) for end in ("Request", "Response"))
    if params is None or not has_property(params, negotiation.version, "integer", definitions):
        return None
    error = negotiation.unsupported
    return replace(
        negotiation,
        params=_fitting_introduction(params, negotiation.params, definitions),
        result=_fitting_introduction(result, negotiation.result, definitions),
        unsupported=error if error and _is_there(error, definitions) else None,
    )


def _fitting_introduction(
    owner: str | None, stated: IntroductionFacts, definitions: Mapping[str, Any]
) -> IntroductionFacts:
    """The properties that the definition `owner` has as objects."""

    def fitting(wire: str | None) -> str | None:
        return wire if owner and wire and has_property(owner, wire, "object", definitions) else None

    return IntroductionFacts(capabilities=fitting(stated.capabilities), info=fitting(stated.info))


def _is_there(error: UnsupportedFacts, definitions: Mapping[str, Any]) -> bool:
    properties = ((error.requested, "integer"), (error.supported, "array"))
    return error.data in definitions and all(has_property(error.data, *each, definitions) for each in properties)


# --- All facts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The gates by method and by value; the negotiation of the version and the methods of sessions, if known.

    `nulls` are the definitions whose optional properties may be null on the wire, as that means something there, and
    such properties of others, as `Definition/property`. None if nothing is known: then all may be.
    """

    gates: Gates = field(default_factory=dict)
    values: Gates = field(default_factory=dict)
    negotiation: NegotiationFacts | None = None
    sessions: SessionFacts | None = None
    nulls: frozenset[str] | None = None


NO_FACTS = Facts()


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """The facts from their notation in JSON."""
    negotiation, sessions = raw.get("negotiation"), raw.get("sessions")
    return Facts(
        gates=read_gates(raw.get("gates", {})),
        values=read_gates(raw.get("values", {})),
        negotiation=negotiation and read_negotiation(negotiation),
        sessions=sessions and read_sessions(sessions),
        nulls=frozenset(raw["nulls"]) if "nulls" in raw else None,
    )


def check_facts(root: dict[str, Any], facts: Facts, report: Report) -> None:
    """Report gates that do not hold in the composed schema `root`, and other facts that an extension takes away."""
    check_gates(root, facts.gates, report)
    check_value_gates(root, facts.values, report)
    held = fitting_facts(root, facts)
    for what, stated, kept in (
        ("how it negotiates the version", facts.negotiation, held.negotiation),
        ("its sessions", facts.sessions, held.sessions),
    ):
        if stated != kept:
            message = f"an extension takes away from the schema what acpgen knows about {what}"
            hint = "keep the methods, properties and tags that `facts.json` beside the bundled schema names"
            report.error("facts-lost", message, at="", hint=hint)


def fitting_facts(root: dict[str, Any], facts: Facts) -> Facts:
    """The facts of another release that also hold in the schema `root`."""
    negotiation, sessions = facts.negotiation, facts.sessions
    return Facts(
        gates=fitting_gates(root, facts.gates),
        values=fitting_gates(root, facts.values, check_value_gates),
        negotiation=negotiation and fitting_negotiation(root, negotiation),
        sessions=sessions and fitting_sessions(root, sessions),
        nulls=facts.nulls,
    )


def ungated(root: dict[str, Any], known: Facts, kept: Facts) -> list[str]:
    """The methods of `root`, and the values of its definitions, with a gate in `known` but none in `kept`."""
    stated = {method for _, method in methods_of(schema_map(root, "$defs"))}
    values = stated_values(root, known.values.keys() - kept.values.keys())
    return [*sorted(stated & (known.gates.keys() - kept.gates.keys())), *sorted(map(str, values))]
