"""The options, marks and fixtures of all tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from tests import package_cache
from tests.needs import need
from tests.support import DEEP, Packages

# A run that fails fails again: the values are the same each time. A loaded machine is no failure.
hypothesis.settings.register_profile(
    "acpgen", derandomize=True, database=None, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("acpgen")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be accepted, which never happens automatically."""
    parser.addoption(
        "--accept-goldens",
        action="store_true",
        help="overwrite the golden files with what acpgen makes now",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let one process, not each worker, delete what is old in the cache."""
    if not hasattr(config, "workerinput"):
        package_cache.prune()
    package_cache.speed_up_builds()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the session `deep` has time for; begin with long modules: none is alone at the end."""
    left_out = [] if DEEP else [item for item in items if item.get_closest_marker("deep")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]
    long = {item.path for item in items if item.get_closest_marker("full")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass by what stays to the end: thousands of tests, which it would visit each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture is made, look for what the mark `needs` names."""
    for mark in item.iter_markers("needs"):
        need(*mark.args)


_running: set[str] = set()  # in the process that reports: the tests that have begun and not ended


def pytest_runtest_logstart(nodeid: str) -> None:
    _running.add(nodeid)


def pytest_runtest_logfinish(nodeid: str) -> None:
    _running.discard(nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where a run is interrupted, as it hangs, say in which tests."""
    if _running:
        terminalreporter.section("not ended")
        for nodeid in sorted(_running):
            terminalreporter.line(nodeid)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium of the system. While it runs, its event loop does, so other modules must not share it."""
    from tests.browser_support import chromium

    need("chromium", "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        # the sandbox needs rights that containers do not give; the pages are our own
        started = running.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()
