"""The public names of packages that docs/package.md promises to keep: to remove or rename one breaks the code of users.

`promised_names.json` has them by package and module; with each function its parameters, with each class its public
members and the parameters of its constructor. What follows from the schema is not in it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.options import Options
from acpgen.roles import RoleChoice
from tests.golden_cases import builds
from tests.public_calls import MODULES
from tests.support import package_folder

PROMISED = Path(__file__).with_name("promised_names.json")
PACKAGES = ("v1_agent", "v1_client", "v1_proxy", "v1_v2_both_remote")

Names = dict[str, list[str]]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def exported(module: ast.Module) -> set[str]:
    """The names in `__all__`; without it, those that are defined and public."""
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return set(ast.literal_eval(node.value))  # type: ignore[union-attr,arg-type]
    return {name for name in definitions(module) if not name.startswith("_")}


def definitions(module: ast.Module) -> dict[str, ast.stmt]:
    return {
        node.name: node
        for node in module.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    }


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = function.args
    yield from (
        each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if each.arg != "self"
    )


def members(node: ast.stmt) -> list[str]:
    """What code can name of a function or a class."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return sorted(parameters(node))
    found: set[str] = set()
    for each in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found |= {each.name} if not each.name.startswith("_") else set()
            found |= set(parameters(each)) if each.name == "__init__" else set()
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            found.add(each.target.id)
    return sorted(name for name in found if not name.startswith("_"))


def public_names(package: Path, module: str) -> Names:
    """The exported names of a module with their members, but for those that follow from the schema."""
    path = package / module / "__init__.py"
    path = path if path.exists() else package / f"{module}.py"
    if not path.exists():
        return {}
    files = sorted(package.rglob("*.py"), key=lambda file: ("helpers" in file.parts) == (module == "helpers"))
    known = {name: node for file in files for name, node in definitions(parsed(file)).items()}  # the last one counts
    from_schema = {name for file in package.rglob("types.py") for name in schema_names(parsed(file))}
    by_schema = {"Agent", "Client", "Proxy", "RemoteAgent", "RemoteClient"}  # their members are the methods
    return {
        name: members(known[name]) if name in known and name not in by_schema else []
        for name in sorted(exported(parsed(path)) - from_schema)
    }


def schema_names(module: ast.Module) -> Iterator[str]:
    yield from definitions(module)
    for node in module.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def with_every_part(name: str) -> Path:
    """The package of `generated/` with all parts that it may have, and with `remote` if it has that."""
    options = builds()[name]
    values = [(key, value) for key, value in zip(options[::2], options[1::2], strict=True)]
    protocols = [int(value) for key, value in values if key == "--protocol"] or [1]
    role = RoleChoice(next(value for key, value in values if key == "--role"))
    keeps_unknown = any(each.record.keeps_unknown for each in role.roles)
    types = Options.for_roles(role.roles, open=False, keep_unknown=keeps_unknown)
    has_remote = ("--with", "remote") in values
    choices = [SchemaChoice(protocol=each) for each in protocols]
    return package_folder(*choices, roles=role.roles, options=types, remote=has_remote)


@cache
def all_names() -> dict[str, dict[str, Names]]:
    folders = {name: with_every_part(name) for name in PACKAGES}
    found = {name: {module: public_names(folder, module) for module in MODULES} for name, folder in folders.items()}
    return {name: {module: names for module, names in modules.items() if names} for name, modules in found.items()}


@pytest.mark.parametrize("package", PACKAGES)
def test_names(package: str) -> None:
    promised = json.loads(PROMISED.read_text(encoding="utf-8"))[package]
    actual = all_names()[package]
    gone = [
        f"{module or 'the package'}: {'.'.join(filter(None, (name, member)))}"
        for module, names in promised.items()
        for name, listed in names.items()
        for member in ("", *listed)
        if name not in actual.get(module, {}) or (member and member not in actual[module][name])
    ]
    assert not gone, "keep aliases that warn, as CONTRIBUTING.md says"
    assert actual == promised, "list new names, so that it is seen if they go"
