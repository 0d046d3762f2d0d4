"""Fixtures that several test modules use."""

from __future__ import annotations

import pytest

from tests.support import Packages


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))
