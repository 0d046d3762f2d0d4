"""The same agent with the helpers and with the official Python SDK: what a client sees of each, and their length."""

from __future__ import annotations

import ast
import io
import json
import re
import shutil
import subprocess
import sys
import threading
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Role
from tests.documents import section
from tests.needs import need
from tests.support import REPOSITORY, package_folder

PROGRAMS = REPOSITORY / "tests" / "comparison"
PAGE = REPOSITORY / "docs" / "from-the-sdk.md"
OURS, OFFICIAL = "ours.py", "official.py"
EACH = pytest.mark.parametrize("program", [OURS, OFFICIAL])
SECONDS = 300.0
"""How long an agent may take before it counts as hanging."""
CALL, EDIT = {"sessionUpdate": "tool_call_update"}, {"title": "Edit notes.txt", "kind": "edit"}
DIFF = {"type": "diff", "path": "/home/me/notes.txt", "oldText": "colour\n", "newText": "color\n"}
WORDS = ["I ", "fix ", "the ", "spelling."]


def plan(status: str) -> dict[str, Any]:
    entry = {"content": "Correct the notes", "priority": "medium", "status": status}
    return {"sessionUpdate": "plan", "entries": [entry]}


def words(*words: str) -> list[dict[str, Any]]:
    return [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": word}} for word in words]


STARTED = {"sessionUpdate": "tool_call", **EDIT, "status": "in_progress", "content": [DIFF]}
BEFORE_THE_ANSWER = [plan("in_progress"), *words(*WORDS), STARTED]


class Editor:
    """A client of a program that runs, in raw messages, with one session open."""

    def __init__(self, agent: subprocess.Popen[str]) -> None:
        assert agent.stdin is not None
        assert agent.stdout is not None
        self._in, self._out = agent.stdin, agent.stdout
        self.updates: list[Any] = []
        self.agreed = self.call("initialize", protocolVersion=1, clientCapabilities={})
        self._session = self.call("session/new", cwd="/", mcpServers=[])["sessionId"]

    def send(self, **message: Any) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._in.flush()

    def receive(self) -> Any:
        """The next message that is no update; updates are kept, without the ids of tool calls."""
        for line in self._out:
            message = json.loads(line)
            if message.get("method") == "session/update":
                update = message["params"]["update"]
                update.pop("toolCallId", None)
                self.updates.append(update)
            elif message.get("method") != "$/cancel_request":
                return message
        raise AssertionError("the agent has ended")

    def call(self, method: str, **params: Any) -> Any:
        self.send(id=method, method=method, params=params)
        return self.receive()["result"]

    def prompt(self, text: str) -> None:
        prompt = [{"type": "text", "text": text}]
        self.send(id="prompt", method="session/prompt", params={"sessionId": self._session, "prompt": prompt})

    def cancel(self) -> None:
        self.send(method="session/cancel", params={"sessionId": self._session})

    def question(self) -> Any:
        message = self.receive()
        assert message["method"] == "session/request_permission"
        return message

    def answer(self, question: Any, kind: str) -> None:
        """Choose the option of a kind."""
        (chosen,) = (each["optionId"] for each in question["params"]["options"] if each["kind"] == kind)
        self.send(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": chosen}})

    def stop_reason(self) -> str:
        message = self.receive()
        assert message["id"] == "prompt", message
        return str(message["result"]["stopReason"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, with the package that ours imports."""
    home = tmp_path_factory.mktemp("comparison") / "programs"
    shutil.copytree(PROGRAMS, home, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        package_folder(SchemaChoice(), roles=(Role.AGENT,)),
        home / "acp_ours",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return home


@contextmanager
def editor_of(program: str, folder: Path) -> Iterator[Editor]:
    if program == OFFICIAL:
        need("acp")
    with subprocess.Popen(
        [sys.executable, program], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        too_long = threading.Timer(SECONDS, agent.kill)
        too_long.start()
        try:
            yield Editor(agent)
        finally:
            too_long.cancel()
            agent.kill()


# --- What a client sees ---------------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize(("kind", "status"), [("allow_once", "completed"), ("reject_once", "failed")])
def test_a_client_sees_these_updates(program: str, folder: Path, kind: str, status: str) -> None:
    with editor_of(program, folder) as editor:
        assert editor.agreed["agentInfo"] == {"name": "corrector", "version": "1.0.0"}
        editor.prompt("Correct my notes")
        editor.answer(editor.question(), kind)
        assert editor.stop_reason() == "end_turn"
        assert editor.updates == [*BEFORE_THE_ANSWER, {**CALL, "status": status}, plan("completed")]


@EACH
def test_a_client_can_cancel(program: str, folder: Path) -> None:
    with editor_of(program, folder) as editor:
        editor.prompt("Please wait")
        editor.cancel()
        assert editor.stop_reason() == "cancelled"
        assert editor.updates in ([], [plan("in_progress")], [plan("in_progress"), *words(WORDS[0])])
        editor.updates.clear()
        editor.prompt("Correct my notes")
        question = editor.question()
        editor.cancel()
        editor.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})
        assert editor.stop_reason() == "cancelled"
        assert editor.updates == [*BEFORE_THE_ANSWER, {**CALL, "status": "failed"}]


# --- How long they are ----------------------------------------------------------------------------------------------


def lines_of_code(source: str) -> int:
    """The lines with anything but blanks and comments."""
    no_code = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in no_code]
    return len({line for token in tokens for line in range(token.start[0], token.end[0] + 1)})


def imported_names(source: str) -> int:
    imports = [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    return sum(len(node.names) for node in imports)


def measure(program: str) -> dict[str, int]:
    source = (PROGRAMS / program).read_text(encoding="utf-8")
    return {
        "lines that are not blank": lines_of_code(source),
        "characters": len(source),
        "imported names": imported_names(source),
    }


@pytest.mark.parametrize("name", measure(OURS))
def test_ours_is_no_longer(name: str) -> None:
    assert measure(OURS)[name] <= measure(OFFICIAL)[name]


def test_both_are_formatted() -> None:
    options = ["--check", "--quiet", "--diff", "--line-length=120"]
    ran = subprocess.run(
        [sys.executable, "-m", "black", *options, PROGRAMS], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


def test_the_table_has_these_figures(request: pytest.FixtureRequest) -> None:
    ours, official = measure(OURS), measure(OFFICIAL)
    rows = [f"| {name} | {official[name]:,} | {ours[name]:,} |" for name in ours]
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^\| .* \| [\d,]+ \| [\d,]+ \|$", section(text, "The same agent, twice"), flags=re.MULTILINE)
    if request.config.getoption("--accept-goldens"):
        PAGE.write_text(text.replace("\n".join(found), "\n".join(rows)), encoding="utf-8")
        return
    assert found == rows, "accept them with --accept-goldens"


@pytest.mark.full
def test_ours_is_typed(folder: Path) -> None:
    need("mypy")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", OURS], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
