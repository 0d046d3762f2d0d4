"""The fixture with which flows are played, and the pairs that play them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import peers
from tests.interop.pairs import Setup
from tests.interop.theatre import VALUES, Share, Theatre
from tests.interop.values import Exchange
from tests.support import Packages


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each flow with the pairs in `CASES` of the module: `Share` says what of it is `deep`."""
    cases: dict[Setup, Share] = getattr(metafunc.module, "CASES", {})
    own = metafunc.definition.iter_markers("parametrize")
    if not cases or "setup" not in metafunc.fixturenames or any(mark.args[0] == "setup" for mark in own):
        return
    if "exchange" in metafunc.fixturenames:
        rows = [
            pytest.param(setup, each, id=f"{setup}-{each}", marks=mark(each in usual_exchanges(setup, share)))
            for setup, share in cases.items()
            for each in VALUES[setup.version].EXCHANGES
        ]
        metafunc.parametrize("setup, exchange", rows)
        return
    metafunc.parametrize(
        "setup",
        [pytest.param(each, id=str(each), marks=mark(share is not Share.NOTHING)) for each, share in cases.items()],
    )


def mark(usual: bool) -> tuple[pytest.MarkDecorator, ...]:
    """The mark of a case that is played each time, or not."""
    return () if usual else (pytest.mark.deep,)


def usual_exchanges(setup: Setup, share: Share) -> list[Exchange]:
    """Those that are played each time."""
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
