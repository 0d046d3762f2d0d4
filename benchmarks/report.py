"""The results as JSON, and as a table, which is a block of docs/performance.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.lab import OURS, PYTHON_SDK, TYPESCRIPT_SDK
from benchmarks.parts import PARTS
from benchmarks.requirements import COMPARISONS, Comparison
from benchmarks.rounds import Measure

BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
COLUMNS = (OURS, PYTHON_SDK, TYPESCRIPT_SDK)
HEADINGS = ("part", "measure", *COLUMNS, "others", "ratio", "required", "aim", "reached")
REACHED = {True: "yes", False: "no", None: ""}
ENOUGH = 5  # rounds
HOW = (
    "Medians of {rounds}; in each, every contender was measured once. "
    "A ratio is the median of the ratios of the rounds."
)
BOUNDS = (
    "“Required” is the bound that acpgen has to reach, and “aim” a stricter one; "
    "“reached” is about “required”, or about “aim” where nothing is required."
)


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that was measured, and on what."""

    date: str
    rounds: int
    machine: dict[str, str]
    versions: dict[str, str]
    missing: dict[str, str]
    measures: list[Measure]

    def find(self, part: str, name: str) -> Measure | None:
        """A measure by its part and name; None where that was not measured."""
        return next((each for each in self.measures if (each.part, each.name) == (part, name)), None)

    def save(self, path: Path) -> None:
        """Write everything, each round of it, as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read what `save` has written."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**data, "measures": [Measure(**each) for each in data["measures"]]})


def number(value: float) -> str:
    """Three digits that count, or all of those before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the table: a measure, or one more of its ratios, which has no `measure`."""

    part: str
    name: str
    measure: Measure | None
    ratio: tuple[str, str, str, str] = ("", "", "", "")
    """The ratio, what is required, the aim, and whether it is reached."""


def rows(results: Results) -> list[Row]:
    """The lines of the table, one a measure, and one more for each further ratio."""
    found: list[Row] = []
    for part, content in PARTS.items():
        for name in content.measures:
            if measure := results.find(part, name):
                first, *more = list(_ratios(measure)) or [("", "", "", "")]
                found.append(Row(part=part, name=name, measure=measure, ratio=first))
                found += [Row(part="", name="", measure=None, ratio=ratio) for ratio in more]
    return found


def value(measure: Measure, contender: str) -> str:
    """The median of a contender, with its unit."""
    space = "" if measure.unit.startswith("/") else " "
    return f"{number(measure.median(contender))}{space}{measure.unit}"


def _ratios(measure: Measure) -> Iterable[tuple[str, str, str, str]]:
    for wanted in COMPARISONS:
        if (wanted.part, wanted.measure) == (measure.part, measure.name) and _has(measure, wanted):
            ratio = measure.ratio(wanted.numerator, wanted.denominator)
            required, aim = (
                "" if bound is None else f"{wanted.sense} {bound:g}" for bound in (wanted.required, wanted.aim)
            )
            yield f"{ratio:.3g} × {wanted.denominator}", required, aim, REACHED[wanted.reached(ratio)]


def _has(measure: Measure, wanted: Comparison) -> bool:
    return {wanted.numerator, wanted.denominator} <= measure.values.keys()


def about(results: Results) -> str:
    """When, where and with what it was measured."""
    machine = results.machine
    text = [
        f"Measured on {results.date} on {machine['processor']}, {machine['cores']} cores, {machine['memory']}, "
        f"{machine['system']}.",
        ", ".join(f"{name} {version}" for name, version in results.versions.items()) + ".",
        HOW.format(rounds=_rounds(results)),
        BOUNDS,
        *([warning] if (warning := provisional(results)) else []),
    ]
    return "\n".join(text + [f"Left out: {name} (needs {why})" for name, why in results.missing.items()])


def _rounds(results: Results) -> str:
    return f"{results.rounds} round{'' if results.rounds == 1 else 's'}"


def provisional(results: Results) -> str | None:
    """What has to be said where there were too few rounds to rely on the medians."""
    return f"Only {_rounds(results)}: provisional." if results.rounds < ENOUGH else None


def block(results: Results) -> str:
    """The table, between the marks of the page."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(_cells(row) for row in rows(results))]
    shown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{BEGIN}\n{shown}\n\n{about(results)}\n{END}"


def _cells(row: Row) -> tuple[str, ...]:
    measure = row.measure
    if measure is None:
        return ("", "", *("" for _ in COLUMNS), "", *row.ratio)
    known = (value(measure, who) if who in measure.values else "" for who in COLUMNS)
    others = ", ".join(f"{who} {value(measure, who)}" for who in measure.values if who not in COLUMNS)
    return (row.part, row.name, *known, others, *row.ratio)


def update_page(path: Path, results: Results) -> None:
    """Put the results between the marks of a page, which must have them."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    path.write_text(before + block(results) + after, encoding="utf-8")
