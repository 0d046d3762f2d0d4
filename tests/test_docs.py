"""docs/security.md names tests that exist, and docs/bump.md shows what happens."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import acpgen
from acpgen.cli.app import make_app
from tests.documents import Block, blocks, environment_with_acpgen, play, section
from tests.project_support import Project
from tests.published import RECORDED, shared
from tests.support import REPOSITORY
from tests.vendoring import edit, hook, make_project, put_schema

SECURITY = REPOSITORY / "docs" / "security.md"
BUMP = REPOSITORY / "docs" / "bump.md"
GOLDEN = REPOSITORY / "tests" / "golden"

POSIX = pytest.mark.needs("posix")


# --- Security -------------------------------------------------------------------------------------------------------


def claims() -> list[str]:
    """The rows of the tables that have tests as their last column."""
    rows: list[str] = []
    heads: list[str] = []
    for line in SECURITY.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not line.startswith("|-"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            heads = heads or cells
            if cells != heads and heads[-1] == "tests":
                rows.append(line)
        elif not line.startswith("|"):
            heads = []
    return rows


def named_tests(row: str) -> Iterator[tuple[str, str]]:
    yield from re.findall(r"`([\w/]+\.py)::(\w+)`", row)


@cache
def defined(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_there_are_claims() -> None:
    assert len(claims()) > 20


@pytest.mark.parametrize("row", claims(), ids=lambda row: row.split("|")[1].strip()[:40])
def test_each_claim_has_its_tests(row: str) -> None:
    named = list(named_tests(row))
    assert named, f"no test is named: {row}"
    for path, name in named:
        assert name in defined(REPOSITORY / "tests" / path), f"there is no {path}::{name}"
    for case in re.findall(r"`(\w+)`", re.sub(r"`[\w/]+\.py::\w+`", "", row.split("|")[-2])):
        assert (GOLDEN / case).is_dir(), f"there is no golden case {case}"


# --- A new release of the schema ------------------------------------------------------------------------------------

HISTORY = "From 1.21.0 to 2026-11-02"
RENAMES = "When code has to change"


def bump_text() -> str:
    return BUMP.read_text(encoding="utf-8")


def prepare(folder: Path) -> None:
    """Write what the page assumes: the programs of the README, and schemas beside the folder."""
    for block in blocks((REPOSITORY / "README.md").read_text(encoding="utf-8")):
        if block.name in ("echo.py", "chat.py"):
            text = re.sub(r"^from (demo|chat_acp)\b", "from acp", block.text, flags=re.MULTILINE)
            (folder / block.name).write_text(text, encoding="utf-8")
    for name in set(re.findall(r"\.\./schema-(\S+)\.json", bump_text())):
        if (schema := RECORDED / "v1" / name / "schema.json").is_file():
            shutil.copy(schema, folder.parent / f"schema-{name}.json")


@POSIX
@pytest.mark.full
@pytest.mark.parametrize("title", [HISTORY, pytest.param(RENAMES, marks=pytest.mark.deep)])
def test_transcripts_are_what_happens(title: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if title == HISTORY:
        shared("acp-schemas")
    folder = tmp_path / "app"
    folder.mkdir()
    prepare(folder)
    played = play(blocks(section(bump_text(), title)), folder, environment_with_acpgen(tmp_path / "bin"))
    assert played
    if request.config.getoption("--accept-goldens"):
        text = bump_text()
        for ran in played:
            text = text.replace(ran.block.text, ran.text)
        BUMP.write_text(text, encoding="utf-8")
        return
    for ran in played:
        assert ran.text == ran.block.text, "accept it with --accept-goldens"


def test_the_times_are_those_of_the_transcript() -> None:
    text = section(bump_text(), HISTORY)
    *_, bump = [block for block in blocks(text) if block.language == "console"]
    timed = re.findall(r"^\| `(.+)` .*\| [\d.]+ \|$", text, flags=re.MULTILINE)
    assert timed == [command.partition(" || ")[0] for command in bump.commands]


def shown_commands(text: str) -> list[str]:
    """Every command of acpgen in a text: in blocks, and in the text itself."""
    lines = [line for block in blocks(text) for line in (block.commands or block.text.splitlines())]
    spans = re.findall(r"`(acpgen [^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))
    found = [match[1] for line in lines if (match := re.match(r"\s*(?:run: )?(acpgen .+)", line))]
    return [*found, *(span for span in spans)]


@pytest.mark.parametrize("command", dict.fromkeys(shown_commands(bump_text())))
def test_commands_have_these_options(command: str) -> None:
    words = shlex.split(re.split(r" (?:\|\|?|>>) ", command)[0])[1:]
    group: Any = typer.main.get_command(make_app())
    known = group.commands[words[0]]
    options = {option for parameter in known.params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options


def test_there_are_commands() -> None:
    commands = shown_commands(bump_text())
    assert {command.split()[1] for command in commands} == {"build", "check", "diff", "init"}
    assert "acpgen check --format github" in commands


# --- CI and pre-commit ----------------------------------------------------------------------------------------------


def named_block(name: str) -> Block:
    (found,) = (block for block in blocks(bump_text()) if block.name == name)
    return found


def workflow_steps() -> list[Mapping[str, Any]]:
    workflow = yaml.safe_load(named_block(".github/workflows/acpgen.yml").text)
    assert workflow[True] == ["push", "pull_request"]  # to YAML, `on` is true
    (job,) = workflow["jobs"].values()
    steps = job["steps"]
    assert isinstance(steps, list)
    return steps


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def run_step(name: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step of the workflow as the runner does: with bash, which stops at the first error."""
    (command,) = (step["run"] for step in workflow_steps() if step.get("name") == name)
    return subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.full
@POSIX
def test_the_workflow_is_green_and_red(project: Project, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    environment = environment_with_acpgen(tmp_path / "bin")
    environment |= {"GITHUB_BASE_REF": "main", "GITHUB_STEP_SUMMARY": str(summary)}
    assert run_step("Check", project.path, environment).returncode == 0
    put_schema(project, "Item")
    red = run_step("Check", project.path, environment)
    assert red.returncode == 1
    assert re.search(
        r"^::error file=acp/types\.py,title=acpgen%3A stale::types\.py does not match", red.stdout, re.MULTILINE
    )
    assert run_step("Compare", project.path, environment).returncode == 0
    assert "Thing" in summary.read_text(encoding="utf-8")


def test_the_workflow_has_the_history_that_it_compares_with() -> None:
    (checkout,) = (step for step in workflow_steps() if str(step.get("uses")).startswith("actions/checkout@"))
    assert checkout["with"]["fetch-depth"] == 0


def test_the_hook_is_the_command_that_is_tested(project: Project) -> None:
    assert hook()["language"] == "python"
    assert hook()["pass_filenames"] is False  # which `acpgen check` would take for names of outputs
    assert hook()["always_run"] is True
    program, *arguments = shlex.split(hook()["entry"])
    assert program == "acpgen"
    assert project.run(*arguments).code == 0
    said = edit(project)
    red = project.run(*arguments)
    assert red.code == 1
    assert said in red.stdout


def test_the_configuration_is_the_hook_with_the_program_of_the_environment() -> None:
    (repository,) = yaml.safe_load(named_block(".pre-commit-config.yaml").text)["repos"]
    (local,) = repository["hooks"]
    assert repository["repo"] == "local"
    assert local == {**{key: value for key, value in hook().items() if key in local}, "language": "system"}
    assert set(local) == set(hook()) - {"description"}


def test_the_workflow_installs_acpgen_from_a_file_of_the_project() -> None:
    (install,) = (step["run"] for step in workflow_steps() if step.get("name") == "Install acpgen")
    assert install == f"pip install vendor/acpgen-{acpgen.__version__}-py3-none-any.whl"


def test_each_module_of_tests_is_listed_once() -> None:
    table = (REPOSITORY / "tests" / "README.md").read_text(encoding="utf-8")
    listed = [name for line in table.splitlines() if line.startswith("| [") for name in re.findall(r"`([\w/]+)`", line)]
    there = [*(REPOSITORY / "tests").glob("test_*.py"), *(REPOSITORY / "tests").glob("*/test_*.py")]
    names = [path.relative_to(REPOSITORY / "tests").with_suffix("").as_posix().replace("test_", "") for path in there]
    assert sorted(listed) == sorted(names)
    for link in re.findall(r"\]\((\S+)\)", table):
        assert (REPOSITORY / "tests" / link).is_file(), link
