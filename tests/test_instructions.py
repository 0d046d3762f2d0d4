"""The gate of counted instructions: its scenarios run, and it finds what costs more. valgrind is not needed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import RoleChoice
from benchmarks import instructions
from benchmarks.instructions import ELSEWHERE, MEANINGS, PLAIN, ROLES, TOLERANCE, Count, Figures, differences
from benchmarks.lab import HERE
from tests.support import REPOSITORY, package_folder

PAGE = REPOSITORY / "docs" / "performance.md"
KNOWN = Figures(python="3.11.7, GCC 12", ratios=dict.fromkeys(MEANINGS, 2.0))


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("instructions")
    shutil.copytree(HERE / "corpus", home / "corpus")
    return shutil.copy(HERE / "workers" / "instructions.py", home)


@pytest.mark.parametrize("role", [PLAIN, *sorted(set(ROLES.values()))])
def test_scenarios_run(role: str, worker: Path) -> None:
    """Each of them checks that all was done."""
    folder = PLAIN if role == PLAIN else package_folder(SchemaChoice(), roles=RoleChoice(role).roles)
    scenarios = [f"{name}=2" for name, wanted in ROLES.items() if role in {PLAIN, wanted}]
    subprocess.run([sys.executable, "-I", worker, folder, *scenarios], check=True)


@pytest.mark.parametrize(("python", "tolerance"), [(KNOWN.python, TOLERANCE), ("3.11.9, Clang 18", ELSEWHERE)])
@pytest.mark.parametrize("name", MEANINGS)
def test_a_figure_that_is_not_as_committed_is_found(name: str, python: str, tolerance: float) -> None:
    for change, found in ((0.9, ""), (1.1, "more"), (-0.9, ""), (-1.1, "fewer")):
        ratios = KNOWN.ratios | {name: 2 * (1 + change * tolerance)}
        wrong = differences(ratios, KNOWN, python)
        assert [line.split(":")[0] for line in wrong] == ([name] if found else [])
        assert found in "".join(wrong)


def test_figures_that_are_not_there_are_found() -> None:
    assert len(differences(KNOWN.ratios, None, KNOWN.python)) == 1
    assert len(differences(KNOWN.ratios, replace(KNOWN, ratios={}), KNOWN.python)) == len(MEANINGS)


def test_committed_figures_are_of_all_scenarios() -> None:
    known = instructions.load()
    assert "3.11" in known
    assert all(list(each.ratios) == list(MEANINGS) for each in known.values())


def test_the_page_has_the_committed_figures(request: pytest.FixtureRequest) -> None:
    before, begin, rest = PAGE.read_text(encoding="utf-8").partition("<!-- instructions: begin -->\n")
    table, end, after = rest.partition("<!-- instructions: end -->")
    ratios = instructions.load()["3.11"].ratios
    rows = [("what is done; the plain counterpart", "ratio"), ("---", "---:")]
    rows += [(MEANINGS[name], f"{ratio:.4g}") for name, ratio in ratios.items()]
    expected = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    if request.config.getoption("--accept-goldens"):
        PAGE.write_text(before + begin + expected + end + after, encoding="utf-8")
    else:
        assert table == expected, "accept it with --accept-goldens"


def test_counts_are_compared_and_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(instructions, "HOME", tmp_path / "home")
    monkeypatch.setattr(instructions, "FIGURES", tmp_path / "instructions.json")
    (tmp_path / "instructions.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(instructions.shutil, "which", lambda *_, **__: "valgrind")
    ours = 300.0
    monkeypatch.setattr(instructions, "count_all", lambda _: dict.fromkeys(MEANINGS, Count(ours=ours, plain=200)))
    assert instructions.main([]) == 1
    assert instructions.main(["--accept"]) == 0
    (figures,) = json.loads((tmp_path / "instructions.json").read_text(encoding="utf-8")).values()
    assert set(figures["ratios"].values()) == {1.5}
    assert instructions.main([]) == 0
    capsys.readouterr()
    ours = 309.0
    assert instructions.main([]) == 1
    assert "hop: 3.0% more instructions" in capsys.readouterr().err


@pytest.mark.parametrize("is_ci", [False, True])
def test_without_valgrind_it_is_skipped_and_in_ci_an_error(is_ci: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda *_, **__: None)
    monkeypatch.setenv("CI", "true" if is_ci else "")
    assert instructions.main([]) == is_ci
