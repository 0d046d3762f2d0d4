"""Emit the modules of one version of the protocol: types, codec, methods and roles."""

from __future__ import annotations

import re
from typing import Literal

from jinja2 import Environment

from acpgen.emit.codec_modules import codec_body, used_directions
from acpgen.emit.details import DetailsView
from acpgen.emit.gated_value_tables import gated_value_records
from acpgen.emit.imports import imported, isort_key, names_of_import, standard_imports, used
from acpgen.emit.method_tables import TableView
from acpgen.emit.needs import with_needs
from acpgen.emit.role_classes import RoleView
from acpgen.emit.runtime import copied, dotted, make_environment
from acpgen.emit.source import Code, assigned, docstring, enclosed, hint, identifier, listed, literal
from acpgen.emit.types import alias_target, render_types
from acpgen.emit.versions import RulesView, VersionsView
from acpgen.ir import model as ir
from acpgen.ir.opened import as_written
from acpgen.ir.order import types_in
from acpgen.roles import Role, Side
from acpgen.runtime_modules import place

_PUBLIC = re.compile(r"^(?:def |class )?([A-Za-z]\w*)(?=\(|: TypeAlias)", re.MULTILINE)
"""Finds the public names that a module defines."""
_STANDARD = {
    "collections.abc": ("Callable",),
    "functools": ("cache", "partial"),
    "re": ("findall",),
    "typing": ("Any", "Final", "TypeVar", "get_args", "overload"),
}
"""The names of the standard library that the codec may use, by module."""
_CODEC_DOC = """Decode and encode the types of `types`: JSON values, as `json.loads` makes them, to classes and back.

Decoding is strict, except where the schema says to be lenient: there a value that does not fit is left out, and
`decode` reports it to `on_drop`. A `DecodeError` says where, what was expected, and what was found.

Here are the functions for what is received and for what is sent. `decode` and `encode` accept all types: those for the
unused direction are made by `reflection`. Common valid values are read inline; functions of `_decode` and `_lenient`
handle the rest.
"""
_BASE_NAMES = ("UNSET", "Bounds", "Struct", "UnsetType", "made", "new")
_TYPING_NAMES = ("Annotated", "Any", "Literal", "TypeAlias", "cast")


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
    body = render_types(with_needs(model), environment)
    found = used(body, (*_BASE_NAMES, *_TYPING_NAMES, "builtins"))
    title = f"The types of the Agent Client Protocol, version {model.protocol}."
    order = "The messages come in the order of a conversation, each with what it consists of. " if model.methods else ""
    text = (
        f"{order}An attribute that is `UNSET` is absent from the JSON object; `None` is JSON null. "
        "Constructors take keywords only."
    )
    return environment.get_template("types/module.jinja").render(
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
    found = used(body, {name for names in [*_STANDARD.values(), *sources.values()] for name in names})
    modules = {module: [name for name in found if name in names] for module, names in {**_STANDARD, **sources}.items()}
    imports = [imported(each, modules[each]) for each in sources]
    return environment.get_template("codec.py.jinja").render(
        module_doc=docstring(_CODEC_DOC, 0),
        standard=[Code(f"from {each} import {listed(modules[each])}") for each in _STANDARD if modules[each]],
        imports=imports,
        is_marked=any("\n" in statement for statement in imports),
        body=body,
    )


def _methods(environment: Environment, model: ir.Model, roles: tuple[Role, ...], versions: VersionsView | None) -> str:
    tables = [TableView(side, model, [role.record for role in roles]) for side in Side]
    views = [view for table in tables for view in table.views]
    parts = [found for view in views for part in view.parts for found in types_in(part)]
    gated = gated_value_records(model, [role.record for role in roles])
    uses_gates = bool(gated) or any(view.is_gated for view in views)
    records = [*(["Gate"] if uses_gates else []), "GatedValues", "Method", *(["Payload"] if views else []), "methods"]
    standard = {"collections.abc": {"Mapping"}, "typing": {"Final", *(["Any"] if ir.AnyJson() in parts else [])}}
    if versions is not None:
        records = sorted([*records, *versions.record_names], key=isort_key)
        standard = {module: names | versions.standard_names[module] for module, names in standard.items()}
    return environment.get_template("methods/module.jinja").render(
        protocol=RulesView(model),
        versions=versions,
        standard=standard_imports(standard),
        tables=tables,
        gated_values=gated,
        readers=listed(sorted({reader for view in views for reader in view.readers})),
        records=names_of_import("_runtime.records", records),
        dispatch=Code("Codec, negotiated" if any(view.negotiates for view in views) else "Codec"),
        types=Code(", types" if uses_gates or any(isinstance(part, ir.Ref) for part in parts) else ""),
    )
