"""The runtime modules, copied unchanged into every package, and the Jinja environment.

The folder of a module in `templates/runtime/` decides where a package has it: see `place` in `runtime_modules`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acpgen.diagnostics import input_error, internal_error
from acpgen.emit.conversions import decoder, encoder
from acpgen.emit.source import Code, docstring, hint, identifier, literal
from acpgen.parts import all_parts
from acpgen.roles import Role
from acpgen.runtime_modules import exported_names, place, runtime_folder, runtime_sources, runtime_text, with_imported
from acpgen.schema.data import data_folder
from acpgen.text import MARKER

HEADER = Code(f"{MARKER}\n# Change the schema or the options instead, and run `acpgen build` again.")
"""The same in every file and for every version: an upgrade changes no file for its header."""


def only_code(value: Any) -> str:
    """Return `value` if it is `Code`: text that did not pass `source` must not reach a generated file."""
    if not isinstance(value, Code):
        raise internal_error(f"a template prints {value!r}, which is not Code")
    return value


def template_environment(folders: Sequence[Path], finalize: Callable[[Any], Any], *, escapes: bool) -> Environment:
    """An environment in which a missing value is an error; `finalize` sees all values, and `escapes` is for HTML."""
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=escapes,
    )


@cache  # to compile the templates takes longer than to render them
def make_environment(up: Literal[".", ".."]) -> Environment:
    """The environment of the templates. The filters make `Code` of values.

    All templates have `header`; `up`, the package with the runtime, relative to the module; and `runtime`, which gives
    the place of a module of the runtime for an import.
    """
    environment = template_environment([data_folder() / "templates"], only_code, escapes=False)
    environment.globals["header"] = HEADER
    environment.globals["up"] = Code(up)
    environment.globals["runtime"] = lambda module: Code(f"{up}{dotted(place(module))}")
    environment.filters.update(identifier=identifier, literal=literal, docstring=docstring, hint=hint)
    environment.filters.update(decoder=decoder, encoder=encoder)
    return environment


_DISPATCH = ("_decode", "_lenient", "decision", "dispatch")
"""What the modules of every package begin with: what generated code imports."""

_CONNECTION = ("advertising", "closed_gates", "connection", "stream_transport")
"""What the modules that speak JSON-RPC begin with. Those that only a role needs are in its record."""

_SEVERAL = ("selection",)
"""That of a package of several versions of the protocol."""


def copied_modules(
    roles: tuple[Role, ...], *, runtime: bool, has_several: bool = False, parts: Collection[str] = frozenset()
) -> dict[str, list[str]]:
    """The modules for `roles`, each with its public names; without `runtime`, only those for dispatch.

    With `has_several`, the package has several versions. Those of `parts` bring what they import. Raises `InputError`
    for a part that needs the runtime, where there is none.
    """
    roots = [*_DISPATCH]
    if runtime:
        roots += [*_CONNECTION, *(_SEVERAL if has_several else ()), *(role.record.starts for role in roles)]
    modules = {module: exported_names(module) for module in with_imported(roots)}
    for part in sorted(parts):
        own = [each.name for each in all_parts()[part].modules_for(roles, ())]
        added = with_imported(own, modules)
        if not runtime and not added.isdisjoint(with_imported(_CONNECTION)):
            message = f"the part {part!r} needs --runtime, which is off"
            raise input_error("usage", message, hint="use --runtime, or leave the part out")
        modules |= {module: exported_names(module) if module in own else () for module in added}
    return {module: list(names) for module, names in sorted(modules.items())}


def names_of_parts(roles: tuple[Role, ...]) -> dict[str, str]:
    """The part of each name in `__init__` that only a part of the runtime has."""
    parts = [part for part in all_parts().values() if not part.is_helper]
    modules = [(part, module.name) for part in parts for module in part.modules_for(roles, ())]
    return {name: part.name for part, module in modules for name in exported_names(module)}


# --- Files ------------------------------------------------------------------------------------------------------------


def dotted(path: str) -> str:
    """The path of a module, as in an import."""
    return path.removesuffix(".py").replace("/", ".")


def copied(module: str) -> str:
    """The text of a module."""
    return f"{HEADER}\n{runtime_text(module)}"


def copied_files(modules: Iterable[str]) -> dict[str, str]:
    """The files of modules, by their paths in the package, with those that make their folders packages.

    Modules that are data are `rendered`.
    """
    files = {f"{place(module)}.py": copied(module) for module in modules if runtime_sources()[module].suffix == ".py"}
    above = {folder for path in files for folder in PurePosixPath(path).parents if folder.parts}
    inits = {folder: runtime_folder().joinpath(*folder.parts[1:], "__init__.py") for folder in above}
    texts = {f"{folder}/__init__.py": source.read_text(encoding="utf-8") for folder, source in inits.items()}
    return files | {path: f"{HEADER}\n{text}" for path, text in texts.items()}


def rendered(module: str, **values: object) -> dict[str, str]:
    """The file of a module of the runtime that is data, from its template."""
    name = runtime_sources()[module].relative_to(data_folder() / "templates").as_posix()
    return {f"{place(module)}.py": make_environment(".").get_template(name).render(**values)}
