"""Copy helpers into a package: ordinary Python under `schema/helpers/` that uses the names of the protocol.

acpgen knows nothing of their content. A folder `vN` has the helpers of one protocol, a folder with the name of
a role those of this role. acpgen reads their imports, and copies a helper if the package has all the names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from acpgen.emit.runtime import HEADER
from acpgen.emit.source import LINE_LENGTH
from acpgen.roles import Role
from acpgen.schema.data import data_folder

FOLDER = "helpers"
"""The subpackage that holds the helpers."""

_IMPORTED_TWICE = re.compile(
    r"^from (\.+types) import ((?:\w+, )*\w+)\nfrom \1 import (\([\w\s,]+\)|(?:\w+, )*\w+)$", re.MULTILINE
)
"""Two imports from `types`: where `known` is the same module, its names belong to the import after it."""
_PACKAGE_LEVEL = 2
"""The number of dots in an import from the package, as helpers write it: they lie in a subpackage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Helper:
    """A helper: its text, its public names, the names that it imports by module, and the helpers that it imports from.

    `lines` has the lines of `text` with an import from the package, counted from 0, and the module of each.
    """

    text: str
    public: list[str]
    imports: set[tuple[str, str]]
    helpers: set[str]
    lines: dict[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """The helpers of a version: text and public names by module, and the missing names of those that are left out.

    Among the missing names, a helper starts with a dot.
    """

    texts: Mapping[str, str]
    exports: Mapping[str, list[str]]
    left_out: Mapping[str, list[str]]


def copy_helpers(protocol: int, roles: tuple[Role, ...], exports: Mapping[str, Collection[str]]) -> Helpers:
    """The helpers for a protocol and `roles` that a package with `exports` can have.

    `exports` has the names by module, relative to the folder of the version (".types", "..errors"). A helper that
    imports a module of the runtime is not `left_out` if the package has no runtime: it is not for this package. Without
    a module `known`, the enumerations of `types` are the same.
    """
    modules = {"known": ".types", **{module.lstrip("."): module for module in exports}}
    found = _read(protocol, roles)
    kept: dict[str, _Helper] = {}
    left_out: dict[str, list[str]] = {}
    for name, helper in found.items():
        wanted = _wanted(helper, found)
        if not {module for module, _ in wanted} <= modules.keys():
            continue
        missing = [each for module, each in wanted if each not in exports[modules[module]]]
        missing += [f".{each}" for each in _needed(helper, found) - found.keys()]
        if missing:
            left_out[name] = sorted(missing)
        else:
            kept[name] = helper
    used = {name for helper in kept.values() for name in helper.helpers}
    kept = {name: helper for name, helper in kept.items() if helper.public or name in used}
    return Helpers(
        texts={name: f"{HEADER}\n{_at_level(helper, modules)}" for name, helper in kept.items()},
        exports={f".{name}": helper.public for name, helper in kept.items() if helper.public},
        left_out=left_out,
    )


def _wanted(helper: _Helper, helpers: Mapping[str, _Helper]) -> set[tuple[str, str]]:
    """The modules and names that a helper imports from the package, by itself or by another helper."""
    return helper.imports.union(*(_wanted(helpers[name], helpers) for name in helper.helpers & helpers.keys()))


def _needed(helper: _Helper, helpers: Mapping[str, _Helper]) -> set[str]:
    """The helpers that a helper imports from, by itself or by another helper."""
    inner = (_needed(helpers[name], helpers) for name in helper.helpers & helpers.keys())
    return helper.helpers.union(*inner)


def _at_level(helper: _Helper, modules: Mapping[str, str]) -> str:
    """The text, with a dot more in imports from a package that is one level up, as with several versions."""
    lines = helper.text.split("\n")
    for number, module in helper.lines.items():
        lines[number] = lines[number].replace(f"..{module}", f".{modules[module]}", 1)
    return _IMPORTED_TWICE.sub(_import_once, "\n".join(lines))


def _import_once(found: re.Match[str]) -> str:
    module, *listed = found.groups()
    names = sorted({name for each in listed for name in re.findall(r"\w+", each)})
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= LINE_LENGTH else f"from {module} import (\n    {{}},\n)".format(",\n    ".join(names))


@cache
def _read(protocol: int, roles: tuple[Role, ...]) -> dict[str, _Helper]:
    """The helpers for a protocol and `roles`, by module."""
    folder = data_folder() / "schema" / FOLDER
    parts = ("", *(f"{role.value}/" for role in roles))
    paths = [
        path for version in ("", f"v{protocol}/") for part in parts for path in folder.glob(f"{version}{part}*.py")
    ]
    return {path.stem: _parse(path) for path in sorted(paths, key=lambda path: path.stem)}


def _parse(path: Path) -> _Helper:
    text = path.read_text(encoding="utf-8")
    helper = _Helper(text=text, public=[], imports=set(), helpers=set(), lines={})
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=level) if level == _PACKAGE_LEVEL:
                helper.imports.update((module, each.name) for each in names)
                helper.lines[node.lineno - 1] = module
            case ast.ImportFrom(module=str(module), level=1):
                helper.helpers.add(module)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                helper.public.extend(ast.literal_eval(value))
    return helper
