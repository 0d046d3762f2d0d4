"""What acpgen is compared with, and what it is to reach: ratios of medians measured in the same rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks import codec, generation, imports, remote, stdio
from benchmarks.lab import BARE, OURS, PYTHON_SDK, TYPESCRIPT_SDK


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A ratio of `numerator` to `denominator`; `required` and `aim` are None where there is no such bound."""

    part: str
    measure: str
    denominator: str
    sense: Literal["≤", "≥"] = "≤"
    required: float | None = None
    aim: float | None = None
    numerator: str = OURS

    def reached(self, ratio: float) -> bool | None:
        """Whether a ratio reaches what is required, or the aim where nothing is; None where there is no bound."""
        bound = self.aim if self.required is None else self.required
        if bound is None:
            return None
        return ratio <= bound if self.sense == "≤" else ratio >= bound


Bounds = tuple[float | None, float | None]


def _at_most(part: str, measure: str, denominator: str, bounds: Bounds = (None, None)) -> Comparison:
    required, aim = bounds
    return Comparison(part=part, measure=measure, denominator=denominator, required=required, aim=aim)


def _prompts(denominator: str, bounds: Bounds) -> Comparison:
    required, aim = bounds
    name = stdio.PROMPTS
    return Comparison(part="stdio", measure=name, denominator=denominator, sense="≥", required=required, aim=aim)


def _to_both(measure: str) -> tuple[Comparison, ...]:
    return tuple(_at_most("stdio", measure, sdk) for sdk in (PYTHON_SDK, TYPESCRIPT_SDK))


_TRIPS = {"WebSocket": (0.72, 1.35), "SSE": (0.83, 1.25)}
"""What a round trip may take, beside the Python SDK and the libraries alone."""


def _remote() -> tuple[Comparison, ...]:
    """Of each transport and server: updates and round trips beside the Python SDK, and trips without any."""
    beside_sdk = tuple(
        Comparison(
            part="remote",
            measure=way.named(quantity),
            denominator=PYTHON_SDK,
            sense="≥" if quantity == remote.UPDATES else "≤",
            required={remote.UPDATES: 2.0, remote.TRIP: _TRIPS[way.transport][0]}.get(quantity),
        )
        for quantity in remote.UNITS
        for way in remote.WAYS
    )
    trips = ((way.named(remote.TRIP), _TRIPS[way.transport][1]) for way in remote.WAYS)
    return beside_sdk + tuple(_at_most("remote", name, remote.ALONE, (bound, None)) for name, bound in trips)


COMPARISONS = (
    _at_most("imports", imports.WITH, PYTHON_SDK, (0.25, 0.15)),
    _at_most("codec", codec.DECODE, PYTHON_SDK, (0.38, 0.32)),
    _at_most("codec", codec.RECEIVE, PYTHON_SDK, (0.65, 0.55)),
    _at_most("codec", codec.ENCODE, PYTHON_SDK, (0.32, 0.27)),
    _at_most("codec", codec.SEND, PYTHON_SDK),
    _at_most("stdio", stdio.START, PYTHON_SDK, (0.30, 0.18)),
    _prompts(PYTHON_SDK, (2.0, 2.6)),
    _prompts(TYPESCRIPT_SDK, (1.2, 1.6)),
    _prompts(BARE, (None, 1.0)),
    *_to_both(stdio.PROMPTS_BY_TURNS),
    *_to_both(stdio.LATER),
    *_to_both(stdio.PIPELINED),
    *_to_both(stdio.UPDATES),
    *_to_both(stdio.UPDATES_BY_TURNS),
    _at_most("stdio", stdio.CPU, PYTHON_SDK),
    _at_most("stdio", stdio.CPU, BARE, (0.86, 0.80)),
    _at_most("stdio", stdio.MEMORY, PYTHON_SDK, (0.53, 0.5)),
    *_remote(),
    _at_most("generation", generation.BUILD, generation.GENERATOR, (0.85, 0.65)),
    _at_most("generation", generation.SAME, generation.TYPER),
    _at_most("generation", generation.CHECK, generation.TYPER),
)
