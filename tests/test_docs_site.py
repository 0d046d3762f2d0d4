"""The site and the workflows name what is there. `nox -s docs` builds the one, and validates the others."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import yaml

import acpgen
from tests.project_support import read_toml
from tests.support import REPOSITORY

WORKFLOWS = REPOSITORY / ".github" / "workflows"
NOXFILE = ast.parse((REPOSITORY / "noxfile.py").read_text(encoding="utf-8"))
PAGES = {path.name for path in (REPOSITORY / "docs").glob("*.md")}


def test_each_page_is_on_the_site_and_in_the_readme() -> None:
    site = read_toml((REPOSITORY / "zensical.toml").read_text(encoding="utf-8"))["project"]
    elsewhere = {"index.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md"}
    assert set(targets(site["nav"])) == PAGES | elsewhere
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(docs/([\w-]+\.md)\)", readme)) == PAGES


def targets(nav: Any) -> list[str]:
    """The pages of a navigation."""
    if isinstance(nav, str):
        return [nav]
    inner = nav.values() if isinstance(nav, dict) else nav
    return [target for each in inner for target in targets(each)]


def test_links_lead_somewhere() -> None:
    for path in (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").glob("*.md")):
        links = re.findall(r"\]\(([^)#\s]+)(?:#[\w-]+)?\)", path.read_text(encoding="utf-8"))
        missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
        assert missing == [], path.name


def test_contributors_read_no_more_than_120_lines() -> None:
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 120


# --- Workflows ------------------------------------------------------------------------------------------------------


def jobs(name: str) -> dict[str, Any]:
    """The jobs of a workflow."""
    found: dict[str, Any] = yaml.safe_load((WORKFLOWS / name).read_text(encoding="utf-8"))["jobs"]
    return found


def commands(job: dict[str, Any]) -> list[str]:
    """The lines of shell that a job runs."""
    return [step["run"] for step in job["steps"] if "run" in step]


def sessions() -> set[str]:
    """The names of the functions that are sessions of nox."""
    found = [node for node in NOXFILE.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in found if any("nox.session" in ast.unparse(each) for each in node.decorator_list)}


def pythons() -> list[str]:
    """The versions of Python that nox runs the tests on."""
    (value,) = (
        node.value
        for node in NOXFILE.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PYTHONS"
    )
    return list(ast.literal_eval(value))


def test_ci_runs_sessions_that_are_there() -> None:
    (checks,) = commands(jobs("ci.yml")["checks"])
    assert set(checks.removeprefix("pipx run nox -s ").split()) <= sessions()
    (tests,) = commands(jobs("ci.yml")["tests"])
    assert tests == "pipx run nox --error-on-missing-interpreters -s tests-${{ matrix.python }}"
    assert "tests" in sessions()


def test_ci_tests_all_pythons_and_systems() -> None:
    matrix = jobs("ci.yml")["tests"]["strategy"]["matrix"]
    assert matrix["python"] == pythons()
    assert {each["os"].partition("-")[0] for each in matrix["include"]} == {"windows", "macos"}
    assert {each["python"] for each in matrix["include"]} <= set(pythons())


def test_a_release_is_published_without_a_token() -> None:
    publish = jobs("release.yml")["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"] == "pypi"
    assert "secrets." not in (WORKFLOWS / "release.yml").read_text(encoding="utf-8")


def test_a_release_has_the_version_of_its_tag() -> None:
    compare, _ = commands(jobs("release.yml")["build"])
    assert '__version__ = \\"${GITHUB_REF_NAME#v}\\"' in compare
    source = Path(acpgen.__file__).read_text(encoding="utf-8")
    assert f'__version__ = "{acpgen.__version__}"' in source.splitlines()
