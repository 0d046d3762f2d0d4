"""What some tests need beyond Python and pytest, and the one way to say so: by a name of `NEEDS`.

A test or a module has the mark `needs("chromium")`; a fixture, or what starts a program, calls `need("chromium")`.
Where it is missing, the test is skipped, and in CI, which has to have it, it fails. CONTRIBUTING.md shows the table.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from tests.support import REPOSITORY

SBIN = "/usr/sbin:/usr/local/sbin"
"""Debian has servers where only root looks for programs."""


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a test may need, by its name."""

    name: str
    comes_from: str
    """For people: what brings it."""
    is_here: Callable[[], object]
    is_of_ci: bool = True
    """Whether CI has to have it: not what only another system or another Python has."""
    is_of_system: bool = False
    """Whether it cannot be installed."""


MAIN = (3, 11)
"""The Python on which CI installs all groups, as noxfile.py says; on the others it installs the group `test`."""


def library(module: str, group: str, *, before: tuple[int, int] = (4, 0)) -> Need:
    """A library by the name of its module, from a dependency group; CI has it on the Pythons `before` one."""
    return Need(
        module,
        f"the group `{group}`" + (f", on Python before {before[0]}.{before[1]}" if before < (4, 0) else ""),
        lambda: _spec(module),
        is_of_ci=sys.version_info < before and (group == "test" or sys.version_info[:2] == MAIN),
    )


def _spec(module: str) -> object:
    try:
        return find_spec(module)
    except ModuleNotFoundError:  # as the package that it is in
        return None


def program(name: str, *others: str) -> Need:
    """A program by its name, or other names that it has, from a package of the system."""
    return Need(name, "Debian's packages of these names", lambda: find_program(name, *others))


def find_program(*names: str) -> str | None:
    """Where the first of these is that the system has."""
    found = (shutil.which(name) or shutil.which(name, path=SBIN) for name in names)
    return next((path for path in found if path), None)


def find_initdb() -> Path | None:
    """The program that makes a PostgreSQL database; Debian has it in a folder for each version."""
    found = find_program("initdb")
    return Path(found) if found else max(Path("/usr/lib/postgresql").glob("*/bin/initdb"), default=None)


def system(name: str, says: str, *, is_here: object) -> Need:
    """What only some systems have."""
    return Need(name, says, lambda: is_here, is_of_ci=False, is_of_system=True)


NEEDS = {
    each.name: each
    for each in (
        library("acp", "remote"),
        library("build", "package"),
        library("cattrs", "libraries"),
        library("fastapi", "remote"),
        library("fastmcp", "mcp"),
        library("granian", "remote"),
        library("hatchling", "package"),
        library("httpx2", "network"),
        library("hypercorn", "network"),
        library("jedi", "types"),
        library("jsonschema_rs", "test"),
        library("matplotlib", "bench"),
        library("mcp", "mcp"),
        library("msgspec", "libraries"),
        library("mypy", "types"),
        library("opentelemetry.sdk", "test"),
        library("orjson", "libraries"),
        library("pip", "mcp"),
        library("playwright", "browser"),
        library("pre_commit", "package"),
        library("pydantic", "test", before=(3, 15)),
        library("pyright", "types"),
        library("tree_sitter", "test", before=(3, 15)),
        library("uvicorn", "network"),
        library("websockets", "network"),
        program("chromium", "chromium-browser", "google-chrome"),
        program("git"),
        program("haproxy"),
        program("npm"),
        Need("initdb", "Debian's `postgresql`", find_initdb),
        Need("registry", "the network: packages of npm and PyPI", lambda: True),
        Need("repository", "a clone of acpgen", (REPOSITORY / ".git").exists),
        system("recorded", "upstream's schemas and texts, in a folder `shared` beside the clone", is_here=True),
        system("posix", "processes, signals, links and paths of POSIX", is_here=os.name == "posix"),
        system("linux", "`/proc`, limits of processes, orphans", is_here=sys.platform.startswith("linux")),
        system("/dev/full", "a device that is always full", is_here=Path("/dev/full").exists()),
        system("root", "the rights to mount and to become another user", is_here=True),
        system("no root", "a user who may not write everything", is_here=getattr(os, "geteuid", int)() != 0),
        system("Python 3.11", "that version, or a newer one", is_here=sys.version_info >= (3, 11)),
        system("Python 3.13", "that version, or a newer one", is_here=sys.version_info >= (3, 13)),
        system("Pythons", "other versions on `PATH`", is_here=True),
    )
}


def need(*names: str) -> None:
    """Skip the test, or the module that is imported, where one of `names` is missing; in CI, fail.

    Raises `LookupError` for a name that `NEEDS` does not have.
    """
    for name in names:
        if name not in NEEDS:
            raise LookupError(f"no need is named {name!r}: add it to NEEDS in tests/needs.py")
        if not NEEDS[name].is_here():
            lacks(name)


def lacks(name: str, why: object = "") -> NoReturn:
    """Skip the test as `name` is missing, which only a try has shown, and `why`; in CI, fail."""
    each = NEEDS[name]
    what = f"{each.name} ({each.comes_from})" + (f": {why}" if why else "")
    if os.environ.get("CI") and each.is_of_ci:
        pytest.fail(f"CI lacks {what}")
    pytest.skip(f"needs {what}", allow_module_level=True)


def rows() -> list[str]:
    """The rows of the table in CONTRIBUTING.md, one for what comes from the same place."""
    names = defaultdict[tuple[str, bool], list[str]](list)
    for each in NEEDS.values():
        names[each.comes_from, each.is_of_system].append(f"`{each.name}`")
    return [
        f"| {', '.join(found)} | {source} | {'skipped' if is_of_system else 'a failure'} |"
        for (source, is_of_system), found in names.items()
    ]
