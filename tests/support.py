"""What the tests share: where things are, what may be missing, and packages built once and imported."""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import Diagnostic, Severity
from acpgen.emit.package import emit
from acpgen.emit.runtime import dotted
from acpgen.ir.model import Model, Options
from acpgen.parts import all_parts
from acpgen.pipeline import compile_protocol
from acpgen.roles import Role, RoleChoice
from acpgen.runtime_modules import place
from acpgen.schema.bundled import Release, bundled_fragments, load_facts, load_release, locate_fragment
from acpgen.schema.compose import Composed
from acpgen.schema.fitting import FitResult, fit
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.sources.head import protocol_head
from acpgen.sources.inputs import load
from acpgen.text import digest
from tests import package_cache

REPOSITORY = Path(__file__).resolve().parent.parent
_LIBRARY = {*sys.stdlib_module_names, "annotationlib"}  # the latter from Python 3.14 on
DEEP = bool(os.environ.get("ACPGEN_DEEP"))
"""Whether tests shall try all that they can; otherwise they try a share that CI has time for."""


def deep_except(kept: Collection[str], cases: Mapping[str, Any]) -> list[Any]:
    """The cases as parameters by their ids: those in `kept` prove something each, the rest repeats it under `deep`."""
    if unknown := {*kept} - {*cases}:
        raise LookupError(f"no case is named {', '.join(sorted(unknown))}")
    return [pytest.param(case, id=name, marks=() if name in kept else pytest.mark.deep) for name, case in cases.items()]


def without_slowness(stderr: str) -> str:
    """What a program under `python -X dev` wrote to stderr, without asyncio's lines about steps that take long."""
    return re.sub(r"^(?:WARNING: )?Executing <.*> took [\d.]+ seconds\n", "", stderr, flags=re.MULTILINE)


def protocol_of(schema: Path) -> int:
    """The protocol version of a published schema file, from its folder."""
    return int(schema.parts[-3].removeprefix("v"))


@cache
def fitting_fragments(release: Release) -> tuple[str, ...]:
    """The bundled extensions that apply to a release, each in its newest revision that does."""
    fragments = bundled_fragments(release.protocol)
    base, facts = load_release(release), load_facts(release)
    fits = [fit(base, fragment, protocol=release.protocol, facts=facts, others=fragments) for fragment in fragments]
    newest = {found.fragment.id: found.fragment.spec for found in fits if found.verdict is FitResult.APPLIES}
    return tuple(newest.values())


def bundled_fragment(spec: str, protocol: int) -> Fragment:
    """The bundled extension that a user means by `spec`."""
    path, label = locate_fragment(spec, protocol)
    return load_fragment(path, label=label)


def errors_of(composed: Composed) -> list[Diagnostic]:
    """The errors in a composed schema."""
    return [found for found in composed.diagnostics if found.severity is Severity.ERROR]


def model_of(sources: SchemaChoice, options: Options | None = None) -> tuple[Model, tuple[Diagnostic, ...]]:
    """The model that `sources` compile to, with what was said on the way."""
    compiled = compile_protocol(load(sources), options or Options())
    return compiled.model, compiled.diagnostics


def package_folder(
    *sources: SchemaChoice,
    roles: tuple[Role, ...] = RoleChoice.BOTH.roles,
    options: Options | None = None,
    remote: bool = False,
    parts: Collection[str] | None = None,
) -> Path:
    """A package in the cache on disk, of one or several versions, built if missing. Read it, and change nothing in it.

    It has `parts`, or all but `remote`, which is there if it is asked for. The files are those of the templates:
    unformatted, which means the same and takes half as long.
    """
    inputs = [load(each) for each in sources]
    chosen = every_part(roles, [each.protocol for each in sources]) if parts is None else {*parts}
    chosen |= {"remote"} if remote else set()

    def build() -> Mapping[str, str]:
        models = [compile_protocol(each, options or Options()).model for each in inputs]
        return emit(models, roles, parts=chosen).files

    known = [(each.schema.origin, protocol_head(each, remote=True)) for each in inputs]
    return package_cache.folder(repr((known, roles, options, sorted(chosen))), build)


def every_part(roles: tuple[Role, ...], protocols: Sequence[int]) -> set[str]:
    """All parts that a package for `roles` and `protocols` may have, but `remote`."""
    fitting = (part for part in all_parts().values() if {*part.roles} & {*roles} and part.name != "remote")
    wanted = ((part, part.protocols(roles)) for part in fitting)
    return {part.name for part, only in wanted if only is None or only & {*protocols}}


@cache
def package_files(
    sources: SchemaChoice,
    roles: tuple[Role, ...] = RoleChoice.BOTH.roles,
    options: Options | None = None,
    *,
    parts: Collection[str] | None = None,
) -> Mapping[str, str]:
    """The files of a package from the cache on disk, without helpers."""
    folder = package_folder(sources, roles=roles, options=options, parts=parts)
    paths = [path for path in (*folder.iterdir(), *folder.glob("_runtime/**/*.py")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(paths)}


def foreign_imports(module: ast.Module) -> list[str]:
    """The modules imported at run time that are neither of the package itself nor of the standard library."""
    for_checkers = {
        inner
        for node in ast.walk(module)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for part in node.body
        for inner in ast.walk(part)
    }
    found: list[str] = []
    for node in ast.walk(module):
        if node not in for_checkers and isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif node not in for_checkers and isinstance(node, ast.ImportFrom) and node.level == 0:
            found.append(node.module or "")
    return [name for name in found if name.partition(".")[0] not in _LIBRARY]


def write_package(files: Mapping[str, str], folder: Path) -> None:
    """Write the files of a package to `folder`."""
    folder.mkdir(parents=True)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _link(target: Path, link: Path) -> None:
    """Make `target` importable as `link`; modules that were compiled before stay compiled."""
    try:
        link.symlink_to(target, target_is_directory=True)
    except OSError:  # Windows allows links to few users
        shutil.copytree(target, link)


def import_folder(folder: Path) -> ModuleType:
    """Import the package in `folder` under the name of the folder, which has to be unique within a test run."""
    assert folder.name not in sys.modules, f"{folder.name} was imported before"
    sys.path.insert(0, str(folder.parent))
    try:
        importlib.invalidate_caches()
        return importlib.import_module(folder.name)
    finally:
        sys.path.remove(str(folder.parent))


class Packages:
    """Builds packages on demand, each once in a test run."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._known: dict[object, ModuleType] = {}

    def __call__(
        self,
        *sources: SchemaChoice,
        roles: tuple[Role, ...] = RoleChoice.BOTH.roles,
        options: Options | None = None,
        remote: bool = False,
        parts: Collection[str] | None = None,
    ) -> ModuleType:
        """The imported package for `sources`, of several versions if there are several; with both roles by default."""
        key = (sources, roles, options, remote, parts)
        if key not in self._known:
            folder = self._home / f"built_{len(list(self._home.iterdir()))}"
            _link(package_folder(*sources, roles=roles, options=options, remote=remote, parts=parts), folder)
            self._known[key] = import_folder(folder)
            gc.freeze()  # it stays to the end
        return self._known[key]

    def of(self, schema: Mapping[str, Any], options: Options | None = None, *, is_used: bool = True) -> ModuleType:
        """The imported package for a schema given as data, of protocol 1.

        If the schema has no methods, all its definitions are used by one; with `is_used` False, none is, in any schema.
        """
        made = used(schema) if is_used else unused(schema)
        return self(SchemaChoice(schema=self.write(made)), options=options)

    def write(self, schema: Mapping[str, Any]) -> Path:
        """A file with `schema` in it."""
        text = json.dumps(schema)
        path = self._home / f"schema_{digest(text.encode())[:16]}.json"  # the name is part of the package
        path.write_text(text, encoding="utf-8")
        return path


def schema_of(**definitions: Any) -> dict[str, Any]:
    """A schema with these definitions, and nothing else."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": definitions}


def used(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema without methods, with one that both sides call with a value of each definition."""
    if any("x-method" in node for node in schema["$defs"].values() if isinstance(node, dict)):
        return schema
    method = {"type": "object", "x-method": "use/all", "x-side": "both"}
    values = {f"use{at}": {"$ref": f"#/$defs/{name}"} for at, name in enumerate(schema["$defs"])}
    added = {"UseAllRequest": {**method, "properties": values}, "UseAllResponse": {**method, "properties": values}}
    return {**schema, "$defs": {**schema["$defs"], **added}}


def unused(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without its methods."""
    texts = {"x-method", "x-side"}
    return {
        **schema,
        "$defs": {
            name: {key: each for key, each in node.items() if key not in texts} if isinstance(node, dict) else node
            for name, node in schema["$defs"].items()
        },
    }


def runtime_module(acp: ModuleType, name: str) -> Any:
    """A module of a package's runtime, wherever it lies. `acp` may be the folder of a version."""
    is_version = not (Path(str(acp.__file__)).parent / "_runtime").is_dir()
    package = acp.__name__.rpartition(".")[0] if is_version else acp.__name__
    return importlib.import_module(f"{package}.{dotted(place(name))}")


def codec_functions(acp: ModuleType) -> dict[str, Any]:
    """The decoders and encoders of single types by name: those of the directions that the roles use."""
    return {name: value for name, value in vars(acp.codec).items() if name.startswith(("decode_", "encode_"))}
