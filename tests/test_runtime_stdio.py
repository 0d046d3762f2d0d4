"""`run_agent` as a client meets it: a process, its stdin and stdout, and signals."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import PATIENCE, AgentProcess, Diary, Lines, command, complaints, environment
from tests.support import Packages, without_slowness
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
Start = Callable[..., AgentProcess]


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path)
    yield diary
    diary.close()


@pytest.fixture
def start(acp: ModuleType, diary: Diary, tmp_path: Path) -> Iterator[Start]:
    """Starts the puppet; what it writes to stderr must hold no complaint in the end."""
    started: list[AgentProcess] = []

    def start(options: Mapping[str, Any] | None = None, **streams: Any) -> AgentProcess:
        env = environment(acp, ACP_DIARY=str(diary.path), ACP_OPTIONS=json.dumps(options or {}))
        agent = AgentProcess(command("puppet.py"), env, tmp_path / f"stderr{len(started)}", **streams)
        started.append(agent)
        return agent

    yield start
    for agent in started:
        with agent:
            pass
        assert complaints(agent.stderr) == []


def ended_cleanly(agent: AgentProcess, diary: Diary, *entries: str) -> None:
    assert agent.end() == 0, agent.stderr
    *found, reason, last = diary.rest()
    assert found == list(entries)
    assert reason.startswith("closed: ")
    assert last == "returned"
    assert "Traceback" not in agent.stderr


# --- Ways to end ----------------------------------------------------------------------------------------------------


def test_eof_ends_an_idle_agent(start: Start, diary: Diary) -> None:
    agent = start()
    agent.answer(agent.ask("initialize", protocolVersion=1))
    agent.close_stdin()
    ended_cleanly(agent, diary)
    assert agent.read() is None


def test_eof_before_the_first_message(start: Start, diary: Diary) -> None:
    agent = start(stdin=subprocess.DEVNULL)
    ended_cleanly(agent, diary)
    assert agent.read() is None


def test_eof_ends_a_prompt_that_does_not_end(start: Start, diary: Diary) -> None:
    agent = start()
    agent.prompt("hang")
    assert agent.update() == "hangs"
    agent.close_stdin()
    ended_cleanly(agent, diary, "cleaned up")


@SIGNALS
def test_a_signal_ends_an_idle_agent(start: Start, diary: Diary, number: signal.Signals) -> None:
    agent = start()
    agent.answer(agent.ask("initialize", protocolVersion=1))
    agent.process.send_signal(number)
    ended_cleanly(agent, diary)
    assert agent.read() is None


@SIGNALS
def test_a_signal_ends_a_prompt(start: Start, diary: Diary, number: signal.Signals) -> None:
    agent = start()
    agent.prompt("hang")
    assert agent.update() == "hangs"
    agent.process.send_signal(number)
    ended_cleanly(agent, diary, "cleaned up")


@SIGNALS
def test_a_signal_ends_an_agent_whose_client_does_not_read(start: Start, diary: Diary, number: signal.Signals) -> None:
    """What waits to be written does so for `cleanup_seconds`, and is given up then."""
    agent = start({"cleanup_seconds": 0.5})
    agent.prompt("stream 1000 1000000")
    agent.update()
    agent.process.send_signal(number)
    ended_cleanly(agent, diary, "cleaned up")


@SIGNALS
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_the_second_signal_does_not_wait(
    start: Start, diary: Diary, number: signal.Signals, second: signal.Signals
) -> None:
    """A handler that does not let itself be cancelled would hold up the end for `cleanup_seconds`."""
    agent = start()
    agent.prompt("hang_on")
    assert agent.update() == "hangs"
    agent.process.send_signal(number)
    assert diary.next() == "cancelled"
    agent.process.send_signal(second)
    assert (agent.end(), diary.rest()) == (-second, [])


def test_a_closed_stdout_ends_it_while_it_writes(start: Start, diary: Diary) -> None:
    agent = start()
    agent.prompt("stream 1000 1000000")
    agent.update()
    assert agent.process.stdout is not None
    agent.process.stdout.close()
    ended_cleanly(agent, diary, "cleaned up")


def test_a_closed_stdout_ends_it_with_the_next_answer(start: Start, diary: Diary) -> None:
    agent = start()
    agent.prompt("hang")
    assert agent.update() == "hangs"
    assert agent.process.stdout is not None
    agent.process.stdout.close()
    agent.ask("initialize", protocolVersion=1)
    ended_cleanly(agent, diary, "cleaned up")


# --- The wire is the agent's own ------------------------------------------------------------------------------------


def test_nothing_but_messages_gets_on_the_wire(start: Start) -> None:
    agent = start()
    number = agent.prompt("chatter")
    # what the processes read is not the wire, and empty
    assert [agent.update() for _ in range(3)] == ["asyncio 0", "subprocess 0", "stdin ''"]
    assert agent.answer(number)["result"] == {"stopReason": "end_turn"}
    number = agent.prompt("size 123")
    assert agent.update() == "3"
    assert "result" in agent.answer(number)
    agent.close_stdin()
    assert agent.end() == 0
    assert agent.read() is None
    lines = agent.stderr.splitlines()
    by_print = ["from print", "from print to what was stdout"]
    assert sorted(lines) == ["from a process", "from a process", "from os.write", *by_print]


def test_what_a_handler_raises_is_not_for_the_client(start: Start) -> None:
    agent = start()
    agent.prompt("fail")
    message = agent.read()
    assert message["error"] == {"code": -32603, "message": "Internal error"}
    assert "swordfish" not in json.dumps(message)
    agent.close_stdin()
    assert agent.end() == 0
    assert "swordfish" in agent.stderr
    assert "in fail\n" in agent.stderr


def test_stdin_and_stdout_are_back_afterwards(acp: ModuleType) -> None:
    """`run_agent` may be a part of a larger program."""
    program = (
        f"import sys; from {acp.__name__} import Agent, run_agent; run_agent(Agent);"
        "print('after', repr(sys.stdin.read()))"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", program],
        input='{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n',
        env=environment(acp),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    answer, after = done.stdout.splitlines()
    assert (json.loads(answer)["error"]["code"], after) == (-32601, "after ''")
    said = "Agent does not override initialize, which every peer calls first, so that no peer can use it\n"
    assert without_slowness(done.stderr) == said


# --- Large messages -------------------------------------------------------------------------------------------------


def test_large_messages_both_ways(start: Start) -> None:
    agent = start()
    text = "a" * 3_000_000
    number = agent.prompt(f"size {text}")
    assert agent.update() == "3000000"
    agent.answer(number)
    number = agent.prompt("stream 3000000 2")
    assert agent.update() == "x" * 3_000_000
    assert agent.update() == "x" * 3_000_000
    assert "result" in agent.answer(number)


def test_a_slow_handler_holds_up_the_client(start: Start) -> None:
    """What the agent has no time for waits in the pipe, and not in its memory; afterwards all of it is read."""
    agent = start()
    assert agent.process.stdin is not None
    wire = agent.process.stdin.fileno()
    agent.write({"method": "_wait", "params": {"seconds": 2}})
    os.set_blocking(wire, False)
    asked, unsent, deadline = 0, b"", time.monotonic() + 1
    while time.monotonic() < deadline:
        if not unsent:
            asked += 1
            request = {"jsonrpc": "2.0", "id": asked, "method": "_x", "params": "y" * 2000}
            unsent = json.dumps(request).encode() + b"\n"
        try:
            unsent = unsent[os.write(wire, unsent) :]
        except BlockingIOError:
            time.sleep(0.01)
    assert asked < 500  # of 2,000 bytes each: 64 KiB are in the pipe, and some times that in the agent
    os.set_blocking(wire, True)
    os.write(wire, unsent)
    assert {agent.read()["id"] for _ in range(asked)} == set(range(1, asked + 1))


# --- What stdin and stdout can be -----------------------------------------------------------------------------------

REQUESTS = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
    {"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {
        "id": 3,
        "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "stream 5 3"}]},
    },
]


def requests_as(path: Path) -> Path:
    # the last one without the end of its line
    path.write_text("\n".join(json.dumps({"jsonrpc": "2.0", **request}) for request in REQUESTS), encoding="utf-8")
    return path


def check_answers(output: str) -> None:
    messages = [json.loads(line) for line in output.splitlines()]
    assert {message["id"] for message in messages if "id" in message} == {1, 2, 3}
    assert all("result" in message for message in messages if "id" in message)
    assert sum("method" in message for message in messages) == 3
    assert len(messages) == 6


@pytest.mark.parametrize(("source", "target"), [*itertools.product(["file", "pipe"], repeat=2)])
def test_requests_before_the_end_are_answered(start: Start, tmp_path: Path, source: str, target: str) -> None:
    requests, answers = requests_as(tmp_path / "requests"), tmp_path / "answers"
    with requests.open("rb") as given, answers.open("wb") as taken:
        streams: dict[str, Any] = {} if target == "pipe" else {"stdout": taken}
        agent = start(stdin=given if source == "file" else subprocess.PIPE, **streams)
        if source == "pipe":
            agent.write(*REQUESTS)
            agent.close_stdin()
        if target == "pipe":
            output = ""
            while (message := agent.read()) is not None:
                output += json.dumps(message) + "\n"
        assert agent.end() == 0, agent.stderr
        check_answers(output if target == "pipe" else answers.read_text(encoding="utf-8"))


def test_a_socket(start: Start, diary: Diary) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        agent = start(stdin=its, stdout=its)
        its.close()
        ours.sendall(json.dumps({"jsonrpc": "2.0", **REQUESTS[0]}).encode() + b"\n")
        assert json.loads(str(Lines(ours.fileno()).next()))["id"] == 1
        ours.shutdown(socket.SHUT_WR)
        ended_cleanly(agent, diary)


def test_a_socket_that_is_reset(start: Start, diary: Diary) -> None:
    """What a peer does that closes while it has not read all."""
    ours, its = socket.socketpair()
    with ours, its:
        agent = start(stdin=its)
        ours.sendall(json.dumps({"jsonrpc": "2.0", **REQUESTS[0]}).encode() + b"\n")
        assert agent.read()["id"] == 1
        os.write(its.fileno(), b"this is never read")
    ended_cleanly(agent, diary)


@pytest.mark.parametrize("how", ["hang-up", "SIGTERM"])
def test_a_terminal(start: Start, diary: Diary, how: str) -> None:
    """Users try an agent by typing."""
    import tty

    ours, its = os.openpty()
    tty.setraw(its)
    agent = start(stdin=its, stdout=its)
    os.close(its)
    lines = Lines(ours)
    os.write(ours, json.dumps({"jsonrpc": "2.0", **REQUESTS[0]}).encode() + b"\n")
    assert json.loads(str(lines.next()))["id"] == 1
    if how == "SIGTERM":
        agent.process.terminate()
        ended_cleanly(agent, diary)
        assert lines.next() is None
        os.close(ours)
    else:
        os.close(ours)
        ended_cleanly(agent, diary)


def test_stderr_into_the_same_pipe(start: Start, diary: Diary) -> None:
    """Odd, and not to be broken: `agent 2>&1`."""
    agent = start(stderr=subprocess.STDOUT)
    agent.prompt("mutter aside")
    assert agent.line() == "aside"
    assert agent.read()["result"] == {"stopReason": "end_turn"}
    agent.close_stdin()
    ended_cleanly(agent, diary)
