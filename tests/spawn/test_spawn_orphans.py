"""Spawned agents that leave processes behind."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import AgentProcess, Diary, command, environment, is_running, wait_until_gone
from tests.runtime_support import run
from tests.spawn.spawner import Editor, Spawner, next_entry

pytestmark = [
    pytest.mark.full,
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


def test_a_process_that_holds_stdout_does_not_hold_up_calls(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    async def main() -> int:
        async with spawn("odd.py", "leaves_a_child", stderr="discard", terminate_seconds=0.3) as agent:
            started = int(await next_entry(diary))
            # more than fits in the pipe that nobody reads any more
            with pytest.raises(acp.ConnectionClosed, match="exit code 3, and has left") as caught:
                await spawn.prompt(agent, "x" * 1_000_000)
            assert (caught.value.exit_code, caught.value.stderr) == (3, ("no key is set",))
            assert is_running(started)
        return started

    wait_until_gone(run(main()))


def test_what_is_left_ends_when_the_agent_has_exited(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    """The number of its group is not kept until the block ends: it may be that of others by then."""

    async def main() -> None:
        async with spawn("odd.py", "leaves_a_child", stderr="discard", terminate_seconds=0.3) as agent:
            started = int(await next_entry(diary))
            with pytest.raises(acp.ConnectionClosed):
                await spawn.initialize(agent)
            await asyncio.to_thread(wait_until_gone, started)

    run(main())


@pytest.fixture
def _another_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs in event loops from elsewhere: they do not show the pipe, and raise something else."""
    from asyncio import unix_events

    write = unix_events._UnixWritePipeTransport.write  # type: ignore[attr-defined]

    def refuse(self: Any, data: bytes) -> None:
        if self.is_closing():
            raise RuntimeError("the handler is closed")
        write(self, data)

    monkeypatch.setattr(unix_events._UnixReadPipeTransport, "get_extra_info", lambda *_: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(unix_events._UnixWritePipeTransport, "write", refuse)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("_another_loop")
def test_another_event_loop(acp: ModuleType, spawn: Spawner, diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        spawned: Any = spawn("odd.py", "leaves_a_child", stderr="discard", terminate_seconds=600)
        async with spawned as agent:
            started = int(await next_entry(diary))
            asking = asyncio.ensure_future(spawn.initialize(agent))
            while spawned.returncode is None:
                await asyncio.sleep(0.001)
            with pytest.raises(acp.ConnectionClosed, match="exit code 3"):  # nobody has read the end yet
                await agent.ext_notification("_more", None)
            with pytest.raises(acp.ConnectionClosed, match="exit code 3") as caught:
                await asking
            assert caught.value.stderr == ("no key is set",)
            os.kill(started, signal.SIGKILL)

    run(main())
    assert "Traceback" not in caplog.text


LEAVES_A_ZOMBIE = """
import os
if not (child := os.fork()):
    os._exit(0)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
os.read(0, 1)
os._exit(3)
"""

MEETS_A_ZOMBIE = """
import asyncio, importlib, json, os, sys

async def main():
    acp = importlib.import_module(os.environ["ACP_PACKAGE"])
    spawned = acp.spawn_agent(acp.Client, [sys.executable, "-c", sys.argv[1]], terminate_seconds=600)
    async with spawned as agent:
        try:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
        except acp.ConnectionClosed as error:
            print(json.dumps([spawned.pid, str(error)]), flush=True)

asyncio.run(main())
"""


@pytest.mark.needs("linux")
def test_orphans_that_nobody_waits_for(acp: ModuleType) -> None:
    """As it is where the first process of a container waits for none: zombies keep the number of their group."""
    prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36
    argv = [sys.executable, "-c", MEETS_A_ZOMBIE, LEAVES_A_ZOMBIE]
    prctl(set_child_subreaper, 1)
    try:
        client = AgentProcess(argv, environment(acp), Path(os.devnull))
        with client:
            group, said = client.read()
            assert said == "the agent has ended with exit code 3"
            assert client.end() == 0
        assert os.waitpid(-group, 0)[1] == 0
    finally:
        prctl(set_child_subreaper, 0)


CHAINS = """
import os, sys, time
end = time.time() + 600  # if the test, which has less time, does not end them
for _ in range(3):
    if not os.fork():
        while time.time() < end:
            time.sleep(0.005)
            if os.fork():
                os._exit(0)
            os.setpgid(0, 0)
        os._exit(0)
sys.stdin.read()
"""


def marked(mark: str) -> list[int]:
    """The processes that have a variable with this value in their environment, and are no zombies."""
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and mark.encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
    return found


@pytest.mark.deep  # on a loaded machine, some may not be found in time
@pytest.mark.needs("linux")
def test_processes_that_fork_into_groups_of_their_own(acp: ModuleType) -> None:
    """Each lives for a moment, and is followed by the next one: they are killed until none is left."""
    mark = os.urandom(8).hex()

    async def main() -> None:
        command = [sys.executable, "-c", CHAINS]
        async with acp.spawn_agent(acp.Client, command, extra_env={"MARK": mark}, terminate_seconds=0.2):
            while not marked(mark):
                await asyncio.sleep(0.01)
        while marked(mark):
            await asyncio.sleep(0.01)

    run(main())


def test_an_end_where_processes_cannot_be_listed(acp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a sandbox without `/proc`."""

    def refuse(*_: Any) -> list[str]:
        raise FileNotFoundError("/proc")

    async def main() -> None:
        command = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        async with acp.spawn_agent(acp.Client, command):
            monkeypatch.setattr(os, "listdir", refuse)

    run(main())


def test_what_was_written_before_the_end_is_read(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    """It is more than the client keeps while it is behind: the rest is in the pipe."""

    class Slow(Editor, acp.Client):  # type: ignore[name-defined, misc]
        async def session_update(self, params: Any) -> None:
            await super().session_update(params)
            if self.texts.qsize() == 1:
                await self.agent.ext_notification("_go", None)
                while spawned.returncode is None:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)

    argv = command("odd.py", "answers_and_leaves_a_child")
    spawned = acp.spawn_agent(Slow, argv, env=spawn.env, terminate_seconds=0.3)

    async def main() -> int:
        async with spawned as agent:
            assert (await spawn.prompt(agent, "hello")).stop_reason == "end_turn"
            assert spawned.handler.texts.qsize() == 51
            return int(await next_entry(diary))

    wait_until_gone(run(main()))


def states_in(group: int) -> set[str]:
    """The states of the processes of a group, as Linux tells them."""
    states = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of, *_ = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(of) == group:
                states.add(state)
    return states


def _ending_first() -> Callable[[int, int], None]:
    """An `os.killpg` for which the group ends just before it is asked whether the group exists."""
    killpg = os.killpg

    def end_first(group: int, number: int) -> None:
        if number == 0:
            with contextlib.suppress(ProcessLookupError):
                killpg(group, signal.SIGKILL)
                while states_in(group) - {"Z", "X"}:
                    time.sleep(0.01)
        killpg(group, number)

    return end_first


@pytest.mark.needs("linux")
@pytest.mark.parametrize("ends", ["when told", "between two looks"])
def test_orphans_that_become_children_of_the_client(
    spawn: Spawner, diary: Diary, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """As it is for the first process of a container; `_nothing_is_left` looks whether they are zombies."""
    prctl, set_child_subreaper = ctypes.CDLL(None).prctl, 36

    async def main() -> int:
        async with spawn("odd.py", "leaves_a_child", terminate_seconds=0.3, stderr="discard") as agent:
            started = int(await next_entry(diary))
            with pytest.raises(spawn.acp.ConnectionClosed):
                await spawn.initialize(agent)
        return started

    if ends == "between two looks":
        monkeypatch.setattr(os, "killpg", _ending_first())
    prctl(set_child_subreaper, 1)
    try:
        started = run(main())
    finally:
        prctl(set_child_subreaper, 0)
    assert not is_running(started)
