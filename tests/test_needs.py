"""What tests say of their needs, and the table of it in CONTRIBUTING.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tomllib

from tests import needs
from tests.needs import NEEDS, Need, lacks, need
from tests.support import REPOSITORY

pytest_plugins = ["pytester"]

MISSING = Need("a thing", "nowhere", lambda: None)


@pytest.fixture
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, "a thing", MISSING)
    monkeypatch.setitem(NEEDS, "another system", needs.system("another system", "elsewhere", is_here=False))


@pytest.mark.usefixtures("_known")
@pytest.mark.parametrize(
    ("ci", "name", "outcome"),
    [
        ("", "a thing", pytest.skip.Exception),
        ("true", "a thing", pytest.fail.Exception),
        ("", "another system", pytest.skip.Exception),
        ("true", "another system", pytest.skip.Exception),
    ],
)
def test_what_is_missing_is_skipped_and_what_ci_has_to_have_fails(
    ci: str, name: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match=name):
        need(name)
    with pytest.raises(outcome, match="since it is late"):
        lacks(name, "since it is late")


def test_what_is_there_is_no_matter_and_an_unknown_name_is_a_mistake() -> None:
    need("pip")
    with pytest.raises(LookupError, match=r"chromeium.*tests/needs\.py"):
        need("chromeium")


@pytest.mark.usefixtures("_known")
def test_the_mark_is_looked_at_before_fixtures_are_made(pytester: pytest.Pytester) -> None:
    """Else a fixture would fail before its test is skipped."""
    pytester.makeconftest((REPOSITORY / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = full\n deep\n needs\n")
    pytester.makepyfile("""
        import pytest

        @pytest.fixture
        def made():
            raise AssertionError("made")

        @pytest.mark.needs("git", "a thing")
        def test_it(made):
            raise AssertionError("ran")

        @pytest.mark.deep
        def test_deep():
            raise AssertionError("ran")
        """)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CI", "")
        pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(skipped=1, deselected=1)


def test_contributing_shows_the_table(request: pytest.FixtureRequest) -> None:
    path = REPOSITORY / "CONTRIBUTING.md"
    before, head, rest = path.read_text(encoding="utf-8").partition(
        "| need | comes from | missing in CI |\n|---|---|---|\n"
    )
    shown, _, after = rest.partition("\n\n")
    rows = "\n".join(needs.rows())
    if request.config.getoption("--accept-goldens"):
        path.write_text(f"{before}{head}{rows}\n\n{after}", encoding="utf-8")
        return
    assert shown == rows, "accept it with --accept-goldens"


def test_each_library_is_in_the_group_that_is_named() -> None:
    groups = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    names = {"acp": "agent-client-protocol", "opentelemetry.sdk": "opentelemetry-sdk"}
    for each in NEEDS.values():
        if found := re.match(r"the group `(\w+)`", each.comes_from):
            listed = " ".join(map(str, groups[found[1]])).replace("-", "_")
            assert names.get(each.name, each.name).replace("-", "_") in listed, each


def test_tests_say_it_in_no_other_way() -> None:
    """A skip of its own would be one in CI, too."""
    ways = re.compile(
        r"importorskip|pytest\.skip\(|mark\.skip\b|skipif\((?!not os\.environ\.get\(\"ACPGEN_SCREENSHOTS)"
    )
    here = Path(__file__)
    others = [path for path in (REPOSITORY / "tests").rglob("*.py") if path not in {here, here.with_name("needs.py")}]
    assert [str(path) for path in others if ways.search(path.read_text(encoding="utf-8"))] == []
