"""The command line as a user meets it: exit codes, what goes to stdout and what to stderr, and what is written when."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import acpgen
from acpgen.diagnostics import input_error
from acpgen.emit.runtime import copied_files, copied_modules
from acpgen.roles import Role
from tests.command_line import Outcome, run_acpgen, tree
from tests.support import REPOSITORY, schema_of

PLAIN = schema_of(
    Thing={"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    PingRequest={"type": "object", "x-method": "ping", "x-side": "agent"},
    PingResponse={"type": "object", "x-method": "ping", "x-side": "agent"},
)
ODD = schema_of(**PLAIN["$defs"], Odd={"type": "object", "properties": {"a": {"type": "string", "x-odd": True}}})
BROKEN = schema_of(Thing={"$ref": "#/$defs/Thnig"})
OUTPUT_FILES = {
    *("__init__.py", "acpgen.lock", "agent.py", "codec.py", "errors.py", "methods.py", "types.py"),
    "_details.py",
    *copied_files(copied_modules((Role.AGENT,), runtime=True)),
    "py.typed",
}

COMMANDS = ("build", "check", "config", "diff", "docs", "extensions", "init", "methods", "parts", "rfd", "show")
CONTROL = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u2028-\\u202e]")
"""Characters that a terminal, or a program that reads lines, acts upon."""


class Folder:
    """A working folder with schema files in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("plain.json", PLAIN)
        self.write("odd.json", ODD)
        self.write("broken.json", BROKEN)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        (self.path / name).write_text(json.dumps(content, indent=2), encoding="utf-8")

    def run(self, *arguments: str) -> Outcome:
        return run_acpgen(*arguments, cwd=self.path)

    def build(self, schema: str = "plain.json", *arguments: str, out: str = "out") -> Outcome:
        return self.run("build", "--schema", schema, "--out", out, *arguments)

    def times(self) -> dict[str, int]:
        out = self.path / "out"
        files = (path for path in out.rglob("*") if path.is_file())
        return {path.relative_to(out).as_posix(): path.stat().st_mtime_ns for path in files}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def plain(text: str) -> str:
    """`text` without colours, boxes and line breaks, none of which means anything."""
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[─-╿]", " ", text).split())


# --- Exit codes ------------------------------------------------------------------------------------------------------


@pytest.mark.every_python
def test_success_is_0_and_a_line_about_what_comes_next(folder: Folder) -> None:
    ran = folder.build()
    written = f"out: {len(OUTPUT_FILES)} files written; next, import Agent from the package, and commit it\n"
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", written)
    assert tree(folder.path / "out").keys() == OUTPUT_FILES


@pytest.mark.every_python
def test_warnings_are_told_and_do_no_harm(folder: Folder) -> None:
    ran = folder.build("odd.json")
    assert (ran.code, ran.stdout) == (0, "")
    assert "warning: acpgen does not know `x-odd`" in ran.stderr
    assert tree(folder.path / "out").keys() == OUTPUT_FILES


def test_bad_input_is_2_and_writes_nothing(folder: Folder) -> None:
    ran = folder.build("broken.json")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("broken.json:5:15: error: `$ref` to 'Thnig'")
    assert not (folder.path / "out").exists()


@pytest.mark.parametrize("command", ["methods", "extensions"])
def test_bad_input_is_2_for_every_command(folder: Folder, command: str) -> None:
    ran = folder.run(command, "--release", "0.0.1")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: no release '0.0.1'")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("build",), "--out"),
        (("build", "--out", "out", "--role", "pilot"), "pilot"),
        (("build", "--out", "out", "--protocol", "one"), "'--protocol'"),
        (("build", "--out", "out", "--colour"), "--colour"),
        (("build", "--out", "out", "stray"), "stray"),
        (("bild",), "bild"),
        (("trace",), "name the FILE to check"),
        (("trace", "one.log", "two.log"), "one FILE can be checked at a time"),
    ],
)
def test_usage_errors_are_2_and_name_the_mistake(folder: Folder, arguments: tuple[str, ...], message: str) -> None:
    before = tree(folder.path)
    ran = folder.run(*arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in plain(ran.stderr)
    assert tree(folder.path) == before


@pytest.mark.every_python
def test_a_bug_in_acpgen_is_3_and_asks_for_a_report(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("acpgen.emit.package.emit", fail)
    ran = folder.build()
    assert (ran.code, ran.stdout) == (3, "")
    assert "Traceback" in ran.stderr
    assert "error: ZeroDivisionError: oh [internal]\n  hint: this is a bug in acpgen" in ran.stderr
    assert not (folder.path / "out").exists()


def test_a_failure_of_acpgen_s_own_checks_is_3(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acpgen.emit.runtime.HEADER", "no Code at all")
    ran = folder.build()
    assert (ran.code, ran.stdout) == (3, "")
    assert "[internal]" in ran.stderr
    assert not (folder.path / "out").exists()


def test_a_reader_that_went_away_is_no_error(folder: Folder) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "acpgen", "methods", "--format", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder.path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


# --- --no-runtime ------------------------------------------------------------------------------------------------


def test_without_the_runtime_a_package_has_no_connections(folder: Folder) -> None:
    with_it = folder.build("plain.json", "--role", "both")
    names = ("options", "process", "connection", "spawn", "stdio", "transport")
    runtime = {f"_runtime/{name}.py" for name in names}
    assert (with_it.code, runtime - tree(folder.path / "out").keys()) == (0, set())

    without = folder.build("plain.json", "--role", "both", "--no-runtime")
    assert (without.code, runtime & tree(folder.path / "out").keys()) == (0, set())
    check = "import out, sys; assert not hasattr(out, 'Connection') and 'asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], cwd=folder.path, check=True)


# --- --strict, --dry-run, --verbose ----------------------------------------------------------------------------------


def test_strict_makes_warnings_errors(folder: Folder) -> None:
    ran = folder.build("odd.json", "--strict")
    assert ran.code == 2
    assert not (folder.path / "out").exists()
    assert "error: acpgen does not know `x-odd`" in ran.stderr


def test_strict_holds_for_a_package_that_was_built_without_it(folder: Folder) -> None:
    assert folder.build("odd.json").code == 0
    ran = folder.build("odd.json", "--strict")
    assert ran.code == 2
    assert "x-odd" in ran.stderr


def test_warnings_are_told_again_by_a_full_build(folder: Folder) -> None:
    first, again = folder.build("odd.json"), folder.build("odd.json", "--full")
    assert again.stderr != ""
    assert first.stderr.startswith(again.stderr)


def test_a_dry_run_prints_the_plan_and_writes_nothing(folder: Folder) -> None:
    before = tree(folder.path)
    ran = folder.build("plain.json", "--dry-run")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [f"create {name}" for name in sorted(OUTPUT_FILES)]
    assert tree(folder.path) == before


def test_a_dry_run_tells_new_changed_and_stale_files_apart(folder: Folder) -> None:
    folder.build("plain.json", "--role", "both")
    (folder.path / "out" / "errors.py").unlink()
    before = folder.times()
    ran = folder.build("odd.json", "--role", "agent", "--dry-run")
    plan = dict(reversed(line.split()) for line in ran.stdout.splitlines())
    assert plan["client.py"] == "delete"
    assert plan["errors.py"] == "create"
    assert plan["types.py"] == "update"
    assert not {"_runtime/answers.py", "_runtime/dispatch.py"} & plan.keys()
    assert folder.times() == before


def test_a_dry_run_of_what_is_up_to_date_prints_nothing(folder: Folder) -> None:
    folder.build()
    ran = folder.build("plain.json", "--dry-run")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "")


def test_verbose_tells_files_and_the_outcome_on_stderr(folder: Folder) -> None:
    ran = folder.build("plain.json", "--verbose")
    assert ran.stdout == ""
    assert {f"create out/{name}" for name in OUTPUT_FILES} <= set(ran.stderr.splitlines())
    assert f"\nout: {len(OUTPUT_FILES)} files written; " in ran.stderr


# --- What a second build does ----------------------------------------------------------------------------------------


def test_a_second_build_is_skipped_by_the_manifest(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.build()
    before = folder.times()
    monkeypatch.setattr("acpgen.pipeline.compile_protocol", None)
    ran = folder.build("plain.json", "--verbose")
    assert ran.code == 0
    assert ran.stderr.endswith("out: up to date\n")
    assert folder.times() == before


HEAVY = {"acpgen.ir.model", "black", "datamodel_code_generator", "jinja2", "jsonschema"}


def test_where_nothing_changed_nothing_is_imported_that_compiles(folder: Folder) -> None:
    folder.build()
    start = f"import sys; sys.argv[0] = 'acpgen'; sys.path.insert(0, {str(Path(acpgen.__file__).parent.parent)!r})"
    end = f"print('imported:', {HEAVY} & sys.modules.keys() or 'nothing', file=sys.stderr)"
    script = f"{start}\nimport acpgen.cli\ntry: acpgen.cli.main()\nfinally: {end}"
    arguments = ["build", "--schema", "plain.json", "--out", "out"]
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder.path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert ran.stderr.endswith("imported: nothing\n")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what builds a package in this checkout."""
    for name in ("acpgen", "templates", "schema"):
        shutil.copytree(REPOSITORY / name, tmp_path / "checkout" / name)  # with what is compiled already
    return tmp_path / "checkout"


def test_another_state_of_acpgen_builds_again(checkout: Path, folder: Folder) -> None:
    def build() -> str:
        command = [sys.executable, "-m", "acpgen", "build", "--schema", "plain.json", "--out", "out", "--verbose"]
        variables = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONUTF8": "1"}
        ran = subprocess.run(command, cwd=folder.path, env=variables, capture_output=True, text=True, check=True)
        return ran.stderr

    build()
    template, module = checkout / "templates/runtime/core/transport.py", checkout / "acpgen/emit/errors.py"
    for path in (template, module):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as git does in a checkout on Windows
    assert "update out/acpgen.lock" not in build()
    template.write_bytes(template.read_bytes() + b"# changed\n")
    assert "update out/_runtime/transport.py" in build()
    assert "update out/acpgen.lock" not in build()
    module.write_bytes(module.read_bytes() + b"# changed\n")
    assert "update out/acpgen.lock" in build()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--role", "pilot"), "'pilot' is not one of 'agent', 'client', 'proxy', 'both'"),
        (("--protocol", "two"), "valid int"),
        (("--out",), "requires an argument"),
        (("--rolle", "agent"), "No such option: --rolle"),
        (("--strict=yes",), "does not take a value"),
    ],
)
def test_a_value_of_another_type_is_a_usage_error(folder: Folder, arguments: tuple[str, ...], message: str) -> None:
    ran = folder.run("check", *arguments)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in plain(ran.stderr)


def test_full_compiles_and_leaves_equal_files_alone(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.build()
    before = folder.times()
    assert folder.build("plain.json", "--full").code == 0
    assert folder.times() == before
    monkeypatch.setattr("acpgen.pipeline.compile_protocol", None)
    assert folder.build("plain.json", "--full").code == 3


@pytest.mark.parametrize("options", [("--role", "client"), ("--keep-unknown",), ("--open",)])
def test_other_options_make_another_package(folder: Folder, options: tuple[str, ...]) -> None:
    folder.build()
    before = tree(folder.path / "out")
    ran = folder.build("plain.json", *options)
    assert ran.stderr.endswith(" changed; next, run your tests, and commit the package\n")
    assert tree(folder.path / "out")["acpgen.lock"] != before["acpgen.lock"]


def test_an_edited_file_is_built_again(folder: Folder) -> None:
    folder.build()
    before, edited = tree(folder.path / "out"), folder.path / "out" / "types.py"
    edited.write_text(edited.read_text() + "# mine\n")
    ran = folder.build()
    assert ran.code == 0
    assert "warning: out/types.py was edited after the last build, and is overwritten [edited-file]" in ran.stderr
    assert tree(folder.path / "out") == before


def test_an_edited_file_that_is_no_longer_generated_is_deleted_with_a_warning(folder: Folder) -> None:
    folder.build()
    edited = folder.path / "out" / "agent.py"
    edited.write_text(edited.read_text() + "# mine\n")
    ran = folder.build("plain.json", "--role", "client")
    assert "warning: out/agent.py was edited after the last build, and is deleted [edited-file]" in ran.stderr
    assert not edited.exists()


def test_a_changed_schema_updates_only_what_it_changes(folder: Folder) -> None:
    folder.build()
    before = folder.times()
    folder.write("plain.json", ODD)
    folder.build()
    changed = {name for name, time in folder.times().items() if time != before[name]}
    assert changed == {"types.py", "_details.py", "__init__.py", "acpgen.lock"}


def test_the_same_schema_gives_the_same_bytes_wherever_it_is(folder: Folder, tmp_path: Path) -> None:
    folder.build()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "plain.json").write_bytes((tmp_path / "plain.json").read_bytes())
    folder.build("elsewhere/plain.json", out="deep/in/missing/folders")
    assert tree(tmp_path / "deep/in/missing/folders") == tree(tmp_path / "out")
    assert str(tmp_path) not in str(tree(tmp_path / "out"))


def test_an_absolute_output_folder_will_do(folder: Folder, tmp_path: Path) -> None:
    assert folder.build(out=str(tmp_path / "there" / "acp")).code == 0
    assert tree(tmp_path / "there" / "acp").keys() == OUTPUT_FILES


def test_a_bundled_schema_builds_from_an_empty_folder(tmp_path: Path) -> None:
    ran = run_acpgen("build", "--out", "acp", "--dry-run", cwd=tmp_path)
    assert (ran.code, ran.stderr) == (0, "")
    assert "create agent.py" in ran.stdout.splitlines()
    assert tree(tmp_path) == {}


# --- Diagnostics in other forms --------------------------------------------------------------------------------------


def test_json_diagnostics_are_one_document_on_stderr(folder: Folder) -> None:
    ran = folder.build("broken.json", "--format", "json")
    assert (ran.code, ran.stdout) == (2, "")
    assert json.loads(ran.stderr) == [
        {
            "code": "ref-not-found",
            "severity": "error",
            "message": "`$ref` to 'Thnig', which is not defined",
            "file": "broken.json",
            "line": 5,
            "column": 15,
            "pointer": "/$defs/Thing/$ref",
            "hint": "did you mean 'Thing'?",
        }
    ]


def test_json_diagnostics_of_a_build_that_fails_late_are_one_document_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise input_error("write-failed", "the disk is full")

    monkeypatch.setattr("acpgen.output.apply", refuse)
    ran = folder.build("odd.json", "--format", "json")
    assert ran.code == 2
    assert [found["code"] for found in json.loads(ran.stderr)] == ["write-failed", "unknown-x-keyword"]


def test_json_diagnostics_of_nothing_are_an_empty_list(folder: Folder) -> None:
    assert json.loads(folder.build("plain.json", "--format", "json").stderr) == []


def test_diagnostics_as_annotations_of_github(folder: Folder) -> None:
    ran = folder.build("broken.json", "--format", "github")
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "::error file=broken.json,line=5,col=15,title=ref-not-found::"
        "`$ref` to 'Thnig', which is not defined%0Ahint: did you mean 'Thing'?\n"
    )
    assert folder.build("odd.json", "--format", "github").stderr.startswith("::warning file=odd.json,")


def test_the_name_of_a_file_ends_no_property_of_an_annotation(folder: Folder) -> None:
    (folder.path / "a,b%c.json").write_bytes((folder.path / "broken.json").read_bytes())
    ran = folder.build("a,b%c.json", "--format", "github")
    assert ran.stderr.startswith("::error file=a%2Cb%25c.json,line=5,")


@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_no_diagnostic_carries_control_characters_to_a_terminal(folder: Folder, form: str) -> None:
    folder.write("evil.json", schema_of(Thing={"$ref": "#/$defs/\u001b[31m\r\u202e\u2028::error::"}))
    text = json.dumps(schema_of(Thing={"$ref": "#/$defs/\u001b[31m\r\u202e\u2028::error::"}), ensure_ascii=False)
    (folder.path / "evil.json").write_text(text, encoding="utf-8")
    ran = folder.build("evil.json", "--format", form)
    assert ran.code == 2
    assert not CONTROL.search(ran.stderr)


@pytest.mark.parametrize("form", ["text", "json", "github"])
@pytest.mark.parametrize("name", ["\u001b[31m\nred\u202e.json", "\u2028::error::\u0085.json", "\udcff\u007f.json"])
def test_the_name_of_a_file_carries_no_control_characters_to_a_terminal(folder: Folder, name: str, form: str) -> None:
    broken = (folder.path / "broken.json").read_bytes()
    (folder.path / name).write_bytes(broken)
    ran = folder.build(name, "--format", form)
    assert ran.code == 2
    assert not CONTROL.search(ran.stderr)
    if form == "json":
        assert json.loads(ran.stderr)[0]["file"] == name
    else:
        assert ran.stderr.count("ref-not-found") == 1
        assert len(ran.stderr.splitlines()) == (1 if form == "github" else 4)


@pytest.mark.parametrize("options", [("--verbose",), ("--verbose", "--dry-run"), ("--verbose", "--no-runtime")])
def test_the_name_of_the_folder_carries_no_control_characters_to_a_terminal(
    folder: Folder, options: tuple[str, ...]
) -> None:
    ran = folder.run("build", "--schema", "plain.json", "--out", "\u001b[31m\u202ered/acp", *options)
    assert ran.code == 0
    assert "red" in ran.stderr
    assert not CONTROL.search(ran.stdout + ran.stderr)


def test_the_report_of_a_bug_carries_no_control_characters_to_a_terminal(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("\u001b[31m\u202e")

    monkeypatch.setattr("acpgen.pipeline.compile_protocol", fail)
    ran = folder.run("methods")
    assert ran.code == 3
    assert "Traceback" in ran.stderr
    assert not CONTROL.search(ran.stderr)


@pytest.mark.parametrize("form", ["text", "github"])
def test_a_long_name_is_cut(folder: Folder, form: str) -> None:
    folder.write("long.json", schema_of(**{"x" * 5_000: {"$ref": f"#/$defs/{'y' * 100_000}"}}))
    ran = folder.build("long.json", "--format", form)
    assert ran.code == 2
    assert "ref-not-found" in ran.stderr
    assert len(ran.stderr) < 10_000


def test_many_diagnostics_are_capped(folder: Folder) -> None:
    folder.write("many.json", schema_of(**{f"Thing{number}": {"$ref": "#/$defs/Gone"} for number in range(50)}))
    ran = folder.build("many.json")
    assert ran.stderr.count(": error: ") == 20
    assert ran.stderr.endswith("… and 30 more\n")
    everything = json.loads(folder.build("many.json", "--format", "json").stderr)
    assert len(everything) == 50


# --- methods and extensions ------------------------------------------------------------------------------------------


def test_methods_are_listed_below_the_origin_of_their_schema(folder: Folder) -> None:
    ran = folder.run("methods", "--schema", "plain.json")
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == "ACP v1, plain.json\n  ping  (request to the agent)\n      PingRequest → PingResponse\n"


def test_methods_show_the_capability_and_the_extension_that_they_need(folder: Folder) -> None:
    text = folder.run("methods", "--release", "0.10.8", "--extension", "logout").stdout
    assert """
  logout  (request to the agent)
      LogoutRequest → LogoutResponse
      needs agentCapabilities.authCapabilities.logout of InitializeResponse
      from logout, 2026-02-02
""" in text


@pytest.mark.parametrize(
    "command", [["methods", "--protocol", "1", "--protocol", "2"], ["methods", "--role", "proxy"], ["extensions"]]
)
def test_lists_fit_into_80_columns(folder: Folder, command: list[str]) -> None:
    lines = run_acpgen(*command, cwd=folder.path, columns=80).stdout.splitlines()
    assert len(lines) > 20
    assert max(map(len, lines)) <= 80


def test_methods_as_json(folder: Folder) -> None:
    ran = folder.run("methods", "--schema", "plain.json", "--format", "json")
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [
        {
            "method": "ping",
            "side": "agent",
            "kind": "request",
            "params": "PingRequest",
            "result": "PingResponse",
            "capability": None,
            "origin": "ACP v1, plain.json",
        }
    ]


def test_methods_of_a_role_are_those_that_it_handles(folder: Folder) -> None:
    names = {
        role: [row["method"] for row in json.loads(folder.run("methods", "--role", role, "--format", "json").stdout)]
        for role in ("agent", "client", "both")
    }
    assert "session/prompt" in names["agent"]
    assert "session/update" in names["client"]
    assert "session/update" not in names["agent"]
    assert set(names["both"]) == set(names["agent"]) | set(names["client"])
    assert "$/cancel_request" in set(names["agent"]) & set(names["client"])


def test_methods_of_a_proxy_are_those_that_it_passes_on(folder: Folder) -> None:
    options = ("--role", "proxy", "--extension", "mcp-over-acp@2026-08-22")
    text = folder.run("methods", *options).stdout
    assert """
  session/prompt  (request from the client)
      session_prompt: PromptRequest → PromptResponse
""" in text
    rows = json.loads(folder.run("methods", *options, "--format", "json").stdout)
    found = {(row["from"], row["kind"], row["method"]): row["handler"] for row in rows}
    assert len(found) == len(rows) == len({*found.values()})
    assert found["agent", "notification", "session/update"] == "session_update"
    assert found["client", "request", "mcp/message"] == "mcp_message_from_client"
    assert found["agent", "request", "mcp/message"] == "mcp_message_from_agent"
    assert "$/cancel_request" not in [row["method"] for row in rows]


def test_methods_show_what_an_extension_brings(folder: Folder) -> None:
    ran = folder.run("methods", "--release", "0.10.8", "--extension", "logout", "--format", "json")
    (row,) = [row for row in json.loads(ran.stdout) if row["method"] == "logout"]
    assert row["origin"] == "logout, 2026-02-02"
    assert row["capability"] == "agentCapabilities.authCapabilities.logout of InitializeResponse"


def test_methods_tell_warnings_on_stderr(folder: Folder) -> None:
    ran = folder.run("methods", "--schema", "odd.json", "--format", "json")
    assert len(json.loads(ran.stdout)) == 1
    assert "x-odd" in ran.stderr


def test_extensions_are_a_table_where_it_fits(folder: Folder) -> None:
    ran = run_acpgen("extensions", "--release", "0.10.8", cwd=folder.path, columns=400)
    assert (ran.code, ran.stderr) == (0, "")
    head, *rows = (re.split(r"  +", line) for line in ran.stdout.splitlines())
    assert head == ["extension", "here", "title", "status", "adds"]
    verdicts = {row[0]: row[1] for row in rows}
    assert list(verdicts)[1:5] == [
        *("auth-methods@2026-01-14", "auth-state@2026-03-07", "auth-state@2026-11-02", "logout@2026-02-02")
    ]
    assert list(verdicts.values())[1:5] == ["applies", "applies", "lacks a definition", "applies"]


def test_extensions_as_json(folder: Folder) -> None:
    ran = folder.run("extensions", "--format", "json")
    assert ran.stderr == ""
    by_name = {f"{each['extension']}@{each['revision']}": each for each in json.loads(ran.stdout)}
    logout = by_name["logout@2026-02-02"]
    assert set(logout) == {
        *("extension", "revision", "title", "status", "rfd", "verdict", "reasons", "methods", "definitions", "changed"),
    }
    assert logout["verdict"] in ("superseded", "conflicts")
    assert logout["reasons"]


def test_extensions_say_which_properties_and_values_they_add(folder: Folder) -> None:
    ran = folder.run("extensions", "--format", "json")
    changed = {each["extension"]: each["changed"] for each in json.loads(ran.stdout)}
    assert changed["token-usage"]["PromptResponse"] == ["usage"]
    assert changed["plan-operations"]["SessionUpdate"] == ["plan_update", "plan_removed"]
    table = run_acpgen("extensions", cwd=folder.path, columns=400).stdout
    assert "PromptResponse (usage)" in table
    assert "SessionUpdate (plan_update, plan_removed)" in table


def test_extensions_are_judged_against_a_schema_of_one_s_own(folder: Folder) -> None:
    ran = folder.run("extensions", "--schema", "plain.json", "--format", "json")
    logout = next(each for each in json.loads(ran.stdout) if each["extension"] == "logout")
    assert logout["verdict"] == "lacks a definition"
    assert "plain.json" in logout["reasons"][0]


@pytest.mark.parametrize("command", ["methods", "extensions"])
def test_tables_carry_no_control_characters(folder: Folder, command: str) -> None:
    name = "\u001b[31m\nx/\u202ey"
    folder.write("evil.json", schema_of(ARequest={"type": "object", "x-method": name, "x-side": "agent"}))
    ran = folder.run(command, "--schema", "evil.json")
    assert ran.code == 0
    assert not CONTROL.search(ran.stdout + ran.stderr)
    if command == "methods":
        assert len(ran.stdout.splitlines()) == 3


# --- Help, version, completion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples_that_are_commands(folder: Folder, command: str) -> None:
    ran = folder.run(command, "--help")
    assert (ran.code, ran.stderr) == (0, "")
    text = plain(ran.stdout)
    assert "Examples" in text
    assert f"acpgen {command}" in text.partition("Examples")[2]


@pytest.mark.every_python
def test_help_lists_the_commands_and_exit_codes(folder: Folder) -> None:
    text = plain(folder.run("--help").stdout)
    assert all(command in text for command in COMMANDS)
    assert "Exit codes: 0 fine, 1 findings, 2 usage or input, 3 a bug in acpgen." in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_help_text(folder: Folder, command: str) -> None:
    import typer.main

    from acpgen.cli.app import make_app

    group = typer.main.get_command(make_app())
    options = group.commands[command].params  # type: ignore[attr-defined]
    assert [option.name for option in options if not option.help] == []


def test_without_arguments_help_is_shown(folder: Folder) -> None:
    ran = folder.run()
    assert ran.code == 2
    assert all(command in plain(ran.stdout + ran.stderr) for command in COMMANDS)


def test_the_version(folder: Folder) -> None:
    ran = folder.run("--version")
    assert (ran.code, ran.stdout, ran.stderr) == (0, f"acpgen {acpgen.__version__}\n", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_a_shell(tmp_path: Path, shell: str) -> None:
    ran = _process("--show-completion", shell, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "_ACPGEN_COMPLETE" in ran.stdout


@pytest.mark.every_python
def test_acpgen_runs_as_a_module_from_an_empty_folder(tmp_path: Path) -> None:
    ran = _process("--version", cwd=tmp_path, module=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"acpgen {acpgen.__version__}\n", "")
    ran = _process("methods", "--release", "nope", cwd=tmp_path, module=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: no release 'nope'")
    assert tree(tmp_path) == {}


def _process(*arguments: str, cwd: Path, module: bool = False) -> subprocess.CompletedProcess[str]:
    """What acpgen does in a process of its own, as the installed script or as a module."""
    start = (
        ["-m", "acpgen"]
        if module
        else ["-c", "import sys; sys.argv[0] = 'acpgen'; import acpgen.cli; acpgen.cli.main()"]
    )
    command = [sys.executable, *start, *arguments]
    home = str(Path(acpgen.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": home, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def completed(folder: Path, line: str) -> list[str]:
    """What a shell offers for the last word of a line."""
    words = line.split(" ")
    asked = {"_ACPGEN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    script = "import sys; sys.argv = ['acpgen']\nfrom acpgen.cli import main\nmain()"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return ran.stdout.split()


CONFIG = '[tool.acpgen]\nprotocol = 2\n[tool.acpgen.outputs.agent]\nout = "a"\n[tool.acpgen.outputs.tests]\nout = "t"\n'


@pytest.mark.full
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acpgen build --extension auth-m", ["auth-methods", "auth-methods@2026-01-14"]),
        ("acpgen diff --new-extension logo", ["logout", "logout@2026-02-02"]),
        ("acpgen methods --protocol 1 --release 0", ["0.10.8"]),
        ("acpgen build a", ["agent"]),
        ("acpgen build --role agent --with te", ["testing"]),
        ("acpgen build --role client --with st", []),
        ("acpgen check --with no", ["none"]),
        ("acpgen show --output t", ["tests"]),
        ("acpgen show session/f", []),
        ("acpgen show --extension session-fork session/f", ["session/fork"]),
        ("acpgen show --protocol 1 --no-config PromptRes", ["PromptResponse"]),
    ],
)
def test_shells_complete_names(line: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    assert completed(tmp_path, line) == expected


@pytest.mark.parametrize("line", ["acpgen build a", "acpgen show session/", "acpgen show --protocol x session/"])
def test_completion_is_silent_where_the_configuration_is_broken(line: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.acpgen\n")
    assert completed(tmp_path, line) == []


def test_the_format_of_extension_files_is_printed_with_examples_that_fit_it(tmp_path: Path) -> None:
    schema = json.loads(run_acpgen("extensions", "--file-schema", cwd=tmp_path).stdout)
    changes = schema["$defs"]["change"]["properties"]
    fragment = {"fragment": 1, "id": "x", "revision": "1", "title": "X", "status": "vendor", "protocols": [1]}
    for key in ("members", "replace"):
        assert changes[key]["examples"]
        for example in changes[key]["examples"]:
            Draft202012Validator(schema).validate({**fragment, "changes": {"Thing": {key: example}}})


FULL = Path("/dev/full")


@pytest.mark.needs("/dev/full")
@pytest.mark.parametrize("command", ["extensions", "--version", "methods --format json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_stdout_is_no_bug(command: str, unbuffered: str, tmp_path: Path) -> None:
    with FULL.open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "acpgen", *command.split()],
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 2
    assert ran.stderr == "error: cannot write to stdout: No space left on device [stdout-unwritable]\n"


@pytest.mark.full
@pytest.mark.needs("posix")
@pytest.mark.parametrize("width", [60, 80, 140, 400])
@pytest.mark.parametrize("command", ["methods", "extensions"])
def test_a_terminal_of_any_width_shows_names_that_can_be_copied(command: str, width: int, tmp_path: Path) -> None:
    rows = json.loads(run_acpgen(command, "--format", "json", cwd=tmp_path).stdout)
    wanted = {row[key] for row in rows for key in ("method", "params", "capability") if row.get(key)}
    wanted |= {f"{row['extension']}@{row['revision']}" for row in rows if "extension" in row}
    shown = on_a_terminal([command], tmp_path, width=width).split()
    assert wanted
    assert {word for each in wanted for word in each.split()} <= set(shown)


def on_a_terminal(arguments: list[str], folder: Path, *, width: int) -> str:
    """What `acpgen ARGUMENTS` shows on a terminal, without its colours."""
    master, slave = os.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "acpgen", *arguments], cwd=folder, stdout=slave, stderr=slave, env=environment
    ):
        os.close(slave)
        shown = b""
        with suppress(OSError):  # as Linux says that the other end is closed
            while found := os.read(master, 65536):
                shown += found
    os.close(master)
    return plain(shown.decode())
