"""Public names that a package had and has no longer: what a build says, and how they are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_support import Project, ping_schema

ONE = 'out = "acp"\nschema = "schema.json"\nruntime = false\n'
RENAMES = '[tool.acpgen.renames]\nThing = "Item"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose schema has just got another name for `Thing`."""
    made = Project(tmp_path / "p", ONE)
    made.good("build")
    made.schema(ping_schema("Item"))
    return made


def python(project: Project, code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-c", code], cwd=project.path, capture_output=True, text=True, check=False
    )


def test_the_manifest_has_the_public_names(project: Project) -> None:
    exported = python(project, "import acp, json; print(json.dumps(acp.__all__))").stdout
    assert project.lock("acp")["names"] == sorted(json.loads(exported))


def test_a_name_that_is_gone_is_told(project: Project) -> None:
    ran = project.good("build")
    assert "warning: Thing, which the package had, is gone [name-dropped]" in ran.stderr
    assert "[tool.acpgen.renames]" in ran.stderr
    assert project.good("build", "--full").stderr == ""  # once, for the old package is no more


def test_the_name_that_took_its_place_is_guessed(project: Project) -> None:
    project.schema(ping_schema("Things"))
    ran = project.good("build")
    assert "if Things took its place, keep the old name: [tool.acpgen.renames] Thing = 'Things'" in ran.stderr


def test_nothing_is_guessed_where_the_options_are_others(project: Project) -> None:
    project.config(ONE + "open = true\nkeep-unknown = true\nrole = 'client'\n")
    ran = project.good("build")
    assert "warning: Agent, which the package had, is gone [name-dropped]" in ran.stderr
    assert "hint: the package was built with other options before" in ran.stderr
    assert "keep the old name" not in ran.stderr


def test_names_that_stay_or_come_are_not_told(project: Project) -> None:
    project.schema(ping_schema("Thing", "More"))
    assert project.good("build").stderr == ""


def test_an_old_name_is_kept_and_warns(project: Project) -> None:
    project.config(ONE + RENAMES)
    assert project.good("build").stderr == ""
    code = "import acp; from acp import Thing; print(Thing is acp.Item, 'Thing' in acp.__all__)"
    found = python(project, code, "-W", "default")
    assert found.stdout.split() == ["True", "False"]
    assert found.stderr.splitlines()[0] == "<string>:1: DeprecationWarning: acp.Thing is now Item"
    assert "DeprecationWarning" in python(project, "from acp import Thing", "-W", "error").stderr


def test_the_new_name_and_everything_else_do_not_warn(project: Project) -> None:
    project.config(ONE + RENAMES)
    project.good("build")
    assert python(project, "from acp import *; from acp import Item", "-W", "error").stderr == ""
    found = python(project, "import acp; acp.Thang")
    assert "AttributeError: module 'acp' has no attribute 'Thang'" in found.stderr


def test_any_public_name_can_be_kept(project: Project) -> None:
    project.config(f'{ONE}[tool.acpgen.renames]\nparse = "decode"\nMISSING = "UNSET"\nServer = "Agent"\n')
    project.good("build")
    found = python(
        project, "import acp; print(acp.parse is acp.decode, acp.MISSING is acp.UNSET, acp.Server is acp.Agent)"
    )
    assert found.stdout.split() == ["True"] * 3


def test_a_rename_that_is_no_longer_listed_is_gone(project: Project) -> None:
    project.config(ONE + RENAMES)
    project.good("build")
    project.config(ONE)
    assert project.run("check").code == 1
    project.good("build")
    assert "AttributeError" in python(project, "import acp; acp.Thing").stderr


def test_an_old_name_that_is_still_there_is_a_mistake(project: Project) -> None:
    project.config(f'{ONE}[tool.acpgen.renames]\nPingRequest = "Item"\n')
    ran = project.run("build")
    assert ran.code == 2
    assert "[rename-taken]" in ran.stderr


def test_a_module_of_the_package_is_no_old_name(project: Project) -> None:
    project.config(f'{ONE}[tool.acpgen.renames]\ntypes = "Item"\n')
    assert "[rename-taken]" in project.run("build").stderr


def test_a_new_name_that_is_not_there_is_a_mistake(project: Project) -> None:
    project.config(f'{ONE}[tool.acpgen.renames]\nThing = "Itme"\n')
    for command in ("build", "check"):
        ran = project.run(command)
        assert ran.code == 2
        assert "[rename-unknown]" in ran.stderr
        assert "did you mean 'Item'?" in ran.stderr


def test_a_rename_for_all_outputs_holds_where_it_can(tmp_path: Path) -> None:
    tables = "".join(f'[tool.acpgen.outputs.{role}]\nout = "{role}"\nrole = "{role}"\n' for role in ("agent", "client"))
    base = 'schema = "schema.json"\nruntime = false\n'
    project = Project(tmp_path / "p", f'{base}{tables}[tool.acpgen.renames]\nServer = "Agent"\nOld = "Thing"\n')
    project.good("build")
    assert python(project, "import agent, client; agent.Server, agent.Old, client.Old").returncode == 0
    assert "AttributeError" in python(project, "import client; client.Server").stderr
    project.good("build", "client")
    project.good("build", "--out", "client")
    assert project.lock("client")["options"]["renames"] == {"Old": "Thing", "Server": "Agent"}
    project.good("check")


def test_an_output_adds_renames_of_its_own(tmp_path: Path) -> None:
    tables = '[tool.acpgen.renames]\nOld = "Thing"\n[tool.acpgen.outputs.a]\nout = "a"\nrenames = { Older = "Thing" }\n'
    project = Project(tmp_path / "p", f'schema = "schema.json"\nruntime = false\n{tables}')
    project.good("build")
    assert python(project, "import a; a.Old, a.Older").returncode == 0
