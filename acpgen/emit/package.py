"""Emit the files of a package from the models of its versions, not yet formatted.

A package of one version is one folder. One of several versions has the runtime once, and a subpackage for each version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jinja2 import Environment

from acpgen.diagnostics import Diagnostic, Severity
from acpgen.emit.aliases import usable
from acpgen.emit.data_tables import PropertyTable, chain_forms, merged_sessions, secret_places
from acpgen.emit.errors import ErrorsView, merged_errors
from acpgen.emit.helpers import FOLDER, Helpers, copy_helpers
from acpgen.emit.imports import entry_lines, imported, name_lines
from acpgen.emit.modules import common_methods, known_exports, origin_text, version_exports, version_modules
from acpgen.emit.runtime import copied_files, copied_modules, dotted, make_environment, names_of_parts, rendered
from acpgen.emit.source import Code, docstring, literal
from acpgen.emit.versions import VersionsView, check_together, folder
from acpgen.ir import model as ir
from acpgen.parts import all_parts, default_parts, with_needed
from acpgen.roles import Role
from acpgen.runtime_modules import place
from acpgen.text import MOST_NAMED, some_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package: its files (relative path to text), and the former names that it keeps as aliases.

    In a package of several versions, a name of a version starts with its subpackage ("v1.Agent"). `notes` name the
    helpers that are left out.
    """

    files: Mapping[str, str]
    renames: Mapping[str, str]
    notes: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """A folder of a package: its prefix in paths, the models behind it, its modules, and what `__init__` imports.

    `subpackages` are imported when they are first used.
    """

    path: str = ""
    models: Sequence[ir.Model]
    modules: Mapping[str, str]
    exports: Mapping[str, list[str]]
    subpackages: Sequence[Code] = ()
    helpers: Helpers | None = None


def emit(
    models: Sequence[ir.Model],
    roles: tuple[Role, ...],
    *,
    runtime: bool = True,
    parts: Iterable[str] = (),
    renames: Iterable[tuple[str, str]] = (),
) -> Package:
    """The package for `roles`, not yet formatted.

    `runtime` adds the modules that speak JSON-RPC, and `parts` those that a project has named. `renames` has pairs of a
    former name and the present one. Raises `InputError` for a former name that the package defines itself, for versions
    that cannot be in one package, and for a part that needs the runtime, or facts that the schema lacks.
    """
    renames = tuple(renames)
    environment = make_environment(".")
    files, kept, notes = {"py.typed": ""}, dict[str, str](), list[Diagnostic]()
    named = {*parts}
    parts = with_needed(named, roles, [model.protocol for model in models])
    empty = {name for name in named - {*default_parts(roles)} if all_parts()[name].is_helper}
    for each in _folders(environment, models, roles, runtime=runtime, parts=parts):
        aliases = usable(renames, {**each.exports, **{f".{name}": () for name in each.subpackages}})
        public = [name for exported in each.exports.values() for name in exported] + list(each.subpackages)
        prefix = each.path.replace("/", ".")
        files |= {f"{each.path}{name}": text for name, text in each.modules.items()}
        files[f"{each.path}__init__.py"] = _init(each, roles, public=public, renames=aliases)
        kept |= {prefix + old: prefix + new for old, new in aliases.items()}
        if each.helpers:
            files |= _helper_files(each.helpers, each.path)
            notes += _note_left_out(f"{each.path}{FOLDER}", each.helpers.left_out)
            empty -= each.helpers.parts
    notes += map(_warn_of_empty, sorted(empty))
    return Package(files=files, renames=kept, notes=tuple(notes))


def _helper_files(helpers: Helpers, path: str) -> dict[str, str]:
    """The subpackage with the helpers of a version. `path` is the folder of the version.

    Without helpers, it tells which part has those that are missing.
    """
    if not (helpers.texts or helpers.lacking):
        return {}
    modules = {name: module.lstrip(".") for module, names in helpers.exports.items() for name in names}
    environment = make_environment(".." if path else ".")
    init = environment.get_template("helpers.py.jinja").render(
        imports=[Code(each.replace("\n", "\n    ")) for each in _imports(helpers.exports)],
        exported=name_lines(modules, literal),
        modules=entry_lines((literal(name), literal(module)) for name, module in modules.items()),
        lacking=entry_lines((literal(name), literal(part)) for name, part in helpers.lacking.items()),
    )
    files = {"__init__": init, **helpers.texts}
    return {f"{path}{FOLDER}/{name}.py": text for name, text in files.items()}


def _warn_of_empty(part: str) -> Diagnostic:
    message = f"the package has nothing of the part {part!r}: it lacks what the helpers of the part import"
    hint = "`acpgen build --verbose` names what the schema lacks; without a runtime, most helpers are left out"
    return Diagnostic(code="part-empty", severity=Severity.WARNING, message=message, hint=hint)


def _note_left_out(folder: str, left_out: Mapping[str, list[str]]) -> list[Diagnostic]:
    missing = {name for names in left_out.values() for name in names}
    lacks = {
        "the schema has no ": sorted(name for name in missing if not name.startswith(".")),
        "for this protocol there is no helper ": sorted(name[1:] for name in missing if name.startswith(".")),
    }
    reasons = ", and ".join(reason + some_of(names, MOST_NAMED) for reason, names in lacks.items() if names)
    message = f"{folder} is without {', '.join(left_out)}: {reasons}"
    return [Diagnostic(code="helper-left-out", severity=Severity.NOTE, message=message)] if left_out else []


def _folders(
    environment: Environment,
    models: Sequence[ir.Model],
    roles: tuple[Role, ...],
    *,
    runtime: bool,
    parts: Collection[str],
) -> list[_Folder]:
    check_together(models)
    errors = merged_errors(models)
    kept = [each for each in parts if not all_parts()[each].is_helper]
    copies = copied_modules(roles, runtime=runtime, has_several=len(models) > 1, parts=kept)
    versions = VersionsView(models, roles if runtime else ())
    modules = {**copied_files(copies), **_data(copies, models)}
    modules["errors.py"] = environment.get_template("errors.py.jinja").render(errors=ErrorsView(errors, models))
    public = {f".{dotted(place(module))}": names for module, names in copies.items() if names}
    exports = {".errors": _error_names(errors), **public}
    if len(models) == 1:
        modules |= version_modules(models[0], roles, up=".", versions=versions)
        follows = {".errors": _error_names(errors), **version_exports(models[0], roles)}
        exports |= follows
        return [
            _Folder(
                models=models,
                modules=modules,
                exports=exports,
                helpers=copy_helpers(
                    models[0].protocol, roles, _private(modules, ".") | _for_helpers(follows, models[0]), parts
                ),
            )
        ]
    modules["methods.py"] = common_methods(versions)
    root = _Folder(models=models, modules=modules, exports=exports, subpackages=list(map(folder, models)))
    return [root, *(_version_folder(model, roles, root, errors=errors, parts=parts) for model in models)]


def _data(copies: Iterable[str], models: Sequence[ir.Model]) -> dict[str, str]:
    """The modules that are data, beside the only one that reads them."""
    files = dict[str, str]()
    if "chain" in copies:
        files |= rendered("forms", forms=chain_forms())
    if "secrets" in copies:
        files |= rendered("secrets", secrets=secret_places())
    if "schema_details" in copies:
        files |= rendered("properties", tables=list(map(PropertyTable, models)))
    if "sessions" in copies:
        files |= rendered("sessions", sessions=merged_sessions(models))
    return files


def _version_folder(
    model: ir.Model, roles: tuple[Role, ...], root: _Folder, *, errors: ir.Errors, parts: Collection[str]
) -> _Folder:
    """The subpackage of a version. `root` is the package, `errors` are its errors, and `parts` its parts."""
    codes = {each.code for each in model.errors.codes}
    known = ir.Errors(object=None, codes=tuple(each for each in errors.codes if each.code in codes))
    above = {f".{module}": names for module, names in root.exports.items()}
    # those of the runtime, too: to go from a package of one version to this one changes the imports only
    follows = {"..errors": _error_names(known), **version_exports(model, roles)}
    exports = {**above, **follows}
    return _Folder(
        path=f"{folder(model)}/",
        models=[model],
        modules=version_modules(model, roles, up=".."),
        exports=exports,
        helpers=copy_helpers(model.protocol, roles, _private(root.modules, "..") | _for_helpers(follows, model), parts),
    )


def _for_helpers(follows: Mapping[str, list[str]], model: ir.Model) -> dict[str, list[str]]:
    """The names by module that helpers may import: those that are public, and data for them alone."""
    return {**follows, **known_exports(model), ".methods": [*follows[".methods"], "GATED_VALUES"]}


def _private(modules: Iterable[str], up: str) -> dict[str, list[str]]:
    """All modules of a package, as if they had no public names."""
    return {f"{up}{dotted(name)}": [] for name in modules}


def _error_names(errors: ir.Errors) -> list[str]:
    return ["RequestError", *(code.name for code in errors.codes)]


def _imports(exports: Mapping[str, list[str]]) -> list[Code]:
    return [imported(module, names) for module, names in sorted(exports.items())]


def _init(each: _Folder, roles: tuple[Role, ...], *, public: list[str], renames: Mapping[str, str]) -> str:
    who = " and ".join(f"write {role.record.noun}" for role in roles)
    versions = " and ".join(str(model.protocol) for model in each.models)
    protocol = f"The Agent Client Protocol, version{'s' if each.subpackages else ''} {versions}"
    origins = "\n\n".join(map(origin_text, each.models))
    return (
        make_environment(".." if each.path else ".")
        .get_template("__init__.py.jinja")
        .render(
            module_doc=docstring(f"{protocol}: everything needed to {who}.\n\n{origins}", 0),
            imports=_imports(each.exports),
            exported=name_lines(public, literal),
            subpackages=each.subpackages,
            renames=sorted(renames.items()),
            lacking=[(name, part) for name, part in names_of_parts(roles).items() if name not in public],
        )
    )
