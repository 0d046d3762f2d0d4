"""Fixtures that several test modules use."""

from __future__ import annotations

import pytest

from tests.support import DEEP, Packages


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be accepted, which never happens of itself."""
    parser.addoption(
        "--accept-goldens",
        action="store_true",
        help="overwrite the golden files with what acpgen makes now",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long tests first, and leave out what only the session `deep` has time for."""
    # what has to stay together takes longest, and goes first
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    left_out = [] if DEEP else [item for item in items if item.get_closest_marker("deep")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))
