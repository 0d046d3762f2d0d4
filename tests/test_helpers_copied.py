"""Which helpers a package has: those of its protocol and roles whose names are all in the schema."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role, RoleChoice
from acpgen.schema.data import data_folder
from tests.command_line import run_acpgen
from tests.support import package_folder, schema_of

pytestmark = pytest.mark.full

HELPERS = data_folder() / "schema" / "helpers"
FILES = sorted(HELPERS.rglob("*.py"))


def build(folder: Path, *options: str) -> str:
    """The notes of a build into `folder`/acp."""
    ran = run_acpgen("build", *options, "--out", "acp", "--verbose", cwd=folder)
    assert ran.code == 0, ran.stderr
    return ran.stderr


def helpers(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.py")}


OFFERING = {"mcp_provider", "mcp_endpoint", "mcp_library", "held_context"}
NEED_A_LIBRARY = {"mcp_caller", "mcp_bridge"} | OFFERING
"""Helpers for an extension, and what only they import."""
LIBRARIES = {"mcp_library": {"anyio", "mcp", "mcp_types"}, "mcp_endpoint": {"uvicorn"}}
"""One module imports each library."""


def for_roles(protocol: int, *roles: str) -> set[str]:
    """The helpers that lie in the folders for a protocol and roles, and need no extension."""
    known = {"store", f"v{protocol}", *roles}
    found = {path.stem for path in FILES if all({*each.split("-")} & known for each in conditions(path))}
    found -= set() if "agent" in roles else {"store_check"}
    return (found | {"__init__"}) - NEED_A_LIBRARY


def conditions(path: Path) -> tuple[str, ...]:
    """The folders between that of a part and a helper."""
    return path.relative_to(HELPERS).parts[1:-1]


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("roles", [(Role.AGENT,), (Role.CLIENT,), RoleChoice.BOTH.roles])
def test_a_package_has_the_helpers_of_its_protocol_and_roles(protocol: int, roles: tuple[Role, ...]) -> None:
    folder = package_folder(SchemaChoice(protocol=protocol), roles=roles)
    assert helpers(folder / "helpers") == for_roles(protocol, *(role.value for role in roles))


@pytest.mark.parametrize(
    ("protocols", "roles"),
    [
        *(
            ((protocol,), roles)
            for protocol in (1, 2)
            for roles in ((Role.AGENT,), (Role.CLIENT,), RoleChoice.BOTH.roles)
        ),
        ((1, 2), (Role.AGENT,)),
    ],
)
def test_a_helper_imports_from_each_module_once(protocols: tuple[int, ...], roles: tuple[Role, ...]) -> None:
    """Also where the package has no module of its own for the names that the helper imports."""
    folder = package_folder(*(SchemaChoice(protocol=protocol) for protocol in protocols), roles=roles)
    for path in folder.rglob("helpers/*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        modules = [node.module for node in body if isinstance(node, ast.ImportFrom) and node.level > 1]
        assert len(modules) == len({*modules}), path


@pytest.mark.parametrize("protocol", [1, 2])
def test_an_extension_brings_its_helpers(protocol: int) -> None:
    choice = SchemaChoice(protocol=protocol, extensions=("mcp-over-acp",))
    for role, added in ((Role.AGENT, NEED_A_LIBRARY), (Role.CLIENT, OFFERING), (Role.PROXY, OFFERING)):
        folder = package_folder(choice, roles=(role,))
        assert helpers(folder / "helpers") & NEED_A_LIBRARY == added
        exports = (folder / "helpers/__init__.py").read_text(encoding="utf-8")
        assert not any(name in exports for name in added)


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_proxy_has_the_peers_of_both_its_sides(protocol: int) -> None:
    """Their folders have the names of several roles."""
    peers = {"scripted_agent", "scripted_client", "scripted_peer", "scripted_prompts", "scripted_turns"}
    folder = package_folder(SchemaChoice(protocol=protocol), roles=(Role.PROXY,))
    assert helpers(folder / "helpers") >= peers
    agent = package_folder(SchemaChoice(protocol=protocol), roles=(Role.AGENT,))
    assert peers - helpers(agent / "helpers") == {"scripted_agent", "scripted_turns"}


def test_a_package_of_two_protocols_has_the_helpers_of_each() -> None:
    folder = package_folder(*(SchemaChoice(protocol=protocol) for protocol in (1, 2)), roles=(Role.AGENT,))
    for protocol in (1, 2):
        assert helpers(folder / f"v{protocol}/helpers") == for_roles(protocol, "agent")


def test_a_package_imports_no_helpers() -> None:
    folder = package_folder(SchemaChoice(protocol=1))
    code = f"import sys, {folder.name}; print([name for name in sys.modules if '.helpers' in name])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder.parent, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def _renamed(schema: Any, old: str, new: str) -> Any:
    """The schema with another name for a definition."""
    text = json.dumps(schema).replace(f'"#/$defs/{old}"', f'"#/$defs/{new}"').replace(f'"{old}": {{', f'"{new}": {{')
    return json.loads(text)


def test_a_helper_is_left_out_if_the_schema_lacks_a_name(tmp_path: Path) -> None:
    bundled = json.loads((data_folder() / "schema/v1/2026-11-02/schema.json").read_text(encoding="utf-8"))
    own = _renamed(bundled, "PlanEntry", "PlanStep")
    (tmp_path / "own.json").write_text(json.dumps(own), encoding="utf-8")
    parts = [f"--with={each}" for each in ("store", "forms", "mcp", "testing")]
    notes = build(tmp_path, "--schema", "own.json", "--role", "agent", *parts)
    left_out = for_roles(1, "agent") - helpers(tmp_path / "acp/helpers")
    (named,) = re.findall(r"note: helpers is without (.+): the schema has no PlanEntry \[helper-left-out\]\n", notes)
    # and the helpers that import it; what these alone need is not worth a word
    assert {"plan_entries", "stored_agent"} <= set(named.split(", ")) < left_out
    subprocess.run([sys.executable, "-c", "import acp.helpers"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("role", ["agent", "client", "both"])
def test_a_new_protocol_has_the_helpers_that_need_no_other(tmp_path: Path, role: str) -> None:
    """A protocol that acpgen does not know is data, like the others."""
    schema = data_folder() / "schema/v1/2026-11-02/schema.json"
    notes = build(tmp_path, "--schema", str(schema), "--protocol", "3", "--role", role)
    assert {"content", "permissions"} <= helpers(tmp_path / "acp/helpers")
    missing = re.search(r"for this protocol there is no helper ([\w, ]+) \[", notes)
    assert ("call_messages" in (missing[1] if missing else "")) is (role != "client")
    subprocess.run([sys.executable, "-c", "import acp.helpers"], cwd=tmp_path, check=True)


def test_a_schema_of_another_kind_has_no_helpers(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(json.dumps(schema_of(Thing={"type": "string"})), encoding="utf-8")
    build(tmp_path, "--schema", "own.json")
    assert not (tmp_path / "acp/helpers").exists()


def test_a_package_without_a_runtime_has_helpers_that_need_none(tmp_path: Path) -> None:
    notes = build(tmp_path, "--no-runtime", "--role", "agent")
    assert "content" in helpers(tmp_path / "acp/helpers")
    assert "helper-left-out" not in notes
    subprocess.run([sys.executable, "-c", "import acp.helpers"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("protocol", [1, 2])
def test_helpers_have_different_names_and_no_circular_imports(protocol: int) -> None:
    """acpgen keys them by name, and follows their imports."""
    other = {"v1", "v2"} - {f"v{protocol}"}
    paths = [path for path in FILES if other.isdisjoint(conditions(path))]
    names = [path.stem for path in paths]
    assert len(names) == len({*names})
    imports = {path.stem: imported_helpers(path) for path in paths}
    assert set().union(*imports.values()) <= {*names}
    TopologicalSorter(imports).prepare()


def imported_helpers(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 1}


def _for_type_checkers(module: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run in no program."""
    for node in module.body:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                yield from body


@pytest.mark.every_python
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(HELPERS).as_posix())
def test_a_helper_names_what_it_imports_and_exports(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    defined, exported = set[str](), list[str]()
    for node in module.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                defined.add(name)
            case ast.ImportFrom(names=names, level=1):
                defined.update(each.name for each in names)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                exported = ast.literal_eval(value)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                defined.add(name)
    assert exported == sorted(exported)
    allowed = sys.stdlib_module_names | LIBRARIES.get(path.stem, set())
    assert set(exported) <= defined
    typed = [*_for_type_checkers(module)]
    for statement in ast.walk(module):
        match statement:
            case ast.Import(names=names):
                assert {each.name.partition(".")[0] for each in names} <= allowed
            case ast.ImportFrom(module=source, names=names, level=level):
                assert source, f"line {statement.lineno} imports a module of the package: acpgen cannot check its names"
                assert "*" not in {each.name for each in names}
                more = {"typing_extensions"} if statement in typed else set()
                assert level in (1, 2) or source.partition(".")[0] in allowed | more
                assert level != 2 or (statement.col_offset == 0 and not any(each.asname for each in names))


def test_the_names_are_imported_from_their_modules_when_they_are_used() -> None:
    """Also after another module has imported theirs, which makes the module an attribute: no name is a module's."""
    folder = package_folder(SchemaChoice(protocol=1), roles=RoleChoice.BOTH.roles)
    code = (
        f"import sys; sys.path.insert(0, {str(folder.parent)!r})\n"
        f"import {folder.name}.helpers as helpers\n"
        "loaded = [name for name in sys.modules if name.startswith(helpers.__name__ + '.')]\n"
        "modules = set(helpers._MODULES.values())\n"
        "print(loaded, sorted(modules & set(helpers.__all__)), set(helpers.__all__) == set(dir(helpers)))\n"
        "print(all(getattr(helpers, name) is not None for name in helpers.__all__))\n"
        "print(hasattr(helpers, 'nothing'))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["[] [] True", "True", "False"]
