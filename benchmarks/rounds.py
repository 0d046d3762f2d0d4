"""Rounds in which every contender is measured once, and what they come to."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Sample = Mapping[str, float]
"""What one measurement of one contender gave: values by measure."""


@dataclass(slots=True)
class Measure:
    """One quantity of several contenders: `values` has one number a round, in `unit`, by contender."""

    part: str
    name: str
    unit: str
    values: dict[str, list[float]] = field(default_factory=dict)

    def median(self, contender: str) -> float:
        """The median of all rounds, in `unit`."""
        return statistics.median(self.values[contender])

    def ratio(self, contender: str, other: str) -> float:
        """The median of the ratios of each round, so that a slow minute of the machine counts for both."""
        pairs = zip(self.values[contender], self.values[other], strict=True)
        return statistics.median(ours / theirs if theirs else float("inf") for ours, theirs in pairs)


def interleave(contenders: Mapping[str, Callable[[], Sample]], rounds: int) -> dict[str, list[Sample]]:
    """Measure each contender once a round, in an order that turns round each time; the samples by contender."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    order = list(contenders)
    for _ in range(rounds):
        for name in order:
            samples[name].append(contenders[name]())
        order.reverse()
    return samples


def measures(part: str, units: Mapping[str, str], samples: Mapping[str, list[Sample]]) -> list[Measure]:
    """One measure for each key of `units`, with the contenders that have it."""
    found = []
    for name, unit in units.items():
        values = {who: [sample[name] for sample in taken] for who, taken in samples.items() if name in taken[0]}
        found.append(Measure(part, name, unit, values))
    return found
