"""Packages of two protocols at the command line: what is built, checked, listed and shown."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role, RoleChoice
from tests.command_line import Outcome, run_acpgen, tree
from tests.project_support import negotiating_schema, public_names
from tests.runtime_support import V1, V2
from tests.support import Packages

BOTH = ("--protocol", "1", "--protocol", "2")
TWO = (*BOTH, "--no-runtime")
SCHEMAS = ("--schema", "1=one.json", "--schema", "2=two.json")
FILES = (*TWO, *SCHEMAS)
SHOWN = (*BOTH, *SCHEMAS)
CLIENT_METHOD = {"type": "object", "x-method": "poke", "x-side": "client"}


class Folder:
    """A folder with the schemas `one.json` and `two.json`, and extensions of one, of both, and of neither protocol."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("one.json", negotiating_schema("Thing"))
        self.write("two.json", negotiating_schema("Item"))
        for name, protocols in (("both", [1, 2]), ("second", [2]), ("third", [3])):
            head = {"fragment": 1, "id": name, "revision": "1", "title": name, "status": "vendor"}
            added = {f"Added{name.capitalize()}": {"type": "object", "properties": {}}}
            self.write(f"{name}.json", {**head, "protocols": protocols, "$defs": added})

    def write(self, name: str, content: dict[str, Any]) -> None:
        (self.path / name).write_text(json.dumps(content), encoding="utf-8")

    def run(self, *arguments: str) -> Outcome:
        return run_acpgen(*arguments, cwd=self.path)

    def good(self, *arguments: str) -> Outcome:
        ran = self.run(*arguments)
        assert ran.code == 0, ran.stdout + ran.stderr
        return ran

    def build(self, *arguments: str) -> Outcome:
        return self.good("build", "--out", "acp", *arguments)

    def lock(self) -> Any:
        return json.loads((self.path / "acp/acpgen.lock").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# --- Schemas ----------------------------------------------------------------------------------------------------------


def test_a_schema_for_each_protocol(folder: Folder) -> None:
    folder.build(*TWO, "--release", "1=0.10.8", "--schema", "2=two.json")
    lock = folder.lock()
    assert not {"protocol", "schema", "extensions"} & lock.keys()
    found = [(each["protocol"], each["schema"]["name"]) for each in lock["protocols"]]
    assert found == [(1, "v1/0.10.8"), (2, "two.json")]
    folder.build(*TWO, "--release", "1=2026-11-02", "--release", "2=2026-11-02")
    found = [(each["protocol"], each["schema"]["name"]) for each in folder.lock()["protocols"]]
    assert found == [(1, "v1/2026-11-02"), (2, "v2/2026-11-02")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--release", "3=x"), "error: the release 'x' (command line) is for protocol 3, which is not built [usage]"),
        (
            ("--schema", "3=one.json"),
            "error: the schema 'one.json' (command line) is for protocol 3, which is not built [usage]",
        ),
        (("--schema", "one.json"), "error: the protocol of the schema 'one.json' is not named [usage]"),
        (("--release", "0.10.8", "--release", "2026-11-02"), "error: --release is given 2 times [usage]"),
        (("--release", "1=0.10.8", "--release", "2026-11-02"), "error: --release is given 2 times [usage]"),
        (("--schema", "1=one.json", "--schema", "1=two.json"), "error: --schema is given 2 times [usage]"),
        (("--release", "1=0.10.8", "--schema", "1=one.json"), "error: --schema and --release exclude each other"),
        (("--release", "0.10.8"), "error: no release '0.10.8' of protocol 2 is bundled [unknown-release]"),
        (("--protocol", "3"), "error: no schema of protocol 3 is bundled [unknown-protocol]"),
    ],
)
def test_schemas_that_contradict_the_protocols(folder: Folder, options: tuple[str, ...], message: str) -> None:
    ran = folder.run("build", *TWO, "--out", "acp", *options)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert not (folder.path / "acp").exists()


def test_schemas_that_negotiate_the_version_in_no_common_way(folder: Folder) -> None:
    del (silent := negotiating_schema())["$defs"]["InitializeRequest"], silent["$defs"]["InitializeResponse"]
    folder.write("two.json", silent)
    assert "[protocols-differ]" in folder.run("build", "--out", "acp", *FILES).stderr


# --- Extensions -------------------------------------------------------------------------------------------------------


def composed(folder: Folder) -> list[list[str]]:
    """The names of the extensions of each protocol."""
    return [[each["name"] for each in half["extensions"]] for half in folder.lock()["protocols"]]


def test_an_extension_of_both_protocols(folder: Folder) -> None:
    assert folder.build(*FILES, "--extension", "./both.json", "--verbose").stderr.count("extension-partial") == 0
    assert composed(folder) == [["both"], ["both"]]
    assert {"v1.AddedBoth", "v2.AddedBoth"} <= public_names(folder.path / "acp")


@pytest.mark.parametrize(
    ("spec", "hint", "expected"),
    [
        ("./second.json", "the file names the protocols that it extends: `protocols`", [[], ["second"]]),
        pytest.param(
            *("logout@2026-02-02", "the others have no revision that fits", [["logout@2026-02-02"], []]),
            marks=pytest.mark.full,
        ),
        ("logout", "the others have no revision that fits", [["logout@2026-02-02"], []]),
    ],
)
def test_an_extension_of_one_protocol(folder: Folder, spec: str, hint: str, expected: list[list[str]]) -> None:
    options = (*TWO, "--release", "1=0.10.8", "--extension", spec)
    ran = folder.build(*options)
    note = f"the extension {spec!r} is composed with protocol {1 if expected[0] else 2} alone [extension-partial]"
    assert f"note: {note}\n  hint: {hint}" in ran.stderr
    assert composed(folder) == expected


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        ("./third.json", ["'./third.json' fits none of the protocols 1 and 2 [unknown-extension]", "`protocols`"]),
        ("nothing", ["no extension 'nothing' for protocol 1", "no extension 'nothing' for protocol 2"]),
        ("logout", ["[extension-landed]", "no extension 'logout' for protocol 2"]),
        ("./missing.json", ["[file-unreadable]"]),
        ("./one.json", ["[fragment-format]"]),
    ],
)
def test_an_extension_of_no_protocol(folder: Folder, spec: str, messages: list[str]) -> None:
    ran = folder.run("build", "--out", "acp", *TWO, "--extension", spec)
    assert ran.code == 2
    for message in messages:
        assert message in ran.stderr
    assert not (folder.path / "acp").exists()


# --- build and check --------------------------------------------------------------------------------------------------


def test_a_second_build_changes_nothing(folder: Folder) -> None:
    folder.build(*FILES)
    assert folder.good("build", "--out", "acp", *FILES, "--dry-run").stdout == ""
    folder.write("two.json", negotiating_schema("Item", "More"))
    changed = folder.good("build", "--out", "acp", *FILES, "--dry-run").stdout.splitlines()
    assert {"update acpgen.lock", "update v2/types.py"} <= set(changed)
    assert not any(" v1/" in line for line in changed)


def test_check_finds_a_change_in_a_subpackage(folder: Folder) -> None:
    folder.build(*FILES)
    check = ("check", "--out", "acp", *FILES)
    assert folder.good(*check).stdout == "acp: up to date\n"
    with (folder.path / "acp/v2/types.py").open("a", encoding="utf-8") as file:
        file.write("# mine\n")
    (folder.path / "acp/v1/mine.py").touch()
    ran = folder.run(*check, "--diff")
    assert ran.code == 1
    assert {"  edited  v2/types.py", "  extra   v1/mine.py", "--- acp/v2/types.py"} <= set(ran.stdout.splitlines())
    folder.build(*FILES)
    (folder.path / "acp/v1/mine.py").unlink()
    assert folder.good(*check).stdout == "acp: up to date\n"


def test_check_names_the_inputs_of_each_protocol(folder: Folder) -> None:
    folder.build(*FILES)
    folder.write("two.json", negotiating_schema("Item", "More"))
    lines = folder.run("check", "--out", "acp", *FILES, "--extension", "./both.json").stdout.splitlines()
    reasons = [line.partition(":")[0].strip() for line in lines if " -> " in line]
    assert reasons == ["v1 extension both", "v2 extension both", "v2 schema.sha256"]
    lines = folder.run("check", "--out", "acp", "--schema", "one.json", "--no-runtime").stdout.splitlines()
    assert "  protocol: 1, 2 -> 1" in lines
    assert "  v2 schema.name: two.json -> none" in lines


def test_a_package_gets_a_second_protocol_and_loses_it_again(folder: Folder) -> None:
    one = ("--schema", "one.json", "--no-runtime")
    folder.build(*one)
    before = tree(folder.path / "acp")
    mine = folder.path / "acp/v2/mine.py"
    folder.build(*FILES)
    assert not {"types.py", "agent.py", "codec.py"} & tree(folder.path / "acp").keys()
    assert {"v1/types.py", "v2/types.py"} <= tree(folder.path / "acp").keys()
    mine.touch()
    folder.build(*one)
    assert tree(folder.path / "acp") == {**before, "v2/mine.py": b""}  # acpgen did not write it
    assert not (folder.path / "acp/v1").exists()


@pytest.mark.parametrize("version", [1, 2])
def test_a_subpackage_has_all_names_of_a_package_of_its_protocol(packages: Packages, version: int) -> None:
    part, alone = _with_all_names(packages, {1: V1, 2: V2}, version, RoleChoice.BOTH.roles)
    assert set(public(part, "helpers")) == set(public(alone, "helpers"))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("version", [1, 2])
def test_a_subpackage_for_one_role_has_all_names(packages: Packages, role: Role, version: int) -> None:
    schema = packages.write(negotiating_schema("Thing"))
    _with_all_names(packages, {n: SchemaChoice(protocol=n, schema=schema) for n in (1, 2)}, version, (role,))


def _with_all_names(
    packages: Packages, sources: dict[int, SchemaChoice], version: int, roles: tuple[Role, ...]
) -> tuple[ModuleType, ModuleType]:
    """The subpackage of a version, and the package of this version alone, after comparing their names."""
    alone, together = packages(sources[version], roles=roles), packages(*sources.values(), roles=roles)
    part = importlib.import_module(f"{together.__name__}.v{version}")
    assert set(part.__all__) == set(alone.__all__)
    shared = {"ConnectionClosed", "DecodeError", "UNSET", "advertise", "memory_transports"}
    assert {name for name in shared if getattr(part, name) is not getattr(together, name)} == set()
    return part, alone


def public(package: ModuleType, name: str) -> list[str]:
    return list(importlib.import_module(f"{package.__name__}.{name}").__all__)


# --- methods, extensions and show -------------------------------------------------------------------------------------


def test_methods_of_both_protocols(folder: Folder) -> None:
    lists = folder.good("methods", *SHOWN).stdout.split("\n\n")
    assert [each.splitlines()[0].split(",")[0] for each in lists] == ["ACP v1", "ACP v2"]
    for each in lists:
        assert re.findall(r"^  (\S+)  \(request to", each, re.MULTILINE) == ["ping", "initialize"]
    found = json.loads(folder.good("methods", *SHOWN, "--format", "json").stdout)
    assert {(each["method"], each["protocol"]) for each in found} >= {("ping", 1), ("ping", 2)}


def test_the_column_of_the_protocol_does_not_depend_on_the_rows(folder: Folder) -> None:
    folder.write("two.json", {"$defs": negotiating_schema()["$defs"] | {"PokeNotification": CLIENT_METHOD}})
    options = ("--role", "client", "--format", "json")
    (found,) = json.loads(folder.good("methods", *SHOWN, *options).stdout)
    assert (found["method"], found["protocol"]) == ("poke", 2)


def test_extensions_of_both_protocols(folder: Folder) -> None:
    ran = run_acpgen("extensions", *BOTH, cwd=folder.path, columns=400)
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert lines[0][:3] == ["extension", "protocol", "here"]
    assert {line[1] for line in lines[1:]} == {"1", "2"}
    found = json.loads(folder.good("extensions", *BOTH, "--format", "json").stdout)
    assert {(each["extension"], each["protocol"]) for each in found} >= {("auth-state", 1), ("auth-state", 2)}
    alone = json.loads(folder.good("extensions", "--protocol", "2", "--format", "json").stdout)
    assert not any("protocol" in each for each in alone)


def test_a_name_of_both_protocols_is_shown_twice(folder: Folder) -> None:
    text = folder.good("show", "ping", *SHOWN).stdout
    assert [line for line in text.splitlines() if line.startswith("Python, ")] == [
        f"Python, v{protocol}/{module}.py" for protocol in (1, 2) for module in ("agent", "client", "proxy")
    ]
    found = json.loads(folder.good("show", "ping", *SHOWN, "--format", "json").stdout)["entries"]
    assert [each["signatures"][0]["module"] for each in found] == ["v1/agent.py", "v2/agent.py"]


def test_a_name_of_one_protocol_is_shown_once(folder: Folder) -> None:
    found = json.loads(folder.good("show", "Item", *SHOWN, "--format", "json").stdout)["entries"]
    assert [each["signature"]["module"] for each in found] == ["v2/types.py"]
    ran = folder.run("show", "Nothing", *SHOWN)
    assert ran.code == 2
    assert ran.stderr.count("error:") == 1


def test_a_command_that_reads_one_schema(folder: Folder) -> None:
    ran = folder.run("rfd", "extract", "one.json", *BOTH)
    assert ran.code == 2
    assert "hint: choose one with --protocol 1" in ran.stderr
