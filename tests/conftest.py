"""Fixtures that several test modules use."""

from __future__ import annotations

import pytest

from tests.support import Packages


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be accepted, which never happens of itself."""
    parser.addoption(
        "--accept-goldens",
        action="store_true",
        help="overwrite the golden files with what acpgen makes now",
    )


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))
