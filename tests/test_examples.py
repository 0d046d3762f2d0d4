"""The examples: each is built by the command in its docstring, and run for real."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.postgres_server import postgres
from tests.support import REPOSITORY, without_slowness

pytestmark = pytest.mark.full

EXAMPLES = REPOSITORY / "examples"
SCRIPTS = sorted(
    path.relative_to(EXAMPLES).as_posix()
    for path in EXAMPLES.rglob("*.py")
    if "acp_" not in str(path) and path.parent.name != "frameworks"  # they have tests of their own
)
SECONDS = 300

HELLO = {"protocolVersion": 1}
HELLO_V2 = {"protocolVersion": 2, "info": {"name": "tests", "version": "1"}}


@dataclass(frozen=True)
class Example:
    """A copy of an example, with the package that it imports beside it."""

    script: Path

    def run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """What the example does with `text` on stdin; it must end well, and silently."""
        ran = subprocess.run(
            [sys.executable, "-X", "dev", self.script, *arguments],
            input=text,
            env={**os.environ, "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            check=False,
        )
        assert (ran.returncode, without_slowness(ran.stderr)) == (0, ""), ran.stderr
        return ran

    def answers(self, *requests: tuple[str, Any]) -> list[Any]:
        """The results of requests, or the codes of their errors, sent one after the other."""
        with subprocess.Popen(
            [sys.executable, "-X", "dev", self.script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as agent:
            assert agent.stdin is not None
            assert agent.stdout is not None
            found: list[Any] = []
            for number, (method, params) in enumerate(requests):
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                agent.stdin.write(json.dumps(message) + "\n")
                agent.stdin.flush()
                answer = json.loads(agent.stdout.readline())
                assert answer["id"] == number
                found.append(answer["result"] if "result" in answer else answer["error"]["code"])
        assert agent.returncode == 0
        return found


Examples = Callable[[str], Example]


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    """Copies of the examples by name; what each imports is built when it is first asked for."""
    home = tmp_path_factory.mktemp("examples") / "examples"
    shutil.copytree(EXAMPLES, home, ignore=shutil.ignore_patterns("acp_*", "__pycache__"))

    def get(name: str) -> Example:
        script = home / name
        arguments = build_command(name)
        if not (script.parent / arguments[-1]).exists():
            ran = run_acpgen(*arguments, cwd=script.parent)
            assert ran.code == 0, ran.stderr
        return Example(script)

    return get


def build_command(name: str) -> list[str]:
    """The arguments of the command in the docstring of an example; the last one is the folder of the package."""
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))) or ""
    (command,) = re.findall(r"^    acpgen (build .*)$", docstring.replace("\\\n", " "), flags=re.MULTILINE)
    arguments = shlex.split(command)
    assert arguments[-2] == "--out"
    return arguments


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"\]\(([\w./]+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8")))
    assert listed == {"frameworks", *(name.partition("/")[0] for name in SCRIPTS)}
    assert len(SCRIPTS) == 9


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_imports_what_its_command_builds(name: str) -> None:
    tree = ast.parse((EXAMPLES / name).read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    package = build_command(name)[-1]
    modules = {package, *(f"{package}.{module}" for module in ("helpers", "asgi", "remote"))}
    others = {*sys.stdlib_module_names, "collections.abc", "http.cookiejar"}
    found = {module for module in imported - others if module is not None}
    assert found <= modules
    assert found & {package, f"{package}.helpers"}


def test_built_packages_are_not_committed() -> None:
    ignored = (EXAMPLES / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert "acp_*/" in ignored
    assert all(build_command(name)[-1].startswith("acp_") for name in SCRIPTS)


def test_the_client_prints_what_the_echo_agent_says(examples: Examples) -> None:
    agent = examples("echo_agent_v1.py")
    ran = examples("printing_client.py").run("Grüße", sys.executable, str(agent.script))
    assert ran.stdout == "agent: Grüße\nstopped: end_turn\n"


def lines(*messages: dict[str, Any]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


PROMPT = [{"type": "text", "text": word} for word in ("one", "two", "three")]


class Talk:
    """An example that runs, with one session open."""

    def __init__(self, example: Example, hello: dict[str, Any]) -> None:
        command = [sys.executable, "-X", "dev", example.script]
        self._agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.agreed = self.ask("initialize", hello)
        self.session_id = self.ask("session/new", {"cwd": "/", "mcpServers": []})["sessionId"]

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        with self._agent:
            pass
        assert self._agent.returncode == 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request; nothing may come before it."""
        self.write({"id": method, "method": method, "params": params})
        answer = self.read()
        assert answer["id"] == method
        return answer["result"]

    def write(self, *messages: dict[str, Any]) -> None:
        """Send messages in one piece."""
        assert self._agent.stdin is not None
        self._agent.stdin.write(lines(*messages))
        self._agent.stdin.flush()

    def read(self) -> Any:
        """The next message."""
        assert self._agent.stdout is not None
        return json.loads(self._agent.stdout.readline())

    def prompt(self, *, cancelled: bool) -> None:
        """Send a prompt, with its cancellation in one piece."""
        session = {"sessionId": self.session_id}
        prompt = {"id": "prompt", "method": "session/prompt", "params": {**session, "prompt": PROMPT}}
        self.write(prompt, *([{"method": "session/cancel", "params": session}] if cancelled else []))

    def updates(self) -> list[Any]:
        """The updates until the agent is idle."""
        found: list[Any] = []
        while not found or found[-1].get("state") != "idle":
            message = self.read()
            if "method" in message:
                found.append(message["params"]["update"])
        return found


def test_the_echo_agent_can_be_cancelled(examples: Examples) -> None:
    with Talk(examples("echo_agent_v1.py"), HELLO) as talk:
        talk.prompt(cancelled=True)
        messages = [talk.read()]
        while "method" in messages[-1]:
            messages.append(talk.read())
    assert messages[-1]["result"] == {"stopReason": "cancelled"}
    assert len(messages) <= len(PROMPT)


def test_the_echo_agent_says_who_it_is_and_names_each_session_anew(examples: Examples) -> None:
    ids = set()
    for _ in range(2):
        with Talk(examples("echo_agent_v1.py"), HELLO) as talk:
            assert talk.agreed["agentInfo"] == {"name": "echo", "version": "1"}
            ids |= {talk.session_id, talk.ask("session/new", {"cwd": "/", "mcpServers": []})["sessionId"]}
    assert len(ids) == 4


@pytest.mark.parametrize(("cancelled", "reason"), [(False, "end_turn"), (True, "cancelled")])
def test_the_echo_agent_for_protocol_2_tells_how_it_goes(examples: Examples, cancelled: bool, reason: str) -> None:
    with Talk(examples("echo_agent_v2.py"), HELLO_V2) as talk:
        for _ in range(2):  # another prompt may follow
            talk.prompt(cancelled=cancelled)
            said, *more, idle = talk.updates()
            assert (said["sessionUpdate"], said["content"]) == ("user_message", PROMPT)
            assert idle["stopReason"] == reason
            chunks = [update["content"] for update in more if update["sessionUpdate"] == "agent_message_chunk"]
            assert (chunks == PROMPT) is not cancelled


def test_the_echo_agent_for_protocol_2_lists_the_sessions_of_a_folder(examples: Examples) -> None:
    with Talk(examples("echo_agent_v2.py"), HELLO_V2) as talk:
        other = talk.ask("session/new", {"cwd": "/tmp", "mcpServers": []})["sessionId"]
        found = {
            cwd: [each["sessionId"] for each in talk.ask("session/list", {"cwd": cwd})["sessions"]]
            for cwd in ("/", "/tmp", "/nowhere", None)
        }
    assert found == {"/": [talk.session_id], "/tmp": [other], "/nowhere": [], None: [talk.session_id, other]}


def test_one_logs_in_and_out_of_the_auth_agent(examples: Examples) -> None:
    session = ("session/new", {"cwd": "/", "mcpServers": []})
    state = ("getAuthState", {})
    hello, *rest = examples("auth_agent.py").answers(
        ("initialize", HELLO),
        state,
        session,
        ("authenticate", {"methodId": "unknown"}),
        ("authenticate", {"methodId": "keyring"}),
        state,
        session,
        ("logout", {}),
        session,
    )
    capabilities = hello["agentCapabilities"]
    assert capabilities["getAuthState"] is True
    assert capabilities["authCapabilities"]["logout"] is True
    assert [method["id"] for method in hello["authMethods"]] == ["keyring"]
    outside, refused, unknown, logged_in, inside, opened, logged_out, refused_again = rest
    assert (outside["authenticated"], refused, unknown, logged_in) == (False, -32000, -32602, {})
    assert (inside["authenticated"], list(opened), logged_out) == (True, ["sessionId"], {})
    assert inside["authMethods"] == [{"authMethodId": "keyring", "authenticated": True}]
    assert refused_again == -32000


def test_the_vendor_extension_works_end_to_end(examples: Examples) -> None:
    examples("vendor_extension/agent.py")
    ran = examples("vendor_extension/client.py").run("milk", "plants")
    assert ran.stdout == "notes: milk\nthe agent has 1 of them\nnotes: milk, plants\nthe agent has 2 of them\n"


POSTGRES = """
import asyncio, sys
sys.path.insert(0, ".")
from acp_sessions.helpers import check_store
from postgres_store import PostgresStore

async def main():
    stores = []

    async def make():
        stores.append(PostgresStore(sys.argv[1]))
        return stores[-1]

    await check_store(make)
    await asyncio.gather(*(store.close() for store in stores))

asyncio.run(main())
"""


def test_sessions_in_postgresql(examples: Examples) -> None:
    """The store passes the check that is published, on a real server."""
    built = examples("postgres_store.py")
    with postgres() as url:
        check = built.script.with_name("check.py")
        check.write_text(POSTGRES)
        Example(check).run(url)
