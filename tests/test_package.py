"""acpgen as a user gets it: built, installed in an environment of its own, and used as the README says.

It takes long, and needs a registry.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

import acpgen
from tests.command_line import build_package, tree
from tests.documents import blocks, play, section, who_commits
from tests.needs import lacks, need
from tests.project_support import Project
from tests.support import REPOSITORY
from tests.vendoring import edit, hook, make_project

pytestmark = pytest.mark.full

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
QUICK = {"PIP_NO_COMPILE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""For pip: of what it installs, a test imports a part, and Python compiles that."""


def readme_text() -> str:
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


BUILD, TEST = (block.text.strip() for block in blocks(section(readme_text(), "From a checkout")))


def run(command: Sequence[str | Path] | str, folder: Path, *, path: Path | None = None) -> str:
    """The output of a command, or of a line of shell, which must succeed. `path` is put before the PATH."""
    variables = {**{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}, **QUICK}
    if path is not None:
        variables["PATH"] = os.pathsep.join([str(path), variables["PATH"]])
    result = subprocess.run(
        command, cwd=folder, env=variables, shell=isinstance(command, str), capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


# --- The distributions -------------------------------------------------------------------------------------------


def build(kind: str, source: Path, target: Path) -> Path:
    """The one distribution of `kind` that is built from `source`."""
    need("build", "hatchling")
    run([sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", target, source], source)
    (found,) = target.iterdir()
    return found


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", REPOSITORY, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)  # the archive is our own
    return folder / f"acpgen-{acpgen.__version__}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(unpacked: Path, wheel: Path) -> Path:
    """The programs of the environment that the README makes in a checkout, with the extra that it uses elsewhere.

    What is installed there is the same wheel as `wheel`: pip installs only what it needs for the extra.
    """
    run(BUILD, unpacked)
    folder = unpacked / ".venv" / PROGRAMS
    run([folder / "python", "-m", "pip", "install", "--quiet", f"{wheel}[rfd]"], folder)
    return folder


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_carries_schemas_templates_and_license(wheel: Path) -> None:
    names = contents(wheel).keys()
    for folder in ("schema", "templates"):
        paths = [path for path in (REPOSITORY / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        assert {f"acpgen/_data/{path.relative_to(REPOSITORY).as_posix()}" for path in paths} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"acpgen", f"acpgen-{acpgen.__version__}.dist-info"}


def test_the_distributions_have_what_is_committed_and_nothing_else(sdist: Path, wheel: Path) -> None:
    need("repository")
    tracked = set(run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], REPOSITORY).splitlines())
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    stays = {path for path in tracked if path == ".ci/run" or path.startswith("findings/")}
    assert packed == tracked - stays | {"PKG-INFO"}
    in_wheel = {path for path in tracked if path.startswith("acpgen/")}
    in_wheel |= {f"acpgen/_data/{path}" for path in tracked if path.startswith(("schema/", "templates/"))}
    assert {name for name in contents(wheel) if ".dist-info/" not in name} == in_wheel


def test_the_sdist_builds_the_same_wheel(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    assert contents(build("wheel", unpacked, tmp_path)) == contents(wheel)


# --- The README --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def used(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything that the README says has been done with the installed wheel."""
    folder = tmp_path_factory.mktemp("empty")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment = inherited | {"PATH": os.pathsep.join([str(programs), os.environ["PATH"]])}
    played = play(blocks(readme_text()), folder, environment)
    assert [ran.text for ran in played] == [ran.block.text for ran in played]
    return folder


def test_the_echo_agent_answers_as_the_readme_says(used: Path, programs: Path) -> None:
    said = run("python echo.py < requests.jsonl", used, path=programs)
    assert "agentInfo" in said
    assert re.findall(r'"code":(-\d+)', said) == ["-32602", "-32601"]
    assert said.count('"result"') == 2


def test_the_command_for_a_checkout_builds_a_package(unpacked: Path, programs: Path) -> None:
    run([programs / "python", "-c", "import demo; demo.Agent"], unpacked)


def test_the_command_for_the_tests_is_what_ci_calls() -> None:
    """`nox` has a limit there, and so its installation is a line of its own."""
    install, _, nox = TEST.rpartition(" && ")
    script = REPOSITORY / ".ci" / "run"
    if script.exists():  # not part of the sdist
        lines = script.read_text(encoding="utf-8").splitlines()
        assert install in lines
        assert any(line.endswith("status=$?") and f" {nox} 2>&1 | " in line for line in lines)


def test_acpgen_is_installed_by_the_commands_of_the_readme() -> None:
    text = section(readme_text(), "Install")
    assert all(f"{command} install acpgen" in text for command in ("uv tool", "pipx", "pip"))


def test_the_readme_is_a_page_for_visitors() -> None:
    assert len(readme_text().splitlines()) <= 250


# --- What is generated -------------------------------------------------------------------------------------------


def interpreter(version: str) -> str:
    """The program of this version of Python: a test that needs one that is not here is skipped."""
    python = shutil.which(f"python{version}")
    works = python and subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0
    if not python or not works:
        lacks("Pythons", version)
    return python


@pytest.mark.parametrize("version", PYTHONS)
def test_packages_import_without_site_packages(version: str, used: Path) -> None:
    python = interpreter(version)
    for package in ("demo", "chat_acp"):
        run([python, "-S", "-c", f"import {package}"], used)


@pytest.mark.deep
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
@pytest.mark.parametrize("version", PYTHONS)
def test_each_python_installs_acpgen(version: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The first steps of the README: install, make a project, run its tests."""
    run([interpreter(version), "-m", "venv", tmp_path / "env"], tmp_path)
    programs = tmp_path / "env" / PROGRAMS
    run([programs / "python", "-m", "pip", "install", "--quiet", request.getfixturevalue(kind)], tmp_path)
    for role in ("agent", "client", "proxy"):
        run(f"acpgen init my-{role} --role {role}", tmp_path, path=programs)
        run("python -m unittest", tmp_path / f"my-{role}", path=programs)


def test_the_readme_says_how_much_is_written(used: Path) -> None:
    (said,) = re.findall(r"writes about ([\d,]+) lines", readme_text())
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (used / "demo").rglob("*.py"))
    assert abs(int(said.replace(",", "")) - lines) <= 300


def test_a_second_build_changes_nothing(used: Path, programs: Path) -> None:
    command = "acpgen build --role agent --out demo --dry-run"
    assert run(command, used, path=programs) == ""
    assert run(f"{command} --full", used, path=programs) == ""


def test_the_wheel_and_the_checkout_build_the_same_bytes(used: Path, tmp_path: Path) -> None:
    assert tree(used / "demo") == tree(build_package(tmp_path / "demo", "--role", "agent"))


# --- The hook for pre-commit -------------------------------------------------------------------------------------


def test_pre_commit_runs_the_hook(tmp_path: Path) -> None:
    need("pre_commit")
    need("repository")
    project = make_project(tmp_path / "project")
    said = edit(project)
    found = try_hook(project, tmp_path)
    assert found.returncode == 1, found.stdout + found.stderr
    assert said in found.stdout


def try_hook(project: Project, home: Path) -> subprocess.CompletedProcess[str]:
    """What pre-commit does in `project` with the hook of this repository, which it installs anew each time."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}
    environment |= {"PRE_COMMIT_HOME": str(home / "pre-commit"), **QUICK, **who_commits()}
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(REPOSITORY), hook()["id"], "--all-files"]
    return subprocess.run(command, cwd=project.path, env=environment, capture_output=True, text=True, check=False)
