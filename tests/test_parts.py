"""The parts of a package: what each brings, what a package has unasked, and what it says of one that it lacks."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.output import LOCK_NAME
from acpgen.parts import all_parts, default_parts, needs, with_needed
from acpgen.roles import Role, RoleChoice
from tests.command_line import build_package, run_acpgen, tree
from tests.needs import need
from tests.project_support import Project
from tests.runtime_support import acp_log
from tests.support import Packages, every_part, package_folder

FOR = {
    "builders": "acp",
    "files": "c",
    "forms": "ac",
    "login": "c",
    "mcp": "acp",
    "permissions": "c",
    "pydantic": "acp",
}
FOR |= {
    "recovery": "c",
    "remote": "acp",
    "sessions": "c",
    "store": "a",
    "terminals": "c",
    "testing": "acp",
    "trace": "acp",
    "turns": "a",
}
"""The parts, each with the initials of its roles; `proxy` has the letter p."""
INITIALS = {"a": Role.AGENT, "c": Role.CLIENT, "p": Role.PROXY}
COMBINATIONS = [
    pytest.param(part, INITIALS[each], protocol, marks=[] if (each, protocol) == ("a", 1) else pytest.mark.full)
    for part, initials in FOR.items()
    for each in initials
    for protocol in (1, 2)
    if protocol == 1 or part not in ("files", "terminals")
]


def bare(packages: Packages, role: Role = Role.AGENT, *protocols: int) -> ModuleType:
    """The package without parts."""
    return packages(*(SchemaChoice(protocol=each) for each in protocols or (1,)), roles=(role,), parts=())


def helpers_of(package: ModuleType) -> Any:
    return importlib.import_module(f"{package.__name__}.helpers")


# --- What there is ---------------------------------------------------------------------------------------------------


def test_each_part_is_for_its_roles() -> None:
    found = {part.name: "".join(role.value[0] for role in part.roles) for part in all_parts().values()}
    assert found == {part: "".join(sorted(initials)) for part, initials in FOR.items()}


def test_a_new_part_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No list in acpgen names it."""
    home = tmp_path / "schema" / "helpers" / "greetings"
    (home / "v1" / "agent").mkdir(parents=True)
    (tmp_path / "templates" / "runtime").mkdir(parents=True)
    (home / "part.txt").write_text("Kind words.\n", encoding="utf-8")
    (home / "v1" / "agent" / "hello.py").write_text('"""Hello."""\n\n__all__ = ["hello"]\n', encoding="utf-8")
    monkeypatch.setattr("acpgen.parts.data_folder", lambda: tmp_path)
    all_parts.cache_clear()
    try:
        (part,) = all_parts().values()
        assert (part.name, part.title, part.roles) == ("greetings", "Kind words.", (Role.AGENT,))
        assert part.protocols((Role.AGENT,)) == {1}
    finally:
        all_parts.cache_clear()


@pytest.mark.parametrize(("part", "role", "protocol"), COMBINATIONS)
def test_a_part_alone_brings_what_it_needs(packages: Packages, part: str, role: Role, protocol: int) -> None:
    """All of its modules can be imported, and no others have come than those of the parts that it needs."""
    package = packages(SchemaChoice(protocol=protocol), roles=(role,), parts=(part,))
    folder = Path(str(package.__file__)).parent
    for path in sorted(folder.rglob("*.py")):
        if "mcp_" not in path.name:  # they need a library
            importlib.import_module(".".join([package.__name__, *path.relative_to(folder).with_suffix("").parts]))
    helpers = helpers_of(package)
    assert all(getattr(helpers, name) is not None for name in helpers.__all__)
    known = with_needed([part], (role,), [protocol])
    modules = {each.name for name in known for each in all_parts()[name].modules_for((role,), [protocol], known)}
    others = {each.name for other in all_parts().values() if other.name not in known for each in other.modules}
    found = {path.stem for path in folder.rglob("*.py")}
    assert found & others <= modules | {"remote"}
    assert modules & found


def test_a_part_needs_those_that_it_imports_from() -> None:
    agent = (Role.AGENT,)
    assert needs("store", agent, [1]) == {"builders", "turns"}
    assert needs("turns", agent, [1, 2]) == {"builders"}
    assert needs("testing", agent, [1]) == {"builders"}, "the check of a store comes only with `store`"
    assert with_needed(["store"], agent, [1]) == {"builders", "store", "turns"}


@pytest.mark.full
def test_the_check_of_a_store_is_in_testing_with_a_store(packages: Packages) -> None:
    for parts, has_check in ((("testing",), False), (("testing", "store"), True), (("store",), False)):
        package = packages(SchemaChoice(), roles=(Role.AGENT,), parts=parts)
        assert ("check_store" in helpers_of(package).__all__) is has_check
        if not has_check:
            with pytest.raises(ImportError, match=r"needs the part '(testing|store)'") as error:
                helpers_of(package).check_store  # noqa: B018 - it raises
            assert str(error.value).partition("the part '")[2].partition("'")[0] not in parts


@pytest.mark.parametrize("role", [RoleChoice.AGENT, pytest.param(RoleChoice.CLIENT, marks=pytest.mark.full)])
def test_a_package_whose_project_names_none_has_those_of_the_first_example(role: RoleChoice, tmp_path: Path) -> None:
    wanted = {RoleChoice.AGENT: ("turns",), RoleChoice.CLIENT: ("sessions",), RoleChoice.PROXY: ()}
    assert {each: default_parts(each.roles) for each in wanted} == wanted
    assert default_parts(RoleChoice.BOTH.roles) == ("turns", "sessions")
    plain = tree(build_package(tmp_path / "plain", "--role", role.value))
    named = tree(build_package(tmp_path / "named", "--role", role.value, *(f"--with={each}" for each in wanted[role])))
    assert plain == named
    assert json.loads(plain[LOCK_NAME])["options"]["with"] == [*wanted[role]]


# --- The bare package ------------------------------------------------------------------------------------------------

ECHO = """
import sys
from PACKAGE import Agent, ContentChunk, InitializeResponse, NewSessionResponse, PromptResponse, SessionNotification
from PACKAGE import SessionUpdateAgentMessageChunk, run_agent

class Echo(Agent):
    async def initialize(self, params):
        return InitializeResponse(protocol_version=1)

    async def session_new(self, params):
        return NewSessionResponse(session_id="1")

    async def session_prompt(self, params):
        for block in params.prompt:
            update = SessionUpdateAgentMessageChunk(content=block)
            await self.client.session_update(SessionNotification(session_id=params.session_id, update=update))
        return PromptResponse(stop_reason="end_turn")

run_agent(Echo)
"""


@pytest.mark.every_python
def test_an_agent_runs_without_parts(packages: Packages) -> None:
    package = bare(packages)
    folder = Path(str(package.__file__)).parent
    asked = [
        ("initialize", {"protocolVersion": 1}),
        ("session/new", {"cwd": "/", "mcpServers": []}),
        ("session/prompt", {"sessionId": "1", "prompt": [{"type": "text", "text": "hello"}]}),
    ]
    lines = (
        json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": params})
        for at, (method, params) in enumerate(asked)
    )
    program = ECHO.replace("PACKAGE", folder.name)
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input="".join(f"{line}\n" for line in lines),
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    *_, update, end = map(json.loads, ran.stdout.splitlines())
    assert update["params"]["update"]["content"]["text"] == "hello"
    assert end["result"]["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    "role", [Role.AGENT, *(pytest.param(each, marks=pytest.mark.full) for each in (Role.CLIENT, Role.PROXY))]
)
def test_the_bare_package_has_no_helpers_and_no_folder_of_a_part(packages: Packages, role: Role) -> None:
    package = bare(packages, role)
    folder = Path(str(package.__file__)).parent
    assert helpers_of(package).__all__ == []
    assert [path.name for path in (folder / "helpers").glob("*.py")] == ["__init__.py"]
    assert not {"trace", "pydantic", "network"} & {path.name for path in (folder / "_runtime").iterdir()}
    names = {path.stem for path in folder.rglob("*.py")}
    assert not names & {each.name for part in all_parts().values() for each in part.modules}


def test_a_proxy_without_parts_runs_in_front_of_an_agent(packages: Packages) -> None:
    package = bare(packages, Role.PROXY)
    assert {"Proxy", "run_proxy", "run_conductor"} <= {*package.__all__}


# --- What is missing says its part ---------------------------------------------------------------------------------


def says(error: pytest.ExceptionInfo[BaseException], what: str, part: str) -> None:
    text = str(error.value)
    assert text.startswith(f"{what} needs the part '{part}', which this package is without: add \"{part}\" to `with`")
    assert f"`acpgen build` with `--with {part}`" in text


@pytest.mark.every_python
def test_a_helper_of_a_missing_part_names_it(packages: Packages) -> None:
    package = bare(packages)
    helpers = helpers_of(package)
    for name, part in (
        ("StoredAgent", "store"),
        ("TurnAgent", "turns"),
        ("text", "builders"),
        ("check_store", "testing"),
    ):
        with pytest.raises(ImportError) as error:
            getattr(helpers, name)
        says(error, f"{package.__name__}.helpers.{name}", part)
    with pytest.raises(ImportError) as error:
        exec(f"from {package.__name__}.helpers import SqliteStore")
    says(error, f"{package.__name__}.helpers.SqliteStore", "store")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        helpers.nothing  # noqa: B018 - it raises
    assert not hasattr(helpers, "SessionClient"), "a package for agents cannot have it"


@pytest.mark.full
def test_in_a_package_of_two_versions_too(packages: Packages) -> None:
    package = bare(packages, Role.CLIENT, 1, 2)
    for version, name, part in (("v1", "FileClient", "files"), ("v2", "SessionClient", "sessions")):
        helpers = importlib.import_module(f"{package.__name__}.{version}.helpers")
        with pytest.raises(ImportError) as error:
            getattr(helpers, name)
        says(error, f"{helpers.__name__}.{name}", part)
    assert not hasattr(importlib.import_module(f"{package.__name__}.v2.helpers"), "FileClient")


def test_the_mark_for_pydantic_names_its_part(packages: Packages) -> None:
    package = bare(packages)
    assert "WireForm" not in package.__all__
    with pytest.raises(ImportError) as error:
        package.WireForm  # noqa: B018 - it raises
    says(error, f"{package.__name__}.WireForm", "pydantic")


def test_a_trace_that_cannot_be_is_an_error_or_in_the_log(packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    package = bare(packages)
    one, _ = package.memory_transports()
    with pytest.raises(ImportError) as error:
        package.Connection(one, package.ConnectionOptions(trace="trace.jsonl"))
    says(error, "ConnectionOptions(trace=…)", "trace")
    monkeypatch.setenv("ACP_TRACE", "trace.jsonl")  # it may be meant for another program
    with acp_log() as records:
        package.Connection(one)
    (record,) = records
    assert "not recorded: ACP_TRACE needs the part 'trace'" in record.getMessage()


def whole(package: ModuleType) -> Any:
    """An instance in which no property is absent: no `UNSET` gives it away."""
    return package.TextResourceContents(text="t", uri="u", mime_type=None, meta=None)


def test_pydantic_gets_an_error_and_no_wrong_text(packages: Packages) -> None:
    need("pydantic")
    import pydantic

    package = bare(packages)
    with pytest.raises(ImportError) as error:
        pydantic.TypeAdapter(package.TextResourceContents)
    says(error, "TextResourceContents in pydantic", "pydantic")
    anything = pydantic.TypeAdapter(Any)
    for write in (anything.dump_json, anything.dump_python):
        with pytest.raises((TypeError, ValueError), match="dict"):
            write(whole(package))


def _orjson() -> Callable[..., bytes]:
    return importlib.import_module("orjson").dumps  # type: ignore[no-any-return]


def test_other_libraries_write_what_is_on_the_wire_or_raise(packages: Packages) -> None:
    package = bare(packages)
    on_the_wire = {"text": "t", "uri": "u"}
    assert json.loads(json.dumps(whole(package), default=package.encode)) == on_the_wire
    need("orjson", "msgspec")
    assert json.loads(_orjson()([whole(package)], default=package.encode)) == [on_the_wire]
    with pytest.raises(TypeError, match="TextResourceContents"):
        _orjson()(whole(package))
    write = importlib.import_module("msgspec.json").encode
    for hook in ({}, {"enc_hook": package.encode}):
        with pytest.raises(RuntimeError, match="TextResourceContents"):
            write([whole(package)], **hook)


# --- On the command line and in files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--with", "stor"],
            ["unknown part 'stor' (command line)", "did you mean 'store'?", "the parts are builders, forms, mcp, "],
        ),
        (["--with", "files"], ["the part 'files' (command line) is for a package of a client", "--role client"]),
        (["--role=client", "--protocol=2", "--with=files"], ["the part 'files' (command line) is for protocol 1"]),
        (["--with", "none", "--with", "store"], ["--with none is for a package without parts"]),
        (["--remote"], ["it is a part now: use --with remote"]),
    ],
)
def test_parts_that_cannot_be(arguments: list[str], told: list[str], tmp_path: Path) -> None:
    ran = run_acpgen("build", "--out", "acp", *arguments, cwd=tmp_path)
    assert ran.code == 2
    text = " ".join(ran.stderr.replace("│", " ").split())
    assert [each for each in told if each not in text] == []
    assert not (tmp_path / "acp").exists()


def test_a_part_of_which_nothing_is_left_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nschema = "schema.json"\n')  # which has hardly a name
    ran = project.run("build", "--with", "store")
    assert "warning: the package has nothing of the part 'store'" in ran.stderr
    assert "part-empty" not in project.run("build").stderr, "it was not asked for"


def test_a_file_of_before_is_told_its_new_line(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nrole = "client"\nremote = true\n')
    ran = project.run("build")
    assert ran.code == 2
    assert 'add it to the array `with`, as in with = ["sessions", "remote"]' in ran.stderr


def test_an_empty_list_is_the_bare_package(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nprotocol = 1\nwith = []\n')
    project.good("build")
    assert [*(project.path / "acp" / "helpers").glob("*.py")] == [project.path / "acp" / "helpers" / "__init__.py"]
    project.good("check", "--with", "none")
    ran = project.run("check", "--with", "store")
    assert (ran.code, "options.with: none -> store" in ran.stdout) == (1, True)
    project.config('out = "acp"\nwith = ["store", "testing"]\n')
    (settings,) = json.loads(project.good("config", "--format", "json").stdout)
    assert settings["settings"]["with"] == {"value": ["store", "testing"], "from": "pyproject.toml:6"}


def test_a_build_that_loses_a_part_says_how_to_keep_it(tmp_path: Path) -> None:
    build_package(tmp_path / "acp", "--with", "store", "--with", "pydantic", "--with", "trace")
    ran = run_acpgen("build", "--out", "acp", cwd=tmp_path)
    assert "warning: the package no longer has the parts pydantic, store, trace [part-dropped]\n" in ran.stderr
    assert 'with = ["pydantic", "store", "trace"]; `acpgen parts`' in ran.stderr
    assert "WireForm" not in ran.stderr
    assert "warning" not in run_acpgen("build", "--out", "acp", "--with", "store", cwd=tmp_path).stderr


def test_a_part_of_which_only_compiled_files_are_left_is_missing(tmp_path: Path) -> None:
    """A build removes its own files alone, and Python has written others into the folder of the part."""
    program = "import acp; acp.Connection(acp.memory_transports()[0], acp.ConnectionOptions(trace='trace.jsonl'))"

    def ran() -> str:
        given = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=60, check=False)
        return done.stderr

    build_package(tmp_path / "acp", "--with", "trace")
    assert ran() == ""
    run_acpgen("build", "--out", "acp", "--with", "none", cwd=tmp_path)
    left = (tmp_path / "acp" / "_runtime" / "trace").rglob("*.*")
    assert {path.suffix for path in left} == {".pyc"}
    assert "ImportError: ConnectionOptions(trace=…) needs the part 'trace', which this package is without" in ran()


@pytest.mark.full
def test_a_part_that_went_breaks_code(tmp_path: Path) -> None:
    build_package(tmp_path / "old", "--with", "store")
    build_package(tmp_path / "new", "--with", "turns", "--with", "trace")
    ran = run_acpgen("diff", "old", "new", "--format", "json", "--fail-on", "source", cwd=tmp_path)
    assert ran.code == 1
    found = {each["rule"]: each["source"]["verdict"] for each in json.loads(ran.stdout)["findings"]}
    assert found == {"part-added": "ok", "part-removed": "breaks"}
    assert run_acpgen("diff", "old", "v1/2026-11-02", cwd=tmp_path).code == 0


def test_the_parts_of_a_role_as_data(tmp_path: Path) -> None:
    """The text of all is a golden case."""
    ran = run_acpgen("parts", "--role", "agent", "--format", "json", cwd=tmp_path)
    found = {each["part"]: each for each in json.loads(ran.stdout)}
    assert {*found} == {part for part, initials in FOR.items() if "a" in initials}
    assert found["turns"]["default"] == ["agent"]
    assert found["store"]["needs"] == ["builders", "turns"]


def test_every_part_is_built_in_tests() -> None:
    for role in Role:
        assert every_part((role,), [1, 2]) == {name for name, at in FOR.items() if role.value[0] in at} - {"remote"}
    assert package_folder(SchemaChoice(), roles=(Role.AGENT,), parts=()).is_dir()
