"""Facts that a schema states only in prose or not at all, as JSON files beside the bundled releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acpgen.diagnostics import Report, passes
from acpgen.schema.gates import Gate, check_gates, fitting_gates, read_gates
from acpgen.schema.session_facts import Sessions, check_sessions, fitting_sessions, read_sessions
from acpgen.schema.walk import definition_pointer, has_property, methods_of, schema_map
from acpgen.text import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """The error for an unsupported version: its code, the definition of its `data`, and two properties of that.

    `requested` holds the requested version, `supported` the array of supported versions.
    """

    code: int
    data: str
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
    return Negotiation(method=raw["method"], version=raw["version"], unsupported=error and Unsupported(**error))


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
    if unsupported.data not in definitions:
        report.error(
            "negotiation-data",
            f"the data of the error {unsupported.code} is {unsupported.data}, which the schema does not have",
            at="",
            hint=did_you_mean(unsupported.data, definitions),
        )
        return
    _check_property(unsupported.data, unsupported.requested, "integer", definitions=definitions, report=report)
    _check_property(unsupported.data, unsupported.supported, "array", definitions=definitions, report=report)


def _check_property(owner: str, wire: str, kind: str, *, definitions: Mapping[str, Any], report: Report) -> None:
    if not has_property(owner, wire, kind, definitions):
        report.error(
            "negotiation-property",
            f"the negotiation of the version needs the property {wire!r} of {owner}, of the type {kind}",
            at=definition_pointer(owner),
        )


def fitting_negotiation(root: dict[str, Any], negotiation: Negotiation) -> Negotiation | None:
    """The part of `negotiation` that also holds in the schema `root`; None if it does not."""
    if negotiation.unsupported is not None and not passes(check_unsupported, root, negotiation.unsupported):
        negotiation = replace(negotiation, unsupported=None)
    return negotiation if passes(check_negotiation, root, negotiation) else None


# --- All facts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the facts: its reader, its check against a schema, and the choice of what holds in another schema."""

    read: Callable[[Any], Any]
    check: Callable[[dict[str, Any], Any, Report], None]
    fitting: Callable[[dict[str, Any], Any], Any]


_PARTS: Mapping[str, _Part] = {
    "gates": _Part(read_gates, check_gates, fitting_gates),
    "negotiation": _Part(read_negotiation, check_negotiation, fitting_negotiation),
    "sessions": _Part(read_sessions, check_sessions, fitting_sessions),
}
"""The parts by name: a field of `Facts`, and a key of `facts.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The gates by method; the negotiation of the version and the methods of sessions, if they are known."""

    gates: Mapping[str, Gate] = field(default_factory=dict)
    negotiation: Negotiation | None = None
    sessions: Sessions | None = None

    def parts(self) -> Iterator[tuple[str, _Part, Any]]:
        """The name, the record and the value of each part that is there."""
        for name, part in _PARTS.items():
            if value := getattr(self, name):
                yield name, part, value


NO_FACTS = Facts()


def read_facts(raw: Mapping[str, Any]) -> Facts:
    """The facts from their notation in JSON."""
    return Facts(**{name: part.read(raw[name]) for name, part in _PARTS.items() if name in raw})


def check_facts(root: dict[str, Any], facts: Facts, report: Report) -> None:
    """Report names in the facts that the composed schema `root` does not define."""
    for _, part, value in facts.parts():
        part.check(root, value, report)


def fitting_facts(root: dict[str, Any], facts: Facts) -> Facts:
    """The facts of another release that also hold in the schema `root`."""
    return Facts(**{name: part.fitting(root, value) for name, part, value in facts.parts()})


def ungated(root: dict[str, Any], known: Facts, kept: Facts) -> list[str]:
    """The methods of `root` that have a gate in `known` but none in the facts that were kept."""
    stated = {method for _, method in methods_of(schema_map(root, "$defs"))}
    return sorted(stated & (known.gates.keys() - kept.gates.keys()))
