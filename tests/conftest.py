"""Fixtures that several test modules use."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import DEEP, Packages


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be accepted, which never happens of itself."""
    parser.addoption(
        "--accept-goldens",
        action="store_true",
        help="overwrite the golden files with what acpgen makes now",
    )


SAMPLED = {
    "test_diff_history": 3,
    "test_diff_rules": 2,
    "test_hostile": 2,
    "test_round_trip": 2,
    "test_sizes": 2,
    "test_stability": 3,
    "test_texts": 2,
    "test_unstable": 2,
    "test_upstream_builds": 3,
    "test_verdicts": 2,
}
"""Of the cases of each test in these modules, CI runs one in so many; the session `deep` runs all."""


LONGEST = (
    *("test_types", "test_package", "test_texts", "test_import", "test_history", "test_init", "test_facts"),
    *("test_docs", "test_benchmarks", "test_runtime_memory", "test_runtime_fuzz", "test_sizes"),
    "test_rfd_extract_hostile",
)
"""Modules with few tests that take long: they start first, so that no process works alone at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first, and leave out what only the session `deep` has time for."""
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    if DEEP:
        return
    counts: Counter[tuple[str, str]] = Counter()
    left_out = [item for item in items if item.get_closest_marker("deep") or not _is_in_sample(item, counts)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


def _is_in_sample(item: pytest.Item, counts: Counter[tuple[str, str]]) -> bool:
    share = SAMPLED.get(item.path.stem, 1)
    test = (str(item.path), getattr(item, "originalname", item.name))
    counts[test] += 1
    return counts[test] % share == 1 % share


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))
