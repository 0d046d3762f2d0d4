"""The programs of docs/remote.md, imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from types import ModuleType

from acpgen.emit.package import emit
from acpgen.roles import RoleChoice
from tests import package_cache
from tests.documents import blocks
from tests.runtime_support import V1
from tests.support import REPOSITORY, import_folder, model_of

PACKAGE = "remote_acp"


@cache
def package() -> ModuleType:
    """The package that the programs import."""

    def build() -> Mapping[str, str]:
        return emit([model_of(V1)[0]], RoleChoice.BOTH.roles, parts=("turns", "sessions", "recovery", "remote")).files

    folder = package_cache.folder("remote and recovery, version 1, both roles", build)
    link = folder.parent / PACKAGE
    if not link.exists():
        link.symlink_to(folder, target_is_directory=True)
    return import_folder(link)


@cache
def example(name: str) -> ModuleType:
    """A program of the page, by the title of its block."""
    package()
    page = (REPOSITORY / "docs" / "remote.md").read_text(encoding="utf-8")
    (text,) = (block.text for block in blocks(page) if block.name == f"{name}.py")
    module = sys.modules[name] = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def part(name: str) -> ModuleType:
    """A module of the package."""
    return importlib.import_module(f"{package().__name__}.{name}")
