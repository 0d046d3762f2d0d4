"""The site and the workflows name what is there. `nox -s docs` builds the one, and validates the others."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from typing import Any

import pytest
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


def test_contributors_read_no_more_than_150_lines() -> None:
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 150


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


def constant(name: str) -> tuple[str, ...]:
    """A constant of the noxfile."""
    (value,) = (
        node.value for node in NOXFILE.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    )
    return tuple(ast.literal_eval(value))


def pythons() -> list[str]:
    """The versions of Python that nox runs the tests on."""
    return list(constant("PYTHONS"))


def test_ci_runs_sessions_that_are_there() -> None:
    (checks,) = commands(jobs("ci.yml")["checks"])
    assert set(checks.removeprefix("pipx run nox -s ").split()) <= sessions()
    (tests,) = commands(jobs("ci.yml")["tests"])
    assert tests == "pipx run nox --error-on-missing-interpreters -s tests-${{ matrix.python }}"
    assert "tests" in sessions()


def test_ci_runs_all_tests_on_all_pythons() -> None:
    """What has moved would leave the smoke of the versions between, and nobody would see it."""
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    main, *others = re.findall(r"nox -s full-3\.\{([\d,]+)\}", script) or [""]
    assert {f"3.{each}" for each in main.split(",")} | {"3.11"} == {*pythons()}
    assert others == []
    for name in constant("SMOKE"):
        (path,) = (REPOSITORY / "tests").rglob(f"{name}.py")
        assert "every_python" in path.read_text(encoding="utf-8")


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


@pytest.mark.needs("posix")
def test_a_release_has_the_version_of_its_tag_and_a_date() -> None:
    checks = [command for command in commands(jobs("release.yml")["build"]) if command.startswith("grep")]
    assert len(checks) == 2
    for version, is_there in ((acpgen.__version__, True), ("999.0.0", False)):
        environment = {**os.environ, "GITHUB_REF_NAME": f"v{version}"}
        for check in checks:
            ran = subprocess.run(check, shell=True, cwd=REPOSITORY, env=environment, capture_output=True, check=False)
            assert (ran.returncode == 0) is is_there, check


def test_a_release_is_checked_before_it_is_published() -> None:
    build, publish = jobs("release.yml").values()
    assert [command.partition(" dist/")[0] for command in commands(build)[2:5]] == [
        *("pipx run build", "pipx run twine check --strict", "pip install")
    ]
    assert publish["needs"] == "build"
