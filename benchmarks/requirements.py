"""What acpgen is to reach, as ratios of medians measured in the same rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks import codec, generation, growth, imports, stdio
from benchmarks.lab import BARE, OURS, PYTHON_SDK, TYPESCRIPT_SDK


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """A ratio of `numerator` to `denominator`: `required` at least, `aim` at best; None where nothing is required."""

    part: str
    measure: str
    denominator: str
    sense: Literal["≤", "≥"] = "≤"
    required: float | None
    aim: float
    numerator: str = OURS

    def holds(self, ratio: float) -> bool:
        """Whether a ratio reaches what is required, or the aim where nothing is."""
        bound = self.aim if self.required is None else self.required
        return ratio <= bound if self.sense == "≤" else ratio >= bound


def _at_most(part: str, measure: str, denominator: str, bounds: tuple[float, float]) -> Requirement:
    required, aim = bounds
    return Requirement(part=part, measure=measure, denominator=denominator, required=required, aim=aim)


def _at_least(denominator: str, required: float | None, aim: float) -> Requirement:
    measure = stdio.PROMPTS
    return Requirement(part="stdio", measure=measure, denominator=denominator, sense="≥", required=required, aim=aim)


REQUIREMENTS = (
    _at_most("imports", imports.WITH, PYTHON_SDK, (0.25, 0.15)),
    _at_most("codec", codec.DECODE, PYTHON_SDK, (0.55, 0.40)),
    _at_most("codec", codec.RECEIVE, PYTHON_SDK, (0.65, 0.55)),
    _at_most("codec", codec.ENCODE, PYTHON_SDK, (0.45, 0.30)),
    _at_most("stdio", stdio.START, PYTHON_SDK, (0.30, 0.18)),
    _at_least(PYTHON_SDK, 2.0, 2.6),
    _at_least(TYPESCRIPT_SDK, 1.2, 1.6),
    _at_least(BARE, None, 1.0),
    _at_most("stdio", stdio.MEMORY, PYTHON_SDK, (0.6, 0.5)),
    _at_most("generation", generation.BUILD, generation.GENERATOR, (0.7, 0.4)),
    _at_most("generation", generation.CHECK, generation.TYPER, (3, 2)),
    Requirement(part="growth", measure=growth.BUILD, numerator="16×", denominator="1×", sense="≤", required=20, aim=16),
)
