"""Methods that a package loses: what a comparison and a build say before nobody calls a user's handler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import run_acpgen
from tests.project_support import Project, ping_schema

OLD, NEW = "auth-state@2026-03-07", "auth-state@2026-11-02"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a package of an older revision of an extension, whose configuration has no revision."""
    project = Project(tmp_path_factory.mktemp("built") / "p", f'out = "acp"\nextensions = ["{OLD}"]\n')
    project.good("build")
    project.config('out = "acp"\nextensions = ["auth-state"]\n')
    return project.path


@pytest.mark.parametrize("spec", ["acp", "./acp/acpgen.lock"])
def test_a_comparison_has_the_extensions_that_a_build_would_have(built: Path, spec: str) -> None:
    ran = run_acpgen("diff", spec, "v1/2026-11-02", cwd=built)
    assert "auth-state, 2026-11-02" in ran.stdout
    assert "method removed: request to the agent" in ran.stdout
    ran = run_acpgen("diff", "v1/2026-11-02", spec, cwd=built)
    assert "new: " + spec in ran.stdout
    assert "getAuthState" in ran.stdout


def test_without_a_configuration_it_has_those_of_the_package(built: Path, tmp_path: Path) -> None:
    ran = run_acpgen("diff", built / "acp", "v1/2026-11-02", cwd=tmp_path)
    assert "no differences" in ran.stdout


def test_a_pinned_revision_is_compared(built: Path) -> None:
    project = Project(built, f'out = "acp"\nextensions = ["{OLD}", "logout"]\n')
    ran = project.good("diff", "acp", "v1/2026-11-02")
    assert "auth-state, 2026-03-07" in ran.stdout.splitlines()[1]
    project.config('out = "acp"\nextensions = ["auth-state"]\n')


def test_a_build_names_the_handler_and_what_took_its_place(built: Path) -> None:
    ran = run_acpgen("build", "--dry-run", cwd=built)
    handler = "Agent has no handler get_auth_state any more, for 'getAuthState': nothing calls that of your class"
    assert f"warning: {handler} [handler-dropped]" in ran.stderr
    assert f'hint: {NEW} has auth_status, auth_status_update instead; extensions = ["{OLD}"] keeps' in ran.stderr


def test_a_class_is_no_alias_of_something_else(tmp_path: Path) -> None:
    def schema(name: str, node: object) -> dict[str, object]:
        found = ping_schema()
        return {**found, "$defs": {**found["$defs"], name: node}}

    thing, values = {"type": "object", "properties": {"a": {"type": "string"}}}, {"enum": ["a", "b"]}
    project = Project(tmp_path / "p", 'out = "acp"\nschema = "schema.json"\nruntime = false\n')
    for old, new, is_suggested in ((thing, values, False), (values, thing, False), (values, {"enum": ["c"]}, True)):
        project.schema(schema("MethodStates", old))
        project.good("build", "--full")
        project.schema(schema("MethodState", new))
        ran = project.good("build")
        assert "no longer defines MethodStates" in ran.stderr
        assert ("MethodStates = 'MethodState'" in ran.stderr) is is_suggested, (old, new)


def test_a_method_with_another_name(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nschema = "schema.json"\n')
    project.good("build")
    renamed = {
        name: {**node, "x-method": "ping/again"} if "x-method" in node else node
        for name, node in ping_schema("Thing")["$defs"].items()
    }
    old = (project.path / "schema.json").read_text()
    project.schema({**ping_schema(), "$defs": renamed})
    said = project.good("build", "--dry-run").stderr
    assert "Agent has no handler ping any more, for 'ping'" in said
    assert "neither the schema nor an extension has the method" in said  # the old schema is not there any more
    (project.path / "schema.json").write_text(old)
    assert "handler-dropped" not in project.good("build", "--dry-run").stderr


def test_a_package_of_somebody_else_is_text(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'out = "acp"\nschema = "schema.json"\n')
    project.good("build")
    agent = project.path / "acp" / "agent.py"
    agent.write_text(agent.read_text() + "\nraise SystemExit\n" + "class Agent(\n" * 1000)
    project.schema({"$defs": {"Thing": {"type": "string"}}})
    said = project.good("build", "--dry-run").stderr
    assert "Agent has no handler ping any more" in said
