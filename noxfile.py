"""The checks of acpgen, each in an environment of its own: `nox` runs those that take seconds, `nox -l` lists all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

ROOT = Path(__file__).resolve().parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
MAIN = "3.11"
"""All tests run on this version; the others run those marked `every_python`."""
OLDEST, NEWEST = PYTHONS[0], PYTHONS[-1]
SECOND_HALF = "test_r"
"""In the session `full`, the modules up to this name run on the oldest version, and those from it on the newest."""
SMOKE = (
    "test_client_sessions",
    "test_codec",
    "test_dataclasses",
    "test_dispatch",
    "test_helpers_turns",
    "test_proxy_engine",
    "test_runtime_end",
    "test_runtime_stdio",
    "test_spawn_ends",
    "test_stored_agent",
)
"""The modules that `full` runs on the versions between: a difference that both ends lack is unlikely."""
CORES = os.cpu_count() or 1
WORKERS = 1 + CORES
"""More than there are cores: many tests wait for processes, and some for time to pass. Each collects all tests."""


def _spread() -> tuple[str, ...]:
    """The options for several processes, each with whole modules, in the order of the tests."""
    return ("-n", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder", "--durations=30")


nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|venv"
nox.options.reuse_venv = "yes"  # what has changed is installed anew; the rest stays compiled
# Where CI is set, `nox` alone runs the long tests, too.
nox.options.sessions = ["lint", f"{'full' if os.environ.get('CI') else 'tests'}-{MAIN}"]
# Some machines lack a version of Python: nox says "skipped" then, in CI too. What CI needs, .ci/run checks.
nox.options.error_on_missing_interpreters = False


def _pyenv_folders() -> dict[str, Path]:
    """The folders of pyenv's interpreters by version ("3.12"), newest patch release each."""
    homes = [os.environ.get("PYENV_ROOT"), Path.home() / ".pyenv"]
    if pyenv := shutil.which("pyenv"):
        homes.insert(0, subprocess.run([pyenv, "root"], check=False, capture_output=True, text=True).stdout.strip())
    found: dict[str, tuple[int, Path]] = {}
    for home in homes:
        for folder in Path(home).glob("versions/*/bin") if home else ():
            if match := re.fullmatch(r"(\d+\.\d+)\.(\d+)", folder.parent.name):
                found[match[1]] = max(found.get(match[1], (-1, folder)), (int(match[2]), folder))
    return {version: folder for version, (_, folder) in found.items() if version in PYTHONS}


# pyenv's shims answer for every version and refuse most of them, so the interpreters themselves go first.
# What lies beside nox goes last: uv is there, with which tests install faster than with pip.
os.environ["PATH"] = os.pathsep.join(
    map(str, [*_pyenv_folders().values(), os.environ.get("PATH", os.defpath), Path(sys.executable).parent])
)

# The tests start hundreds of processes, and each would compile what another one has compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _install(session: nox.Session, *groups: str) -> None:
    """Install acpgen as it stands here, with dependency groups of pyproject.toml."""
    what = ("-e", ".", *nox.project.dependency_groups(PROJECT, *groups))
    try:
        session.install(*what)
    except CommandFailed:
        if session.venv_backend != "uv":
            raise
        session.warn("uv failed, and pip may have an index that uv does not know: trying pip")
        session.run_install("python", "-m", "ensurepip", silent=True)
        session.run_install("python", "-m", "pip", "install", *what)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and the types of acpgen itself."""
    _install(session, "lint")
    paths = [
        path
        for path in ("acpgen", "templates/runtime", "schema/helpers", "tests", "examples", "benchmarks", "noxfile.py")
        if (ROOT / path).exists()
    ]
    session.run("ruff", "check", *paths)
    session.run("black", "--check", *paths)
    session.run("mypy")


def _install_all(session: nox.Session) -> None:
    """Install what any test needs, Node for pyright among it."""
    _install(session, "test", "types", "package", "bench", "browser", "remote", "mcp", "libraries")
    if shutil.which("node") is None:
        session.install("pyright[nodejs]")


def _for_every_python() -> list[Path]:
    """The modules with tests for every version of Python: others import what only the main version has installed."""
    return [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "every_python" in path.read_text("utf-8")]


def _run_for_every_python(session: nox.Session, paths: list[Path], *, marks: str = "") -> None:
    """Run the tests of these modules that are for every version of Python, and that have `marks`, too."""
    _install(session, "test")
    chosen = f"every_python and {marks}" if marks else "every_python"
    session.run("pytest", *_spread(), "-m", chosen, *map(str, paths), *session.posargs)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests that take seconds: `nox` alone on the main version.

    Without CI, no heavy libraries are installed for it, and the tests that need them are skipped.
    """
    if session.python != MAIN:
        _run_for_every_python(session, _for_every_python(), marks="not full")
        return
    if os.environ.get("CI"):
        _install_all(session)
    else:
        _install(session, "test", "network")
    session.run("pytest", *_spread(), "-m", "not full", *session.posargs)


@nox.session(python=PYTHONS, default=False)
def full(session: nox.Session) -> None:
    """Run what CI runs: all tests on the main version, on the others a fixed part of those for every version."""
    every = _for_every_python()
    if session.python == MAIN:
        _install_all(session)
        session.run("pytest", *_spread(), *session.posargs)
    elif session.python == OLDEST:
        _run_for_every_python(session, [path for path in every if path.stem < SECOND_HALF])
    elif session.python == NEWEST:
        _run_for_every_python(session, [path for path in every if path.stem >= SECOND_HALF])
    else:
        _run_for_every_python(session, [path for path in every if path.stem in SMOKE], marks="not full")


@nox.session(default=False)
def types(session: nox.Session) -> None:
    """Check generated packages, examples, new projects, and what users write; `full` does so, too."""
    _install_all(session)
    session.run("pytest", "tests/test_types.py", *session.posargs)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build the distributions, install them elsewhere, do there what the README says; `full-3.11` does so, too."""
    _install(session, "test", "types", "package")
    session.run("pytest", "tests/test_package.py", *session.posargs)


@nox.session(default=False)
def deep(session: nox.Session) -> None:
    """Run all tests, with many more values and hostile schemas than CI has, the same each time; takes hours."""
    _install_all(session)
    session.env["ACPGEN_DEEP"] = "1"
    # some tests take an hour there
    session.run("pytest", *_spread(), "--timeout=14400", *session.posargs)


@nox.session(python=MAIN, default=False)
def bench(session: nox.Session) -> None:
    """Measure acpgen beside what people use today, which needs a quiet machine; `-- --smoke` shows that it works."""
    session.install(".", *nox.project.dependency_groups(PROJECT, "bench"))
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(python=MAIN, default=False)
def instructions(session: nox.Session) -> None:
    """Count what a build and its packages do most, and compare with what is committed; `-- --accept` commits it."""
    _install(session)
    session.run("python", "-m", "benchmarks.instructions", *session.posargs)


@nox.session(python=MAIN, default=False)
def peers(session: nox.Session) -> None:
    """Play published agents through a client of this checkout, and print a table; takes 20 minutes, `-- --help`."""
    _install(session, "test")
    session.run("python", "-m", "tests.peers", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site from README.md and docs/, where a warning is an error, and validate workflows and Compose."""
    session.install(*nox.project.dependency_groups(PROJECT, "docs"))
    pages = ROOT / "build" / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    shutil.copytree(ROOT / "examples", pages / "examples", ignore=shutil.ignore_patterns("acp_*", "__pycache__"))
    for name, page in (("README", "index"), ("CHANGELOG", "CHANGELOG"), ("CONTRIBUTING", "CONTRIBUTING")):
        shutil.copy(ROOT / f"{name}.md", pages / f"{page}.md")
    moved = {"docs/": "", "../README.md": "index.md", "../examples/": "examples/", "../../docs/": "../../"}
    for path in pages.rglob("*.md"):  # links from one folder to another, which here is the same
        text = path.read_text(encoding="utf-8")
        for link, target in moved.items():
            text = text.replace(f"]({link}", f"]({target}")
        path.write_text(text, encoding="utf-8")
    session.run("zensical", "build", "--clean", "--strict")
    workflows = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    compose = str(ROOT / "examples" / "remote" / "compose.yaml")
    session.run("check-jsonschema", "--builtin-schema", "vendor.compose-spec", compose)


@nox.session(default=False)
def golden(session: nox.Session) -> None:
    """Compare generated packages and messages with the committed ones; `tests` does so, too."""
    _install(session, "test")
    session.run("pytest", "tests/test_golden.py", *session.posargs)


@nox.session(default=False)
def regen(session: nox.Session) -> None:
    """Accept what acpgen generates now as what it should generate; look at the diff before you commit it."""
    _install(session, "test")
    session.run("pytest", "tests/test_golden.py", "--accept-goldens", *session.posargs)
