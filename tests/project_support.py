"""A project with a configuration, for the tests of the commands that read one."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.command_line import Outcome, run_acpgen
from tests.support import schema_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Project", "negotiating_schema", "ping_schema", "public_names", "read_toml"]


def read_toml(text: str) -> dict[str, Any]:
    """The content of a TOML file."""
    return tomllib.loads(text)


def ping_schema(*names: str) -> dict[str, Any]:
    """A schema with a method, and an object for each of `names`."""
    things = {name: {"type": "object", "properties": {"text": {"type": "string"}}} for name in names}
    ping = {"type": "object", "x-method": "ping", "x-side": "agent"}
    return schema_of(**things, PingRequest=ping, PingResponse=ping)


def negotiating_schema(*names: str) -> dict[str, Any]:
    """The same with a request that negotiates the version: several of them can be in one package."""
    version = {
        "type": "object",
        "properties": {"protocolVersion": {"type": "integer"}},
        "required": ["protocolVersion"],
    }
    asked = {**version, "x-method": "initialize", "x-side": "agent"}
    return schema_of(**ping_schema(*names)["$defs"], InitializeRequest=asked, InitializeResponse=asked)


class Project:
    """A folder with a `pyproject.toml`, and a schema in `schema.json`."""

    def __init__(self, path: Path, config: str = "") -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        self.schema(ping_schema("Thing"))
        self.config(config)

    def config(self, text: str) -> None:
        """Write what stands in `[tool.acpgen]`, and in tables below it."""
        (self.path / "pyproject.toml").write_text(f'[project]\nname = "p"\n\n[tool.acpgen]\n{text}', encoding="utf-8")

    def schema(self, content: Mapping[str, Any], name: str = "schema.json") -> None:
        """Put in a schema."""
        (self.path / name).write_text(json.dumps(content), encoding="utf-8")

    def run(self, *arguments: str | Path, below: str = ".") -> Outcome:
        """What `acpgen ARGUMENTS` does in the project, or in a folder of it."""
        (self.path / below).mkdir(parents=True, exist_ok=True)
        return run_acpgen(*arguments, cwd=self.path / below)

    def good(self, *arguments: str | Path, below: str = ".") -> Outcome:
        """The same, for what must succeed."""
        ran = self.run(*arguments, below=below)
        assert ran.code == 0, ran.stdout + ran.stderr
        return ran

    def lock(self, out: str) -> dict[str, Any]:
        """The manifest of an output."""
        found: dict[str, Any] = json.loads((self.path / out / "acpgen.lock").read_text(encoding="utf-8"))
        return found

    def names(self, out: str) -> set[str]:
        """The public names of an output, those of a subpackage with its name."""
        return public_names(self.path / out)


def public_names(package: Path) -> set[str]:
    """The public names of a package, those of a subpackage with its name, by its syntax trees."""
    top = _exported(package)
    below = {name: _exported(package / name) for name in top if (package / name / "__init__.py").exists()}
    return top | {f"{name}.{each}" for name, found in below.items() for each in found}


def _exported(folder: Path) -> set[str]:
    found = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body
    (names,) = (
        each.value for each in found if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
    )
    return set(ast.literal_eval(names))
