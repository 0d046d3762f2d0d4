"""Emit the modules of one version of the protocol: types, codec, methods and roles."""

from __future__ import annotations

import re
from typing import Literal

from jinja2 import Environment

from acpgen.emit.codec_modules import codec_body, used_directions
from acpgen.emit.details import DetailsView
from acpgen.emit.imports import STANDARD_NAMES, imported, names_of_import, standard_imports, used
from acpgen.emit.method_tables import TableView, gated_value_records
from acpgen.emit.needs import with_needs
from acpgen.emit.role_classes import RoleView
from acpgen.emit.runtime import copied, dotted, make_environment
from acpgen.emit.source import Code, assigned, docstring, enclosed, hint, identifier, listed, literal
from acpgen.emit.types import alias_target, render_types
from acpgen.emit.versions import VersionsView
from acpgen.ir import model as ir
from acpgen.ir.opened import as_written
from acpgen.roles import Role, Side
from acpgen.runtime_modules import place

_PUBLIC = re.compile(r"^(?:def |class )?([A-Za-z]\w*)(?=\(|: TypeAlias)", re.MULTILINE)
"""Finds the public names that a module defines."""
_CODEC_DOC = """Decode and encode the types of `types`: JSON values, as `json.loads` makes them, to classes and back.

Decoding is strict, except where the schema says to be lenient: there a value that does not fit is left out, and
`decode` reports it to `on_drop`. A `DecodeError` says where, what was expected, and what was found.

Here are the functions for what is received and for what is sent. `decode` and `encode` accept all types: those for the
unused direction are made by `reflection`. Common valid values are read inline; functions of `_decode` and `_lenient`
handle the rest.
"""
_BASE_NAMES = ("UNSET", "Bounds", "Struct", "UnsetType", "made", "new")
_TYPING_NAMES = ("Annotated", "Any", "Literal", "TypeAlias", "cast")
_DISPATCH_NAMES = ("Codec", "negotiated")
_RECORDS = (
    *("Cancellation", "Gate", "GatedValues", "Introduction", "Method", "Negotiation", "Payload", "ProtocolInfo"),
    *("Unsupported", "methods"),
)
"""The names of the runtime that modules of methods may use."""


def version_modules(
    model: ir.Model, roles: tuple[Role, ...], *, up: Literal[".", ".."], versions: VersionsView | None = None
) -> dict[str, str]:
    """The modules by file name. `up` is the package of the runtime, relative to them.

    A package of one version has `versions` among the methods.
    """
    environment = make_environment(up)
    return {
        "types.py": _types(environment, model),
        **_codec(environment, model, roles, up=up),
        "methods.py": _methods(environment, model, roles, versions),
        **{f"{role.value}.py": _role(environment, RoleView(role.record, model)) for role in roles},
        **({"known.py": _known(environment, model)} if known_exports(model) else {}),
    }


def version_exports(model: ir.Model, roles: tuple[Role, ...]) -> dict[str, list[str]]:
    """The public names of these modules, by module."""
    records = [role.record for role in roles]
    return {
        **{f".{role.name}": [role.base, *(side.stub for side in role.called)] for role in records},
        ".codec": ["decode", "encode"],
        ".methods": [*(side.methods for side in Side), "PROTOCOL_VERSION"],
        ".types": [definition.name for definition in model.definitions],
    }


def known_exports(model: ir.Model) -> dict[str, list[str]]:
    """The names in the module of enumerations as the schema writes them; a package that opens none lacks the module.

    The package does not import them: they have the names of `types`.
    """
    enums = [each for each in model.definitions if isinstance(each, ir.Enum)]
    return {".known": [each.name for each in enums]} if any(each.opened for each in enums) else {}


def _known(environment: Environment, model: ir.Model) -> str:
    """Users annotate with these what they send, so that a type checker finds a typing error."""
    enums = [each for each in model.definitions if isinstance(each, ir.Enum)]
    text = "Annotate with them what you send: those of `types` accept what later releases may send, too."
    return environment.get_template("known.py.jinja").render(
        module_doc=docstring(f"The enumerations as the schema writes them.\n\n{text}", 0),
        types=listed(identifier(each.name) for each in sorted(enums, key=lambda each: each.name) if not each.opened),
        exported=enclosed("__all__ = [", sorted(literal(each.name) for each in enums), "]", indent=0),
        enums=[_closed(each) for each in enums if each.opened],
    )


def _closed(enum: ir.Enum) -> Code:
    (choice,) = alias_target(as_written(enum))
    return assigned(f"{identifier(enum.name)}: TypeAlias", hint(choice), indent=0)


def _role(environment: Environment, view: RoleView) -> str:
    return environment.get_template(f"{view.template}.py.jinja").render(role=view)


def _types(environment: Environment, model: ir.Model) -> str:
    body = render_types(with_needs(model))
    found = used(body, (*_BASE_NAMES, *_TYPING_NAMES, "builtins"))
    title = f"The types of the Agent Client Protocol, version {model.protocol}."
    order = "The messages come in the order of a conversation, each with what it consists of. " if model.methods else ""
    text = (
        f"{order}An attribute that is `UNSET` is absent from the JSON object; `None` is JSON null. "
        "Constructors take keywords only."
    )
    return environment.get_template("types.py.jinja").render(
        module_doc=docstring(f"{title}\n\n{origin_text(model)}\n\n{text}", 0),
        body=body,
        typing_names=listed(name for name in found if name in _TYPING_NAMES),
        base_names=listed(name for name in found if name in _BASE_NAMES),
        uses_builtins="builtins" in found,
    )


def origin_text(model: ir.Model) -> str:
    """The origin of a version, for docstrings."""
    extensions = f", with {'; '.join(model.extensions)}" if model.extensions else ""
    return f"From {model.origin}{extensions}."


def _codec(environment: Environment, model: ir.Model, roles: tuple[Role, ...], *, up: str) -> dict[str, str]:
    """The codec for `roles`, and the details of the types for which it has no functions."""
    received, sent = used_directions(model, [role.record for role in roles])
    body, details = codec_body(environment, model, received, sent), DetailsView(model, received, sent)
    return {
        "codec.py": _codec_module(environment, body, up=up),
        "_details.py": environment.get_template("details.py.jinja").render(details=details),
    }


def _codec_module(environment: Environment, body: Code, *, up: str) -> str:
    """The module with `body`, and imports of what that uses."""
    names = {"_base": _BASE_NAMES, **{each: _PUBLIC.findall(copied(each)) for each in ("_decode", "_lenient")}}
    sources = {f"{up}{dotted(place(module))}": found for module, found in names.items()}
    sources[f"{up}{dotted(place('decision'))}"] = ["explain"]
    found = used(body, {*STANDARD_NAMES, *(name for names in sources.values() for name in names)})
    imports = [imported(module, [name for name in found if name in names]) for module, names in sources.items()]
    return environment.get_template("codec.py.jinja").render(
        module_doc=docstring(_CODEC_DOC, 0),
        standard=standard_imports(found),
        imports=imports,
        is_marked=any("\n" in statement for statement in imports),
        body=body,
    )


def _methods(environment: Environment, model: ir.Model, roles: tuple[Role, ...], versions: VersionsView | None) -> str:
    records = [role.record for role in roles]
    tables = [TableView(side, model, records) for side in Side]
    body = environment.get_template("methods/body.jinja").render(
        model=model, versions=versions, tables=tables, gated_values=gated_value_records(model, records)
    )
    found = _used_by_methods(body, versions)
    return environment.get_template("methods/module.jinja").render(
        body=Code(body),
        standard=standard_imports(found),
        types=Code(", types" if "types" in found else ""),
        readers=listed(used(body, {name for table in tables for name in table.readers})),
        dispatch=listed(name for name in found if name in _DISPATCH_NAMES),
        records=names_of_import("_runtime.records", [name for name in found if name in _RECORDS]),
        versions=versions,
    )


def common_methods(versions: VersionsView) -> str:
    """`methods.py` of a package of several versions."""
    environment = make_environment(".")
    body = environment.get_template("methods/versions.jinja").render(versions=versions)
    found = _used_by_methods(body, versions)
    return environment.get_template("methods/root.jinja").render(
        body=Code(body),
        standard=standard_imports(found),
        records=listed(name for name in found if name in _RECORDS),
    )


def _used_by_methods(body: str, versions: VersionsView | None) -> list[Code]:
    """The names that a module of methods imports and uses, also in annotations that are strings."""
    quoted = versions.quoted if versions is not None else []
    return used("\n".join([body, *quoted]), {*STANDARD_NAMES, *_DISPATCH_NAMES, *_RECORDS, "types"})
