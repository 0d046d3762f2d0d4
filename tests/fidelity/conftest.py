"""Count the checks, and print the counts at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

_COUNTED = "fidelity"


@pytest.fixture
def tally(record_property: Callable[[str, object], None]) -> Iterator[Counter[str]]:
    """Counts values, mutants and verdicts of one test; the totals are printed when all have run."""
    counter: Counter[str] = Counter()
    yield counter
    record_property(_COUNTED, dict(counter))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the totals, those of parallel workers included."""
    totals: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            properties = report.user_properties if getattr(report, "when", "") == "teardown" else ()
            for name, counts in properties:
                totals.update(counts if name == _COUNTED else {})
    if totals:
        terminalreporter.write_sep("-", "fidelity")
        for name, count in sorted(totals.items()):
            terminalreporter.write_line(f"{count:>10,} {name}")
