"""The fixture with which flows are played, and the pairs that play them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import peers
from tests.interop.pairs import Setup
from tests.interop.theatre import VALUES, Theatre
from tests.support import Packages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each flow with the pairs in `CASES` of the module.

    Its values are what only the session `full` plays with a pair: "exchanges", "all", or nothing.
    """
    cases: dict[Setup, str] = getattr(metafunc.module, "CASES", {})
    marks = metafunc.definition.iter_markers("parametrize")
    if not cases or "setup" not in metafunc.fixturenames or any(mark.args[0] == "setup" for mark in marks):
        return
    if "exchange" in metafunc.fixturenames:
        names = "setup, exchange"
        rows = [(setup, each) for setup in cases for each in VALUES[setup.version].EXCHANGES]
    else:
        names, rows = "setup", [(setup,) for setup in cases]
    rare = ("exchanges", "all") if "exchange" in metafunc.fixturenames else ("all",)
    marked = [pytest.param(*row, marks=pytest.mark.full if cases[row[0]] in rare else ()) for row in rows]
    metafunc.parametrize(names, marked, ids=["-".join(map(str, row)) for row in rows])


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
