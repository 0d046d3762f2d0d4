"""A comparison as JSON, for programs. Names and verdicts in it are stable; messages are for people."""

from __future__ import annotations

import json

from acpgen.diff.findings import Comparison, Direction, Finding, Source, Wire
from acpgen.diff.sections import Summary, summary

FORMAT = 1
"""The version of the form, which grows when something in it is renamed or removed."""


def render_json(comparison: Comparison) -> str:
    """The comparison with every finding."""
    return json.dumps(
        {
            "format": FORMAT,
            "old": comparison.old,
            "new": comparison.new,
            "notes": list(comparison.notes),
            "summary": _summary(summary(comparison)),
            "findings": [_finding(each) for each in comparison.findings],
        },
        indent=2,
    )


def _summary(numbers: Summary) -> dict[str, object]:
    return {
        "findings": numbers.findings,
        "documentation": numbers.documentation,
        "wire": {"worst": numbers.worst_wire.value} | {each.value: numbers.wire[each] for each in Wire},
        "source": {"worst": numbers.worst_source.value} | {each.value: numbers.source[each] for each in Source},
        "directions": [_direction(each) for each in numbers.directions],
        "rules": dict(sorted(numbers.rules.items())),
    }


def _direction(direction: Direction) -> dict[str, object]:
    return {
        "sender": direction.sender.value,
        "reader": direction.reader.value,
        "old_to_new": direction.old_to_new.value,
        "new_to_old": direction.new_to_old.value,
    }


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "rule": finding.rule,
        "method": finding.place.method,
        "type": finding.place.type,
        "member": finding.place.member,
        "was": finding.place.was,
        "message": finding.message,
        "wire": [_direction(each) for each in finding.wire],
        "source": {"verdict": finding.source.value, "uses": [use.value for use in finding.uses]},
        "methods": list(finding.methods),
    }
