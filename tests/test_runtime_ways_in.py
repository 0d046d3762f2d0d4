"""The ways into a program: `run_agent`, `serve_stdio` and those of proxies, with what they find and what they leave."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import package
from tests.runtime_agents import PATIENCE, AgentProcess, complaints, environment
from tests.support import Packages, without_slowness
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

START = """
import asyncio, io, os, signal, sys
from {package} import *

class Echo(Agent):
    async def initialize(self, params):
        return InitializeResponse(protocol_version=1)
"""
HELLO = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n'

STATE = """
def state():
    files = [(os.fstat(number).st_ino, os.get_blocking(number)) for number in (0, 1)]
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    tasks = len(asyncio.all_tasks())
    return files, handlers, tasks, sys.stdout, len(os.listdir("/dev/fd"))
"""


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


def program(acp: ModuleType, *parts: str) -> list[str]:
    text = "".join([START.format(package=acp.__name__), *parts])
    return [sys.executable, "-X", "dev", "-c", text if hasattr(acp, "Agent") else text.replace("(Agent)", "(object)")]


def run_program(acp: ModuleType, *parts: str, said: str = HELLO, **streams: Any) -> Any:
    streams = {"stdout": subprocess.PIPE, **({} if "stdin" in streams else {"input": said}), **streams}
    return subprocess.run(
        program(acp, *parts),
        **streams,
        env=environment(acp),
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def played(acp: ModuleType, *parts: str, said: str = HELLO) -> tuple[list[Any], str]:
    """Run a program with one client; returns the messages and the other lines of its stdout, and its stderr."""
    done = run_program(acp, *parts, said=said)
    assert done.returncode == 0, done.stderr
    assert complaints(done.stderr) == []
    lines = done.stdout.splitlines()
    return [json.loads(line) if line.startswith("{") else line for line in lines], without_slowness(done.stderr)


WAYS = {
    "run_agent": "run_agent(Echo)\n",
    "serve_stdio": "asyncio.run(serve_stdio(Echo))\n",
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS)

# --- What was printed before ----------------------------------------------------------------------------------------

PRINTED = {
    "a line": 'print("Loading…")\n',
    "no line end": 'print("Loading…", end="")\n',
    "bytes": 'sys.stdout.buffer.write("Loading…".encode())\n',
    "what stdout was": 'sys.stdout = io.StringIO(); print("Loading…", file=sys.__stdout__)\n',
    "another wrapper": 'sys.stdout = io.TextIOWrapper(sys.stdout.buffer, "utf-8"); print("Loading…")\n',
    "more than a pipe takes": (
        'sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False), 2**20), "utf-8")\n'
        'print("Loading…", "x" * 200_000)\n'
    ),
}


@pytest.mark.parametrize(("how", "way"), [*((how, "run_agent") for how in PRINTED), ("no line end", "serve_stdio")])
def test_what_was_printed_before_is_not_on_the_wire(acp: ModuleType, how: str, way: str) -> None:
    (message,), stderr = played(acp, PRINTED[how], WAYS[way])
    assert message["id"] == 1
    assert stderr.splitlines()[0].startswith("Loading…"), "as a line of its own"
    assert f"text was printed to stdout before {way}: it has gone to stderr" in stderr


@EVERY_WAY
def test_there_is_no_warning_if_nothing_was_printed(acp: ModuleType, way: str) -> None:
    messages, stderr = played(acp, WAYS[way], 'print("after")\n')
    assert (messages[0]["id"], messages[1:], stderr) == (1, ["after"], "")


PROXY_WAYS = {
    "run_proxy": "run_proxy(Proxy, [sys.executable, '-c', 'input()'])\n",
    "run_conductor": "run_conductor([Proxy], [sys.executable, '-c', 'input()'])\n",
    "serve_stdio": "asyncio.run(serve_stdio([Proxy], [sys.executable, '-c', 'input()']))\n",
}


@pytest.mark.parametrize("way", PROXY_WAYS)
def test_nor_on_the_wire_of_a_proxy(packages: Packages, way: str) -> None:
    acp, said = package(packages), HELLO.replace("initialize", "initialise")
    (message,), stderr = played(acp, 'print("Loading…", end="")\n', PROXY_WAYS[way], said=said)
    assert (message["id"], message["error"]["code"]) == (1, -32600)
    assert f"text was printed to stdout before {way}" in stderr


# --- An event loop that runs ----------------------------------------------------------------------------------------

MISTAKES = {
    "await run_agent": "async def main():\n    await run_agent(Echo)\nasyncio.run(main())\n",
    "asyncio.run(run_agent)": "asyncio.run(run_agent(Echo))\n",
    "a task": "(loop := asyncio.new_event_loop()).run_until_complete(run_agent(Echo))\n",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_the_way_in(acp: ModuleType, mistake: str) -> None:
    done = run_program(acp, MISTAKES[mistake])
    assert done.returncode == 1
    assert "RuntimeError: run_agent starts an event loop of its own: where one runs, write `await serve_stdio(" in (
        done.stderr
    )
    assert "never awaited" not in done.stderr


@pytest.mark.parametrize(
    ("way", "how"),
    [
        ("run_proxy(Proxy, ['agent'])", "async def main():\n    await {0}\nasyncio.run(main())\n"),
        ("run_conductor([Proxy], ['agent'])", "asyncio.run({0})\n"),
    ],
)
def test_a_mistake_with_a_proxy_names_the_way_in(packages: Packages, way: str, how: str) -> None:
    done = run_program(package(packages), how.format(way), said="")
    assert done.returncode == 1
    assert f"RuntimeError: {way.partition('(')[0]} starts an event loop of its own" in done.stderr
    assert "serve_stdio" in done.stderr


def test_the_exit_code_of_a_program_stays_zero(acp: ModuleType) -> None:
    """`sys.exit(main())` is what the scripts of a distribution do."""
    assert len(played(acp, "sys.exit(run_agent(Echo))\n")[0]) == 1


def test_a_second_server_is_refused(acp: ModuleType) -> None:
    parts = (
        "async def main():\n"
        "    first = asyncio.create_task(serve_stdio(Echo))\n"
        "    await asyncio.sleep(0)\n"
        "    try:\n"
        "        await serve_stdio(Echo)\n"
        "    except RuntimeError as error:\n"
        "        print(error, file=sys.stderr)\n"
        "    await first\n"
        "asyncio.run(main())\n"
    )
    messages, stderr = played(acp, parts)
    assert len(messages) == 1
    assert stderr == "serve_stdio: stdin and stdout are served already, and a second server would read nothing\n"


# --- What serve_stdio leaves ----------------------------------------------------------------------------------------

HOST = """
async def main():
    before = state()
    task = asyncio.create_task(serve_stdio(Echo))
    {during}
    print("still here")
    now = state()
    assert now == before, (before, now)
    print("as it was")
asyncio.run(main())
"""
ENDS = {
    "end of stdin": ("await task", None),
    "SIGTERM": ("await task", signal.SIGTERM),
    "SIGINT": ("await task", signal.SIGINT),
    "cancelled": (
        "await asyncio.sleep(0.3); task.cancel(); await asyncio.wait([task]); assert task.cancelled()",
        None,
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_all_is_as_it_was(acp: ModuleType, tmp_path: Path, end: str) -> None:
    during, number = ENDS[end]
    command = program(acp, STATE, HOST.format(during=during))
    with AgentProcess(command, environment(acp), tmp_path / "stderr") as agent:
        agent.answer(agent.ask("initialize", protocolVersion=1))
        if number is not None:
            agent.process.send_signal(number)
        elif end != "cancelled":
            agent.close_stdin()
        assert (agent.line(), agent.line(), agent.line()) == ("still here", "as it was", None), agent.stderr
        assert agent.end() == 0
    assert complaints(agent.stderr) == []


def test_nothing_is_left_of_a_file(acp: ModuleType, tmp_path: Path) -> None:
    """Threads read and write it."""
    (tmp_path / "requests").write_text(HELLO, encoding="utf-8")
    parts = (
        "import threading\n"
        "async def main():\n"
        "    before = state(), threading.active_count()\n"
        "    await serve_stdio(Echo)\n"
        "    while (state(), threading.active_count()) != before:\n"
        "        await asyncio.sleep(0.01)\n"
        "    print('as it was')\n"
        "asyncio.run(main())\n"
    )
    with (tmp_path / "requests").open("rb") as requests:
        done = run_program(acp, STATE, parts, stdin=requests)
    assert done.stdout.splitlines()[1:] == ["as it was"], done.stderr


def test_a_signal_that_the_program_handles_is_left_to_it(acp: ModuleType, tmp_path: Path) -> None:
    during = (
        "loop = asyncio.get_running_loop()\n"
        "    loop.add_signal_handler(signal.SIGTERM, lambda: print('mine', file=sys.stderr, flush=True))\n"
        "    signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(task.cancel))\n"
        "    files, handlers, _, *rest = state()\n"
        "    before = files, handlers, 1, *rest\n"
        "    await asyncio.wait([task])"
    )
    command = program(acp, STATE, HOST.format(during=during))
    with AgentProcess(command, environment(acp), tmp_path / "stderr") as agent:
        agent.answer(agent.ask("initialize", protocolVersion=1))
        agent.process.send_signal(signal.SIGTERM)
        agent.answer(agent.ask("initialize", protocolVersion=1))
        agent.process.send_signal(signal.SIGINT)
        assert (agent.line(), agent.line(), agent.line()) == ("still here", "as it was", None), agent.stderr
        assert agent.end() == 0
    assert "mine" in agent.stderr


def test_the_handlers_of_a_program_are_back_after_run_agent(acp: ModuleType) -> None:
    parts = (
        "mine = lambda *_: None\n"
        "signal.signal(signal.SIGTERM, mine)\n"
        "run_agent(Echo)\n"
        "assert signal.getsignal(signal.SIGTERM) is mine\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    )
    assert len(played(acp, parts)[0]) == 1


def test_a_busy_agent_ends_by_a_second_signal(acp: ModuleType, tmp_path: Path) -> None:
    """The first one is noted at once, although the event loop does not run."""
    parts = (
        "import time\n"
        "class Busy(Echo):\n"
        "    async def ext_notification(self, method, params):\n"
        "        print('busy', file=sys.__stderr__, flush=True)\n"
        "        while True:\n"
        "            time.sleep(0.01)\n"
        "run_agent(Busy)\n"
    )
    with AgentProcess(program(acp, parts), environment(acp), tmp_path / "stderr") as agent:
        agent.answer(agent.ask("initialize", protocolVersion=1))
        agent.write({"method": "_x"})
        while "busy" not in agent.stderr:
            assert agent.process.poll() is None
        agent.process.send_signal(signal.SIGTERM)
        while agent.process.poll() is None:
            agent.process.send_signal(signal.SIGTERM)
        assert agent.end() == -signal.SIGTERM


@pytest.mark.needs("/dev/full")
def test_a_full_disk_is_an_error(acp: ModuleType) -> None:
    parts = (
        "try:\n"
        "    asyncio.run(serve_stdio(Echo))\n"
        "except OSError as error:\n"
        "    print(error, file=sys.stderr)\n"
    )
    with Path("/dev/full").open("wb") as full:
        done = run_program(acp, parts, stdout=full)
    assert without_slowness(done.stderr) == "cannot write to stdout: No space left on device\n"


def test_a_proxy_whose_agent_fails_is_an_error(packages: Packages, tmp_path: Path) -> None:
    acp = package(packages)
    parts = (
        "try:\n"
        "    asyncio.run(serve_stdio(Proxy, [sys.executable, '-c', 'input(); exit(3)']))\n"
        "except ConnectionClosed as error:\n"
        "    print('after', error)\n"
    )
    with AgentProcess(program(acp, parts), environment(acp), tmp_path / "stderr") as agent:
        assert "error" in agent.answer(agent.ask("initialize", protocolVersion=1))
        assert agent.line() == "after the agent has ended with exit code 3"
        assert agent.end() == 0


# --- sys.exit --------------------------------------------------------------------------------------------------------

EXITS = {
    "a request": ("async def ext_method(self, method, params): sys.exit(3)", "the handler of '_x'"),
    "a notification": (
        "async def ext_notification(self, method, params): sys.exit(3)",
        "the handler of the notification '_x'",
    ),
    "a task": (
        "async def ext_method(self, method, params): await asyncio.create_task(self.leave())\n"
        "    async def leave(self): sys.exit(3)",
        "a task|the handler of '_x'",
    ),
    "a thread": (
        "async def ext_method(self, method, params): await asyncio.to_thread(self.leave)\n"
        "    def leave(self): quit(3)",
        "the handler of '_x'",
    ),
    "work": (
        "async def ext_method(self, method, params): await self.turns.run(PROMPT, self.work(params))\n"
        "    async def work(self, params): sys.exit(3)",
        "Leaving.work",
    ),
}


@pytest.mark.parametrize(
    ("where", "way"),
    [
        ("a request", "run_agent"),
        ("a notification", "serve_stdio"),
        ("a task", "run_agent"),  # one of a program with a loop of its own is its own affair
        ("a thread", "run_agent"),
        ("work", "run_agent"),
        ("work", "serve_stdio"),
    ],
)
def test_a_handler_that_exits_is_named(acp: ModuleType, where: str, way: str) -> None:
    """Otherwise an agent is gone without a word, as by `sys.exit(0)` of a library."""
    body, who = EXITS[where]
    parts = (
        f"from {acp.__name__}.helpers import TurnAgent\n"
        "PROMPT = PromptRequest(session_id='s', prompt=[])\n"
        "class Leaving(TurnAgent, Echo):\n"
        f"    {body}\n",
        WAYS[way].replace("Echo", "Leaving"),
    )
    number = {} if where == "a notification" else {"id": 2}
    said = HELLO + json.dumps({"jsonrpc": "2.0", "method": "_x", **number}) + "\n"
    done = run_program(acp, *parts, said=said)
    assert done.returncode == 3
    assert re.search(rf"^({who}) has ended the program: SystemExit\(3\)", done.stderr, re.MULTILINE), done.stderr
    assert done.stderr.count("has ended the program") == 1
    if where != "work":  # which is its name
        assert re.search(r"SystemExit\(3\) in (Leaving\.)?(leave|ext_\w+) in line \d+ of <", done.stderr), done.stderr


def test_a_hook_that_exits_is_named(acp: ModuleType) -> None:
    parts = (
        "class Failing(Echo):\n"
        "    async def ext_method(self, method, params): raise ValueError\n"
        "run_agent(Failing, options=ConnectionOptions(on_error=lambda *_: sys.exit(3)))\n"
    )
    done = run_program(acp, parts, said=HELLO + '{"jsonrpc": "2.0", "id": 2, "method": "_x"}\n')
    assert done.returncode == 3
    assert "the hook on_error has ended the program: SystemExit(3)" in done.stderr
