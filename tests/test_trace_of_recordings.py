"""What `acpgen trace --out` and the option `trace` write is what `acpgen trace FILE` reads, also if a file was full."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import Outcome, run_acpgen
from tests.runtime_support import V1, client_of, run
from tests.support import Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

Json = Any
MIB = 2**20

AGENT = """
import json, sys
updates, size, mistake = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(text):
    content = {"type": "text", "text": text}
    say(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk",
        "content": content}})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    elif asked["method"] == "session/new":
        result = {"sessionId": "s"}
    else:
        for number in range(updates):
            update(5 if number == mistake else "x" * size)
        print("a word on stderr", file=sys.stderr)
        result = {"stopReason": "end_turn"}
    say(id=asked["id"], result=result)
"""
"""Sends updates of a size, one of them, or none, with a mistake."""


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


def record(
    acp: ModuleType, folder: Path, *, updates: int = 3, size: int = 10, mistake: int = -1, turns: int = 1
) -> dict[str, Path]:
    """A conversation that both have recorded: the files."""
    files = {"recorder": folder / "recorder.jsonl", "switch": folder / "switch.jsonl"}
    agent = [sys.executable, "-c", AGENT, str(updates), str(size), str(mistake)]
    recorder = [sys.executable, "-m", "acpgen", "trace", "--out", str(files["recorder"]), "--max-mib", "1", "--"]

    async def session_update(self: Any, params: Any) -> None:
        pass

    async def main() -> None:
        options = acp.ConnectionOptions(trace=files["switch"])
        spawned = acp.spawn_agent(client_of(acp, session_update=session_update), [*recorder, *agent], options=options)
        async with spawned as stub:
            await stub.initialize(acp.InitializeRequest(protocol_version=1))
            await stub.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))
            for _ in range(turns):
                prompt = [acp.ContentBlockText(text="hello")]
                await stub.session_prompt(acp.PromptRequest(session_id="s", prompt=prompt))

    run(main())
    return files


def checked(file: Path, *options: str) -> tuple[int, list[Json]]:
    """The exit code, and the findings."""
    ran: Outcome = run_acpgen("trace", file, "--format", "json", *options, cwd=file.parent)
    return ran.code, json.loads(ran.stderr)


def on_page(file: Path) -> list[Json]:
    """The messages on the page of a trace."""
    page = file.parent / "page.html"
    page.unlink(missing_ok=True)
    assert run_acpgen("trace", file, "--html", page, cwd=file.parent).code in (0, 1)
    blocks = page.read_text(encoding="utf-8").split('<script type="application/x-ndjson">\n')[1:]
    return [json.loads(line) for block in blocks for line in block.split("\n</script>")[0].split("\n")]


def messages(file: Path) -> list[Json]:
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [line["msg"] for line in found if "msg" in line]


@pytest.mark.parametrize("writer", ["recorder", "switch"])
def test_good_traffic_has_no_findings(acp: ModuleType, tmp_path: Path, writer: str) -> None:
    file = record(acp, tmp_path)[writer]
    assert checked(file) == (0, [])
    shown = on_page(file)
    assert [each for each in shown if "jsonrpc" in each] == messages(file)
    assert (len(messages(file)), shown[0]["acp_trace"], "end" in shown[-1]) == (9, 1, True)


@pytest.mark.parametrize("writer", ["recorder", "switch"])
def test_a_mistake_is_found_at_its_place(acp: ModuleType, tmp_path: Path, writer: str) -> None:
    file = record(acp, tmp_path, mistake=1)[writer]
    code, found = checked(file)
    place = "/params/update/content/text"
    assert (code, [(each["line"], each["pointer"]) for each in found]) == (1, [(8, place)])
    line = file.read_text(encoding="utf-8").splitlines()[7]
    assert json.loads(line)["msg"]["params"]["update"]["content"]["text"] == 5


def test_a_file_that_was_full_is_read_before_the_next(acp: ModuleType, tmp_path: Path) -> None:
    """Requests, sessions and the version are those of the file before."""
    file = record(acp, tmp_path, updates=150, size=10_000, mistake=20)["recorder"]
    before = tmp_path / "recorder.jsonl.1"
    assert max(each.stat().st_size for each in (file, before)) <= MIB
    code, found = checked(file)
    assert (code, [(each["file"], each["line"], each["code"]) for each in found]) == (
        1,
        [(before.as_posix(), 27, "wrong-value")],
    )
    assert [each for each in on_page(file) if "jsonrpc" in each] == messages(before) + messages(file)


@pytest.mark.parametrize("has_one_before", [True, False])
def test_what_is_gone_is_not_missed(acp: ModuleType, tmp_path: Path, has_one_before: bool) -> None:
    """Of a long conversation, two files are kept. A mistake in the last of them is found."""
    file = record(acp, tmp_path, updates=150, size=10_000, turns=3, mistake=149)["recorder"]
    before = tmp_path / "recorder.jsonl.1"
    assert not any(each.get("method") == "session/new" for each in messages(before))
    if not has_one_before:
        before.unlink()
    code, found = checked(file)
    assert code == 1
    assert {each["code"] for each in found} == {"wrong-value"}
    assert found[-1]["file"] == file.as_posix()


def test_conversations_of_one_file_are_followed_apart(acp: ModuleType, tmp_path: Path) -> None:
    for _ in range(2):
        file = record(acp, tmp_path)["switch"]
    assert len(messages(file)) == 18
    assert checked(file) == (0, [])
