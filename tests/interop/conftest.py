"""The fixture with which flows are played."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import peers
from tests.interop.theatre import Theatre
from tests.support import Packages


@pytest.fixture(scope="session")
def theatre(
    packages: Packages, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Theatre]:
    cache = getattr(request.config, "cache", None)
    default = cache.mkdir("interop-peers") if cache else tmp_path_factory.getbasetemp().parent / "interop-peers"
    theatre = Theatre(packages, peers.home(Path(default)), tmp_path_factory.mktemp("interop"))
    yield theatre
    theatre.close()
    for log in theatre.folder.glob("*.stderr"):
        assert not re.findall(r".*Warning: .*", log.read_text(encoding="utf-8")), log.name
