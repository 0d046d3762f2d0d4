"""Copy helpers into a package: ordinary Python under `schema/helpers/` that uses the names of the protocol.

acpgen knows nothing of their content. `acpgen.parts` says what the folders mean. acpgen reads the imports of the
helpers of a part, and copies those for which the package has all the names.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from acpgen.emit.runtime import HEADER
from acpgen.emit.source import LINE_LENGTH
from acpgen.parts import PartModule, all_parts, shared_modules
from acpgen.roles import Role

FOLDER = "helpers"
"""The subpackage that holds the helpers."""

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
    of the helper and of those that it needs.
    """

    text: str
    public: list[str]
    imports: list[_Import]
    helpers: set[str]
    libraries: set[str]
    needed: list[_Import]
    origin: PartModule

    @property
    def part(self) -> str | None:
        """The part; None for a helper that goes where others import it."""
        return self.origin.part

    @property
    def is_extra(self) -> bool:
        return self.origin.is_extra


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """The helpers of a version: text and public names by module, and the missing names of those that are left out.

    Among the missing names, a helper starts with a dot. `lacking` has the names that the package could have, each with
    its part. `parts` are those of which there are helpers.
    """

    texts: Mapping[str, str]
    exports: Mapping[str, list[str]]
    left_out: Mapping[str, list[str]]
    lacking: Mapping[str, str]
    parts: frozenset[str]


def copy_helpers(
    protocol: int, roles: tuple[Role, ...], exports: Mapping[str, Collection[str]], parts: Collection[str]
) -> Helpers:
    """The helpers of `parts` for a protocol and `roles` that a package with `exports` can have.

    `exports` has the names by module, relative to the folder of the version (".types", "..errors"); of a module that
    has no public names, helpers may import any. A helper that imports a module of the runtime is not `left_out` if the
    package has no runtime: it is not for this package. Without a module `known`, the enumerations of `types` are the
    same. A helper of an extension is not `left_out` either where that is missing. The names of one that needs a library
    are not exported: the others must work without the library.
    """
    modules = {"known": ".types", **{module.rpartition(".")[2]: module for module in exports}}
    kept, left_out = _usable(_read(protocol, roles, frozenset(parts)), exports, modules)
    public = {name: helper for name, helper in kept.items() if helper.public and not helper.libraries}
    possible, _ = _usable(_read(protocol, roles, frozenset(all_parts())), exports, modules)
    return Helpers(
        texts={name: f"{HEADER}\n{_redirected(helper, modules)}" for name, helper in kept.items()},
        exports={f".{name}": public[name].public for name in sorted(public)},
        left_out=left_out,
        lacking={
            each: helper.part if helper.part not in parts else min(helper.origin.others - {*parts}, default=helper.part)
            for name, helper in possible.items()
            for each in helper.public
            if name not in kept and helper.part and not helper.libraries
        },
        parts=frozenset(helper.part for helper in kept.values() if helper.part),
    )


def parts_of_names(protocol: int, roles: tuple[Role, ...]) -> dict[str, str]:
    """The part of each name that helpers for a protocol and `roles` may have."""
    helpers = _read(protocol, roles, frozenset(all_parts())).values()
    return {name: helper.part for helper in helpers if helper.part for name in helper.public}


def _usable(
    found: Mapping[str, _Helper], exports: Mapping[str, Collection[str]], modules: Mapping[str, str]
) -> tuple[dict[str, _Helper], dict[str, list[str]]]:
    """The helpers that the package can have, and the missing names of the others that are for it.

    One that is private, or of no part, is there if another one imports it.
    """
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
        elif helper.part and not (helper.libraries or helper.is_extra):
            left_out[name] = sorted({*missing})
    public = {name for name, helper in kept.items() if helper.public and helper.part}
    used = public.union(*(kept[name].helpers for name in public))
    return {name: helper for name, helper in kept.items() if name in used}, left_out


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
def _read(protocol: int, roles: tuple[Role, ...], parts: frozenset[str]) -> dict[str, _Helper]:
    """The helpers of `parts` for a protocol and `roles`, and those of no part, by module."""
    chosen = [part for name in parts if (part := all_parts()[name]).is_helper]
    own = [each for part in chosen for each in part.modules_for(roles, [protocol], parts)]
    found = {each.name: _parse(each) for each in (*own, *shared_modules()) if each.fits(roles, [protocol])}
    return {name: _with_needed(found[name], found) for name in sorted(found)}


def _with_needed(helper: _Helper, helpers: Mapping[str, _Helper]) -> _Helper:
    """The helper with what the helpers import that it imports from."""
    inner = [_with_needed(helpers[name], helpers) for name in helper.helpers & helpers.keys()]
    return replace(
        helper,
        helpers=helper.helpers.union(*(each.helpers for each in inner)),
        libraries=helper.libraries.union(*(each.libraries for each in inner)),
        needed=[*helper.imports, *(needed for each in inner for needed in each.needed)],
    )


@cache
def _parse(source: PartModule) -> _Helper:
    text = source.path.read_text(encoding="utf-8")
    helper = _Helper(text=text, public=[], imports=[], helpers=set(), libraries=set(), needed=[], origin=source)
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
