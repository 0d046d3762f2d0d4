"""The modules of the runtime, in `templates/runtime/`: their places in a package, their names for users, and imports.

Nothing lists them. A package has those that its role or a part begins with, and all that these import. A name in
`__all__` of a module is one of the package, and no schema may use it for a type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from acpgen.schema.data import data_folder

_IMPORT = re.compile(r"from \.+(?:\w+\.)*(\w+) import ")
_ALL = "\n__all__ = ["
_NAME = re.compile(r'"(\w+)"')
_RUNTIME = "_runtime"
"""The folder of a package with what is the same for every schema."""


def runtime_folder() -> Path:
    """The folder with a folder for each layer."""
    return data_folder() / "templates" / "runtime"


@cache
def runtime_sources() -> Mapping[str, Path]:
    """The source of each module by its name, which is the only one in all folders."""
    paths = [path for suffix in (".py", ".py.jinja") for path in runtime_folder().glob(f"*/**/*{suffix}")]
    found = [path for path in paths if path.name != "__init__.py"]
    sources = {path.name.partition(".")[0]: path for path in found}
    assert len(sources) == len(found), "two modules of the runtime have one name"
    return sources


@cache
def runtime_text(module: str) -> str:
    """The text of a module."""
    return runtime_sources()[module].read_text(encoding="utf-8")


@cache
def place(module: str) -> str:
    """The path of a module in a package, without its suffix; that of one that is not of the runtime is its name.

    A folder of sources with an `__init__.py` is a folder in `_runtime/`. Of the others, those of a part have modules
    that users import by their names, at the top of the package; those of layers lie together in `_runtime/` itself.
    """
    source = runtime_sources().get(module)
    if source is None:
        return module
    home = runtime_folder() / source.relative_to(runtime_folder()).parts[0]
    if (home / "__init__.py").exists():
        return f"{_RUNTIME}/{home.name}/{module}"
    return module if (home / "part.txt").exists() else f"{_RUNTIME}/{module}"


@cache
def exported_names(module: str) -> tuple[str, ...]:
    """The names of a module that users import from the package: those in `__all__`, unless it is itself imported."""
    if place(module) == module:
        return ()
    names = runtime_text(module).partition(_ALL)[2].partition("]")[0]
    return tuple(_NAME.findall(names))


def with_imported(modules: Iterable[str], present: Collection[str] = ()) -> set[str]:
    """The modules, and those of the runtime that they import, at any time, and that are not `present`."""
    found, rest = set[str](), list(modules)
    while rest:
        module = rest.pop()
        if module not in found and module not in present and module in runtime_sources():
            found.add(module)
            rest += _imported(module)
    return found


@cache
def _imported(module: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_IMPORT.findall(runtime_text(module))))
