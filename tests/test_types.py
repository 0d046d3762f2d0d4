"""Type checkers on generated packages, and on what users write against them: right and wrong.

In the session `tests` mypy checks two packages; in `full` pyright checks others, examples and projects, and in `deep`
both check all.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options, Role
from acpgen.parts import default_parts
from acpgen.schema.bundled import Release, find_release, list_releases
from tests.command_line import run_acpgen
from tests.needs import need
from tests.support import (
    DEEP,
    Packages,
    fitting_fragments,
    package_folder,
)
from tests.test_examples import EXAMPLES, SCRIPTS, build_command

OLDEST_PYTHON = "3.10"


# --- The packages ------------------------------------------------------------------------------------------------


def name_of(release: Release) -> str:
    return f"v{release.protocol}_{re.sub(r'[^0-9]', '_', release.name)}"


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of all parts, one of none, one of both protocols, and what users write against them."""
    home = tmp_path_factory.mktemp("types")
    shutil.copytree(package_folder(SchemaChoice()), home / "acp")
    shutil.copytree(package_folder(*(SchemaChoice(protocol=protocol) for protocol in (1, 2))), home / "both")
    shutil.copytree(package_folder(SchemaChoice(), parts=()), home / "bare")
    for name, code in USERS.items():
        (home / name).write_text(code, encoding="utf-8")
    return home


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all packages, examples and new projects: most of the time goes into what they all import."""
    home = tmp_path_factory.mktemp("everything")
    add_packages(home)
    add_examples(tmp_path_factory.mktemp("examples") / "examples", home)
    add_projects(tmp_path_factory.mktemp("projects"), home)
    return home


def add_packages(home: Path) -> None:
    """One of both protocols with their extensions, over the network; one with all options; those of each role with the
    parts that a project gets without naming any; and what users write.

    CI checks the newest schema of each protocol; the session `deep` checks a package of each.
    """
    newest = [with_extensions(find_release(protocol)) for protocol in (1, 2)]
    shutil.copytree(package_folder(*newest, remote=True), home / "net")
    (home / "remote_user.py").write_text(REMOTE_USER, encoding="utf-8")
    options = Options(open=True, keep_unknown=True)
    shutil.copytree(package_folder(SchemaChoice(), options=options), home / "with_options")
    for role in Role:
        parts = default_parts((role,))
        shutil.copytree(package_folder(SchemaChoice(protocol=2), roles=(role,), parts=parts), home / f"v2_{role.value}")
    for release in list_releases() if DEEP else ():
        shutil.copytree(package_folder(with_extensions(release)), home / name_of(release))


def with_extensions(release: Release) -> SchemaChoice:
    return SchemaChoice(protocol=release.protocol, release=release.name, extensions=fitting_fragments(release))


def add_examples(copy: Path, home: Path) -> None:
    """The examples in one folder, with the packages that they import."""
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("acp_*", "__pycache__"))
    for name in SCRIPTS:
        folder = (copy / name).parent
        arguments = build_command(name)
        if not (folder / arguments[-1]).exists():
            run_well(*arguments, cwd=folder)
            shutil.copytree(folder / arguments[-1], home / arguments[-1])
        shutil.copy(copy / name, home / f"example_{name.replace('/', '_')}")


def add_projects(projects: Path, home: Path) -> None:
    """What `acpgen init` makes, with its packages. CI checks those of both protocols, with the modules of each."""
    for role in Role:
        for protocols in ((1,), (2,), (1, 2)) if DEEP else ((1, 2),):
            name = f"my_{role.value}_v{'_'.join(map(str, protocols))}"
            options = [f"--protocol={protocol}" for protocol in protocols]
            run_well("init", name, "--role", role.value, *options, cwd=projects)
            shutil.copytree(projects / name / "src" / name, home / name)


def run_well(*arguments: str, cwd: Path) -> None:
    ran = run_acpgen(*arguments, cwd=cwd)
    assert ran.code == 0, ran.stderr


def test_every_schema_gets_the_extensions_that_fit() -> None:
    found = {name_of(release): fitting_fragments(release) for release in list_releases()}
    drafts = {"auth-methods@2026-01-14", "auth-state@2026-03-07", "logout@2026-02-02"}
    assert drafts < set(found["v1_0_10_8"])
    assert drafts.isdisjoint(found["v1_2026_11_02"])
    assert "auth-state@2026-11-02" in found["v1_2026_11_02"]
    assert all(len(specs) > 10 for specs in found.values())


# --- The checkers ------------------------------------------------------------------------------------------------


def run_mypy(folder: Path, system: str = "linux") -> Mapping[tuple[str, int], str]:
    need("mypy")
    names = sorted(path.name for path in folder.iterdir() if path.suffix in ("", ".py") and path.name[0] not in "._")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", OLDEST_PYTHON, "--no-incremental"]
    options = ["--no-error-summary", "--hide-error-context", "--no-pretty", "--config-file", ""]
    result = subprocess.run(
        [*command, *options, "--platform", system, *names], cwd=folder, capture_output=True, text=True, check=False
    )
    complaints = re.findall(r"^(.+?):(\d+): error: (.*)$", result.stdout, flags=re.MULTILINE)
    assert result.returncode == (1 if complaints else 0), result.stdout + result.stderr
    return {(Path(file).as_posix(), int(line)): text for file, line, text in complaints}


def run_pyright(folder: Path, system: str = "linux", *, without: Sequence[str] = ()) -> Mapping[tuple[str, int], str]:
    """Of the files `without`, it looks only at what others import."""
    need("pyright")
    platform = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[system]
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": OLDEST_PYTHON,
        "include": ["."],
        "exclude": list(without),
        "pythonPlatform": platform,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "--project",
        str(folder),
    ]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["summary"]["filesAnalyzed"] > 0
    return {
        (Path(found["file"]).relative_to(folder).as_posix(), found["range"]["start"]["line"] + 1): found["message"]
        for found in report["generalDiagnostics"]
        if found["severity"] in ("error", "warning")
    }


def run_pyright_on_users(folder: Path) -> Mapping[tuple[str, int], str]:
    return run_pyright(folder, without=[path.name for path in folder.iterdir() if path.is_dir()])


@pytest.fixture(scope="session", params=[run_mypy, pytest.param(run_pyright_on_users, marks=pytest.mark.full)])
def complaints(request: pytest.FixtureRequest, home: Path) -> Mapping[tuple[str, int], str]:
    """The errors of a checker in `home`: one run, because most of it goes into the package."""
    found: Mapping[tuple[str, int], str] = request.param(home)
    return found


@pytest.mark.parametrize("complaints", [run_mypy], indirect=True)
def test_a_generated_package_is_clean(complaints: Mapping[tuple[str, int], str]) -> None:
    assert {place: text for place, text in complaints.items() if place[0] not in USERS} == {}


PACKAGES = ("acp_echo_v1", "acp_printing")
"""Those of examples, for an agent and for a client, that are checked."""
REPEATED = [
    *(build_command(name)[-1] for name in SCRIPTS if build_command(name)[-1] not in PACKAGES),
    *("my_agent_*/acp", "my_client_*/acp"),
    # what is the same in each package is checked in the one for the network
    *(f"{each}/helpers" for each in (*PACKAGES, "with_options")),
    *(f"{each}/_runtime" for each in (*PACKAGES, "with_options", "v2_*")),
    *(f"v2_*/{each}.py" for each in ("codec", "types", "_other_direction")),
]


@pytest.mark.full
@pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.deep), "pyright"])
def test_packages_examples_and_projects_are_clean(checker: str, everything: Path) -> None:
    if checker == "mypy":
        assert run_mypy(everything) == {}
    else:
        assert run_pyright(everything, without=[] if DEEP else REPEATED) == {}


FROM_THE_SCHEMA = ["acp/types.py", "acp/codec.py", "acp/_details.py"]


@pytest.mark.full
@pytest.mark.parametrize("checker", ["mypy", pytest.param("pyright", marks=pytest.mark.deep)])
@pytest.mark.parametrize("system", ["win32", pytest.param("darwin", marks=pytest.mark.deep)])
def test_the_runtime_is_clean_for_other_systems(checker: str, system: str, tmp_path: Path) -> None:
    """Not all that asyncio and os have is there on each."""
    shutil.copytree(package_folder(SchemaChoice()), tmp_path / "acp")
    if checker == "mypy":
        assert run_mypy(tmp_path, system) == {}
    else:
        assert run_pyright(tmp_path, system, without=FROM_THE_SCHEMA) == {}


# --- What users write --------------------------------------------------------------------------------------------

REMOTE_USER = """
from http.cookiejar import CookieJar

from net import v1, v2
from net.asgi import RemoteLimits, Scope, asgi_app, client_identity
from net.remote import connect_http, connect_url, connect_websocket


class One(v1.Agent):
    def __init__(self, client: v1.RemoteClient) -> None:
        self.client = client
        self.owner = client_identity.get()


class Two(v2.Agent):
    def __init__(self, client: v2.RemoteClient) -> None:
        self.client = client


class Editor(v1.Client):
    def __init__(self, agent: v1.RemoteAgent) -> None:
        self.agent = agent


class NewEditor(v2.Client):
    def __init__(self, agent: v2.RemoteAgent) -> None:
        self.agent = agent


async def authorize(scope: Scope) -> str | None:
    return None


def authorize_at_once(scope: Scope) -> int | None:
    return None


alone = asgi_app(One, authorize=authorize, limits=RemoteLimits(max_sessions=3), hosts=["agent.example.com"])
several = asgi_app({1: One, 2: Two}, authorize=authorize_at_once, path=None)


async def talk() -> None:
    jar = CookieJar()
    async with connect_http(Editor, "https://agent.example.com/acp", cookies=jar) as agent:
        await agent.initialize(v1.InitializeRequest(protocol_version=1))
    async with connect_websocket(Editor, "wss://agent.example.com/acp", settings={"ssl": None}) as agent:
        agent.supports("session/load")
    block = connect_url(NewEditor, "https://agent.example.com/acp", headers={"authorization": "Bearer x"})
    async with block:
        _: NewEditor = block.handler


async def talk_in_any_version() -> None:
    info = v2.Implementation(name="editor", version="1")
    async with connect_http(
        {1: Editor, 2: NewEditor},
        "https://agent.example.com/acp",
        params={
            1: v1.InitializeRequest(protocol_version=1),
            2: v2.InitializeRequest(protocol_version=2, info=info),
        },
    ) as agent:
        match agent:
            case v1.RemoteAgent():
                print(agent.negotiated)
            case v2.RemoteAgent():
                print(agent.negotiated.info)
"""


RIGHT = """
from dataclasses import field, replace

from acp import (
    UNSET,
    Agent,
    AgentProcess,
    Client,
    ClientCapabilities,
    ContentBlock,
    ContentBlockText,
    InitializeRequest,
    InitializeResponse,
    PromptRequest,
    PromptResponse,
    ReadTextFileRequest,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    connect,
    decode,
    encode,
    memory_transports,
    spawn_agent,
)

class Echo(Agent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        return InitializeResponse(protocol_version=params.protocol_version)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        for block in params.prompt:
            update = SessionUpdateAgentMessageChunk(content=block)
            await self.client.session_update(SessionNotification(session_id=params.session_id, update=update))
        return PromptResponse(stop_reason="end_turn")


def text_of(block: ContentBlock) -> str:
    match block:
        case ContentBlockText(text=text):
            return text
        case _:
            return block.type


def lines(request: ReadTextFileRequest) -> int:
    if request.limit is UNSET or request.limit is None:
        return 0
    return request.limit


class Editor(Client):
    texts: list[str]


class Noted(ContentBlockText):
    note: str
    tags: list[str] = field(default_factory=list[str])


class Loud(ContentBlockText):
    def loud(self) -> str:
        return self.text.upper()


async def texts_of(command: list[str]) -> list[str]:
    spawned: AgentProcess[Editor] = spawn_agent(Editor, command, extra_env={"KEY": "1"})
    async with spawned as agent:
        await agent.initialize(InitializeRequest(protocol_version=1))
        print(spawned.pid, spawned.returncode)
    async with (connected := connect(Editor, memory_transports()[0])):
        return spawned.handler.texts + connected.handler.texts


prompt: list[ContentBlock] = [Noted(text="a", note="b"), Loud(text="c")]
request: PromptRequest = decode(PromptRequest, {"sessionId": "1", "prompt": encode(prompt)})
InitializeRequest(protocol_version=1, client_capabilities=ClientCapabilities(terminal=True), client_info=None)
replaced: PromptRequest = replace(request, session_id="2")
print(encode(request), lines(ReadTextFileRequest(session_id="1", path="/a", line=None)))
"""

WRONG = """
from acp import (
    UNSET,
    Agent,
    ContentBlockText,
    InitializeRequest,
    PromptRequest,
    PromptResponse,
    ReadTextFileRequest,
    SessionUpdateAgentMessageChunk,
    decode,
)

ReadTextFileRequest(session_id="1")  # wrong: an argument is missing
ReadTextFileRequest("1", "/a")  # wrong: keywords only
ReadTextFileRequest(session_id="1", path="/a", lines=1)  # wrong: no such argument
PromptResponse(stop_reason="finished")  # wrong: no such literal
PromptResponse(stop_reason=None)  # wrong: not nullable
PromptRequest(session_id="1", prompt="hello")  # wrong: a string is no list of blocks
PromptRequest(session_id="1", prompt=["hello"])  # wrong: a string is no block
SessionUpdateAgentMessageChunk(content={"type": "text", "text": "hello"})  # wrong: a dict is no block
InitializeRequest(protocol_version=1, client_capabilities=UNSET)  # wrong: the attribute is never UNSET
ContentBlockText(text="hello", type="image")  # wrong: another tag


class Noted(ContentBlockText):
    note: str


Noted(text="hello")  # wrong: an argument of the subclass is missing
Noted(text="hello", note=1)  # wrong: no string


def lines(request: ReadTextFileRequest) -> int:
    return request.limit  # wrong: UNSET and None are possible


def end(request: ReadTextFileRequest) -> int:
    if request.line is None or request.limit is None:
        return 0
    return request.line + request.limit  # wrong: UNSET is possible


class Wrong(Agent):
    async def session_prompt(self, params: PromptRequest) -> str:  # wrong: another result
        return "end_turn"


response: PromptResponse = decode(PromptRequest, {})  # wrong: another type
"""


RIGHT_VERSIONS = """
from functools import partial

from both import MemoryTransport, connect, run_agent, serve_agent, spawn_agent, v1, v2

ONE = v1.InitializeRequest(protocol_version=1)
TWO = v2.InitializeRequest(protocol_version=2, info=v2.Implementation(name="editor", version="1"))


class One(v1.Agent):
    async def session_new(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        return v1.NewSessionResponse(session_id=params.cwd)


class Two(v2.Agent):
    def __init__(self, client: v2.RemoteClient, model: str = "") -> None:
        super().__init__(client)


def one(client: v1.RemoteClient) -> One:
    return One(client)


class EditorOne(v1.Client):
    texts: list[str]


class EditorTwo(v2.Client):
    def __init__(self, agent: v2.RemoteAgent, name: str) -> None:
        super().__init__(agent)


async def serve(transport: MemoryTransport) -> None:
    await serve_agent({1: one, 2: partial(Two, model="m")}, transport)
    await serve_agent(One, transport)


async def talk(command: list[str], transport: MemoryTransport) -> str:
    two = partial(EditorTwo, name="e")
    async with spawn_agent({1: EditorOne, 2: two}, command, params={1: ONE, 2: TWO}) as agent:
        match agent:
            case v1.RemoteAgent():
                print(agent.negotiated.agent_capabilities.load_session)
                return (await agent.session_new(v1.NewSessionRequest(cwd="/", mcp_servers=[]))).session_id
            case v2.RemoteAgent():
                print(agent.negotiated.info.name)
                return (await agent.session_new(v2.NewSessionRequest(cwd="/"))).session_id
    async with connect(EditorOne, transport) as agent_one:
        await agent_one.session_set_mode(v1.SetSessionModeRequest(session_id="1", mode_id="m"))
    async with (connected := connect({1: EditorOne, 2: two}, transport, params={1: ONE, 2: TWO})) as either:
        print(connected.handler.agent, either.supports("session/close"))
    return ""


def main() -> None:
    run_agent({1: One, 2: Two})
"""

WRONG_VERSIONS = """
from both import connect, memory_transports, run_agent, serve_agent, v1, v2


class One(v1.Agent):
    async def session_new(self, params: v2.NewSessionRequest) -> v1.NewSessionResponse:  # wrong: another version
        return v1.NewSessionResponse(session_id=params.cwd)


class Editor(v1.Client):
    pass


run_agent({1: Editor})  # wrong: a client is no agent
run_agent({"1": One})  # wrong: a version is a number
first, second = memory_transports()
connect({1: Editor}, first)  # wrong: the params are missing


async def talk() -> None:
    await serve_agent({1: Editor}, first)  # wrong: a client is no agent
    params = {1: v1.InitializeRequest(protocol_version=1)}
    async with connect({1: Editor}, second, params=params) as agent:
        await agent.session_set_mode(v1.SetSessionModeRequest(session_id="1", mode_id="m"))  # wrong: not in version 2
"""

RIGHT_HELPERS = """
import asyncio

from both import v1, v2
from both.v1 import helpers as one
from both.v2 import helpers as two


async def work_one(client: v1.RemoteClient, prompt: v1.PromptRequest) -> None:
    for block in prompt.prompt:
        await client.session_update(one.agent_message(prompt.session_id, block, message_id="m"))
    await client.session_update(one.plan(prompt.session_id, ["Test", one.plan_entry("Fix", priority="high")]))
    changed = one.diff("/a", None, "b")
    async with one.tool_call(client, "s", "Edit", kind="edit", content=["a", one.text("b"), changed]) as call:
        answers = await asyncio.gather(call.permission(), asyncio.wait_for(call.permission(), 1))
        print(await asyncio.create_task(call.permission()), [answer.allowed for answer in answers])
        if answer := await call.permission(one.permission_options("allow_always", "reject_once")):
            await call.update(status="in_progress", locations=["/a", v1.ToolCallLocation(path="/b", line=1)])
            await call.add(answer.option.name if answer.option else "", one.terminal("t"))


async def work_two(client: v2.RemoteClient, prompt: v2.PromptRequest) -> None:
    await client.session_update(two.whole_user_message(prompt.session_id, prompt.prompt, message_id="m"))
    async with two.tool_call(client, "s", "Run", kind="_acme", status="pending") as call:
        await call.update(status="paused")
    await client.session_update(two.idle(prompt.session_id, "end_turn"))


class Editor(v1.Client):
    async def session_request_permission(self, params: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        return one.select_permission(params, "reject_once", "reject_always")


class Parts(one.FileClient, one.TerminalClient, one.PermissionClient, one.LoginClient):
    def __init__(self, agent: v1.RemoteAgent) -> None:
        super().__init__(agent)
        self.files = one.Files("/a", max_bytes=1000)
        self.terminals = one.Terminals(on_output=lambda terminal, text: print(terminal.id, text))
        self.permissions = one.PermissionRules(one.PermissionRule("deny", path="/etc"), path="rules.json")

    async def ask_permission(self, question: one.PermissionQuestion) -> one.PermissionChoice:
        return "allow" if question.can("allow") else "deny"


class Others(two.PermissionClient, two.LoginClient):
    async def ask_permission(self, question: two.PermissionQuestion) -> v2.PermissionOption:
        return question.request.options[0]


async def start(parts: Parts) -> str:
    request = v1.NewSessionRequest(cwd="/", mcp_servers=[])
    return (await parts.with_login(lambda: parts.agent.session_new(request))).session_id
"""

WRONG_HELPERS = """
from bare.helpers import TurnAgent  # wrong: of a part that the package lacks
from both import v1, v2
from both.v1 import helpers as one
from both.v2 import helpers as two

one.plan_entry("Fix", status="done")  # wrong: no such status
one.permission_options("allow")  # wrong: no such kind
two.agent_message("s", "hi")  # wrong: protocol 2 needs the id of the message
two.idle("s", "finished")  # wrong: no such reason
one.PermissionRule("yes")  # wrong: no such decision


async def work(client: v1.RemoteClient, other: v2.RemoteClient) -> None:
    one.tool_call(client, "s", "Edit", kind="write")  # wrong: no such kind
    one.tool_call(client, "s", "Edit", status="completed")  # wrong: not at the start
    one.tool_call(other, "s", "Edit")  # wrong: another version
    await client.session_update(two.running("s"))  # wrong: another version
    async with one.tool_call(client, "s", "Edit") as call:
        await call.update(status="cancelled")  # wrong: not in protocol 1
        await call.add(v2.ContentBlockText(text="hi"))  # wrong: another version
"""

WRONG_DECISIONS = """
from both import v1
from both.v1 import helpers as one


async def work(client: v1.RemoteClient, call: one.RunningToolCall, update: v1.ToolCallUpdate) -> int:
    if call.permission():  # wrong: not awaited
        return 1
    if not one.ask_permission(client, "s", update):  # wrong: not awaited
        return 2
    return 3 if call.permission() else 4  # wrong: not awaited
"""

USERS = {
    "right.py": RIGHT,
    "wrong.py": WRONG,
    "right_versions.py": RIGHT_VERSIONS,
    "wrong_versions.py": WRONG_VERSIONS,
    "right_helpers.py": RIGHT_HELPERS,
    "wrong_helpers.py": WRONG_HELPERS,
    "wrong_decisions.py": WRONG_DECISIONS,
}


@pytest.mark.parametrize("name", ["right.py", "right_versions.py", "right_helpers.py"])
def test_right_use_is_accepted(name: str, complaints: Mapping[tuple[str, int], str]) -> None:
    assert {line: text for (file, line), text in complaints.items() if file == name} == {}


AT_RUN_TIME = """
ReadTextFileRequest(session_id="1")
ReadTextFileRequest("1", "/a")
ReadTextFileRequest(session_id="1", path="/a", lines=1)
Noted(text="hello")
Noted("hello", note="why")
encode(SessionUpdateAgentMessageChunk(content=1))
"""


@pytest.mark.parametrize("line", AT_RUN_TIME.strip().splitlines())
def test_wrong_use_fails_at_run_time(line: str, packages: Packages) -> None:
    """Values are checked where they are read; a constructor checks names alone."""
    names = dict(vars(packages(SchemaChoice())))
    exec("class Noted(ContentBlockText):\n    note: str\n", names)
    with pytest.raises(TypeError):
        eval(line, names)


SIGNATURES = {
    "ContentBlockText": 'type: Literal["text"]="text", annotations: Annotations | None | UnsetType=UNSET, text: str',
    "SessionUpdateToolCallUpdate": "tool_call_id: ToolCallId, kind: ToolKind | None | UnsetType=UNSET",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_jedi_shows_the_signature_of_a_constructor(name: str, home: Path) -> None:
    need("jedi")
    import jedi

    script = jedi.Script(f"from acp import {name}\n{name}(", project=jedi.Project(home))
    (signature,) = script.get_signatures(2, len(name) + 1)
    shown = signature.to_string()
    assert shown.startswith(f"{name}(meta: ")  # Jedi knows nothing of the order that the fields have
    assert f", {SIGNATURES[name]}" in shown


@pytest.mark.parametrize(("name", "count"), [("wrong.py", 16), ("wrong_versions.py", 6), ("wrong_helpers.py", 12)])
def test_wrong_use_is_refused(name: str, count: int, complaints: Mapping[tuple[str, int], str]) -> None:
    wrong = {number for number, line in enumerate(USERS[name].splitlines(), 1) if "# wrong: " in line}
    assert len(wrong) == count
    assert {line for file, line in complaints if file == name} == wrong


@pytest.mark.full
@pytest.mark.parametrize("complaints", [run_pyright_on_users], indirect=True)
def test_what_was_not_awaited_is_no_condition(complaints: Mapping[tuple[str, int], str]) -> None:
    """For pyright; mypy takes any object as a condition, and says that what follows is not reached if asked to."""
    wrong = {number for number, line in enumerate(WRONG_DECISIONS.splitlines(), 1) if "# wrong: " in line}
    assert {line for file, line in complaints if file == "wrong_decisions.py"} == wrong
