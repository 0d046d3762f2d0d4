"""The checks of acpgen, each in an environment of its own: `nox` runs all of them, `nox -l` lists them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
FULL = "3.11"  # here all tests run, and on the others a part of them
APART = ("test_types.py", "test_package.py", "test_benchmarks.py")  # need tools, which one Python is enough for
ALIKE = (
    *("fidelity/*", "hostile/*", "test_bundled.py", "test_check.py", "test_compose*", "test_config.py"),
    *("test_dialect.py", "test_diff_*", "test_docs*", "test_document.py", "test_examples.py", "test_facts.py"),
    *("test_fitting.py", "test_format.py", "test_fragment*", "test_history.py", "test_hostile_*", "test_init.py"),
    *("test_layers.py", "test_lower.py", "test_no_special_cases.py", "test_output_*", "test_probes.py"),
    *("test_rendered_types.py", "test_renames.py", "test_rfd_*", "test_runtime_soak.py", "test_show.py"),
    *("test_stability.py", "test_unstable.py", "test_upstream_builds.py", "test_watch.py"),
)
"""What has no part in generated code, or repeats what others show; the others have the command line alone."""

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "tests"]
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
os.environ["PATH"] = os.pathsep.join([*map(str, _pyenv_folders().values()), os.environ.get("PATH", os.defpath)])


def _install(session: nox.Session, *groups: str) -> None:
    """Install acpgen as it stands here, with dependency groups of pyproject.toml."""
    session.install("-e", ".", *nox.project.dependency_groups(PROJECT, *groups))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and the types of acpgen itself."""
    _install(session, "lint")
    paths = [
        path
        for path in ("acpgen", "templates/runtime", "tests", "examples", "benchmarks", "noxfile.py")
        if (ROOT / path).exists()
    ]
    session.run("ruff", "check", *paths)
    session.run("black", "--check", "--quiet", "--diff", *paths)
    session.run("mypy")


@nox.session(default=False)
def types(session: nox.Session) -> None:
    """Check generated packages, new projects and examples, and what users write; `tests-3.11` does so, too."""
    _install(session, "test", "types")
    _install_node(session)
    session.run("pytest", "tests/test_types.py", *session.posargs)
    session.run("pytest", "tests/test_init.py", "tests/test_examples.py", "-k", "typed")


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """Build the distributions, install them elsewhere, do there what the README says; `tests-3.11` does so, too."""
    _install(session, "test", "types", "package")
    session.run("pytest", "tests/test_package.py", *session.posargs)


def _install_node(session: nox.Session) -> None:
    """What pyright runs on."""
    if shutil.which("node") is None:
        session.install("pyright[nodejs]")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests: all on one Python, those that are not slow, and may fail on one alone, on the others."""
    if session.python == FULL:
        _install(session, "test", "types", "package", "bench")
        _install_node(session)
        session.run(
            "pytest", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--durations=30", *session.posargs
        )
        return
    _install(session, "test")
    left_out = [f"--ignore-glob=tests/{name}" for name in (*APART, *ALIKE)]
    session.run("pytest", "-n", "auto", *left_out, "-m", "not slow", *session.posargs)


@nox.session(default=False)
def deep(session: nox.Session) -> None:
    """Run all tests, with many more values and hostile schemas than CI has, the same each time; takes hours."""
    _install(session, "test", "types", "package", "bench")
    session.env["ACPGEN_DEEP"] = "1"
    session.run("pytest", "-n", "auto", "--dist", "loadfile", *session.posargs)


@nox.session(python=FULL, default=False)
def bench(session: nox.Session) -> None:
    """Measure acpgen beside what people use today, which needs a quiet machine; `-- --smoke` shows that it works."""
    session.install(".", *nox.project.dependency_groups(PROJECT, "bench"))
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the site from README.md and docs/, where a warning is an error, and check the workflows of .github/."""
    session.install(*nox.project.dependency_groups(PROJECT, "docs"))
    pages = ROOT / "build" / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    shutil.copytree(ROOT / "examples", pages / "examples", ignore=shutil.ignore_patterns("acp_*", "__pycache__"))
    for name, page in (("README", "index"), ("CHANGELOG", "CHANGELOG"), ("CONTRIBUTING", "CONTRIBUTING")):
        shutil.copy(ROOT / f"{name}.md", pages / f"{page}.md")
    for path in pages.glob("*.md"):  # links from one folder to another, which here is the same
        text = path.read_text(encoding="utf-8").replace("](docs/", "](").replace("](../README.md", "](index.md")
        path.write_text(text, encoding="utf-8")
    session.run("zensical", "build", "--clean", "--strict")
    workflows = sorted(map(str, (ROOT / ".github" / "workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)


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
