"""What the tests of examples/frameworks/ share: an environment with the frameworks, and clients of the examples."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.interop import peers
from tests.needs import lacks
from tests.runtime_support import V1
from tests.support import REPOSITORY, Packages
from tests.turns_support import helpers_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = REPOSITORY / "examples" / "frameworks"
AGENTS = sorted(path.name for path in EXAMPLES.glob("*_agent.py"))
WATCHED = REPOSITORY / "tests" / "frameworks_watched.py"
SECONDS = 300.0
NOTES = "My favourite colour is blue.\n"
CONVERSATION = ("correct", "count 3", "call greet", "remember")
KINDS = {
    "correct": [
        *("session_info_update", "agent_thought_chunk", "agent_thought_chunk", "plan"),
        *("tool_call", "tool_call_update"),  # the file is read
        *("tool_call", "tool_call_update", "tool_call_update"),  # it is written, after the question
        *("plan", "agent_message_chunk", "agent_message_chunk"),
    ],
    "count 3": ["tool_call", *["tool_call_update"] * 4, "agent_message_chunk", "agent_message_chunk"],
    "call greet": ["tool_call", "tool_call_update", "agent_message_chunk", "agent_message_chunk"],
    "remember": ["agent_message_chunk", "agent_message_chunk"],
}
"""The kinds of the updates for each prompt, whatever the framework."""
SERVER = '''
import os, sys
import anyio
from pathlib import Path
from mcp.server import MCPServer
server = MCPServer("greetings")

@server.tool()
def greet() -> str:
    """Say hello."""
    return "hello"

@server.tool()
async def linger() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return "late"

Path(sys.argv[1]).write_text(str(os.getpid()))
server.run()
'''


def environment(home: Path) -> str:
    """The interpreter of an environment with the frameworks, in the versions that pyproject.toml names."""
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    packages = [each for each in wanted["frameworks"] if isinstance(each, str)]
    (interpreter,), _ = peers.environment(home, "frameworks", *packages)
    return interpreter


def build_command() -> list[str]:
    """The arguments of the command in the README of the examples, which builds their package."""
    (command,) = re.findall(
        r"^acpgen (build .* --out acp_\w+)$", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    return str(command).split()


def built(home: Path) -> Path:
    """A copy of the examples, with their package."""
    shutil.copytree(EXAMPLES, home, ignore=shutil.ignore_patterns("acp_*", "__pycache__", "*.db"))
    ran = run_acpgen(*build_command(), cwd=home)
    assert ran.code == 0, ran.stderr
    return home


class Lines:
    """A transport to a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    async def read(self) -> bytes | None:
        return (await self._stdout.readline()).rstrip() or None

    async def write(self, message: bytes) -> None:
        self._stdin.write(message + b"\n")
        await self._stdin.drain()

    async def close(self) -> None:
        self._stdin.close()


@dataclass
class Project:
    """A folder with notes, in which an example works; its sessions are beside it."""

    acp: ModuleType
    interpreter: str
    script: Path
    home: Path

    def __post_init__(self) -> None:
        self.folder = self.home / "project"
        self.folder.mkdir()
        (self.home / "server.py").write_text(SERVER)
        self.restore()

    def restore(self) -> None:
        """Undo what was written."""
        self.notes.write_text(NOTES)

    @property
    def notes(self) -> Path:
        """The file that agents correct."""
        return self.folder / "notes.txt"

    @property
    def helpers(self) -> Any:
        """The helpers of the package of the client."""
        return helpers_of(self.acp)

    @property
    def command(self) -> list[str]:
        """The command of the agent."""
        return [self.interpreter, str(self.script), str(self.home / "sessions.db")]

    @property
    def servers(self) -> list[dict[str, Any]]:
        """The MCP servers of a session: one that greets, and one that cannot be started."""
        program = [str(self.home / "server.py"), str(self.home / "pid")]
        return [
            {"name": "broken", "command": str(self.home / "missing"), "args": [], "env": []},
            {"name": "greetings", "command": self.interpreter, "args": program, "env": []},
        ]

    def is_served(self) -> bool:
        """True while the process of the MCP server runs."""
        try:
            os.kill(int((self.home / "pid").read_text()), 0)
        except ProcessLookupError:
            return False
        return True

    @asynccontextmanager
    async def talk(
        self, answer: str | Callable[[Any], Any] = "allow_once", *, watched: bool = False
    ) -> AsyncGenerator[Any, None]:
        """A scripted client of the agent, which ends with it, and without a complaint."""
        helpers = self.helpers
        python, *command = self.command
        process = await asyncio.create_subprocess_exec(
            *(python, str(WATCHED), *command) if watched else (python, *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        assert process.stderr is not None
        complaints = asyncio.ensure_future(process.stderr.read())
        chosen = helpers.choose(answer) if isinstance(answer, str) else answer
        client = helpers.ScriptedClient(answers={"session/request_permission": chosen})
        client.wait_seconds = SECONDS
        try:
            async with client.connected(Lines(process)) as talking:
                yield talking
            code = await asyncio.wait_for(process.wait(), SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
            text = (await complaints).decode()
        assert code == 0, text
        check_quiet(text)


def check_quiet(stderr: str) -> None:
    """Fail if an agent has written of an error, or of what asyncio has found left behind."""
    assert not re.search("Traceback|was destroyed|never retrieved|never awaited", stderr), stderr


def open_calls(updates: Iterable[dict[str, Any]]) -> set[str]:
    """The tool calls that have not ended."""
    found: dict[str, str] = {}
    for update in updates:
        if "toolCallId" in update and "status" in update:
            found[update["toolCallId"]] = update["status"]
    return {call for call, status in found.items() if status not in {"completed", "failed"}}


Start = Callable[[str], Project]
"""A project for an example, by its name."""


def home_of_peers(request: pytest.FixtureRequest, folders: pytest.TempPathFactory) -> Path:
    """Where the frameworks and the official SDKs are installed."""
    cache = getattr(request.config, "cache", None)
    default = cache.mkdir("interop-peers") if cache else folders.getbasetemp().parent / "interop-peers"
    return peers.home(Path(default))


def starter(home: Path, folders: pytest.TempPathFactory, packages: Packages) -> Start:
    """What makes projects; skips the test where the frameworks cannot be installed."""
    try:
        interpreter = environment(home)
    except peers.MissingPeerError as error:
        lacks("registry", error)
    examples = built(folders.mktemp("frameworks") / "examples")
    acp = packages(V1)
    return lambda name: Project(acp, interpreter, examples / name, folders.mktemp("project"))
