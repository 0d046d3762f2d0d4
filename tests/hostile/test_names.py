"""Names of a schema that the package has already: refused or written otherwise, never in its place."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.classes import Classes
from acpgen.emit.runtime import dotted
from acpgen.ir import names
from tests.hostile.subject import STRING, obj
from tests.support import Packages, import_folder, model_of, package_files, schema_of, write_package

pytestmark = pytest.mark.full

CLEAN = SchemaChoice()
PARTS = ("Request", "Response", "Notification")


def _bound(text: str) -> Iterator[str]:
    """The names that a module binds at its top, by import, assignment or definition."""
    for node in ast.parse(text).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


@cache
def _own_names() -> frozenset[str]:
    """The names that the modules of a package bind whatever the schema is, and those of the modules."""
    files = package_files(CLEAN)
    model = model_of(CLEAN)[0]
    types = {definition.name for definition in model.definitions}
    if (shared := Classes(model).shared) is not None:  # it avoids the names of definitions
        types.add(shared.name)
    bound = {name for path, text in files.items() if path.endswith(".py") for name in _bound(text)}
    modules = {path.removesuffix(".py") for path in files if path.endswith(".py")}
    from_types = {name for name in bound if name.partition("_")[2] and name.startswith(("decode_", "encode_"))}
    return frozenset((bound | modules) - types - from_types)


def _possible() -> list[str]:
    """Those of the own names that a definition could have."""
    return sorted(name for name in _own_names() if names.class_name(name) == name)


def _is_refused(schema: Path) -> bool:
    try:
        model_of(SchemaChoice(schema=schema))
    except InputError as error:
        refusal = error
    else:
        return False
    assert {found.code for found in refusal.diagnostics} <= {"name-clash", "bad-name"}
    return True


def _definitions(name: str, number: int) -> dict[str, Any]:
    """A definition of that name, used by a method as what a role class imports and by a class."""
    method = {"x-method": f"use{'x' * number}", "x-side": "both"}
    part = "Q" + "x" * number
    return {
        name: obj({"a": STRING}, ["a"]),
        f"{part}Request": obj({"b": {"$ref": f"#/$defs/{name}"}, "c": {"type": "array", "items": STRING}}, **method),
        f"{part}Response": {"$ref": f"#/$defs/{name}", **method},
    }


def test_what_a_package_exports_and_imports_is_known() -> None:
    """A name that a module binds which takes definitions from `types`, or has them, is reserved against these."""
    files = package_files(CLEAN)
    errors = {code.name for code in model_of(CLEAN)[0].errors.codes}
    model = model_of(CLEAN)[0]
    types = {definition.name for definition in model.definitions}
    if (shared := Classes(model).shared) is not None:  # it avoids the names of definitions
        types.add(shared.name)
    bound_by_roles = {name for path in ("agent.py", "client.py") for name in _bound(files[path])}
    bound = {name for path in ("__init__.py", "types.py") for name in _bound(files[path])} | bound_by_roles
    free = {name for name in bound - types - errors if names.class_name(name) == name} - names.RESERVED_CLASSES
    # a role module takes params and results alone
    assert {name for name in free if name not in bound_by_roles or name.endswith(PARTS)} == set()


def test_definitions_with_the_names_of_the_package(tmp_path: Path) -> None:
    accepted: dict[str, tuple[str, int]] = {}  # one of those that differ in case alone: together they are refused
    for number, name in enumerate(_possible()):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(schema_of(**_definitions(name, number))), encoding="utf-8")
        if not _is_refused(path):
            accepted[names.snake(name)] = (name, number)
    assert len(accepted) < len(_possible())
    schema = {key: node for each in accepted.values() for key, node in _definitions(*each).items()}
    (tmp_path / "schema.json").write_text(json.dumps(schema_of(**schema)), encoding="utf-8")
    files = package_files(SchemaChoice(schema=tmp_path / "schema.json"))
    write_package(files, tmp_path / "named_like_the_package")
    package = import_folder(tmp_path / "named_like_the_package")
    for name, number in accepted.values():
        kind = getattr(package.types, name)
        assert getattr(package, name) is kind
        raw = {"b": {"a": "x"}, "c": ["y"]}
        made = package.decode(getattr(package, f"Q{'x' * number}Request"), raw)
        assert type(made.b) is kind
        assert package.encode(made) == raw
    _check_unshadowed(package, files, {name for name, _ in accepted.values()})


def _check_unshadowed(package: ModuleType, files: Mapping[str, str], taken: set[str]) -> None:
    """Every module of the package but those that take from `types` has its own thing under its own name."""
    clean = package_files(CLEAN)
    for path, text in clean.items():
        if not path.endswith(".py") or path.endswith(("__init__.py", "types.py")) or "/pydantic/" in path:
            continue
        module = importlib.import_module(f"{package.__name__}.{dotted(path)}")  # some are imported late
        for name in taken & set(_bound(text)):
            assert getattr(module, name, None) is not getattr(package.types, name), f"{name} in {path}"
    assert files.keys() == clean.keys()


@pytest.mark.parametrize("side", ["agent", "client"])
def test_methods_with_the_names_of_the_role_classes(side: str, packages: Packages) -> None:
    """A method never takes the place of an attribute that a role class, or a stub, already has."""
    empty = packages.of(schema_of(Thing=STRING), is_used=False)
    base, stub = (empty.Agent, empty.RemoteAgent) if side == "agent" else (empty.Client, empty.RemoteClient)
    attributes = {names.snake(name) for kind in (base, stub) for name in dir(kind)}
    bound = {name for path in ("agent.py", "client.py") for name in _bound(package_files(CLEAN)[path])}
    wire = sorted({"agent", "client", "self", "params", *attributes, *filter(str.islower, bound)} - {""})
    definitions = {
        f"M{'x' * number}{part}": obj({}, **{"x-method": name, "x-side": side})
        for number, name in enumerate(wire)
        for part in ("Request", "Response")
    }
    package = packages.of(schema_of(**definitions))
    for kind, old in ((getattr(package, base.__name__), base), (getattr(package, stub.__name__), stub)):
        for name in dir(old):
            before, after = inspect.getattr_static(old, name), inspect.getattr_static(kind, name)
            if inspect.isfunction(before) and before.__qualname__.partition(".")[0] in {"Handler", "Remote"}:
                assert after.__qualname__ == before.__qualname__, name
    table = package.AGENT_METHODS if side == "agent" else package.CLIENT_METHODS
    handlers = [method.handler for method in table.values()]
    assert len(set(handlers)) == len(handlers)
    assert sorted(set(handlers) & set(dir(base))) == []


@pytest.mark.parametrize("title", sorted(name for name in _own_names() if name.endswith("Error")))
def test_titles_of_errors_with_the_names_of_the_package(title: str, packages: Packages) -> None:
    """An error code whose class would hide one that is there has no class of its own."""
    code = {"anyOf": [{"const": 7, "title": title.removesuffix("Error") or "Error"}, {"type": "integer"}]}
    error = obj({"code": {"$ref": "#/$defs/Code"}, "message": STRING, "data": True}, ["code", "message"])
    reply = obj({"error": {"$ref": "#/$defs/Trouble"}}, **{"x-docs-ignore": True})
    package = packages.of(schema_of(Code=code, Trouble=error, Reply=reply))
    empty = packages.of(schema_of(Thing=STRING), is_used=False)
    imported = [name for name in sys.modules if name.startswith(f"{empty.__name__}.")]
    for before, after in ((sys.modules[name], sys.modules.get(_in(package, name))) for name in imported):
        if hasattr(before, title) and after is not None:
            assert (
                getattr(after, title).__module__.partition(".")[2]
                == getattr(before, title).__module__.partition(".")[2]
            )
    assert package.RequestError.from_json({"code": 7, "message": "m"}).code == 7


def _in(package: ModuleType, module: str) -> str:
    """The module of that name in another package."""
    return f"{package.__name__}.{module.partition('.')[2]}"


FORMS = (("\ufb01eld", "field"), ("\uff21\uff22", "AB"), ("\u212b", "\xc5"), ("\u017fet", "set"), ("\u212a", "K"))
"""Texts of which Python makes one identifier."""


@pytest.mark.parametrize("forms", FORMS)
@pytest.mark.parametrize(
    "make",
    [
        lambda texts: {f"Ax{text}": obj({"a": STRING}) for text in texts},
        lambda texts: {"U": {"oneOf": [obj({"t": {"const": f"ax{text}"}}, ["t"]) for text in texts]}},
        lambda texts: {"U": {"anyOf": [obj({text: STRING}, [text], title=f"Ax {text}") for text in texts]}},
        lambda texts: {
            f"M{'x' * n}Notification": obj({}, **{"x-method": f"ax{text}", "x-side": "agent"})
            for n, text in enumerate(texts)
        },
    ],
    ids=["definitions", "tags", "titles", "methods"],
)
def test_no_two_things_get_names_that_normalise_to_one(
    make: Callable[[tuple[str, str]], dict[str, Any]], forms: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "schema.json"
    definitions = make(forms)
    path.write_text(json.dumps(schema_of(**definitions)), encoding="utf-8")
    if _is_refused(path):
        return
    model = model_of(SchemaChoice(schema=path))[0]
    found = [definition.name for definition in model.definitions] + [method.name for method in model.methods]
    assert len({unicodedata.normalize("NFKC", name) for name in found}) == len(found) >= 2
    assert all(name.isascii() for name in found)


@pytest.mark.parametrize("forms", FORMS)
def test_names_that_normalise_to_one(forms: tuple[str, str], tmp_path: Path) -> None:
    """Two properties that are one identifier to Python (NFKC) are two attributes, or refused."""
    path = tmp_path / "schema.json"
    prefixed = [f"ax{form}" for form in forms]
    path.write_text(json.dumps(schema_of(Thing=obj(dict.fromkeys(prefixed, STRING)))), encoding="utf-8")
    if _is_refused(path):
        return
    (thing,) = (found for found in model_of(SchemaChoice(schema=path))[0].definitions if found.name == "Thing")
    fields = [field.name for field in getattr(thing, "fields", ())]
    assert len(set(fields)) == 2
    assert all(name.isascii() for name in fields)
