"""What all tests of proxies need."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.proxy.between import Programs, package
from tests.support import Packages


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return package(packages)


@pytest.fixture
def programs(acp: ModuleType, tmp_path: Path) -> Programs:
    return Programs(acp, tmp_path)
