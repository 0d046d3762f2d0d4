"""Public names that a package had and has no longer: what a build says, and how they are kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from acpgen.emit.interface import names
from tests.project_support import Project, negotiating_schema, ping_schema, public_names

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


def test_the_names_of_a_package_are_those_that_it_exports(project: Project) -> None:
    exported = python(project, "import acp, json; print(json.dumps(acp.__all__))").stdout
    text = (project.path / "acp" / "__init__.py").read_text()
    assert names({"__init__.py": text}) == set(json.loads(exported))
    assert "names" not in project.lock("acp")


def warnings(project: Project) -> list[str]:
    """The diagnostics of a build, without the last line, which says what it wrote."""
    *found, _ = project.good("build").stderr.splitlines()
    return found


def test_a_name_that_is_gone_is_told(project: Project) -> None:
    ran = project.good("build")
    assert "warning: the package no longer defines Thing [name-dropped]" in ran.stderr
    assert "[tool.acpgen.renames]" in ran.stderr
    assert project.good("build", "--full").stderr == ""  # once, for the old package is no more


def test_the_name_that_took_its_place_is_guessed(project: Project) -> None:
    project.schema(ping_schema("Things"))
    ran = project.good("build")
    assert "to keep the old name as an alias of Things: [tool.acpgen.renames] Thing = 'Things'" in ran.stderr


def test_nothing_is_guessed_where_the_options_are_others(project: Project) -> None:
    project.config(ONE + "open = true\nkeep-unknown = true\nrole = 'client'\n")
    ran = project.good("build")
    assert "warning: the package no longer defines Agent [name-dropped]" in ran.stderr
    assert "hint: the package was built with other options before" in ran.stderr
    assert "keep the old name" not in ran.stderr


def test_names_that_stay_or_come_are_not_told(project: Project) -> None:
    project.schema(ping_schema("Thing", "More"))
    assert warnings(project) == []


def test_an_old_name_is_kept_and_warns(project: Project) -> None:
    project.config(ONE + RENAMES)
    assert warnings(project) == []
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


# --- Packages of several protocols ----------------------------------------------------------------------------------

SEVERAL = 'out = "acp"\nprotocol = [1, 2]\nschema = { 1 = "one.json", 2 = "two.json" }\nruntime = false\n'


@pytest.fixture
def several(tmp_path: Path) -> Project:
    """A project with two protocols; the schema of the second has just got another name for `Thing`."""
    made = Project(tmp_path / "p", SEVERAL)
    for name in ("one.json", "two.json"):
        made.schema(negotiating_schema("Thing"), name)
    made.good("build")
    made.schema(negotiating_schema("Item"), "two.json")
    return made


def test_the_names_of_each_subpackage(several: Project) -> None:
    package = several.path / "acp"
    found = names({path.relative_to(package).as_posix(): path.read_text() for path in package.rglob("*.py")})
    assert {"v1", "v2", "RequestError", "v1.Thing", "v2.Thing", "v1.Agent", "v2.RequestError"} <= found
    assert "Thing" not in found
    assert found == public_names(package)


def test_a_name_that_a_subpackage_has_lost_can_be_kept_as_the_hint_says(several: Project) -> None:
    several.schema(negotiating_schema("Things"), "two.json")
    assert warnings(several) == [
        "warning: the package no longer defines v2.Thing [name-dropped]",
        "  hint: to keep the old name as an alias of Things: [tool.acpgen.renames] Thing = 'Things'",
    ]
    several.config(f"{SEVERAL}[tool.acpgen.renames]\nThing = 'Things'\n")
    several.good("build")
    found = python(several, "from acp import v1, v2; print(v2.Thing is v2.Things, v1.Thing.__name__)")
    assert found.stdout.split() == ["True", "Thing"]


def test_a_name_that_is_kept_in_its_subpackage_is_not_told(several: Project) -> None:
    several.config(SEVERAL + RENAMES)
    assert warnings(several) == []
    found = python(several, "from acp.v2 import Thing", "-W", "default")
    assert found.stderr.splitlines()[0] == "<string>:1: DeprecationWarning: acp.v2.Thing is now Item"
    assert "AttributeError" in python(several, "import acp; acp.Thing").stderr


def test_only_names_of_the_same_subpackage_are_guessed(several: Project) -> None:
    several.schema(negotiating_schema("Thing", "Things"), "one.json")
    ran = several.good("build")
    assert "the package no longer defines v2.Thing [name-dropped]" in ran.stderr
    assert "to keep the old name" not in ran.stderr


def test_an_old_name_is_kept_in_each_subpackage_that_has_the_new_one(several: Project) -> None:
    several.config(f'{SEVERAL}[tool.acpgen.renames]\nServer = "Agent"\nMistake = "RequestError"\nOld = "Item"\n')
    several.good("build")
    code = (
        "import acp; from acp import v1, v2\n"
        "print(v1.Server is v1.Agent, v2.Server is v2.Agent, v2.Old is v2.Item, hasattr(v1, 'Old'))\n"
        "print(all(each.Mistake is acp.RequestError for each in (acp, v1, v2)), hasattr(acp, 'Server'))"
    )
    assert python(several, code).stdout.split() == ["True", "True", "True", "False", "True", "False"]


@pytest.mark.parametrize(
    ("renames", "code"),
    [
        ('Thing = "Itme"', "rename-unknown"),
        ('Old = "v1"', "rename-unknown"),
        ('Old = "v2.Item"', "config-bad-value"),
        ('PingRequest = "Item"', "rename-taken"),
        ('v2 = "RequestError"', "rename-taken"),
    ],
)
def test_mistakes_in_the_names_of_several_protocols(several: Project, renames: str, code: str) -> None:
    several.config(f"{SEVERAL}[tool.acpgen.renames]\n{renames}\n")
    ran = several.run("build")
    assert ran.code == 2
    assert f"[{code}]" in ran.stderr
    if "Itme" in renames:
        assert "did you mean 'Item'?" in ran.stderr


def test_names_that_move_into_subpackages_are_told_in_one_line(several: Project) -> None:
    several.config('out = "acp"\nschema = "one.json"\nruntime = false\n')
    assert warnings(several) == [
        "warning: the package no longer defines v1 [name-dropped]",
        "  hint: the package was built with other options before",
        "warning: the package no longer defines v2 [name-dropped]",
        "  hint: the package was built with other options before",
    ]
    several.config(SEVERAL)
    warning, hint = warnings(several)
    assert warning.startswith("warning: the package no longer defines AGENT_METHODS and ")
    assert warning.endswith(" others at its top [name-dropped]")
    assert hint == "  hint: import them from a subpackage, such as v1"


# --- The text of the package ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", ["typeddict", "pydantic"])
def test_a_type_that_models_have_lost(tmp_path: Path, flavour: str) -> None:
    tree = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Tree"}}, {"type": "string"}]}
    odd = {"type": "object", "properties": {"a-b": {"type": "string"}}, "required": ["a-b"]}
    schema = ping_schema("Thing")
    project = Project(tmp_path / "p", f'out = "acp"\nschema = "schema.json"\nflavour = "{flavour}"\n')
    project.schema({**schema, "$defs": {**schema["$defs"], "Tree": tree, "Odd": odd, "Kind": {"enum": ["a", "b"]}}})
    project.good("build")
    project.schema(ping_schema("Item"))
    assert [line for line in warnings(project) if "hint" not in line] == [
        f"warning: the package no longer defines {name} [name-dropped]" for name in ("Kind", "Odd", "Thing", "Tree")
    ]


def test_a_package_that_was_laid_out_by_another_program(project: Project) -> None:
    init = project.path / "acp" / "__init__.py"
    head, tail = init.read_text().split("__all__ = ")
    listed = tail.partition("]")[0]
    init.write_text(f"{head}__all__ = {' '.join(listed.split())}]\n".replace('"', "'"))
    assert "no longer defines Thing" in project.good("build").stderr


def test_names_of_both_sides_of_a_merge() -> None:
    sides = ['\n__all__ = [\n    "Both",\n    "One",\n]\n', '\n__all__ = [\n    "Both", "Two",\n]\n']
    assert names({"__init__.py": "<<<<<<< HEAD" + "=======".join(sides) + ">>>>>>> other\n"}) == {"Both", "One", "Two"}


def test_a_package_of_somebody_else_is_searched_and_not_run(project: Project) -> None:
    init = project.path / "acp" / "__init__.py"
    more = '"a\x1b[2J", "' + "x" * 10_000 + '", "1a", "Gone",'
    init.write_text(init.read_text().replace("__all__ = [", f"raise SystemExit\n__all__ = [{more}") + "(" * 100_000)
    said = project.good("build").stderr
    assert "no longer defines Gone" in said
    assert "\x1b" not in said
    assert "1a" not in said
