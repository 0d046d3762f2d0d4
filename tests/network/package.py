"""The package with remote connections: of both versions and both roles, on disk once."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from acpgen.emit.package import emit
from acpgen.roles import RoleChoice
from tests import package_cache
from tests.runtime_support import V1, V2
from tests.support import import_folder, model_of


def remote_folder() -> Path:
    """The folder of the package."""

    def build() -> Mapping[str, str]:
        return emit(
            [model_of(each)[0] for each in (V1, V2)], RoleChoice.BOTH.roles, parts=("turns", "sessions", "remote")
        ).files

    return package_cache.folder("remote, both versions, both roles", build)


@cache
def remote_package() -> ModuleType:
    """The package, imported; its modules are those that `remote_module` returns."""
    folder = remote_folder()
    link = folder.parent / "acp_network"
    with contextlib.suppress(FileExistsError):  # another process may be faster
        link.symlink_to(folder, target_is_directory=True)
    return import_folder(link)


def remote_module(name: str) -> Any:
    """A module of the package."""
    return importlib.import_module(f"{remote_package().__name__}.{name}")
