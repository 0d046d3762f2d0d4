"""The runtime modules, copied unchanged into every package, and the Jinja environment.

The folder of a module in `templates/runtime/` decides where a package has it: see `place`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from acpgen.diagnostics import input_error, internal_error
from acpgen.emit.conversions import decoder, encoder
from acpgen.emit.source import Code, docstring, hint, identifier, literal
from acpgen.parts import all_parts
from acpgen.roles import Role
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


_ROUTING: Mapping[str, tuple[str, ...]] = {
    "_base": ("UNSET", "Struct", "UnsetType"),
    "_decode": ("DecodeError",),
    "_lenient": ("Drop",),
    "decision": ("Decision", "decides"),
    "dispatch": ("ConnectionClosed", "Peer", "dispatch_notification", "dispatch_request"),
    "mistakes": (),
    "names": (),
    "peer_kind": ("PeerKind",),
    "places": (),
    "records": ("Gate", "Method"),
    "reflection": (),
}
"""The modules of every package, each with its public names."""

_CONNECTION: Mapping[str, tuple[str, ...]] = {
    "advertising": ("advertise",),
    "capabilities": (),
    "closed_gates": ("CapabilityError",),
    "connection": ("Connection",),
    "endpoint": (),
    "in_flight": (),
    "log": (),
    "message": ("Message", "MessageTooLarge", "Unreadable", "Unsendable"),
    "options": ("ConnectionOptions",),
    "peer_kind": ("PeerKind", "current_peer_kind"),
    "read_loop": (),
    "sent": (),
    "state": (),
    "stream_transport": ("StreamTransport",),
    "tasks": ("BlockingStub", "blocking"),
    "transport": ("ByteTransport", "MemoryTransport", "Transport", "Wire", "memory_transports"),
}
"""The modules that speak JSON-RPC."""


_SEVERAL: Mapping[str, tuple[str, ...]] = {"selection": ()}
"""Those of a package of several versions of the protocol."""


def copied_modules(
    roles: tuple[Role, ...], *, runtime: bool, has_several: bool = False, parts: Collection[str] = frozenset()
) -> dict[str, list[str]]:
    """The modules for `roles`, each with its public names; without `runtime`, only those for dispatch.

    With `has_several`, the package has several versions. Those of `parts` bring what they import. Raises `InputError`
    for a part that needs the runtime, where there is none.
    """
    modules = {**_ROUTING, **_CONNECTION, **(_SEVERAL if has_several else {})} if runtime else dict(_ROUTING)
    for role in roles if runtime else ():
        modules |= role.record.runtime
    for part in sorted(parts):
        own = [each.name for each in all_parts()[part].modules_for(roles, ())]
        added = _with_imported(own, modules)
        if not runtime and not added.isdisjoint(_CONNECTION):
            message = f"the part {part!r} needs --runtime, which is off"
            raise input_error("usage", message, hint="use --runtime, or leave the part out")
        modules |= {module: _exported(module) if module in own else () for module in added}
    return {module: list(names) for module, names in modules.items()}


def names_of_parts(roles: tuple[Role, ...]) -> dict[str, str]:
    """The part of each name in `__init__` that only a part of the runtime has."""
    parts = [part for part in all_parts().values() if not part.is_helper]
    modules = [(part, module.name) for part in parts for module in part.modules_for(roles, ())]
    return {name: part.name for part, module in modules for name in _exported(module)}


def _with_imported(modules: Iterable[str], present: Collection[str]) -> set[str]:
    """The modules, and those that they import which are not `present`."""
    found, rest = set[str](), list(modules)
    while rest:
        module = rest.pop()
        if module in present or module in found or module not in _sources():
            continue
        found.add(module)
        rest += _IMPORT.findall(_sources()[module].read_text(encoding="utf-8"))
    return found


def _exported(module: str) -> tuple[str, ...]:
    """The names of a part's module in `__init__`: those in its `__all__`, unless users import the module itself."""
    found = _ALL.search(_sources()[module].read_text(encoding="utf-8")) if place(module) != module else None
    return tuple(_NAME.findall(found[1])) if found else ()


# --- Places ----------------------------------------------------------------------------------------------------------

_IMPORT = re.compile(r"^ *from \.+(?:\w+\.)*(\w+) import ", re.MULTILINE)
_ALL = re.compile(r"^__all__ = \[([^\]]*)\]", re.MULTILINE)
_NAME = re.compile(r'"(\w+)"')
_RUNTIME = "_runtime"
"""The folder of a package with what is the same for every schema."""


@cache
def _sources() -> Mapping[str, Path]:
    """The source of each module of the runtime by its name, which is the only one in all folders."""
    paths = [path for suffix in (".py", ".py.jinja") for path in _folder().glob(f"*/**/*{suffix}")]
    found = [path for path in paths if path.name != "__init__.py"]
    sources = {path.name.partition(".")[0]: path for path in found}
    assert len(sources) == len(found), "two modules of the runtime have one name"
    return sources


def _folder() -> Path:
    return data_folder() / "templates" / "runtime"


def place(module: str) -> str:
    """The path of a module in a package, without its suffix; that of one that is not of the runtime is its name.

    A folder of sources with an `__init__.py` is a folder in `_runtime/`. Of the others, those of a part have modules
    that users import by their names, at the top of the package; those of layers lie together in `_runtime/` itself.
    """
    source = _sources().get(module)
    if source is None:
        return module
    home = _folder() / source.relative_to(_folder()).parts[0]
    if (home / "__init__.py").exists():
        return f"{_RUNTIME}/{home.name}/{module}"
    return module if home.name in all_parts() else f"{_RUNTIME}/{module}"


def dotted(path: str) -> str:
    """The path of a module, as in an import."""
    return path.removesuffix(".py").replace("/", ".")


def copied(module: str) -> str:
    """The text of a module."""
    return _with_header(_sources()[module])


def _with_header(source: Path) -> str:
    return f"{HEADER}\n{source.read_text(encoding='utf-8')}"


def copied_files(modules: Iterable[str]) -> dict[str, str]:
    """The files of modules, by their paths in the package, with those that make their folders packages.

    Modules that are data are `rendered`.
    """
    files = {f"{place(module)}.py": copied(module) for module in modules if _sources()[module].suffix == ".py"}
    above = {folder for path in files for folder in PurePosixPath(path).parents if folder.parts}
    inits = {folder: _folder().joinpath(*folder.parts[1:], "__init__.py") for folder in above}
    return files | {f"{folder}/__init__.py": _with_header(source) for folder, source in inits.items()}


def rendered(module: str, **values: object) -> dict[str, str]:
    """The file of a module of the runtime that is data, from its template."""
    name = _sources()[module].relative_to(data_folder() / "templates").as_posix()
    return {f"{place(module)}.py": make_environment(".").get_template(name).render(**values)}
