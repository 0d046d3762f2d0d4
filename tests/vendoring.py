"""A small project with a package in it, as the hook and the checks of CI find it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.command_line import run_acpgen
from tests.documents import who_commits
from tests.support import REPOSITORY

HOOKS = REPOSITORY / ".pre-commit-hooks.yaml"


def hook() -> Mapping[str, Any]:
    """The one hook that acpgen has for pre-commit."""
    (found,) = yaml.safe_load(HOOKS.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def make_project(folder: Path) -> Path:
    """A project in git, whose package and schema are committed and fit; `origin/main` is that state."""
    (folder / "vendor").mkdir(parents=True)
    write_schema(folder, "name")
    config = '[tool.acpgen]\nschema = "vendor/schema.json"\nout = "acp"\n'
    (folder / "pyproject.toml").write_text(config, encoding="utf-8")
    assert run_acpgen("build", cwd=folder).code == 0
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Build")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    return folder


def write_schema(folder: Path, name: str) -> None:
    """Put in another schema: that of an object with one property."""
    definition = {"type": "object", "properties": {name: {"type": "string"}}}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"AgentInfo": definition}}
    (folder / "vendor" / "schema.json").write_text(json.dumps(schema), encoding="utf-8")


def edit(folder: Path) -> str:
    """Edit a file of the package by hand; returns what `acpgen check` says about it."""
    with (folder / "acp" / "types.py").open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    return "edited  types.py"


def git(folder: Path, *arguments: str) -> None:
    """Run git."""
    subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **who_commits()}, check=True, capture_output=True
    )
