"""A small project with a package in it, as the hook and the checks of CI find it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.documents import who_commits
from tests.project_support import Project, ping_schema
from tests.support import REPOSITORY

HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"


def hook() -> Mapping[str, Any]:
    """The one hook that acpgen has for pre-commit."""
    (found,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def make_project(folder: Path) -> Project:
    """A project in git, whose package and schema are committed and fit; `origin/main` is that state."""
    (folder / "vendor").mkdir(parents=True)
    project = Project(folder, 'schema = "vendor/schema.json"\nout = "acp"\n')
    put_schema(project, "Thing")
    project.good("build")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Build")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return project


def put_schema(project: Project, *names: str) -> None:
    """Put in another schema, with an object for each of `names`."""
    project.schema(ping_schema(*names), "vendor/schema.json")


def edit(project: Project) -> str:
    """Edit a file of the package by hand; returns what `acpgen check` says about it."""
    with (project.path / "acp" / "types.py").open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    return "edited  types.py"


def git(folder: Path, *arguments: str) -> None:
    """Run git."""
    subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **who_commits()}, check=True, capture_output=True
    )
