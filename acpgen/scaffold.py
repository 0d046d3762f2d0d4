"""Writes a new project that runs: a package of the role with its vendored code, tests, and a README.

The files are those of a project `new-project` with the package `new_project`. Files without knowledge of the protocol
are in `templates/project/`, some of them as templates; those of a version are in `schema/projects/vN/`. A project for
several versions has the latter for each. Three words are replaced in paths and texts: `new-project`, `new_project`, and
`ACPGEN_CONFIG`, which becomes the configuration for the vendored code.
"""

from __future__ import annotations

import builtins
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from acpgen.config import DEFAULT_PROTOCOL, BuildOptions, SchemaChoice
from acpgen.config.keys import role_defaults
from acpgen.config.package_name import name_flaw
from acpgen.diagnostics import Diagnostic, input_error
from acpgen.emit.helpers import parts_of_names
from acpgen.emit.runtime import template_environment
from acpgen.ir.options import Options
from acpgen.output import OutputPlan
from acpgen.output.folder import check_folder, unreadable
from acpgen.output.plan import compare
from acpgen.parts import check_parts, with_needed
from acpgen.pipeline import build
from acpgen.roles import Role
from acpgen.schema.bundled import find_release, is_path
from acpgen.schema.data import data_folder

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A name of a project that the packaging tools of Python accept."""

_TAKEN = {*sys.stdlib_module_names, *dir(builtins), "src", "tests", "mcp", "httpx2"}
"""Names of packages that hide another module, or are hidden by one; among them libraries that new projects import."""


_IMPORTED = re.compile(r"helpers import (\([^)]*\)|[^\n]*)")
"""The names that a file imports from the helpers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A new project. Its name is that of `folder`; `role` and `sources` decide its vendored code.

    That has the parts that its files use, and besides them `parts`.
    """

    folder: Path
    role: Role
    sources: tuple[SchemaChoice, ...]
    parts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the project, and of the command that starts it."""
        return self.folder.absolute().name

    @property
    def package(self) -> str:
        """The name of its package. Raises `InputError` if Python cannot import it."""
        package = re.sub(r"[-_.]+", "_", self.name).lower()
        if flaw := _name_flaw(self.name, package):
            raise input_error(
                "project-name",
                f"{self.name!r} cannot be the name of a project: {flaw}",
                hint="the last part of the path is the name; choose one such as my-agent, with the package my_agent",
            )
        return package

    @property
    def vendored(self) -> str:
        """The folder of the vendored code, relative to that of the project."""
        return f"src/{self.package}/acp"


def _name_flaw(name: str, package: str) -> str | None:
    if not _NAME.fullmatch(name):
        return "it may have only ASCII letters and digits, with `-`, `_` and `.` between them"
    if package[0].isdigit():
        return f"the package {package} would start with a digit"
    if flaw := name_flaw(package):
        return flaw
    if package in {taken.lower() for taken in _TAKEN}:
        return f"a package {package} would clash with another module or name"
    return None


def plan_project(project: Project) -> tuple[OutputPlan, tuple[Diagnostic, ...]]:
    """Plan the files of `project`, for `apply`. Returns the diagnostics of the compiler, too. Nothing is written.

    Raises `InputError` for a name or a folder that cannot be used, and for the errors of a build.
    """
    vendored = project.vendored
    _check_empty(project.folder)
    _check_newest(project.sources)
    roles = (project.role,)
    defaults = role_defaults(roles)
    types = Options.for_roles(roles, open=defaults["open"], keep_unknown=defaults["keep-unknown"])
    out = project.folder / vendored
    protocols = [each.protocol for each in project.sources]
    check_parts(project.parts, roles, protocols, origin="command line")
    parts = (*used_parts(project), *project.parts)
    options = BuildOptions(sources=project.sources, roles=roles, out=out, types=types, parts=parts)
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
            f"the folder {folder.as_posix()} is not empty: it has {found[0]}",
            hint="choose an empty folder or a new one, and run `git init` afterwards; for an existing project, use "
            "`acpgen build`",
        )
    check_folder(folder)


def _check_newest(sources: Iterable[SchemaChoice]) -> None:
    """The files of a project use what the newest release has."""
    for each in sources:
        wanted, newest = (find_release(each.protocol, name) for name in (each.release, None))
        if wanted != newest:
            raise input_error(
                "project-release",
                f"a new project is for the newest release of protocol {each.protocol}, {newest.name}, "
                f"not for {wanted.name}",
                hint="leave --release out; in a project of your own, "
                f"`acpgen build --release {each.protocol}={wanted.name}` takes any release",
            )


def project_files(project: Project) -> Iterator[tuple[str, str]]:
    """The path and the text of each file, without the vendored code."""
    words = {"new-project": project.name, "new_project": project.package, "ACPGEN_CONFIG": configuration(project)}
    for path, text in itertools.chain(_common_files(project), _protocol_files(project)):
        yield _replaced(path, words), _replaced(text, words)


def _common_files(project: Project) -> Iterator[tuple[str, str]]:
    """The files that know no version of the protocol; of a template, what it makes for those of the project."""
    home = data_folder() / "templates" / "project"
    protocols = [each.protocol for each in project.sources]
    environment = template_environment([home], str, escapes=False)
    for path, text in itertools.chain(*(_files_in(home / part).items() for part in ("common", project.role.value))):
        if path.endswith(".jinja"):
            yield path.removesuffix(".jinja"), environment.from_string(text).render(protocols=protocols)
        else:  # a name with a dot would affect this repository
            yield f".{path}" if path in ("gitattributes", "gitignore") else path, text


def _protocol_files(project: Project) -> Iterator[tuple[str, str]]:
    """The files of each protocol; where there are several, each file has its own, as `agent_v1.py` for `agent.py`."""
    for each in project.sources:
        files = _files_in(_home(project.role, each.protocol))
        yield from files.items() if len(project.sources) == 1 else _of_one(files, f"v{each.protocol}")


def _home(role: Role, protocol: int) -> Path:
    data = data_folder() / "schema" / "projects"
    if not (home := data / f"v{protocol}" / role.value).is_dir():
        known = ", ".join(path.parent.name for path in sorted(data.glob(f"v*/{role.value}")))
        hint = f"there are projects for {known}; for an existing project, use `acpgen build`"
        raise input_error(
            "project-protocol", f"there is no project of the role {role.value} for v{protocol}", hint=hint
        )
    return home


def _of_one(files: Mapping[str, str], version: str) -> Iterator[tuple[str, str]]:
    """The files for one of several protocols: they import each other, and the subpackage of the vendored code."""
    names = {Path(path).stem: f"{Path(path).stem}_{version}" for path in files} | {"acp": f"acp.{version}"}
    imported = re.compile(rf"\b(from (?:new_project)?\.)({'|'.join(names)})\b")
    for path, text in files.items():
        yield f"{path.removesuffix('.py')}_{version}.py", imported.sub(lambda each: each[1] + names[each[2]], text)


def _files_in(home: Path) -> dict[str, str]:
    """The texts in a folder by path, without what comes from tools: installers compile modules, others keep caches."""
    found = ((path.relative_to(home), path) for path in sorted(home.rglob("*")) if path.is_file())
    return {
        below.as_posix(): path.read_text(encoding="utf-8")
        for below, path in found
        if not any(part == "__pycache__" or part.startswith(".") for part in below.parts)
    }


def _replaced(text: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(words), lambda found: words[found[0]], text)


def configuration(project: Project) -> str:
    """The text of `[tool.acpgen]` in the project: the options of its vendored code."""
    protocols = [each.protocol for each in project.sources]
    releases = {each.protocol: each.release for each in project.sources if each.release}
    extensions = project.sources[0].extensions
    settings: dict[str, object] = {"out": project.vendored, "role": project.role.value}
    if protocols != [DEFAULT_PROTOCOL]:
        settings["protocol"] = protocols[0] if len(protocols) == 1 else protocols
    if releases:
        settings["release"] = releases if len(protocols) > 1 else releases[protocols[0]]
    if extensions:
        settings["extensions"] = [_from_within(project, extension) for extension in extensions]
    settings["with"] = list(dict.fromkeys((*used_parts(project), *project.parts)))
    about = f"# what the project uses; only tests/ need {' and '.join(_test_parts(project))}. `acpgen parts` lists all"
    *lines, last = (f"{key} = {_toml(value)}" for key, value in settings.items())
    return "\n".join([*lines, about, last])


def used_parts(project: Project) -> tuple[str, ...]:
    """The parts whose helpers the files of a project import; those of its tests come last."""
    return (*_imported_parts(project, in_tests=False), *_test_parts(project))


def _test_parts(project: Project) -> list[str]:
    """The parts that only the tests of a project use."""
    others = _imported_parts(project, in_tests=False)
    known = with_needed(others, (project.role,), [each.protocol for each in project.sources])
    return [part for part in _imported_parts(project, in_tests=True) if part not in known]


def _imported_parts(project: Project, *, in_tests: bool) -> list[str]:
    """The parts of the names that the files import from the helpers, without those that the others need."""
    protocols, roles = [each.protocol for each in project.sources], (project.role,)
    owners = {name: part for protocol in protocols for name, part in parts_of_names(protocol, roles).items()}
    files = itertools.chain(_common_files(project), _protocol_files(project))
    texts = [text for path, text in files if path.startswith("tests/") is in_tests]
    names = {name for text in texts for found in _IMPORTED.findall(text) for name in re.findall(r"\w+", found)}
    parts = {owners[name] for name in names & owners.keys()}
    return sorted(part for part in parts if part not in with_needed(parts - {part}, roles, protocols))


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    # other JSON is TOML, too, if DEL is escaped
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _from_within(project: Project, extension: str) -> str:
    """The name of an extension in the folder of `project`. A file has another path there."""
    if not is_path(extension):
        return extension
    try:
        return Path(os.path.relpath(extension, project.folder)).as_posix()
    except ValueError:  # on another drive of Windows
        return Path(extension).absolute().as_posix()
