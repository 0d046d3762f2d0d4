"""A new project that runs: the package of an agent or a client with its vendored code, tests, and how to try it.

The files lie ready as those of a project named `new-project`, whose package is `new_project`: what has nothing to do
with the protocol in `templates/project/`, what speaks it in `schema/projects/`. In paths and texts three words are
replaced, and nothing else: `new-project`, `new_project`, and `ACPGEN_CONFIG`, which is what made the vendored code.
"""

from __future__ import annotations

import builtins
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acpgen.config import DEFAULT_PROTOCOL, BuildOptions, Sources
from acpgen.config.keys import is_open_by_default
from acpgen.config.package_name import name_flaw
from acpgen.diagnostics import Diagnostic, input_error, internal_error
from acpgen.ir.model import Options, Role
from acpgen.output import Plan
from acpgen.output.paths import unreadable
from acpgen.output.plan import check_folder, compare
from acpgen.pipeline import build
from acpgen.schema.bundled import locate_fragment
from acpgen.schema.data import data_folder

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""What the packaging tools of Python take for the name of a project."""

_TAKEN = {*sys.stdlib_module_names, *dir(builtins), "src", "tests"}
"""Names under which a package would hide something else, or would be hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a new project is to be: its folder, whose name is its own, and what its vendored code is made of."""

    folder: Path
    role: Role
    sources: Sources

    @property
    def name(self) -> str:
        """The name of the project, and of the command that starts it."""
        return self.folder.absolute().name

    @property
    def package(self) -> str:
        """The name of its package. Raises `InputError` where there is none that Python can import."""
        package = re.sub(r"[-_.]+", "_", self.name).lower()
        if flaw := _name_flaw(self.name, package):
            raise input_error(
                "project-name",
                f"{self.name!r} cannot be the name of a project: {flaw}",
                hint="the last part of the folder is the name; choose one such as my-agent, whose package is my_agent",
            )
        return package

    @property
    def vendored(self) -> str:
        """Where the code that acpgen writes is, below the folder."""
        return f"src/{self.package}/acp"


def _name_flaw(name: str, package: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "only ASCII letters, digits, and between them `-`, `_` and `.` may be in it"
    if package[0].isdigit():
        return f"the package {package} would start with a digit"
    if flaw := name_flaw(package):
        return flaw
    if package in {taken.lower() for taken in _TAKEN}:
        return f"a package {package} would stand in the way of another that has this name"
    return None


def plan_project(project: Project) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """The plan that makes `project`, for `apply`, and what compiling had to say. Nothing is written.

    Raises `InputError` for a name or a folder that cannot be used, and for all that a build raises it for.
    """
    vendored = project.vendored
    _check_empty(project.folder)
    roles = (project.role,)
    types = Options(open=is_open_by_default(roles))
    options = BuildOptions(sources=project.sources, roles=roles, out=project.folder / vendored, types=types)
    built = build(options, full=True)
    assert built.plan is not None  # a full build always has one
    files = dict(project_files(project))
    files.update({f"{vendored}/{path}": text for path, text in built.plan.files.items()})
    plan = compare(project.folder, dict(sorted(files.items())))
    plan.raise_problems()
    return plan, built.diagnostics


def _check_empty(folder: Path) -> None:
    try:
        found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise unreadable(folder, error) from error
    if found:
        raise input_error(
            "folder-not-empty",
            f"the folder {folder.as_posix()} is not empty: {found[0]} is in it",
            hint="a new project needs an empty folder, or one that does not exist; `acpgen build` adds the package to "
            "a project that you have, and `git init` can come afterwards",
        )
    check_folder(folder)


def project_files(project: Project) -> Iterator[tuple[str, str]]:
    """The path and the text of each file but the vendored ones."""
    words = {"new-project": project.name, "new_project": project.package, "ACPGEN_CONFIG": configuration(project)}
    for home in _homes(project):
        for path in sorted(home.rglob("*")):
            relative = path.relative_to(home).as_posix()
            if path.is_file() and not _is_leftover(relative):
                # by another name here, so that it does not act on this project
                shown = ".gitignore" if relative == "gitignore" else relative
                yield _replaced(shown, words), _replaced(path.read_text(encoding="utf-8"), words)


def _is_leftover(path: str) -> bool:
    """Whether a tool has put the file there: installers compile the modules that they find, others keep caches."""
    return any(part == "__pycache__" or part.startswith(".") for part in path.split("/"))


def _homes(project: Project) -> Iterator[Path]:
    role, protocol = project.role.value, f"v{project.sources.protocol}"
    templates, data = data_folder() / "templates" / "project", data_folder() / "schema" / "projects"
    for home in (templates / "common", templates / role, data / protocol / role):
        if not home.is_dir():
            raise internal_error(f"acpgen has no files for a project of the role {role} and protocol {protocol}")
        yield home


def _replaced(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def configuration(project: Project) -> str:
    """What stands in `[tool.acpgen]` of the project: the command that made its vendored code, without arguments."""
    sources = project.sources
    settings: dict[str, object] = {"out": project.vendored, "role": project.role.value}
    if sources.protocol != DEFAULT_PROTOCOL:
        settings["protocol"] = sources.protocol
    if sources.extensions:
        settings["extensions"] = [_from_within(project, extension) for extension in sources.extensions]
    # JSON of a string, a number or an array of strings is TOML, too, if DEL is escaped
    return "\n".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()).replace(
        "\x7f", "\\u007f"
    )


def _from_within(project: Project, extension: str) -> str:
    """How to name an extension in the folder of `project`: a file has another path there."""
    path, label = locate_fragment(extension, project.sources.protocol)
    if label != extension:  # it is bundled
        return extension
    try:
        return Path(os.path.relpath(path, project.folder)).as_posix()
    except ValueError:  # on another drive of Windows
        return path.absolute().as_posix()
