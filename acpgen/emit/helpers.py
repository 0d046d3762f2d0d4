"""Copy helpers into a package: ordinary Python under `schema/helpers/` that uses the names of the protocol.

acpgen knows nothing of their content. A folder `vN` has the helpers of one protocol, a folder with the names of roles
(`agent`, `agent-proxy`) those of these roles, and `extensions` those that only extensions have the names for. acpgen
reads their imports, and copies a helper if the package has all the names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from acpgen.emit.runtime import HEADER
from acpgen.emit.source import LINE_LENGTH
from acpgen.roles import Role
from acpgen.schema.data import data_folder

FOLDER = "helpers"
"""The subpackage that holds the helpers."""

_EXTRA = "extensions"

_PACKAGE_LEVEL = 2
"""The number of dots in an import from the package, as helpers write it: they lie in a subpackage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """An import from a module of the package: its names and its lines, counted from 0."""

    module: str
    names: frozenset[str]
    lines: slice


@dataclass(frozen=True, slots=True, kw_only=True)
class _Helper:
    """A helper: its text, its public names, its imports from the package, and the helpers that it imports from.

    `libraries` are the packages that it imports besides the standard library. `needed` are the imports from the package
    of the helper and of those that it needs. `is_extra` is true if most packages do without it.
    """

    text: str
    public: list[str]
    imports: list[_Import]
    helpers: set[str]
    libraries: set[str]
    needed: list[_Import]
    is_extra: bool


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

    `exports` has the names by module, relative to the folder of the version (".types", "..errors"); of a module that
    has no public names, helpers may import any. A helper that imports a module of the runtime is not `left_out` if the
    package has no runtime: it is not for this package. Without a module `known`, the enumerations of `types` are the
    same. A helper of an extension is not `left_out` either where that is missing. The names of one that needs a library
    are not exported: the others must work without the library.
    """
    modules = {"known": ".types", **{module.rpartition(".")[2]: module for module in exports}}
    found = _read(protocol, roles)
    kept: dict[str, _Helper] = {}
    left_out: dict[str, list[str]] = {}
    for name, helper in found.items():
        if not {each.module for each in helper.needed} <= modules.keys():
            continue
        known = [(exports[modules[each.module]], each.names) for each in helper.needed]
        missing = [name for names, wanted in known for name in wanted if names and name not in names]
        missing += [f".{each}" for each in helper.helpers - found.keys()]
        if not missing:
            kept[name] = helper
        elif not (helper.libraries or helper.is_extra):
            left_out[name] = sorted({*missing})
    public = {name for name, helper in kept.items() if helper.public}
    used = public.union(*(kept[name].helpers for name in public))
    kept = {name: helper for name, helper in kept.items() if name in used}
    return Helpers(
        texts={name: f"{HEADER}\n{_redirected(helper, modules)}" for name, helper in kept.items()},
        exports={f".{name}": kept[name].public for name in sorted(public) if not kept[name].libraries},
        left_out=left_out,
    )


def _redirected(helper: _Helper, modules: Mapping[str, str]) -> str:
    """The text, which imports from where the package has the `modules`: once from each, where the last import was."""
    names: dict[str, frozenset[str]] = {}
    for each in helper.imports:
        target = modules[each.module]
        names[target] = names.get(target, frozenset()) | each.names
    lines = helper.text.split("\n")
    for each in reversed(helper.imports):  # from the end: the lines before stay where they are
        target = modules[each.module]
        lines[each.lines] = [_import(target, sorted(names.pop(target)))] if target in names else []
    return "\n".join(lines)


def _import(module: str, names: list[str]) -> str:
    """The import of `names`; a helper is one level below the folder to which `module` is relative."""
    line = f"from .{module} import {', '.join(names)}"
    if len(line) <= LINE_LENGTH:
        return line
    return "\n".join([f"from .{module} import (", *(f"    {name}," for name in names), ")"])


@cache
def _read(protocol: int, roles: tuple[Role, ...]) -> dict[str, _Helper]:
    """The helpers for a protocol and `roles`, by module."""
    folder = data_folder() / "schema" / FOLDER
    wanted = {_EXTRA, *(role.value for role in roles)}
    homes = [home for home in (folder, folder / f"v{protocol}") if home.is_dir()]
    homes += [each for home in homes for each in home.iterdir() if wanted & {*each.name.split("-")} and each.is_dir()]
    paths = [path for home in homes for path in home.glob("*.py")]
    found = {path.stem: _parse(path) for path in sorted(paths, key=lambda path: path.stem)}
    return {name: _with_needed(helper, found) for name, helper in found.items()}


def _with_needed(helper: _Helper, helpers: Mapping[str, _Helper]) -> _Helper:
    """The helper with what the helpers import that it imports from."""
    inner = [_with_needed(helpers[name], helpers) for name in helper.helpers & helpers.keys()]
    return replace(
        helper,
        helpers=helper.helpers.union(*(each.helpers for each in inner)),
        libraries=helper.libraries.union(*(each.libraries for each in inner)),
        needed=[*helper.imports, *(needed for each in inner for needed in each.needed)],
    )


def _parse(path: Path) -> _Helper:
    text = path.read_text(encoding="utf-8")
    is_extra = path.parent.name == _EXTRA
    helper = _Helper(text=text, public=[], imports=[], helpers=set(), libraries=set(), needed=[], is_extra=is_extra)
    for node in _statements(ast.parse(text).body):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=level) if level == _PACKAGE_LEVEL:
                lines = slice(node.lineno - 1, node.end_lineno)
                helper.imports.append(_Import(module=module, names=frozenset(each.name for each in names), lines=lines))
            case ast.ImportFrom(module=str(module), level=1):
                helper.helpers.add(module)
            case ast.ImportFrom(module=str(module), level=0):
                helper.libraries.update({module.partition(".")[0]} - sys.stdlib_module_names)
            case ast.Import(names=names):
                helper.libraries.update({each.name.partition(".")[0] for each in names} - sys.stdlib_module_names)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                helper.public.extend(ast.literal_eval(value))
    return helper


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that an import of the module runs, those in `try` included."""
    for node in body:
        yield node
        if isinstance(node, ast.Try):
            yield from _statements(node.body)
