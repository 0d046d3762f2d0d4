"""`acpgen check`: what is stale, edited, missing or too much, and the command that fixes it."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acpgen.cli import check as command
from tests.command_line import tree
from tests.project_support import Project, ping_schema

ONE = 'out = "src/acp"\nschema = "schema.json"\nruntime = false\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose one output is up to date."""
    made = Project(tmp_path / "p", ONE)
    made.good("build")
    return made


def findings(project: Project, *arguments: str, code: int = 1) -> list[tuple[str, str]]:
    """The flaw and the path of each finding; checks that nothing is written."""
    before = tree(project.path)
    ran = project.run("check", "--format", "json", *arguments)
    assert ran.code == code, ran.stderr
    assert tree(project.path) == before
    return [(each["flaw"], each["path"]) for output in json.loads(ran.stdout) for each in output["findings"]]


def test_what_is_up_to_date_is_0(project: Project) -> None:
    ran = project.good("check")
    assert ran.stdout == "src/acp: up to date\n"
    assert ran.stderr == ""
    assert findings(project, code=0) == []


def new_schema(project: Project) -> None:
    project.schema(ping_schema("Thing", "Other"))


def edited(project: Project) -> None:
    with (project.path / "src/acp/types.py").open("a") as file:
        file.write("# mine\n")


def removed(project: Project) -> None:
    (project.path / "src/acp/errors.py").unlink()


def extra(project: Project) -> None:
    (project.path / "src/acp/mine.py").write_text("mine\n")
    (project.path / "src/acp/sub").mkdir()
    (project.path / "src/acp/sub/notes.txt").write_text("mine\n")


def gone(project: Project) -> None:
    shutil.rmtree(project.path / "src/acp")


def lock_edited(project: Project) -> None:
    path = project.path / "src/acp/acpgen.lock"
    path.write_text(path.read_text() + "\n")


def lock_gone(project: Project) -> None:
    (project.path / "src/acp/acpgen.lock").unlink()


def with_runtime(project: Project) -> None:
    project.config(ONE.replace("runtime = false\n", ""))


def stale_file(project: Project) -> None:
    project.good("build", "--runtime")


def damaged(project: Project) -> None:
    path = project.path / "src/acp/types.py"
    path.write_text("mine = 1\n" + path.read_text())


def lock_damaged(project: Project) -> None:
    path = project.path / "src/acp/acpgen.lock"
    path.write_text(path.read_text().replace('"files"', 'mine, "files"'))


def replaced_by_a_link(project: Project) -> None:
    (project.path / "src/acp/types.py").rename(project.path / "types.py")
    (project.path / "src/acp/types.py").symlink_to(project.path / "types.py")


CASES: dict[str, tuple[Callable[[Project], None], set[tuple[str, str]]]] = {
    "new schema": (
        new_schema,
        {("stale", name) for name in ("__init__.py", "acpgen.lock", "_other_direction.py", "types.py")},
    ),
    "edited": (edited, {("edited", "types.py")}),
    "removed": (removed, {("missing", "errors.py")}),
    "extra": (extra, {("extra", "mine.py"), ("extra", "sub/notes.txt")}),
    "gone": (gone, {("missing", "")}),
    "manifest edited": (lock_edited, {("edited", "acpgen.lock")}),
    "manifest gone": (lock_gone, {("missing", "acpgen.lock")}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_as_it_should_be(project: Project, case: str) -> None:
    change, expected = CASES[case]
    change(project)
    assert set(findings(project)) == expected
    (found,) = json.loads(project.run("check", "--format", "json").stdout)
    if case == "extra":
        assert found["fix"] is None
    else:
        project.good(*shlex.split(found["fix"])[1:])
        assert findings(project, code=0) == []


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        (damaged, "types.py", "foreign-file"),
        (lock_damaged, "acpgen.lock", "manifest-broken"),
        (replaced_by_a_link, "types.py", "symlink-in-output"),
    ],
)
def test_what_a_build_does_not_dare_to_overwrite(
    project: Project, change: Callable[[Project], None], path: str, code: str
) -> None:
    change(project)
    assert findings(project) == [("edited", path)]
    ran = project.run("check")
    assert "fix it with" not in ran.stdout
    assert f"[{code}]" in ran.stderr
    assert "hint: " in ran.stderr
    assert project.run("build").code == 2


def test_a_conflict_of_a_merge_is_for_a_build_to_resolve(project: Project) -> None:
    path = project.path / "src/acp/types.py"
    path.write_text("<<<<<<< ours\n" + path.read_text())
    assert findings(project) == [("edited", "types.py")]
    assert "fix it with" in project.run("check").stdout
    assert project.run("build").code == 0
    assert findings(project, code=0) == []


def test_other_options_make_files_stale(project: Project) -> None:
    with_runtime(project)
    found = findings(project)
    assert ("stale", "_runtime/connection.py") in found
    assert {flaw for flaw, _ in found} == {"stale"}


def test_a_file_that_is_no_longer_generated_is_stale(project: Project) -> None:
    stale_file(project)
    assert ("stale", "_runtime/connection.py") in findings(project)


def test_no_folder_at_all(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", ONE)
    assert findings(project) == [("missing", "")]
    ran = project.run("check")
    assert ran.stdout == "src/acp: there is no package\nfix it with: acpgen build\n"


def test_caches_and_hidden_files_are_nobodys_business(project: Project) -> None:
    folder = project.path / "src/acp"
    for path in ("__pycache__/types.cpython-311.pyc", ".DS_Store", ".idea/x.xml", "sub/__pycache__/a.pyc"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    assert findings(project, code=0) == []


def test_the_text_says_why_what_and_how_to_fix_it(project: Project) -> None:
    new_schema(project)
    project.config(f'{ONE}role = "both"\n')
    lines = project.run("check").stdout.splitlines()
    assert lines[0].startswith("src/acp: ")
    assert lines[0].endswith(" stale")
    assert "  options.roles: agent -> agent, client" in lines
    assert any(line.startswith("  schema.sha256: ") for line in lines)
    assert "  stale   client.py" in lines
    assert lines[-1] == "fix it with: acpgen build"


def test_the_reasons_name_extensions(project: Project) -> None:
    fragment: dict[str, Any] = {"fragment": 1, "id": "x", "revision": "1", "title": "X", "status": "vendor"}
    project.schema({**fragment, "protocols": [1], "$defs": {"Added": {"type": "object"}}}, "x.json")
    project.config(f'{ONE}extensions = ["./x.json"]\n')
    assert "extension x: none -> " in project.run("check").stdout


def test_the_diff_is_one(project: Project) -> None:
    edited(project)
    removed(project)
    lines = project.run("check", "--diff").stdout.splitlines()
    assert "--- src/acp/types.py" in lines
    assert "+++ src/acp/types.py" in lines
    assert "-# mine" in lines
    assert "--- /dev/null" in lines
    assert "+++ src/acp/errors.py" in lines
    (found,) = json.loads(project.run("check", "--diff", "--format", "json").stdout)
    assert "-# mine" in found["diff"].splitlines()


def test_line_ends_do_not_count(project: Project) -> None:
    """As git checks out on Windows: neither is anything stale, nor does a build write."""
    (project.path / "schema.json").write_text(json.dumps(ping_schema("Thing"), indent=2))
    project.good("build")
    files = [path for path in (project.path / "src/acp").rglob("*") if path.is_file()]
    for path in [project.path / "schema.json", *files]:
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = tree(project.path)
    assert findings(project, code=0) == []
    project.good("build", "--full")
    assert tree(project.path) == before
    edited(project)
    lines = project.run("check", "--diff").stdout.splitlines()
    assert [line for line in lines if line.startswith(("-", "+"))][2:] == ["-# mine"]


def test_a_link_to_a_folder_is_an_extra_file(project: Project) -> None:
    (project.path / "elsewhere").mkdir()
    (project.path / "src/acp/plugins").symlink_to(project.path / "elsewhere")
    assert findings(project) == [("extra", "plugins")]


def test_strict_holds_for_what_was_built_without_it(project: Project) -> None:
    odd = ping_schema("Thing")
    odd["$defs"]["Thing"]["x-odd"] = True
    project.schema(odd)
    project.good("build")
    project.good("check")
    project.config(f"{ONE}strict = true\n")
    for name in ("check", "build"):
        ran = project.run(name)
        assert ran.code == 2
        assert "[unknown-x-keyword]" in ran.stderr


def test_annotations_are_placed_from_the_top_of_the_repository(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(project)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    assert "::error file=p/src/acp/types.py,title" in project.run("check", "--format", "github").stdout
    assert "::error file=p/src/acp/types.py,title" in project.run("check", "--format", "github", below="src/x").stdout
    project.good("build")
    assert project.good("check", "--format", "github").stdout == ""


def test_annotations_for_github(project: Project) -> None:
    edited(project)
    extra(project)
    lines = project.run("check", "--format", "github").stdout.splitlines()
    assert lines[0] == (
        "::error file=src/acp/types.py,title=acpgen%3A edited::types.py was edited by hand%0Afix it with: acpgen build"
    )
    assert "file=src/acp/mine.py" in lines[1]
    assert "fix it with" not in lines[1]


def test_several_outputs_and_the_command_that_fixes_one(tmp_path: Path) -> None:
    tables = "".join(f'[tool.acpgen.outputs.{name}]\nout = "src/{name}"\n' for name in ("one", "two"))
    project = Project(tmp_path / "p", f'schema = "schema.json"\nruntime = false\n{tables}')
    project.good("build", "one")
    lines = project.run("check").stdout.splitlines()
    assert lines == ["src/one: up to date", "src/two: there is no package", "fix it with: acpgen build"]
    assert project.run("check", "two").stdout.splitlines()[-1] == "fix it with: acpgen build two"
    project.good("check", "one")


def test_without_a_configuration_the_command_is_the_same_with_build(project: Project) -> None:
    arguments = ["--no-config", "--schema", "schema.json", "--out", "it's/acp", "--no-runtime", "--keep-unknown"]
    arguments += ["--role", "both", "--extension", "./x.json"]
    fragment = {"fragment": 1, "id": "x", "revision": "1", "title": "X", "status": "vendor", "protocols": [1]}
    project.schema({**fragment, "$defs": {"Added": {"type": "object"}}}, "x.json")
    fix = project.run("check", *arguments).stdout.splitlines()[-1].removeprefix("fix it with: ")
    words = shlex.split(fix)
    assert words[:2] == ["acpgen", "build"]
    project.good(*words[1:])
    assert project.good("check", *arguments).stdout == "it's/acp: up to date\n"


def test_what_cannot_be_built_is_2(project: Project) -> None:
    project.schema({"$defs": {"Thing": {"$ref": "#/$defs/Thnig"}}})
    ran = project.run("check")
    assert (ran.code, ran.stdout) == (2, "")
    assert "[ref-not-found]" in ran.stderr
    assert json.loads(project.run("check", "--format", "json").stderr)[0]["code"] == "ref-not-found"


def test_many_findings_are_capped(project: Project) -> None:
    for number in range(command.CAP + 5):
        (project.path / f"src/acp/mine_{number}.py").write_text("")
    lines = project.run("check").stdout.splitlines()
    assert lines[0] == f"src/acp: {command.CAP + 5} extra"
    assert lines[-1] == "  … and 5 more"


def test_names_of_files_are_escaped(project: Project) -> None:
    (project.path / "src/acp/mi\x1b[31mne.py").write_text("")
    for form in ("text", "json", "github"):
        assert "\x1b" not in project.run("check", "--format", form).stdout
