"""Emit the modules of one version of the protocol: types, codec, methods and roles."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Literal

from jinja2 import Environment

from acpgen.emit.codec import codec_view
from acpgen.emit.protocol import ProtocolView
from acpgen.emit.roles import RoleView
from acpgen.emit.runtime import copied, make_environment
from acpgen.emit.source import Code, docstring, identifier, listed
from acpgen.emit.types import render_types
from acpgen.ir.model import Model, Role

_PUBLIC = re.compile(r"^(?:def |class )?([A-Za-z]\w*)(?=\(|: TypeAlias)", re.MULTILINE)
"""Finds the public names that a module defines."""
_BASE_NAMES = ("UNSET", "Bounds", "Struct", "UnsetType", "made", "new")


def version_modules(model: Model, roles: tuple[Role, ...], *, up: Literal[".", ".."]) -> dict[str, str]:
    """The modules by file name. `up` is the package of the runtime, relative to them."""
    environment = make_environment(up)
    return {
        "types.py": _types(environment, model),
        "codec.py": _codec(environment, model),
        "methods.py": _methods(environment, model),
        **{f"{role.value}.py": _role(environment, RoleView(role, model)) for role in roles},
    }


def version_exports(model: Model, roles: tuple[Role, ...]) -> dict[str, list[str]]:
    """The public names of these modules, by module."""
    views = {role: RoleView(role, model) for role in roles}
    return {
        **{f".{role.value}": [view.base, view.stub] for role, view in views.items()},
        ".codec": ["decode", "encode"],
        ".methods": ["AGENT_METHODS", "CLIENT_METHODS", "PROTOCOL_VERSION"],
        ".types": [definition.name for definition in model.definitions],
    }


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
        module_doc=docstring(f"{title}\n\n{origin_text(model)}\n\n{text}", 0),
        body=rendered.body,
        typing_names=listed(rendered.typing_names),
        base_names=listed(name for name in used if name in _BASE_NAMES),
        uses_builtins="builtins" in used,
    )


def origin_text(model: Model) -> str:
    """The origin of a version, for docstrings."""
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
