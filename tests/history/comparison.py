"""A comparison as `acpgen diff --format json` prints it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding: `was` is the old name of what was renamed, `verdict` that for source code."""

    rule: str
    method: str | None
    type: str | None
    member: str | None
    was: str | None
    verdict: str
    uses: frozenset[str]
    message: str

    def __str__(self) -> str:
        return f"{self.rule} {self.place}"

    @property
    def place(self) -> str:
        """Where it is, in one word."""
        parts = [part for part in (self.type, self.member) if part is not None]
        return ".".join(parts) if parts else self.method or "the protocol"


def parse(text: str) -> list[Found]:
    """The findings that `acpgen diff` has printed as JSON."""
    return [_finding(each) for each in json.loads(text)["findings"]]


def _finding(raw: Mapping[str, Any]) -> Found:
    assert bool(raw["was"]) == raw["rule"].endswith("-renamed"), raw
    return Found(
        rule=raw["rule"],
        method=raw["method"],
        type=raw["type"],
        member=raw["member"],
        was=raw["was"],
        verdict=raw["source"]["verdict"],
        uses=frozenset(raw["source"]["uses"]),
        message=raw["message"],
    )


def gone_names(findings: list[Found]) -> Iterator[str]:
    """The names of types that the new package has no more."""
    for each in findings:
        if each.rule == "type-renamed":
            assert each.was is not None
            yield each.was
        elif each.rule == "type-removed":
            assert each.type is not None
            yield each.type
