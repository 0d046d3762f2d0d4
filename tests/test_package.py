"""acpgen as people get it: built, installed in an environment of its own, and used as the README says.

Slow, and in need of a registry: `nox` runs this file once, in the session `package`.
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
from importlib.util import find_spec
from pathlib import Path

import pytest

import acpgen
from acpgen.schema.bundled import bundled_fragments, list_releases
from tests.documents import Block, blocks, who_commits
from tests.project_support import Project
from tests.support import REPOSITORY, require
from tests.vendoring import edit, hook, make_project

pytestmark = pytest.mark.full

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
PROGRAMS = "Scripts" if os.name == "nt" else "bin"


def run(command: Sequence[str | Path] | str, folder: Path, *, path: Path | None = None) -> str:
    """What a command, or a line of shell, prints; it must succeed. `path` is put before the PATH."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
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
    require(find_spec("build") and find_spec("hatchling"), "build and hatchling")
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
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", folder], folder)
    run([folder / PROGRAMS / "python", "-m", "pip", "install", "--quiet", wheel], folder)
    return folder / PROGRAMS


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_carries_schemas_templates_and_license(wheel: Path) -> None:
    names = contents(wheel).keys()
    for folder in ("schema", "templates"):
        files = [path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / folder).rglob("*") if path.is_file()]
        assert {f"acpgen/_data/{name}" for name in files} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names} == {"acpgen", f"acpgen-{acpgen.__version__}.dist-info"}


def test_the_sdist_builds_the_same_wheel(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    assert contents(build("wheel", unpacked, tmp_path)) == contents(wheel)


# --- The README --------------------------------------------------------------------------------------------------


def readme_text() -> str:
    return (REPOSITORY / "README.md").read_text(encoding="utf-8")


def readme_blocks() -> list[Block]:
    """The blocks of the README; those without a name of their own have got one."""
    ends = {"python": "py"}
    return [
        Block(block.language, block.name or f"snippet_{at}.{ends.get(block.language, 'txt')}", block.text)
        for at, block in enumerate(blocks(readme_text()))
    ]


INSTALL, TEST, *REST = readme_blocks()


@pytest.fixture(scope="module")
def used(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything that the README says has been done, from its third block on."""
    folder = tmp_path_factory.mktemp("empty")
    run("acpgen build --role agent --out demo", folder, path=programs)
    for block in REST:
        if block.language == "sh":
            run(f"set -e\n{block.text}", folder, path=programs)
        else:
            (folder / block.name).write_text(block.text, encoding="utf-8")
    return folder


def test_the_first_command_builds_a_package(unpacked: Path) -> None:
    run(INSTALL.text, unpacked)
    run([sys.executable, "-c", "import demo; demo.Agent"], unpacked)


def test_the_second_command_is_what_ci_runs() -> None:
    command = TEST.text.strip()
    assert command.endswith("nox")
    script = REPOSITORY / ".ci" / "run"
    if script.exists():  # not part of the sdist
        assert command in map(str.strip, script.read_text(encoding="utf-8").splitlines())


def test_commands_come_first() -> None:
    text = readme_text()
    assert text.index(TEST.text) < text.index("\n## ")


def test_the_echo_agent_answers(used: Path, programs: Path) -> None:
    messages = run("python echo.py < requests.jsonl", used, path=programs)
    assert "agentInfo" in messages
    assert re.findall(r'"code":(-\d+)', messages) == ["-32602", "-32601"]
    assert messages.count('"result"') == 2


def test_the_client_talks_to_the_echo_agent(used: Path, programs: Path) -> None:
    assert run("python chat.py", used, path=programs).split() == ["Hello!", "end_turn"]


@pytest.mark.parametrize("name", [block.name for block in REST if block.language == "python"])
def test_snippets_run(name: str, used: Path, programs: Path) -> None:
    run(f"python {name} < {os.devnull}", used, path=programs)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_snippets_and_packages_are_typed(checker: str, used: Path) -> None:
    require(find_spec(checker), checker)
    (used / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    files = ["demo", "chat_acp", "acme_acp", "src/editor/acp", *sorted(path.name for path in used.glob("*.py"))]
    options = ["--strict", "--explicit-package-bases"] if checker == "mypy" else []
    run([sys.executable, "-m", checker, *options, *files], used)


def test_the_table_of_extensions_is_complete() -> None:
    bundled = {fragment.spec for protocol in (1, 2) for fragment in bundled_fragments(protocol)}
    assert set(re.findall(r"^\| `(\S+@\S+)` \|", readme_text(), flags=re.MULTILINE)) == bundled
    assert all(release.name in readme_text() for release in list_releases())


@pytest.mark.parametrize(("command", "section"), [("build", "Options"), ("diff", "Following the schema")])
def test_the_table_of_options_is_complete(programs: Path, used: Path, command: str, section: str) -> None:
    shown = run(f"COLUMNS=200 acpgen {command} --help", used, path=programs)
    options = set(re.findall(r"(?<=│) +\*? *(--[a-z-]+)", shown)) - {"--help"}
    assert len(options) > 5
    text = readme_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`--[^|]+`,? ?)+)", text, flags=re.MULTILINE)
    assert {option for row in rows for option in re.findall(r"`(--[a-z-]+)", row)} >= options
    assert {re.findall(r"--[a-z-]+", row)[0] for row in rows} <= options


def test_the_table_of_files_is_complete(used: Path) -> None:
    table = readme_text().split("## The generated package")[1].split("###")[0]
    files = {path.name for folder in ("demo", "chat_acp") for path in (used / folder).iterdir() if path.is_file()}
    assert set(re.findall(r"`([\w.]+\.(?:py|typed|lock))`", table)) == files


# --- What is generated -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", PYTHONS)
def test_packages_import_without_site_packages(version: str, used: Path) -> None:
    python = shutil.which(f"python{version}")
    works = python and subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0
    if not python or not works:
        pytest.skip(f"needs Python {version}")
    for package in ("demo", "acme_acp"):
        run([python, "-S", "-c", f"import {package}"], used)


def test_a_second_build_changes_nothing(used: Path, programs: Path) -> None:
    command = "acpgen build --role agent --out demo --dry-run"
    assert run(command, used, path=programs) == ""
    assert run(f"{command} --full", used, path=programs) == ""


# --- The hook for pre-commit -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pre_commit_runs_the_hook(tmp_path: Path) -> None:
    require(find_spec("pre_commit"), "pre-commit")
    require((REPOSITORY / ".git").exists(), "acpgen's own repository")
    project = make_project(tmp_path / "project")
    green = try_hook(project, tmp_path)
    assert green.returncode == 0, green.stdout + green.stderr
    said = edit(project)
    red = try_hook(project, tmp_path)
    assert red.returncode == 1, red.stdout + red.stderr
    assert said in red.stdout


def try_hook(project: Project, home: Path) -> subprocess.CompletedProcess[str]:
    """What pre-commit does in `project` with the hook of this repository, installed as pre-commit installs it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}
    environment |= {"PRE_COMMIT_HOME": str(home / "pre-commit"), **who_commits()}
    command = [sys.executable, "-m", "pre_commit", "try-repo", str(REPOSITORY), hook()["id"], "--all-files"]
    return subprocess.run(command, cwd=project.path, env=environment, capture_output=True, text=True, check=False)
