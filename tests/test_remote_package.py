"""The part `remote`: the files that it adds to a package, and that it changes nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.data_tables import merged_sessions
from acpgen.ir.model import Model
from acpgen.output import LOCK_NAME
from tests.command_line import build_package, tree
from tests.project_support import Project, negotiating_schema
from tests.support import import_folder, model_of, runtime_module

BOTH = ("--protocol", "1", "--protocol", "2")
PUBLIC = {
    "agent": {"asgi.py"},
    "client": {"remote.py"},
    "both": {"asgi.py", "remote.py"},
    "proxy": {"asgi_proxy.py", "bridge.py", "network.py"},
}
SERVING = {"asgi_application", "asgi_http", "hosting", "routing", "shared_memory", "streams"}
CONNECTING = {
    "remote_failures",
    "remote_http",
    "remote_post",
    "remote_socket",
    "remote_transport",
    "shared_memory",
    "streams",
}
PRIVATE = {"agent": SERVING, "client": CONNECTING, "both": SERVING | CONNECTING, "proxy": SERVING | CONNECTING}
ADDED = {
    role: {*PUBLIC[role], *(f"_runtime/network/{name}.py" for name in (*PRIVATE[role], "sessions", "__init__"))}
    for role in PUBLIC
}


# --- The files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "options"),
    [
        pytest.param("agent", (), id="agent"),
        pytest.param("client", ("--protocol", "2"), id="client", marks=pytest.mark.full),
        pytest.param("both", BOTH, id="both", marks=pytest.mark.full),
        pytest.param("proxy", (), id="proxy"),
        pytest.param("proxy", BOTH, id="proxy of both", marks=pytest.mark.full),
    ],
)
def test_packages_with_and_without_it_differ_by_the_added_files(
    role: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    plain = tree(build_package(tmp_path / "plain", "--role", role, *options, "--with", "trace"))
    remote = tree(build_package(tmp_path / "remote", "--role", role, *options, "--with", "trace", "--with", "remote"))
    assert remote.keys() - plain.keys() == ADDED[role]
    assert [path for path, data in plain.items() if remote.get(path) != data] == [LOCK_NAME]


@pytest.mark.full
def test_the_manifest_differs_by_the_option_the_digest_of_its_facts_and_the_files(tmp_path: Path) -> None:
    plain, remote = (
        json.loads((build_package(tmp_path / name, *options) / LOCK_NAME).read_text())
        for name, options in (("plain", ("--with", "none")), ("remote", ("--with", "remote")))
    )
    assert "sessions_sha256" not in plain["schema"]
    remote["schema"].pop("sessions_sha256")
    assert (plain["options"].pop("with"), remote["options"].pop("with")) == ([], ["remote"])
    for path in ADDED["agent"]:
        del remote["files"][path]
    assert remote == plain


@pytest.mark.full
def test_without_the_option_again_the_files_go(tmp_path: Path) -> None:
    folder = build_package(tmp_path / "acp", "--with", "remote")
    assert (folder / "asgi.py").exists()
    assert not ADDED["agent"] & tree(build_package(folder)).keys()


# --- What is in them ------------------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(("role", "below", "modules"), [("both", "", "spawn, stdio"), ("proxy", ".proxy", "conductor")])
def test_importing_the_package_imports_none_of_them(role: str, below: str, modules: str, tmp_path: Path) -> None:
    build_package(tmp_path / "acp", "--role", role, *BOTH, "--with", "remote")
    names = sorted(path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in ADDED[role])
    script = (
        "import sys, acp\n"
        "for name in acp.__all__: getattr(acp, name)\n"
        f"import acp.v1.helpers, acp.v2.helpers\nfrom acp._runtime{below} import {modules}\n"
        f"names = {names!r}\n"
        "print([name for name in names if f'acp.{name}' in sys.modules or name in acp.__all__ or hasattr(acp, name)])"
    )
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def rules_of(folder: Path) -> Any:
    return runtime_module(import_folder(folder), "sessions")


@pytest.mark.full
def test_the_rules_are_the_facts_of_the_release(tmp_path: Path) -> None:
    found = rules_of(build_package(tmp_path / "rules_old_acp", "--release", "0.10.8", "--with", "remote"))
    assert found.HANDSHAKE == "initialize"
    rules = found.SESSION_RULES
    assert rules == (
        "sessionId",
        {"session/new"},
        {"session/load": (("agentCapabilities", "loadSession"),)},
        {"session/prompt", "session/cancel", "session/set_mode", "session/set_config_option"},
        set(),
    )


@pytest.mark.full
def test_those_of_several_versions_are_merged(tmp_path: Path) -> None:
    rules = rules_of(build_package(tmp_path / "rules_both_acp", *BOTH, "--with", "remote")).SESSION_RULES
    assert rules.attach["session/load"] == (("agentCapabilities", "loadSession"),)
    assert rules.attach["session/resume"] == (
        ("agentCapabilities", "sessionCapabilities", "resume"),
        ("capabilities", "session"),
    )
    assert {"session/set_mode", "tool_call/cancel", "session/close"} <= rules.scoped
    assert rules.end == {"session/close", "session/delete"}


# --- Errors ---------------------------------------------------------------------------------------------------------


def test_it_needs_the_runtime(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nwith = ["remote"]\n')
    ran = project.run("build", "--no-runtime")
    assert ran.code == 2
    assert "the part 'remote' needs --runtime, which is off" in ran.stderr
    assert "hint: use --runtime, or leave the part out" in ran.stderr
    assert not (project.path / "acp").exists()


@pytest.mark.full
def test_an_output_may_turn_off_what_the_table_around_it_says(tmp_path: Path) -> None:
    outputs = '[tool.acpgen.outputs.a]\nout = "a"\nwith = []\n[tool.acpgen.outputs.b]\nout = "b"\nruntime = true\n'
    project = Project(tmp_path / "p", f'with = ["remote"]\nruntime = false\n{outputs}')
    project.good("build")
    assert not (project.path / "a/asgi.py").exists()
    assert (project.path / "b/asgi.py").exists()


@pytest.fixture
def models() -> list[Model]:
    return [model_of(SchemaChoice(protocol=protocol))[0] for protocol in (1, 2)]


def code_of(models: list[Model]) -> str:
    with pytest.raises(InputError) as caught:
        merged_sessions(models)
    (found,) = caught.value.diagnostics
    assert found.hint
    return found.code


def test_a_version_without_negotiation_or_sessions_is_refused(models: list[Model]) -> None:
    assert code_of([models[0], replace(models[1], sessions=None)]) == "remote-unknown"
    assert code_of([replace(models[0], negotiation=None)]) == "remote-unknown"


def test_versions_must_agree_on_the_handshake(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.schema(negotiating_schema("Thing"), "one.json")
    schemas = ("--schema", "1=schema.json", "--schema", "2=one.json")
    ran = project.run("build", *BOTH, *schemas, "--with", "remote", "--out", "acp")
    assert ran.code == 2
    assert "[protocols-differ]" in ran.stderr
