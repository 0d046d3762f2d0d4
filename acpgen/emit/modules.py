"""Emit the modules of one version of the protocol: types, codec, methods and roles."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Literal

from jinja2 import Environment

from acpgen.emit.codec import codec_view
from acpgen.emit.fields import TYPES
from acpgen.emit.methods import TableView
from acpgen.emit.protocol import ProtocolView
from acpgen.emit.roles import RoleView
from acpgen.emit.runtime import copied, make_environment
from acpgen.emit.source import Code, docstring, enclosed, hint, identifier, listed, literal
from acpgen.emit.types import alias_target, render_types
from acpgen.ir.model import Enum, Model
from acpgen.ir.opened import as_written
from acpgen.roles import Role, Side

_PUBLIC = re.compile(r"^(?:def |class )?([A-Za-z]\w*)(?=\(|: TypeAlias)", re.MULTILINE)
"""Finds the public names that a module defines."""
_RECORDS = ("Gate", "Method", "Part", "methods")
"""The names of `protocol` that `methods.py` may use."""
_BASE_NAMES = ("UNSET", "Bounds", "Struct", "UnsetType", "made", "new")


def version_modules(model: Model, roles: tuple[Role, ...], *, up: Literal[".", ".."]) -> dict[str, str]:
    """The modules by file name. `up` is the package of the runtime, relative to them."""
    environment = make_environment(up)
    return {
        "types.py": _types(environment, model),
        "codec.py": _codec(environment, model),
        "methods.py": _methods(environment, model, roles),
        **{f"{role.value}.py": _role(environment, RoleView(role.record, model)) for role in roles},
        **({"known.py": _known(environment, model)} if known_exports(model) else {}),
    }


def version_exports(model: Model, roles: tuple[Role, ...]) -> dict[str, list[str]]:
    """The public names of these modules, by module."""
    records = [role.record for role in roles]
    return {
        **{f".{role.name}": [role.base, *(side.stub for side in role.called)] for role in records},
        ".codec": ["decode", "encode"],
        ".methods": [*(side.methods for side in Side), "PROTOCOL_VERSION"],
        ".types": [definition.name for definition in model.definitions],
    }


def known_exports(model: Model) -> dict[str, list[str]]:
    """The names in the module of enumerations as the schema writes them; a package that opens none lacks the module.

    The package does not import them: they have the names of `types`.
    """
    enums = [each for each in model.definitions if isinstance(each, Enum)]
    return {".known": [each.name for each in enums]} if any(each.opened for each in enums) else {}


def _known(environment: Environment, model: Model) -> str:
    """Users annotate with these what they send, so that a type checker finds a typing error."""
    enums = [each for each in model.definitions if isinstance(each, Enum)]
    text = "Annotate with them what you send: those of `types` accept what later releases may send, too."
    return environment.get_template("known.py.jinja").render(
        module_doc=docstring(f"The enumerations as the schema writes them.\n\n{text}", 0),
        types=listed(identifier(each.name) for each in sorted(enums, key=lambda each: each.name) if not each.opened),
        exported=enclosed("__all__ = [", sorted(literal(each.name) for each in enums), "]", indent=0),
        enums=[_closed(each) for each in enums if each.opened],
    )


def _closed(enum: Enum) -> Code:
    (choice,) = alias_target(as_written(enum))
    return Code(f"{identifier(enum.name)}: TypeAlias = {hint(choice)}")


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


def _methods(environment: Environment, model: Model, roles: tuple[Role, ...]) -> str:
    tables = [TableView(side, model, [role.record for role in roles]) for side in Side]
    text = "\n".join(record for table in tables for record in table.records)
    words = set(re.findall(r"\w+", text))
    return environment.get_template("methods.py.jinja").render(
        protocol=ProtocolView(model),
        tables=tables,
        readers=listed(sorted({reader for table in tables for reader in table.readers})),
        records=listed(Code(name) for name in _RECORDS if name in words or name in ("Method", "methods")),
        dispatch=Code("Codec, negotiated" if "negotiated" in words else "Codec"),
        uses_any="Any" in words,
        types=Code(", types" if TYPES in text else ""),
    )
