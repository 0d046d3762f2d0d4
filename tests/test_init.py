"""`acpgen init`, from the command to a project that runs: with its tests, with an editor, client with agent."""

from __future__ import annotations

import ast
import compileall
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import acpgen.scaffold
from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.ir.model import Role
from acpgen.scaffold import Project, project_files
from acpgen.schema.bundled import Release, find_release
from acpgen.schema.data import data_folder
from tests.command_line import run_acpgen, tree
from tests.needs import need
from tests.project_support import read_toml
from tests.support import REPOSITORY, fitting_fragments, without_slowness
from tests.test_no_special_cases import ALLOWED, name_pattern

ROLES, PROTOCOLS = ("agent", "client", "proxy"), (1, 2)
BOTH = PROTOCOLS
EACH_PROJECT = pytest.mark.parametrize(
    "protocols", [(1,), pytest.param((2,), marks=pytest.mark.full), pytest.param(BOTH, marks=pytest.mark.full)]
)
EACH_SPOKEN = pytest.mark.parametrize(
    ("protocols", "protocol"), [((1,), 1), pytest.param((2,), 2, marks=pytest.mark.full), (BOTH, 1), (BOTH, 2)]
)
"""Each project, with each version that it speaks."""
SECONDS = 300.0
"""How long a process may take before it counts as hanging."""

COMMON = {".gitattributes", ".gitignore", "README.md", "pyproject.toml", "tests/__init__.py"}
OWN = {
    "agent": {f"src/my_agent/{name}.py" for name in ("__init__", "__main__", "log", "work")},
    "client": {
        *(f"src/my_client/{name}.py" for name in ("__init__", "__main__", "chat", "screen", "terminal")),
        "tests/test_chat.py",
    },
    "proxy": {f"src/my_proxy/{name}.py" for name in ("__init__", "__main__", "folders")},
}
OF_A_PROTOCOL = {
    "agent": {"src/my_agent/agent", "tests/test_agent"},
    "client": {"src/my_client/client", "tests/fake_agent"},
    "proxy": {"src/my_proxy/guard", "tests/test_guard"},
}
"""The modules of each protocol, which in a project of both have its number."""


def own_files(role: str, protocols: tuple[int, ...]) -> set[str]:
    """The files of a project without the vendored code."""
    ends = [f"_v{protocol}.py" for protocol in protocols] if len(protocols) > 1 else [".py"]
    return COMMON | OWN[role] | {name + end for name in OF_A_PROTOCOL[role] for end in ends}


Projects = Callable[..., Path]


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Projects:
    """Projects by role and protocols, each made once."""
    home = tmp_path_factory.mktemp("projects")

    def get(role: str, *protocols: int) -> Path:
        folder = home / versions_of(protocols) / f"my-{role}"
        if not folder.exists():
            options = [f"--protocol={protocol}" for protocol in protocols]
            ran = run_acpgen("init", folder, "--role", role, *options, cwd=home)
            assert (ran.code, ran.stdout, ran.stderr.count("\n")) == (0, "", 1)
            assert re.search(r"/my-\w+: \d+ files written; next, run `python -m unittest` in it, and read", ran.stderr)
        return folder

    return get


def versions_of(protocols: tuple[int, ...]) -> str:
    return "-".join(f"v{protocol}" for protocol in protocols)


def environment(*projects: Path) -> dict[str, str]:
    """The environment in which the packages of `projects` can be imported, and nothing changes their folders.

    They are compiled once, beside them.
    """
    path = os.pathsep.join(str(project / "src") for project in projects)
    compiled = str(projects[0].parent / "compiled")
    return {**os.environ, "PYTHONPATH": path, "PYTHONUTF8": "1", "PYTHONPYCACHEPREFIX": compiled}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- What is written ---------------------------------------------------------------------------------------------


@EACH_PROJECT
@pytest.mark.parametrize("role", ROLES)
def test_a_project_is_written(projects: Projects, role: str, protocols: tuple[int, ...]) -> None:
    files = tree(projects(role, *protocols))
    vendored = {path for path in files if path.startswith(f"src/my_{role}/acp/")}
    parts = [f"v{protocol}/{role}.py" for protocol in BOTH] if protocols == BOTH else [f"{role}.py"]
    assert {f"src/my_{role}/acp/{name}" for name in ("acpgen.lock", "py.typed", *parts)} <= vendored
    assert files.keys() - vendored == own_files(role, protocols)
    words = re.compile(rb"new.project|ACPGEN_CONFIG|\{% ", re.IGNORECASE)
    assert [path for path, text in files.items() if words.search(text)] == []


@pytest.mark.parametrize("role", ROLES)
def test_the_project_has_a_name_a_command_and_no_dependencies(projects: Projects, role: str) -> None:
    text = (projects(role, 1) / "pyproject.toml").read_text(encoding="utf-8")
    assert f'name = "my-{role}"\n' in text
    assert f'my-{role} = "my_{role}.__main__:main"\n' in text
    assert "dependencies = []\n" in text


@pytest.mark.parametrize("role", ROLES)
def test_the_readme_has_the_settings_of_an_editor(projects: Projects, role: str) -> None:
    text = (projects(role, 1) / "README.md").read_text(encoding="utf-8")
    settings = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, flags=re.DOTALL)]
    servers = [server for each in settings for server in each["agent_servers"].values()]
    assert servers
    assert all(server["command"] and isinstance(server["args"], list) for server in servers)


def commands_in_readme(project: Path) -> list[list[str]]:
    text = (project / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^acpgen [^#\n]*", text, flags=re.MULTILINE)
    return [shlex.split(line)[1:] for line in lines]


@EACH_PROJECT
@pytest.mark.parametrize("role", ROLES)
def test_the_vendored_code_is_that_of_the_configuration(
    projects: Projects, role: str, protocols: tuple[int, ...]
) -> None:
    project = projects(role, *protocols)
    before = tree(project)
    assert commands_in_readme(project) == [["build"], ["check"]]
    for command in commands_in_readme(project):
        ran = run_acpgen(*command, cwd=project)
        assert (ran.code, ran.stderr) == (0, "")
    assert tree(project) == before


@pytest.mark.full
def test_the_vendored_code_is_what_a_build_compiles(projects: Projects) -> None:
    project = projects("client", 2)
    ran = run_acpgen("check", cwd=project)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "src/my_client/acp: up to date\n", "")


@pytest.mark.full
def test_extensions_are_vendored_too(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_bytes((REPOSITORY / "examples/vendor_extension/acme-notes.json").read_bytes())
    ran = run_acpgen("init", "here/My.Notes-Agent", "-e", "./notes.json", "-e", "auth-state", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    project = tmp_path / "here" / "My.Notes-Agent"
    assert b"class AddNoteRequest" in tree(project)["src/my_notes_agent/acp/types.py"]
    config = read_toml((project / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["acpgen"]
    assert config["extensions"] == ["../../notes.json", "auth-state"]
    ran = run_acpgen("check", cwd=project)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "src/my_notes_agent/acp: up to date\n", "")


def test_an_empty_folder_is_filled_and_stays_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "my-agent"
    folder.mkdir()
    before = folder.stat().st_ino
    assert run_acpgen("init", ".", cwd=folder).code == 0
    assert (folder / "src/my_agent/acp/acpgen.lock").exists()
    assert (folder.stat().st_ino, names(tmp_path)) == (before, ["my-agent"])


def test_compiled_files_of_the_templates_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("templates/project", "schema/projects"):
        shutil.copytree(data_folder() / name, tmp_path / name)
    compileall.compile_dir(tmp_path, quiet=1)
    monkeypatch.setattr(acpgen.scaffold, "data_folder", lambda: tmp_path)
    project = Project(folder=tmp_path / "my-agent", role=Role.AGENT, sources=(SchemaChoice(),))
    assert {path for path, _ in project_files(project)} == own_files("agent", (1,))


def test_another_protocol_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("templates/project", "schema/projects"):
        shutil.copytree(data_folder() / name, tmp_path / name)
    shutil.copytree(tmp_path / "schema/projects/v2", tmp_path / "schema/projects/v3")
    monkeypatch.setattr(acpgen.scaffold, "data_folder", lambda: tmp_path)
    for role in Role:
        sources = tuple(SchemaChoice(protocol=protocol) for protocol in (1, 2, 3))
        files = dict(project_files(Project(folder=tmp_path / f"my-{role.value}", role=role, sources=sources)))
        assert files.keys() == own_files(role.value, (1, 2, 3))
        modules = {path: ast.unparse(ast.parse(text)) for path, text in files.items() if path.endswith(".py")}
        assert any(re.search(r"\{1: .*, 2: .*, 3: .*\}", text) for text in modules.values())
    unknown = Project(folder=tmp_path / "my-agent", role=Role.AGENT, sources=(SchemaChoice(protocol=4),))
    with pytest.raises(InputError, match="no project of the role agent for v4") as caught:
        list(project_files(unknown))
    assert "there are projects for v1, v2, v3;" in str(caught.value.diagnostics[0].hint)


def test_what_is_a_template_names_nothing_of_the_protocol() -> None:
    files = [path for path in (data_folder() / "templates" / "project").rglob("*") if path.is_file()]
    assert any(path.name == "README.md" for path in files)
    texts = {path.name: path.read_text(encoding="utf-8") for path in files if "__pycache__" not in path.parts}
    found = {name: set(name_pattern().findall(text)) - ALLOWED.keys() for name, text in texts.items()}
    assert {name: names for name, names in found.items() if names} == {}


# --- What is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("class", "error: 'class' cannot be the name of a project: it is a Python keyword [project-name]"),
        ("con", "Windows reserves this name"),
        ("json", "a package json would clash with another"),
        ("Print", "a package print would clash with another"),
        ("tests", "a package tests would clash with another"),
        ("mcp", "a package mcp would clash with another"),
        ("3d-agent", "the package 3d_agent would start with a digit"),
        ("my agent", "it may have only ASCII letters and digits, with `-`, `_` and `.` between them"),
        ("my-agent-", "only ASCII letters"),
        ("métier", "only ASCII letters"),
        ("full", "error: the folder full is not empty: it has notes.txt [folder-not-empty]"),
        ("fresh", "and run `git init` afterwards"),
        ("file", "error: the output folder file is not a folder [folder-is-file]"),
        ("file/my-agent", "file is not a folder [folder-unwritable]"),
    ],
)
def test_a_name_or_folder_that_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("keep", encoding="utf-8")
    (tmp_path / "file").touch()
    (tmp_path / "fresh" / ".git").mkdir(parents=True)
    before = tree(tmp_path)
    ran = run_acpgen("init", name, cwd=tmp_path)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "hint: " in ran.stderr
    assert tree(tmp_path) == before
    assert names(tmp_path) == ["file", "fresh", "full"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--protocol", "3"), "error: no schema of protocol 3 is bundled [unknown-protocol]"),
        (("--extension", "nosuch"), "error: no extension 'nosuch' for protocol 1"),
        (("--role", "both"), "both"),
        (("--release", "nosuch"), "error: no release 'nosuch' of protocol 1 is bundled [unknown-release]"),
        (("--release", "2=2026-11-02"), "is for protocol 2, which is not built"),
        (
            ("--release", "0.10.8"),
            "is for the newest release of protocol 1, 2026-11-02, not for 0.10.8 [project-release]",
        ),
        (
            ("--release", "0.10.8"),
            "hint: leave --release out; in a project of your own, `acpgen build --release 1=0.10.8`",
        ),
        (
            ("--protocol=1", "--protocol=2", "--release", "1=0.10.8"),
            "newest release of protocol 1, 2026-11-02, not for 0.10.8",
        ),
        (("--extension", "./broken.json"), "broken.json"),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    ran = run_acpgen("init", "my-agent", *arguments, cwd=tmp_path)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert names(tmp_path) == ["broken.json"]


@pytest.mark.full
@pytest.mark.parametrize("existing", [False, True])
def test_nothing_is_left_of_a_project_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    calls = iter(range(20))
    real = os.urandom

    def full_disk(length: int) -> bytes:  # each staged file has a random name
        if next(calls, None) is None:
            raise OSError(28, "No space left on device")
        return real(length)

    monkeypatch.setattr(os, "urandom", full_disk)
    if existing:
        (tmp_path / "deep/my-agent").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    ran = run_acpgen("init", "deep/my-agent", cwd=tmp_path)
    assert ran.code == 2
    assert "No space left on device [write-failed]" in ran.stderr
    assert sorted(tmp_path.rglob("*")) == before


# --- What the projects do ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "protocols"),
    [
        ("agent", (1,)),
        ("client", (1,)),
        pytest.param("proxy", (1,), marks=pytest.mark.full),
        pytest.param("client", BOTH, marks=pytest.mark.full),  # those of the other roles are below, with all options
        pytest.param("agent", BOTH, marks=pytest.mark.deep),
        pytest.param("proxy", BOTH, marks=pytest.mark.deep),
        # templates ask whether there are several protocols, and not which one it is
        *(pytest.param(role, (2,), marks=pytest.mark.deep) for role in ROLES),
    ],
)
def test_the_tests_of_the_project_pass(projects: Projects, role: str, protocols: tuple[int, ...]) -> None:
    check_own_tests(projects(role, *protocols))


@pytest.mark.full
@pytest.mark.parametrize("protocols", [*(pytest.param((each,), marks=pytest.mark.deep) for each in BOTH), BOTH])
@pytest.mark.parametrize("role", ["agent", pytest.param("client", marks=pytest.mark.deep), "proxy"])
def test_the_tests_of_the_project_pass_with_all_options(tmp_path: Path, role: str, protocols: tuple[int, ...]) -> None:
    """Remote connections, all extensions, and the newest release by its name."""
    releases = [find_release(protocol) for protocol in protocols]
    options = [f"--{key}={value}" for each in releases for key, value in choice(each).items()]
    extensions = sorted({spec.partition("@")[0] for each in releases for spec in fitting_fragments(each)})
    options += ["--with", "remote", *(f"--extension={name}" for name in extensions)]
    ran = run_acpgen("init", tmp_path / "my-project", "--role", role, *options, cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    assert run_acpgen("build", "--dry-run", cwd=tmp_path / "my-project").stdout == ""
    check_own_tests(tmp_path / "my-project")


def choice(release: Release) -> dict[str, object]:
    return {"protocol": release.protocol, "release": f"{release.protocol}={release.name}"}


def check_own_tests(project: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "unittest"],
        cwd=project,
        env={**environment(project), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"^Ran [1-9]\d* tests in [\d.]+s\n\nOK$", ran.stderr, flags=re.MULTILINE), ran.stderr
    assert "Warning" not in ran.stderr


def hello(protocol: int) -> dict[str, Any]:
    return {"protocolVersion": protocol, "info": {"name": "tests", "version": "1"}}


class Wire:
    """The agent of a project in a process of its own, by raw messages."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout

    def send(self, **message: Any) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._in.flush()

    def receive(self, wanted: Callable[[Any], object]) -> Any:
        """The next message that is `wanted`; others are skipped."""
        for line in self._out:
            if wanted(message := json.loads(line)):
                return message
        raise AssertionError("the agent has ended")

    def answer(self, number: int) -> Any:
        return self.receive(lambda message: message.get("id") == number)["result"]

    def call(self, number: int, method: str, params: Any) -> Any:
        self.send(id=number, method=method, params=params)
        return self.answer(number)

    def update(self, **properties: object) -> Any:
        """The next update that has all the `properties`."""
        return self.receive(
            lambda message: message.get("method") == "session/update"
            and properties.items() <= message["params"]["update"].items()
        )["params"]["update"]

    def open(self, protocol: int, *servers: dict[str, Any]) -> str:
        assert self.call(1, "initialize", hello(protocol))["protocolVersion"] == protocol
        return str(self.call(2, "session/new", {"cwd": "/", "mcpServers": [*servers]})["sessionId"])

    def prompt(self, session: str, text: str) -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        self.send(id=3, method="session/prompt", params=params)

    def stop_reason(self, protocol: int) -> Any:
        """Why the work on a prompt ended: protocol 1 says so in the answer, protocol 2 in an update."""
        return (self.answer(3) if protocol == 1 else self.update(state="idle"))["stopReason"]


@contextmanager
def running(project: Path, *warnings: str) -> Iterator[Wire]:
    """The agent of `project`; at the end it must have ended well, and have said nothing on stderr but these lines."""
    process = subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "my_agent"],
        env=environment(project),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    too_long = threading.Timer(SECONDS, process.kill)
    too_long.start()
    try:
        yield Wire(process)
        _, said = process.communicate()
        lines = without_slowness(said).splitlines()
        assert (process.returncode, len(lines)) == (0, len(warnings)), said
        assert all(re.fullmatch(warning, line) for warning, line in zip(warnings, lines, strict=True)), said
    finally:
        too_long.cancel()
        process.kill()
        process.communicate()


@EACH_SPOKEN
def test_the_agent_describes_itself_and_its_sessions(
    projects: Projects, protocols: tuple[int, ...], protocol: int
) -> None:
    with running(projects("agent", *protocols)) as wire:
        info = wire.call(1, "initialize", hello(protocol))["agentInfo" if protocol == 1 else "info"]
        assert info == {"name": "my-agent", "version": "0.1.0"}
        folders = ("/", "/", "/tmp")
        opened = [wire.call(2, "session/new", {"cwd": cwd, "mcpServers": []})["sessionId"] for cwd in folders]
        assert len(set(opened)) == len(opened)
        wanted = {"/": opened[:2], "/tmp": opened[2:], "/nowhere": [], None: opened} if protocol == 2 else {}
        for cwd, expected in wanted.items():
            listed = wire.call(3, "session/list", {"cwd": cwd})["sessions"]
            assert [each["sessionId"] for each in listed] == expected


FAILING = """
async def work(prompt: object, tools: object, output: object) -> None:
    raise ValueError("a text\\nof two lines")
"""


@EACH_SPOKEN
def test_an_error_is_one_line_on_stderr_and_a_traceback_in_the_log(  # noqa: PLR0917 - fixtures
    projects: Projects, protocols: tuple[int, ...], protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some editors show each line of stderr in the chat."""
    project = tmp_path / "my-agent"
    shutil.copytree(projects("agent", *protocols), project)
    (project / "src" / "my_agent" / "work.py").write_text(FAILING, encoding="utf-8")
    for warnings in ((r"ERROR: .*\[ValueError; ACP_LOG=FILE keeps the traceback\]",), ()):
        with running(project, *warnings) as wire:
            wire.prompt(wire.open(protocol), "Hello")
            if protocol == 1:
                wire.receive(lambda message: message.get("id") == 3 and "error" in message)
            else:
                wire.update(state="idle")
        monkeypatch.setenv("ACP_LOG", str(tmp_path / "log.txt"))
    log = (tmp_path / "log.txt").read_text(encoding="utf-8")
    assert "Traceback" in log
    assert "ValueError: a text" in log


WEATHER = """
import time

from mcp.server import MCPServer

server = MCPServer("weather")


@server.tool()
def forecast(city: str) -> str:
    return f"Sun in {city}"


server.run()
time.sleep(600)
"""
"""A server that does not end by itself, as others that have much to do: the agent still ends well."""


@pytest.mark.parametrize(("protocols", "protocol"), [((1,), 1), (BOTH, 2)])
def test_the_agent_shows_the_tools_of_its_session(
    projects: Projects, tmp_path: Path, protocols: tuple[int, ...], protocol: int
) -> None:
    """Those of a server that runs; for one that does not, or that ends at once, it says why."""
    need("mcp")
    (tmp_path / "weather.py").write_text(WEATHER, encoding="utf-8")
    kind = {"type": "stdio"} if protocol == 2 else {}
    programs = (
        ("weather", sys.executable, [str(tmp_path / "weather.py")]),
        ("lost", "/nowhere/server", []),
        ("ended", sys.executable, ["-c", ""]),
    )
    servers = [{**kind, "name": name, "command": command, "args": args, "env": []} for name, command, args in programs]
    warnings = [f"WARNING: the MCP server '{name}' cannot be used: .*" for name in ("lost", "ended")]
    with running(projects("agent", *protocols), *warnings) as wire:
        wire.prompt(wire.open(protocol, *servers), "tools")
        shown, lost, ended = wire.update(sessionUpdate="agent_message_chunk")["content"]["text"].splitlines()
        assert shown == "weather: forecast"
        assert re.fullmatch("lost: .*/nowhere/server.*", lost)
        assert ended.startswith("ended: ")
        assert "TaskGroup" not in ended
        assert wire.stop_reason(protocol) == "end_turn"


PAIRS = [
    *((BOTH, (1,)), ((1,), BOTH)),
    *(pytest.param(*pair, marks=pytest.mark.full) for pair in ((BOTH, (2,)), ((2,), BOTH))),
]
"""Projects of different versions; those of the same talk with proxies between them."""


@pytest.mark.parametrize(("of_agent", "of_client"), PAIRS)
def test_the_client_talks_to_an_agent_of_other_versions(
    projects: Projects, of_agent: tuple[int, ...], of_client: tuple[int, ...]
) -> None:
    check_chat(projects("client", *of_client), projects("agent", *of_agent))


@pytest.mark.parametrize("protocols", [(1,), BOTH, pytest.param((2,), marks=pytest.mark.full)], ids=versions_of)
def test_the_client_talks_to_the_agent_through_proxies(projects: Projects, protocols: tuple[int, ...]) -> None:
    agent, client, proxy = (projects(role, *protocols) for role in ("agent", "client", "proxy"))
    check_chat(client, agent, proxy, proxy)


@pytest.mark.parametrize("role", ROLES)
def test_a_project_of_both_protocols_has_the_modules_of_each(projects: Projects, role: str) -> None:
    both = projects(role, *BOTH)
    for protocol, name in itertools.product(BOTH, OF_A_PROTOCOL[role]):
        found = (both / f"{name}_v{protocol}.py").read_text(encoding="utf-8")
        own = (projects(role, protocol) / f"{name}.py").read_text(encoding="utf-8")
        assert found != own
        found = re.sub(rf"\.acp\.v{protocol}\b", ".acp", found)
        assert re.sub(rf"\b(from \S+)_v{protocol} import", r"\1 import", found) == own


def check_chat(client: Path, agent: Path, *proxies: Path) -> None:
    """The client talks to the agent, by way of proxies in processes of their own."""
    commands = [[sys.executable, "-m", project.name.replace("-", "_")] for project in (*proxies, agent)]
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "my_client", *(word for command in commands for word in command)],
        env=environment(client, agent, *proxies),
        input="Grüße, world\nedit it\n1\n",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    assert (ran.returncode, without_slowness(ran.stderr)) == (0, "")
    words = ["> ", "Grüße, world\n[end_turn]\n> ", "Edit notes.txt", "1  Allow", " completed\n", "edit it\n[end_turn]"]
    assert re.search(".*".join(map(re.escape, words)), ran.stdout, flags=re.DOTALL), ran.stdout


# --- How they are written ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.full
def test_the_project_is_formatted(projects: Projects, role: str) -> None:
    options = ["--check", "--quiet", "--diff", "--force-exclude", "/acp/"]
    for protocols in ((1,), (2,), BOTH):
        check([sys.executable, "-m", "black", *options, "."], projects(role, *protocols))


def check(command: list[str], folder: Path) -> None:
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
