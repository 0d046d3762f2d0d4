"""The fixture with which flows are played, and the pairs that play them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop import peers
from tests.interop.pairs import Setup
from tests.interop.theatre import VALUES, Share, Theatre
from tests.interop.values import Exchange
from tests.support import Packages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each flow with the pairs in `CASES` of the module."""
    cases: dict[Setup, Share] = getattr(metafunc.module, "CASES", {})
    own = metafunc.definition.iter_markers("parametrize")
    if not cases or "setup" not in metafunc.fixturenames or any(mark.args[0] == "setup" for mark in own):
        return
    if "exchange" in metafunc.fixturenames:
        names = "setup, exchange"
        rows: list[tuple[Any, ...]] = [(setup, each) for setup in cases for each in VALUES[setup.version].EXCHANGES]
        usual: list[tuple[Any, ...]] = [
            (setup, each) for setup, share in cases.items() for each in usual_exchanges(setup, share)
        ]
    else:
        names, rows = "setup", [(setup,) for setup in cases]
        usual = [(setup,) for setup, share in cases.items() if share is not Share.NOTHING]
    kept = {"-".join(map(str, row)) for row in usual}
    ids = ["-".join(map(str, row)) for row in rows]
    rare = [pytest.mark.deep if cases[row[0]] is Share.NOTHING and len(row) > 1 else pytest.mark.full for row in rows]
    marks = {each: () if each in kept else mark for each, mark in zip(ids, rare, strict=True)}
    metafunc.parametrize(
        names, [pytest.param(*row, id=each, marks=marks[each]) for row, each in zip(rows, ids, strict=True)]
    )


def usual_exchanges(setup: Setup, share: Share) -> list[Exchange]:
    """Those that not only the session `full` plays."""
    found: list[Exchange] = list(VALUES[setup.version].EXCHANGES)
    by_method = {each.method: each for each in reversed(found)}
    return {Share.ALL: found, Share.METHODS: list(by_method.values())}.get(share, [])


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
