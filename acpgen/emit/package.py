"""Emit the files of a package from a model, not yet formatted."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from jinja2 import Environment

from acpgen.emit.aliases import usable
from acpgen.emit.codec import codec_view
from acpgen.emit.errors import ErrorsView
from acpgen.emit.protocol import ProtocolView
from acpgen.emit.roles import RoleView
from acpgen.emit.runtime import copied, copied_modules, make_environment
from acpgen.emit.source import LINE_LENGTH, Code, docstring, identifier, listed, literal
from acpgen.emit.types import render_types
from acpgen.ir.model import Model, Role

_PUBLIC = re.compile(r"^(?:def |class )?([A-Za-z]\w*)(?=\(|: TypeAlias)", re.MULTILINE)
"""Finds the public names that a module defines."""
_BASE_NAMES = ("UNSET", "Bounds", "Struct", "UnsetType", "made", "new")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package: its files (relative path to text), its public names, and the former names that it keeps as aliases."""

    files: Mapping[str, str]
    names: tuple[str, ...]
    renames: Mapping[str, str]


def emit(
    model: Model, roles: tuple[Role, ...], *, runtime: bool = True, renames: Iterable[tuple[str, str]] = ()
) -> Package:
    """The package for `roles`, not yet formatted.

    `runtime` adds the modules that speak JSON-RPC. `renames` has pairs of a former name and the present one. Raises
    `InputError` for a former name that the package defines itself.
    """
    modules = exports(model, roles, runtime=runtime)
    aliases = usable(renames, modules)
    environment = make_environment()
    protocol = {
        "types.py": _types(environment, model),
        "codec.py": _codec(environment, model),
        "errors.py": environment.get_template("errors.py.jinja").render(errors=ErrorsView(model)),
        "methods.py": _methods(environment, model),
        **{f"{role.value}.py": _role(environment, RoleView(role, model)) for role in roles},
    }
    shared = {f"{module}.py": copied(module) for module in copied_modules(roles, runtime=runtime)}
    start = _init(environment, model, roles, modules=modules, renames=aliases)
    names = tuple(sorted(name for names in modules.values() for name in names))
    return Package(files={**protocol, **shared, "__init__.py": start, "py.typed": ""}, names=names, renames=aliases)


def _role(environment: Environment, view: RoleView) -> str:
    return environment.get_template("role.py.jinja").render(role=view)


def _types(environment: Environment, model: Model) -> str:
    rendered = render_types(model)
    used = _used(rendered.body, (*_BASE_NAMES, "builtins"))
    title = f"The types of the Agent Client Protocol, version {model.protocol}."
    text = (
        "An attribute that is `UNSET` is absent from the JSON object; `None` is JSON null. "
        "Constructors take keywords only."
    )
    return environment.get_template("types.py.jinja").render(
        module_doc=docstring(f"{title}\n\n{_sources(model)}\n\n{text}", 0),
        body=rendered.body,
        typing_names=listed(rendered.typing_names),
        base_names=listed(name for name in used if name in _BASE_NAMES),
        uses_builtins="builtins" in used,
    )


def _sources(model: Model) -> str:
    extensions = f", with {'; '.join(model.extensions)}" if model.extensions else ""
    return f"From {model.origin}{extensions}."


def _codec(environment: Environment, model: Model) -> str:
    view = codec_view(model)
    definitions = environment.get_template("codec/definitions.jinja").render(codec=view)
    body = environment.get_template("codec/body.jinja").render(codec=view, definitions=Code(definitions.strip("\n")))
    readers = _PUBLIC.findall(copied("_decode"))
    used = _used(body, {*readers, *_BASE_NAMES, "types"})
    return environment.get_template("codec.py.jinja").render(
        body=Code(body),
        readers=[name for name in used if name in readers],
        base_names=listed(name for name in used if name in _BASE_NAMES),
        uses_types="types" in used,
    )


def _used(source: str, names: Collection[str]) -> list[Code]:
    """The `names` that the code in `source` uses, sorted as in an import."""
    found = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    return [identifier(name) for name in sorted(found.intersection(names), key=_isort_key)]


def _isort_key(name: str) -> tuple[int, str]:
    """The position of a name in an import: constants, classes, functions."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name


def _methods(environment: Environment, model: Model) -> str:
    roles = [RoleView(role, model) for role in Role]
    return environment.get_template("methods.py.jinja").render(protocol=ProtocolView(model), roles=roles)


def exports(model: Model, roles: tuple[Role, ...], *, runtime: bool) -> dict[str, list[str]]:
    """The public names of the package by module."""
    views = {role: RoleView(role, model) for role in roles}
    return {
        **{role.value: [view.base, view.stub] for role, view in views.items()},
        "codec": ["decode", "encode"],
        "errors": ["RequestError", *(code.name for code in model.errors.codes)],
        "methods": ["AGENT_METHODS", "CLIENT_METHODS", "PROTOCOL_VERSION"],
        "types": [definition.name for definition in model.definitions],
        **{module: names for module, names in copied_modules(roles, runtime=runtime).items() if names},
    }


def _import(module: str, names: list[str]) -> Code:
    """The statement that imports `names` from a module of the package."""
    start = f"from .{identifier(module)} import"
    line = f"{start} {', '.join(map(identifier, sorted(names)))}"
    if len(line) > LINE_LENGTH:
        line = "\n    ".join([f"{start} (", *_name_lines(names, identifier)]) + "\n)"
    return Code(line)


def _name_lines(names: list[str], print_name: Callable[[str], Code]) -> list[Code]:
    """The sorted names in lines. Each initial starts a new line, so that a new name changes few lines."""
    groups = [", ".join(map(print_name, group)) + "," for _, group in groupby(sorted(names), key=lambda name: name[0])]
    width = LINE_LENGTH - len("    ")
    return [Code(line) for group in groups for line in textwrap.wrap(group, width, break_long_words=False)]


def _init(
    environment: Environment,
    model: Model,
    roles: tuple[Role, ...],
    *,
    modules: Mapping[str, list[str]],
    renames: Mapping[str, str],
) -> str:
    who = " and ".join(f"write {'an agent' if role is Role.AGENT else 'a client'}" for role in roles)
    doc = f"The Agent Client Protocol, version {model.protocol}: everything needed to {who}.\n\n{_sources(model)}"
    return environment.get_template("__init__.py.jinja").render(
        module_doc=docstring(doc, 0),
        imports=[_import(module, names) for module, names in sorted(modules.items())],
        exported=_name_lines([name for names in modules.values() for name in names], literal),
        renames=sorted(renames.items()),
    )
