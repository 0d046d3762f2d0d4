"""Each page of docs/ is played: files are written, commands and programs run, transcripts compared.

All pages share a folder, in which the files and packages of the README are; so they may use these. The README itself is
played by tests/test_package.py, with the wheel.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from acpgen.roles import Role
from acpgen.schema.bundled import bundled_fragments, list_releases
from tests.command_line import build_package, run_acpgen
from tests.documents import Block, Ran, blocks, environment_with_acpgen, play, section
from tests.needs import need
from tests.support import REPOSITORY, every_part

README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
PLAYED_APART = {"bump.md", "cli.md"}  # tests/test_docs.py plays the former; the latter is generated
PAGES = sorted(path for path in DOCS.glob("*.md") if path.name not in PLAYED_APART)
NEEDS = {
    "mcp.md": ["mcp"],
    "models.md": ["pydantic"],
    "proxy.md": ["websockets"],
    "remote.md": ["uvicorn", "websockets"],
    "web.md": ["cattrs", "fastapi", "msgspec", "orjson"],
}
"""Libraries without which a page cannot be played."""

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("posix"),
]


def page_blocks(page: Path) -> list[Block]:
    """The blocks of a page; Python without a title gets a name that no other page has."""
    found = blocks(page.read_text(encoding="utf-8"))
    stem = page.stem.lower().replace("-", "_")
    return [
        (
            Block(each.not_run, each.language, each.name or f"{stem}_{at}.py", each.text)
            if each.language == "python"
            else each
        )
        for at, each in enumerate(found)
    ]


@dataclass(frozen=True)
class Played:
    """The folder in which all pages were played, and the result of each page."""

    folder: Path
    results: dict[str, list[Ran] | AssertionError]


def lay_out_readme(folder: Path) -> None:
    """Write the programs of the README, and build the packages that they import."""
    found = [block for block in page_blocks(README) if not block.not_run]
    for block in found:
        if block.name.endswith((".py", ".jsonl")):
            (folder / block.name).write_text(block.text, encoding="utf-8")
        elif block.text.startswith("acpgen build --"):
            ran = run_acpgen(*shlex.split(block.text)[1:], cwd=folder)
            assert ran.code == 0, ran.stderr


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    home = tmp_path_factory.mktemp("pages")
    environment = environment_with_acpgen(home / "bin")
    folder = home / "folder"
    folder.mkdir()
    lay_out_readme(folder)
    results: dict[str, list[Ran] | AssertionError] = {}
    for page in PAGES:
        try:
            results[page.name] = play(page_blocks(page), folder, environment)
        except AssertionError as error:
            results[page.name] = error
        (folder / "pyproject.toml").unlink(missing_ok=True)  # a configuration holds for one page
    return Played(folder, results)


@pytest.fixture(scope="module")
def complete(played: Played) -> None:
    """Build the package `demo` with all parts: each page has built it with what it uses itself."""
    parts = [f"--with={each}" for each in every_part((Role.AGENT,), [1])]
    build_package(played.folder / "demo", "--role", "agent", *parts)


@pytest.mark.parametrize("name", [page.name for page in PAGES])
def test_a_page_does_what_it_says(name: str, played: Played, request: pytest.FixtureRequest) -> None:
    result = played.results[name]
    for library in NEEDS.get(name, ()):
        need(library)
    if isinstance(result, AssertionError):
        raise result
    (page,) = (each for each in PAGES if each.name == name)
    if request.config.getoption("--accept-goldens"):
        text = page.read_text(encoding="utf-8")
        for ran in result:
            text = text.replace(ran.block.text, ran.text)
        page.write_text(text, encoding="utf-8")
        return
    for ran in result:
        assert ran.text == ran.block.text, "accept it with --accept-goldens"


@pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.deep), "pyright"])
@pytest.mark.usefixtures("complete")
def test_snippets_are_typed(checker: str, played: Played) -> None:
    need(checker)
    (played.folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    files = sorted(path.name for path in played.folder.glob("*.py"))
    assert len(files) > 20
    options = ["--strict", "--explicit-package-bases"] if checker == "mypy" else ["--pythonpath", sys.executable]
    ran = subprocess.run(
        [sys.executable, "-m", checker, *options, *files],
        cwd=played.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_two_snippets_have_one_name() -> None:
    found = [block for page in (README, *PAGES) for block in page_blocks(page)]
    names = Counter(block.name for block in found if block.name and not block.not_run)
    del names["pyproject.toml"]  # which holds for one page
    assert [name for name, count in names.items() if count > 1] == []


def test_every_fence_is_understood() -> None:
    for page in (README, *DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert 2 * len(blocks(text)) == len(re.findall(r"^```", text, flags=re.MULTILINE)), page.name


COOKBOOK = {
    "hello": ["agent_message_chunk"],
    "resources": ["agent_message_chunk"],
    "streaming": ["agent_thought_chunk", *3 * ["agent_message_chunk"]],
    "tool_calls": ["tool_call", *2 * ["tool_call_update"]],
    "plan": 3 * ["plan"],
    "permission": ["tool_call", *2 * ["tool_call_update"]],
    "settings": ["current_mode_update"],
    "eventful": ["tool_call", "agent_message_chunk", "tool_call_update"],
    "announcing": ["available_commands_update", "agent_message_chunk"],
    "cancelling": [],
    "blocking": ["agent_message_chunk"] * 2,
    "storing": ["session_info_update", "agent_message_chunk"],
    "choosing": ["session_info_update", "agent_message_chunk"],
    "files": [],
}
"""The agents of docs/agent.md and docs/frameworks.md, and the updates that each sends for a prompt."""

DRIVER = """
import asyncio, sys
from editor import Editor
from editor_acp import SessionNotification, spawn_agent

class Recorder(Editor):
    async def session_update(self, params: SessionNotification) -> None:
        print(params.update.session_update)

async def main() -> None:
    async with (spawned := spawn_agent(Recorder, [sys.executable, sys.argv[1]])):
        print(await spawned.handler.prompt(await spawned.handler.open(), "Hello!"))

asyncio.run(main())
"""


@pytest.mark.parametrize("name", COOKBOOK)
def test_agents_of_the_cookbook_answer_prompts(name: str, played: Played) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, f"{name}.py"], cwd=played.folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [*COOKBOOK[name], "end_turn"]


def test_the_agent_for_protocol_2_answers_prompts(played: Played) -> None:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "protocol_2.py"], cwd=played.folder, text=True, **pipes) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        assert agent.stderr is not None
        too_long = threading.Timer(300, agent.kill)
        too_long.start()

        def send(method: str, **params: Any) -> Any:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            print(json.dumps(message), file=agent.stdin, flush=True)
            return json.loads(agent.stdout.readline() if agent.stdout else "")

        send("initialize", protocolVersion=2, info={"name": "tests", "version": "1"})
        session_id = send("session/new", cwd="/", mcpServers=[])["result"]["sessionId"]
        first = send("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": "Hi"}])
        messages = [first, *(json.loads(agent.stdout.readline()) for _ in range(4))]
        updates = [each["params"]["update"] for each in messages if "params" in each]
        agent.stdin.close()
        agent.wait()
        too_long.cancel()
        assert agent.stderr.read() == ""
    assert [each["sessionUpdate"] for each in updates] == [
        *("user_message", "state_update", "agent_message_chunk", "state_update")
    ]
    assert updates[-1]["stopReason"] == "end_turn"


ELSEWHERE = """
import asyncio, os, sys
from unittest.mock import patch
import uvicorn
import ask, guarded
from remote_acp.asgi import asgi_app

async def run() -> None:
    app = asgi_app(guarded.Guarded, authorize=guarded.authorize)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for command in (["-m", "proxy_acp.bridge"], ["elsewhere.py"]):
        for token in ("correct horse", "wrong"):
            os.environ["ACP_TOKEN"] = token
            try:
                await ask.main("Hello!", sys.executable, *command, f"ws://127.0.0.1:{port}/acp")
            except Exception as error:
                print(type(error).__name__, "401" in str(error))
    server.should_exit = True
    await serving

asyncio.run(run())
"""


def test_an_agent_elsewhere_is_reached_with_a_token(played: Played) -> None:
    need("uvicorn")
    ran = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], cwd=played.folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == 2 * ["Hello!", "end_turn", "InternalError True"], ran.stderr


HOSTED = """
import asyncio
import uvicorn
import hosted, visit

async def run() -> None:
    server = uvicorn.Server(uvicorn.Config(hosted.app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    await visit.main(f"ws://127.0.0.1:{port}/acp")
    server.should_exit = True
    await serving

asyncio.run(run())
"""


def test_the_first_agent_on_the_network_is_visited(played: Played) -> None:
    need("uvicorn", "websockets")
    ran = subprocess.run([sys.executable, "-c", HOSTED], cwd=played.folder, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == ["Hello from a server!"], ran.stderr


BY_URL = """
import asyncio
import uvicorn
import weather
from demo.helpers import HttpParameters, SessionTools

seen = set()

async def app(scope, receive, send):
    if scope["type"] == "http":
        seen.update(value for name, value in scope["headers"] if name == b"x-key")
    await mcp_app(scope, receive, send)

async def run():
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    parameters = [
        HttpParameters(name=name, url=f"http://127.0.0.1:{port}/{path}", headers=[("X-Key", name)])
        for name, path in (("right", "mcp"), ("wrong", "nowhere"))
    ]
    tools = SessionTools(parameters)
    (forecast,) = await tools.list()
    print(await forecast(city="Oslo"), [name for name, _ in tools.errors], sorted(seen))
    await tools.close()
    server.should_exit = True
    await serving

mcp_app = weather.server.streamable_http_app()
asyncio.run(run())
"""


@pytest.mark.usefixtures("complete")
def test_tools_of_servers_at_urls(played: Played) -> None:
    for name in ("mcp", "uvicorn"):
        need(name)
    ran = subprocess.run([sys.executable, "-c", BY_URL], cwd=played.folder, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == ["Sun in Oslo ['wrong'] [b'right', b'wrong']"], ran.stderr


# --- Tables ---------------------------------------------------------------------------------------------------------


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_table_of_extensions_is_complete() -> None:
    bundled = {fragment.spec for protocol in (1, 2) for fragment in bundled_fragments(protocol)}
    assert set(re.findall(r"^\| `(\S+@\S+)` \|", page("extensions.md"), flags=re.MULTILINE)) == bundled
    assert all(release.name in page("extensions.md") for release in list_releases())


def test_the_table_of_files_is_complete(played: Played) -> None:
    table = section(page("package.md"), "Files")
    packages = [played.folder / name for name in ("demo", "chat_acp", "remote_acp", "proxy_acp")]
    paths = [path for package in packages for path in package.iterdir() if path.name != "__pycache__"]
    names = {f"{path.name}{'/' * path.is_dir()}" for path in paths}
    rows = re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE)
    assert set(re.findall(r"`([\w./]+)`", " ".join(rows))) == names


def test_the_table_of_options_of_a_connection_is_complete(played: Played) -> None:
    rows = re.findall(
        r"^\| (`\w+`(?:, `\w+`)*) \|", section(page("package.md"), "Options and limits"), flags=re.MULTILINE
    )
    code = "import dataclasses, demo; print(*(field.name for field in dataclasses.fields(demo.ConnectionOptions)))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=played.folder, capture_output=True, text=True, check=True)
    assert sorted(re.findall(r"\w+", " ".join(rows))) == sorted(ran.stdout.split())


def test_the_table_of_limits_of_a_server_is_complete(played: Played) -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+)( MiB)? \|", section(page("remote.md"), "Decide who may connect"), flags=re.MULTILINE
    )
    code = "from remote_acp.asgi import RemoteLimits as L; print(*(f'{k}={v:.0f}' for k, v in vars(L()).items()))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=played.folder, capture_output=True, text=True, check=True)
    assert [f"{name}={int(value) * (2**20 if unit else 1)}" for name, value, unit in rows] == ran.stdout.split()


def test_the_names_that_replace_those_of_the_sdk_exist(played: Played) -> None:
    # those of three columns are about extensions, and test_sdk_names.py has them
    rows = re.findall(r"^\| [^|]* \| ([^|]*) \|$", section(page("from-the-sdk.md"), "Names"), flags=re.MULTILINE)
    names = set(re.findall(r"`([a-zA-Z_]+)", " ".join(rows))) - {
        *("self", "spawned", "meta", "async"),  # variables, an attribute, and a keyword
    }
    assert len(names) > 40
    modules = "my_acp as a, my_acp.helpers as h, my_editor_acp as c, my_editor_acp.helpers as i"
    code = f"import {modules}; print(*{{*dir(a), *dir(h), *dir(c), *dir(i), *dir(a.Agent), *dir(c.Client)}})"
    ran = subprocess.run([sys.executable, "-c", code], cwd=played.folder, capture_output=True, text=True, check=True)
    assert names - set(ran.stdout.split()) == set()
