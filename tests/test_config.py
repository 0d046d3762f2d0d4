"""`[tool.acpgen]` in `pyproject.toml`: where it is found, its values, its precedence, and reports of mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.config.keys import KEYS
from acpgen.schema.bundled import find_release
from tests.command_line import run_acpgen, tree
from tests.project_support import Project, negotiating_schema, ping_schema

ONE = 'out = "src/acp"\nschema = "schema.json"\n'
TWO = """schema = "schema.json"
runtime = false

[tool.acpgen.outputs.agent]
out = "src/agent/acp"

[tool.acpgen.outputs.client]
out = "src/client/acp"
role = "client"
runtime = true
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with one output."""
    return Project(tmp_path / "p", ONE)


def settings(project: Project, *arguments: str, below: str = ".") -> dict[str, tuple[Any, str]]:
    """The value and the origin of each key of the only output."""
    (found,) = json.loads(project.good("config", "--format", "json", *arguments, below=below).stdout)
    return {key: (each["value"], each["from"]) for key, each in found["settings"].items()}


# --- Where it is, and precedence ------------------------------------------------------------------------------------


def test_build_without_arguments_builds_what_is_configured(project: Project) -> None:
    project.good("build")
    assert project.lock("src/acp")["schema"]["name"] == "schema.json"
    assert (project.path / "src/acp/agent.py").exists()


def test_several_outputs(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    project.good("build")
    assert not (project.path / "src/agent/acp/_runtime/connection.py").exists()
    assert (project.path / "src/client/acp/_runtime/connection.py").exists()
    assert (project.path / "src/client/acp/client.py").exists()


def test_an_output_is_built_by_its_name(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    project.good("build", "client")
    assert [path.name for path in (project.path / "src").iterdir()] == ["client"]


@pytest.mark.parametrize("below", ["src", "src/deep/er"])
def test_it_is_found_above(project: Project, below: str) -> None:
    project.good("build", below=below)
    assert (project.path / "src/acp/agent.py").exists()
    up = "../" * len(below.split("/"))
    out, origin = settings(project, below=below)["out"]
    assert (project.path / below / out).resolve() == project.path / "src/acp"
    assert origin == f"{up}pyproject.toml:5"


def test_files_without_a_table_are_passed_by(project: Project) -> None:
    (project.path / "inner").mkdir()
    (project.path / "inner/pyproject.toml").write_text('[project]\nname = "acpgen-user"\n')
    project.good("build", below="inner")
    assert (project.path / "src/acp/agent.py").exists()


def test_the_search_ends_at_the_top_of_a_checkout(project: Project) -> None:
    (project.path / "inner" / ".git").mkdir(parents=True)
    ran = project.run("build", below="inner")
    assert ran.code == 2
    assert "[no-output]" in ran.stderr
    assert "--out" in ran.stderr


def test_a_file_can_be_named_or_none_be_read(project: Project, tmp_path: Path) -> None:
    other = Project(tmp_path / "other", 'out = "there"\nschema = "schema.json"\n')
    project.good("build", "--config", other.path / "pyproject.toml")
    assert (other.path / "there/agent.py").exists()
    assert not (project.path / "src").exists()
    assert "[no-output]" in project.run("build", "--no-config").stderr


def test_the_command_line_wins(project: Project) -> None:
    found = settings(project, "--role", "client", "--keep-unknown", "--no-runtime", "--release", "0.10.8")
    assert found["role"] == ("client", "command line")
    assert found["keep-unknown"] == (True, "command line")
    assert found["runtime"] == (False, "command line")
    assert found["release"] == ("0.10.8", "command line")
    assert found["schema"] == (None, "default")  # a release is another schema
    assert found["out"] == ("src/acp", "pyproject.toml:5")
    assert found["protocol"] == (1, "default")


def test_what_the_file_switches_on_can_be_switched_off(project: Project) -> None:
    project.config(f"{ONE}open = true\nkeep-unknown = true\nstrict = true\nruntime = false\n")
    project.good("build", "--no-open", "--no-keep-unknown", "--no-strict", "--runtime")
    options = project.lock("src/acp")["options"]
    assert (options["open"], options["keep_unknown"], options["runtime"]) == (False, False, True)


@pytest.mark.parametrize(
    ("out", "better"),
    [
        ("my-pkg", "my_pkg"),
        ("src/my agent", "my_agent"),
        ("class", "class_acp"),
        ("1x", "acp_1x"),
        ("\ufb01le", "file"),
        ("deep/con", "con_acp"),
        ("Aux", "Aux_acp"),
        ("json", "json_acp"),
        ("src/asyncio", "asyncio_acp"),
        ("é-", "acp"),
    ],
)
def test_a_folder_that_nothing_can_import_is_refused(project: Project, out: str, better: str) -> None:
    ran = project.run("build", "--out", out)
    assert ran.code == 2
    assert "[package-name]" in ran.stderr
    assert f"; choose {better}\n" in ran.stderr
    assert not (project.path / out).exists()
    project.good("build", "--out", better)


@pytest.mark.parametrize("out", ["my-project/acp", "my_agent/json", "Schema", "_acp"])
def test_a_folder_that_can_be_imported_from_somewhere_is_taken(project: Project, out: str) -> None:
    project.good("build", "--out", out)


@pytest.mark.parametrize(("role", "is_open"), [("agent", False), ("client", True), ("both", True)])
def test_a_client_is_open_by_default(project: Project, role: str, is_open: bool) -> None:
    project.config(f"{ONE}role = '{role}'\n")
    assert settings(project)["open"] == (is_open, "default")
    project.good("build")
    assert project.lock("src/acp")["options"]["open"] is is_open
    for flag in (True, False):
        asked = "--open" if flag else "--no-open"
        assert settings(project, asked)["open"] == (flag, "command line")


def test_the_former_name_of_a_key_has_the_new_one_for_a_hint(project: Project) -> None:
    project.config(f"{ONE}open-unions = true\n")
    ran = project.run("build")
    assert ran.code == 2
    assert "hint: the key is now called `open`" in ran.stderr
    project.config(ONE)
    ran = project.run("build", "--open-unions")
    assert ran.code == 2
    assert "--open" in ran.stderr.replace("--open-unions", "")


def test_the_folder_of_an_output_on_the_command_line_means_that_output(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    project.good("build", "--out", "src/../src/client/acp")
    assert (project.path / "src/client/acp/client.py").exists()
    project.good("build", "--out", "elsewhere")  # what holds for all outputs holds for another one, too
    assert (project.path / "elsewhere/agent.py").exists()
    assert not (project.path / "elsewhere/_runtime/connection.py").exists()


def test_other_commands_look_at_the_configured_schema(project: Project) -> None:
    assert "ping" in project.good("methods").stdout
    assert "session/new" in project.good("methods", "--release", "2026-11-02").stdout
    assert "session/new" in project.good("methods", "--no-config").stdout


def test_commands_that_look_at_one_schema_ask_which(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO + 'release = "0.10.8"\n')
    ran = project.run("methods")
    assert ran.code == 2
    assert "--output agent or client" in ran.stderr
    assert "ping" in project.good("methods", "--output", "agent").stdout
    assert "session/new" in project.good("methods", "--output", "client").stdout


def test_extensions_by_path_are_relative_to_the_file(project: Project) -> None:
    fragment = {"fragment": 1, "id": "x", "revision": "1", "title": "X", "status": "vendor", "protocols": [1]}
    added = {"$defs": {"Added": {"type": "object", "properties": {}}}}
    (project.path / "x.json").write_text(json.dumps({**fragment, **added}))
    project.config(f'{ONE}extensions = ["x.json"]\n')
    project.good("build", below="deep/er")
    assert "Added" in project.names("src/acp")


def test_config_is_a_table_for_people(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    lines = [line.split() for line in project.good("config").stdout.splitlines()]
    assert lines[0] == ["output", "key", "value", "from"]
    assert ["client", "role", "client", "pyproject.toml:13"] in lines
    assert ["agent", "runtime", "false", "pyproject.toml:6"] in lines
    assert ["agent", "strict", "false", "default"] in lines
    assert len(lines) == 1 + 2 * len(KEYS)
    assert {line[0] for line in map(str.split, project.good("config", "client").stdout.splitlines())} == {
        "output",
        "client",
    }


@pytest.mark.parametrize(
    ("text", "release", "origin"),
    [
        ("", find_release(1).name, "default"),
        ("protocol = 2\n", find_release(2).name, "default"),
        ('release = "0.10.8"\n', "0.10.8", "pyproject.toml:5"),
        ("protocol = [1, 2]\n", {"1": find_release(1).name, "2": find_release(2).name}, "default"),
        (
            'protocol = [1, 2]\nrelease = { 1 = "0.10.8" }\n',
            {"1": "0.10.8", "2": find_release(2).name},
            "pyproject.toml:6, default",
        ),
        ('schema = "schema.json"\n', None, "default"),
        ("protocol = 7\n", None, "default"),
    ],
)
def test_the_release_in_effect_is_shown(project: Project, text: str, release: object, origin: str) -> None:
    project.config(f'{text}out = "src/acp"\n')
    assert settings(project)["release"] == (release, origin)


# --- Several protocols ------------------------------------------------------------------------------------------------

BOTH = 'out = "acp"\nprotocol = [2, 1]\nrelease = { 1 = "0.10.8" }\nschema = { 2 = "two.json" }\nruntime = false\n'


@pytest.fixture
def several(tmp_path: Path) -> Project:
    """A project with a bundled schema for protocol 1, and a file for protocol 2."""
    made = Project(tmp_path / "p", BOTH)
    made.schema(negotiating_schema("Thing"), "one.json")
    made.schema(negotiating_schema("Item"), "two.json")
    return made


def built_from(project: Project, out: str = "acp") -> dict[int, str]:
    """The name of the schema of each protocol of a package."""
    return {each["protocol"]: each["schema"]["name"] for each in project.lock(out)["protocols"]}


def test_each_protocol_has_its_schema(several: Project) -> None:
    several.good("build", below="deep/er")
    assert built_from(several) == {1: "v1/0.10.8", 2: "two.json"}
    assert (several.path / "acp/v1/agent.py").exists()
    assert (several.path / "acp/v2/agent.py").exists()
    assert not (several.path / "acp/agent.py").exists()
    several.good("check")


def test_the_tables_are_shown(several: Project) -> None:
    found = settings(several)
    assert found["protocol"] == ([2, 1], "pyproject.toml:6")
    assert found["release"] == ({"1": "0.10.8"}, "pyproject.toml:7")
    assert found["schema"] == ({"2": "two.json"}, "pyproject.toml:8")
    lines = [line.split(maxsplit=2) for line in several.good("config").stdout.splitlines()]
    shown = {key: rest.rsplit(maxsplit=1)[0] for _, key, rest in lines}
    assert (shown["protocol"], shown["release"], shown["schema"]) == ("2, 1", "1 = 0.10.8", "2 = two.json")


def test_a_table_of_the_command_line_wins_for_its_protocols(several: Project) -> None:
    found = settings(several, "--release", "2=2026-11-02")
    assert found["release"] == ({"1": "0.10.8", "2": "2026-11-02"}, "pyproject.toml:7, command line")
    assert found["schema"] == (None, "default")
    found = settings(several, "--release", "1=2026-11-02")
    assert found["release"] == ({"1": "2026-11-02"}, "pyproject.toml:7, command line")
    assert found["schema"] == ({"2": "two.json"}, "pyproject.toml:8")
    assert settings(several, "--release", "2026-11-02")["schema"] == (None, "default")
    several.good("build", "--schema", "1=one.json")
    assert built_from(several) == {1: "one.json", 2: "two.json"}


def test_a_table_of_an_output_wins_for_its_protocols(several: Project) -> None:
    shared = BOTH.replace('out = "acp"\n', "")
    several.config(f'{shared}[tool.acpgen.outputs.a]\nout = "a"\nrelease = {{ 2 = "2026-11-02" }}\n')
    several.good("build")
    assert built_from(several, "a") == {1: "v1/0.10.8", 2: "v2/2026-11-02"}


def test_an_output_selects_from_the_tables_around_it(several: Project) -> None:
    shared = BOTH.replace('out = "acp"\n', "")
    several.config(f'{shared}[tool.acpgen.outputs.a]\nout = "a"\nprotocol = 1\n')
    several.good("build")
    lock = several.lock("a")
    assert (lock["protocol"], lock["schema"]["name"]) == (1, "v1/0.10.8")


def test_a_table_leaves_the_value_for_all_protocols_to_the_others(several: Project) -> None:
    several.config('out = "acp"\nprotocol = [1, 2]\nrelease = "2026-11-02"\n')
    options = ("--release", "1=0.10.8", "--format", "json")
    [output] = json.loads(several.good("config", *options).stdout)
    assert output["settings"]["release"]["value"] == {"1": "0.10.8", "2": "2026-11-02"}


@pytest.mark.parametrize(("protocol", "name"), [("1", "v1/0.10.8"), ("2", "two.json")])
def test_a_protocol_of_the_command_line_selects_from_the_tables(several: Project, protocol: str, name: str) -> None:
    several.good("build", "--protocol", protocol)
    lock = several.lock("acp")
    assert (lock["protocol"], lock["schema"]["name"]) == (int(protocol), name)
    assert "initialize" in several.good("methods", "--protocol", protocol).stdout


@pytest.mark.parametrize("protocol", ["[1, 1]", "[1]", "1"])
def test_one_protocol_makes_no_subpackage(several: Project, protocol: str) -> None:
    several.config(f'out = "acp"\nprotocol = {protocol}\nschema = {{ 1 = "one.json" }}\nruntime = false\n')
    several.good("build")
    assert several.lock("acp")["protocol"] == 1
    assert not (several.path / "acp/v1").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('protocol = [1, 2]\nrelease = { 3 = "x" }', "the release 'x' (pyproject.toml:7) is for protocol 3"),
        ('protocol = 2\nschema = { 1 = "one.json" }', "one.json' (pyproject.toml:7) is for protocol 1"),
        ('protocol = [1, 2]\nschema = "one.json"', "one.json' is not named"),
        ('protocol = [1, 2]\nrelease = { 1 = "0.10.8" }\nschema = { 1 = "one.json" }', "exclude each other"),
        ('protocol = [1, 2]\nrelease = "2026-11-02"\nschema = { 1 = "one.json" }', "exclude each other"),
    ],
)
def test_schemas_that_do_not_fit_the_protocols(several: Project, text: str, message: str) -> None:
    several.config(f'out = "acp"\n{text}\n')
    for command in ("build", "check", "methods"):
        ran = several.run(command)
        assert (ran.code, ran.stdout) == (2, "")
        assert message in ran.stderr
        assert "[usage]" in ran.stderr
    assert not (several.path / "acp").exists()


# --- Mistakes --------------------------------------------------------------------------------------------------------

MISTAKES = {
    "no protocols": ("protocol = []\n", "5:1", "or an array of such numbers"),
    "a protocol that is no number": ('protocol = [1, "2"]\n', "5:1", "or an array of such numbers"),
    "protocol 0": ("protocol = [0, 1]\n", "5:1", "or an array of such numbers"),
    "a table without protocols": ('release = { newest = "0.10.8" }\n', "5:1", "a table of strings by protocol"),
    "a table of others than names": ("[tool.acpgen.release]\n1 = 5\n", "5:1", "a table of strings by protocol"),
    "a table of paths that only shells know": ('schema = { 2 = "~/x" }\n', "5:1", "a table of them by protocol"),
    "unknown key": ('extention = ["logout"]\n', "5:1", "did you mean 'extensions'?"),
    "unknown key, nothing near": ("zzz = 1\n", "5:1", "the keys are: out, role"),
    "unknown key of an output": ('[tool.acpgen.outputs.a]\nout = "a"\nrole_ = "agent"\n', "7:1", "'role'?"),
    "a choice": ('role = "server"\n', "5:1", "'agent', 'client', 'proxy', 'both'"),
    "a number": ('protocol = "1"\n', "5:1", "a whole number"),
    "true is no number": ("protocol = true\n", "5:1", "a whole number"),
    "a flag": ("strict = 1\n", "5:1", "true or false"),
    "a path": ("out = []\n", "5:1", "a string with a path"),
    "an empty path": ('out = ""\n', "5:1", "a string with a path"),
    "a path with a NUL": ('out = "a\\u0000b"\n', "5:1", "a string with a path"),
    "a path that only shells know": ('out = "~/acp"\n', "5:1", "a string with a path"),
    "a spec with a NUL": ('extensions = ["a\\u0000b"]\n', "5:1", "an array of strings"),
    "a name that the package needs": (
        "[tool.acpgen.renames]\nTYPE_CHECKING = 'Thing'\n",
        "5:1",
        "a table of names",
    ),
    "specs": ('extensions = "logout"\n', "5:1", "an array of strings"),
    "names": ('[tool.acpgen.renames]\n"no name" = "Thing"\n', "5:1", "a table of names"),
    "a keyword of Python": ('[tool.acpgen.renames]\nclass = "Thing"\n', "5:1", "a table of names"),
    "a name that is not public": ('[tool.acpgen.renames]\n__all__ = "Thing"\n', "5:1", "a table of names"),
    "both of two": ('out = "a"\nrelease = "0.10.8"\nschema = "s.json"\n', "6:1", "exclude each other"),
    "one output and several": ('out = "a"\n[tool.acpgen.outputs.b]\nout = "b"\n', "5:1", "several"),
    "an output without a folder": ('[tool.acpgen.outputs.b]\nrole = "agent"\n', "5:1", "has no `out`"),
    "outputs that are none": ("outputs = 5\n", "5:1", "a table of tables"),
    "an output that is none": ("[tool.acpgen.outputs]\na = 5\n", "5:1", "a table of tables"),
    "no TOML": ("out = \n", "5:7", "not TOML"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_place(project: Project, mistake: str) -> None:
    text, place, message = MISTAKES[mistake]
    project.config(text)
    for command in ("build", "check", "config"):
        ran = project.run(command)
        assert ran.code == 2
        assert ran.stdout == ""
        assert f"pyproject.toml:{place}: error:" in ran.stderr, ran.stderr
        assert message in ran.stderr, ran.stderr
    assert not (project.path / "src").exists()


def test_all_mistakes_are_told_at_once(project: Project) -> None:
    project.config('rolle = "agent"\nstrict = 5\n[tool.acpgen.outputs.a]\nprotocol = -1\n')
    found = json.loads(project.run("build", "--format", "json").stderr)
    assert [(each["line"], each["pointer"]) for each in found] == [
        (5, "/tool/acpgen/rolle"),
        (6, "/tool/acpgen/strict"),
        (7, "/tool/acpgen/outputs/a"),
        (8, "/tool/acpgen/outputs/a/protocol"),
    ]


def test_places_in_other_layouts() -> None:
    """Dotted keys, quoted keys and inline tables: the nearest thing that has a line of its own."""
    from acpgen.config.pyproject import _place

    text = 'tool.acpgen.strict = 1\n[tool . "acpgen".outputs]\na = { out = 5 }\n  "b c".out = 5\n'
    places = [("strict",), ("outputs", "a", "out"), ("outputs", "b c", "out"), ("nowhere",)]
    found = [_place(Path("p.toml"), text, ("tool", "acpgen", *keys)) for keys in places]
    assert [(each.line, each.column) for each in found[:3]] == [(1, 1), (3, 1), (4, 3)]


@pytest.mark.parametrize("table", ["acpgen = 5", "acpgen = []"])
def test_a_table_that_is_none(project: Project, table: str) -> None:
    (project.path / "pyproject.toml").write_text(f"[tool]\n{table}\n")
    ran = project.run("build")
    assert ran.code == 2
    assert "must be a table" in ran.stderr


def test_a_named_file_without_a_table(project: Project) -> None:
    (project.path / "other.toml").write_text("[tool.other]\n")
    for name, code in (("other.toml", "config-missing"), ("nowhere.toml", "unreadable")):
        assert f"[{code}]" in project.run("build", "--config", name).stderr


def test_bytes_that_are_no_text(project: Project) -> None:
    (project.path / "pyproject.toml").write_bytes(b'[tool.acpgen]\nout = "\xff"\n')
    assert "[bad-toml]" in project.run("build").stderr


def test_an_unknown_output_is_answered_with_the_nearest(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    assert "did you mean 'client'?" in project.run("build", "clinet").stderr
    assert "the outputs are: agent, client" in project.run("check", "zzz").stderr
    assert "[tool.acpgen.outputs.NAME]" in run_acpgen("build", "agent", cwd=tmp_path).stderr


def test_two_outputs_in_one_folder(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO.replace("src/client/acp", "src/x/../agent/acp"))
    ran = project.run("build")
    assert ran.code == 2
    assert "[same-folder]" in ran.stderr
    project.good("build", "client")


@pytest.mark.parametrize("folders", [("src/a", "src/a/b"), ("src/a/b", "src/a")])
def test_outputs_one_in_the_other(tmp_path: Path, folders: tuple[str, str]) -> None:
    tables = "".join(f'[tool.acpgen.outputs.{name}]\nout = "{out}"\n' for name, out in zip("xy", folders, strict=True))
    ran = Project(tmp_path / "p", f'schema = "schema.json"\n{tables}').run("build")
    assert ran.code == 2
    assert "[same-folder]" in ran.stderr
    assert "one in the other" in ran.stderr


def test_an_output_may_be_named_twice(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TWO)
    project.good("build", "agent", "agent")


def test_the_folder_of_the_project_is_no_folder_for_a_package(project: Project) -> None:
    project.config(ONE.replace("src/acp", "."))
    ran = project.run("build")
    assert ran.code == 2
    assert "[folder-refused]" in ran.stderr
    assert "pyproject.toml" in ran.stderr


@pytest.mark.parametrize("others", ["main.py", "tool/__init__.py"])
def test_a_folder_with_other_python_code_is_no_folder_for_a_package(tmp_path: Path, others: str) -> None:
    folder = tmp_path / "work"
    (folder / others).parent.mkdir(parents=True)
    (folder / others).write_text("print('mine')\n", encoding="utf-8")
    (tmp_path / "schema.json").write_text(json.dumps(ping_schema()), encoding="utf-8")
    before = tree(folder)
    ran = run_acpgen("build", "--schema", "../schema.json", "--out", ".", cwd=folder)
    assert ran.code == 2
    assert f"error: the output folder . has the Python code {others}, which would import modules of the" in ran.stderr
    assert "[folder-refused]\n  hint: give the package a folder of its own" in ran.stderr
    assert tree(folder) == before


def test_a_module_of_ones_own_in_a_package_is_left_alone(project: Project) -> None:
    project.good("build")
    mine = project.path / "src/acp/mine.py"
    mine.touch()
    (project.path / "src/acp/types.py").unlink()
    project.good("build")
    assert mine.exists()


def test_the_rest_of_a_first_build_that_was_killed_is_completed(project: Project) -> None:
    project.good("build")
    before = tree(project.path)
    for name in ("__init__.py", "acpgen.lock"):
        (project.path / "src/acp" / name).unlink()
    project.good("build")
    assert tree(project.path) == before


def test_nothing_is_written_while_one_output_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: permission bits do not stop root."""
    import os

    project = Project(tmp_path / "p", TWO)
    (project.path / "src/client/acp").mkdir(parents=True)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("client/acp") and real(path, mode))
    ran = project.run("build")
    assert ran.code == 2
    assert "[folder-unwritable]" in ran.stderr
    assert not (project.path / "src/agent").exists()


def test_a_file_that_is_named_through_a_link(project: Project, tmp_path: Path) -> None:
    (project.path / "inner").mkdir()
    (project.path / "inner" / "pyproject.toml").write_text(f'[tool.acpgen]\n{ONE.replace("src/acp", "../acp")}')
    project.schema(ping_schema("Inner"), "inner/schema.json")
    (tmp_path / "link").symlink_to(project.path / "inner")
    project.good("build", "--config", tmp_path / "link" / "pyproject.toml")
    assert "Inner" in project.names("acp")


def test_an_extension_without_an_ending_is_a_path_all_the_same(project: Project) -> None:
    fragment = {"fragment": 1, "id": "x", "revision": "1", "title": "X", "status": "vendor", "protocols": [1]}
    project.schema({**fragment, "$defs": {"Added": {"type": "object"}}}, "added")
    project.config(f'{ONE}extensions = ["./added"]\n')
    project.good("build")
    assert "Added" in project.names("src/acp")


def test_a_text_for_the_terminal_is_escaped(project: Project) -> None:
    project.config('"a\\u001b[31m" = 1\n')
    ran = project.run("build")
    assert "\x1b" not in ran.stderr
    assert ran.code == 2
