"""Fixtures that several test modules use."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import traceback
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, TypeVar

import hypothesis
import pytest

from tests import package_cache
from tests.support import DEEP, Packages, require


class _Case(Protocol):
    """As much of a test as the choice of cases looks at."""

    @property
    def path(self) -> Path: ...
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Case)

# a run that fails fails again: the values are the same each time
hypothesis.settings.register_profile("acpgen", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("acpgen")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let goldens be accepted, which never happens automatically."""
    parser.addoption(
        "--accept-goldens",
        action="store_true",
        help="overwrite the golden files with what acpgen makes now",
    )
    parser.addoption("--every-python", action="store_true", help="run only the tests that every version of Python runs")
    parser.addoption(
        "--share",
        metavar="K/N",
        help="of the tests that every version of Python runs, run the K-th of N shares; with -m, which leaves out the "
        "long ones, a share of the modules, as to collect a module takes longer than many tests",
    )
    parser.addoption(
        "--turn",
        metavar="K/N",
        help="of the tests marked full, run those of the K-th of N parts of the modules, which take about as long each",
    )


ALL_FULL = r"^pytestmark = (\[[^\]]*)?pytest\.mark\.full\b"
"""What a module has of which each test is marked `full`."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules without a test to run: that takes longer than many tests, or needs other tools."""
    which, share, turn = (config.getoption(name) for name in ("markexpr", "--share", "--turn"))
    if share and which and collection_path.match("test_*.py") and not is_in_share(collection_path.name, share):
        return True
    wanted = ["mark.every_python"] if config.getoption("--every-python") else []
    if which == "full" and not collection_path.match("interop/*"):  # which its conftest marks
        wanted.append("mark.full")
    has_no_full = which == "not full" or (turn and not has_turn(collection_path, turn))
    if not (wanted or has_no_full) or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    is_left_out = has_no_full and re.search(ALL_FULL, text, flags=re.MULTILINE)
    return bool(is_left_out) or not all(mark in text for mark in wanted) or None


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


SAMPLED = {
    "test_benchmarks::test_a_part_gives_all_its_rows": 3,
    "test_conversations": 3,
    "test_diff_history": 4,
    "test_diff_rules": 4,
    "test_fragment_examples::test_an_example_is_a_message": 2,
    "test_frameworks::test_random_cancellations": 4,
    "test_frameworks::test_what_tool_calls_show": 2,
    "test_frameworks_clients": 4,
    "test_golden::test_modules_are_stable_under_black": 5,
    "test_growth::test_parts_of_a_schema_take_the_same_work_each": 3,
    "test_history::test_a_bump": 3,
    "test_history::test_the_comparison_names_what_changed": 3,
    "test_hostile": 5,
    "test_init::test_the_tests_of_the_project_pass": 2,
    "test_mcp_hostile::test_many_notifications_and_a_slow_reader": 2,
    "test_mcp_servers::test_all_that_a_server_has": 2,
    "test_memory::test_one_client_that_uses_up_all_limits": 3,
    "test_memory_of_helpers": 8,
    "test_models::test_published_schemas": 3,
    "test_models::test_verdicts_are_those_of_the_validator": 6,
    "test_proxy_conversations": 7,
    "test_proxy_load": 2,
    "test_recorded_conversations": 8,
    "test_reflection": 4,
    "test_remote_conversations": 8,
    "test_rendered_types": 2,
    "test_round_trip": 4,
    "test_runtime_weights::test_a_hostile_peer_fills_no_memory": 2,
    "test_sizes": 8,
    "test_stability": 3,
    "test_texts": 2,
    "test_trace_recording::test_all_bytes_pass_in_both_directions": 2,
    "test_trace_recording::test_each_line_is_recorded": 2,
    "test_unstable": 4,
    "test_upstream_builds": 10,
    "test_verdicts": 2,
    "test_versions_agent::test_random_conversations": 3,
}
"""Of the cases of these tests, and of each test in these modules, CI runs one in so many; `deep` runs all."""


LONGEST = (
    *("test_memory_of_helpers", "test_models", "test_docs_snippets", "test_package", "test_types"),
    *("test_init", "test_frameworks", "test_mcp_conversations", "test_frameworks_clients", "test_recovery_kills"),
    *("test_trace_browser", "test_benchmarks", "test_faults", "test_mcp_servers", "test_proxy_load"),
    *("test_mcp_versions", "test_client_terminals", "test_parts", "test_sizes", "test_reference_browser"),
    "test_rfd_extract_hostile",
)
"""Modules whose long tests take longest: they start first, so that no process works alone at the end, and are dealt out
to the turns of CI, a column each, which take about as long."""


def pytest_configure(config: pytest.Config) -> None:
    """Let one process, not each worker, delete what is old in the cache; and do without what takes most of the time."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        package_cache.prune()
    elif config.args_source is config.ArgsSource.TESTPATHS:
        config.args = _turned(config, int(worker["workerid"][2:]) / worker["workercount"])
    package_cache.speed_up_builds()
    # for each callback, asyncio's debug mode takes down who made it, which takes longer than most tests
    asyncio.format_helpers.extract_stack = lambda *_, **__: traceback.StackSummary()


def _turned(config: pytest.Config, part: float) -> list[str]:
    """The modules, beginning elsewhere in each worker: in a clean checkout, each compiles what others do not.

    pytest compiles tests itself, which takes most of a start. The order of the tests stays the same for all.
    """
    paths = [
        path
        for path in sorted((config.rootpath / "tests").rglob("test_*.py"))
        if not config.hook.pytest_ignore_collect(collection_path=path, config=config)
    ]
    at = int(part * len(paths))
    return list(map(str, paths[at:] + paths[:at]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first, and leave out what only the session `deep` has time for."""
    places = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path.stem, len(LONGEST)), item.path))
    chosen = set(items)
    if not DEEP:
        chosen = sample(item for item in items if not item.get_closest_marker("deep"))
    if config.getoption("--every-python"):
        chosen = {item for item in chosen if item.get_closest_marker("every_python")}
    if turn := config.getoption("--turn"):
        chosen = {item for item in chosen if not item.get_closest_marker("full") or has_turn(item.path, turn)}
    if (share := config.getoption("--share")) and not config.getoption("markexpr"):
        every = {item for item in chosen if item.get_closest_marker("every_python")}
        chosen -= {item for item in every if not is_in_share(item.nodeid, share)}
    left_out = [item for item in items if item not in chosen]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item in chosen]


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out what stays for ever: with all tests in memory, a collection takes 0.3 s."""
    gc.collect()
    gc.freeze()
    if providers := sys.modules.get("hypothesis.internal.conjecture.providers"):
        # it would parse all modules of tests for constants, which takes 8 s, and its first example would be too slow
        providers.is_local_module_file = lambda _: False


def sample(items: Iterable[T]) -> set[T]:
    """The tests to run: of each test in a sampled module, one case in so many, at least one.

    The names of the cases decide, so that neither their order nor a new case changes which of the others run.
    """
    tests: defaultdict[tuple[Path, str], list[T]] = defaultdict(list)
    for item in items:
        tests[item.path, getattr(item, "originalname", item.name)].append(item)
    chosen: set[T] = set()
    for (path, name), cases in tests.items():
        share = SAMPLED.get(f"{path.stem}::{name}", SAMPLED.get(path.stem, 1))
        first, *rest = sorted(cases, key=lambda item: _number(item.name))
        chosen |= {first, *(item for item in rest if _number(item.name) < 2**32 / share)}
    return chosen


def has_turn(path: Path, turn: str) -> bool:
    """Whether the long tests of a module are in the K-th of N parts, which "K/N" means; K begins with 0.

    The modules that take longest are dealt out in turn, so that no part has two of the first N.
    """
    at, count = map(int, turn.split("/"))
    number = LONGEST.index(path.stem) if path.stem in LONGEST else _number(path.name)
    return number % count == at


def is_in_share(name: str, share: str) -> bool:
    """Whether a test is in the K-th of N shares, which "K/N" means; K begins with 0. Each test is in one of them."""
    at, count = map(int, share.split("/"))
    return _number(name) % count == at


def _number(name: str) -> int:
    """A number below 2**32 that is spread evenly and the same everywhere."""
    return zlib.crc32(name.encode())


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Generated packages, each built and imported once."""
    return Packages(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium of the system. While it runs, its event loop does, so other modules must not share it."""
    from tests.browser_support import chromium

    program = chromium()
    require(program, "chromium")
    require(find_spec("playwright"), "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        # the sandbox needs rights that containers do not give; the pages are our own
        started = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
