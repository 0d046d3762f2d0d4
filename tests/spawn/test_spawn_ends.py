"""How spawned agents end: when they are told to, when they do not listen, and when the client is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from types import ModuleType

import pytest

from tests.runtime_agents import AgentProcess, Diary, command, complaints, environment, is_running, wait_until_gone
from tests.runtime_support import run
from tests.spawn.spawner import SHIM, Spawner, next_entry

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


def test_an_agent_that_ignores_eof_is_terminated(spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("odd.py", "ignores_eof", terminate_seconds=0.3):
            assert await next_entry(diary) == "ready"

    run(main())
    assert diary.rest() == ["SIGTERM"]


def test_an_agent_that_ignores_everything_is_killed_with_what_it_started(spawn: Spawner, diary: Diary) -> None:
    async def main() -> int:
        async with spawn("odd.py", "ignores_everything", terminate_seconds=0.3):
            return int(await next_entry(diary))

    started = run(main())
    assert diary.rest() == ["SIGTERM"]
    wait_until_gone(started)


def test_an_agent_behind_a_shim_is_terminated(spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("odd.py", "ignores_eof", shim=SHIM, terminate_seconds=0.3):
            assert await next_entry(diary) == "ready"

    run(main())
    assert diary.rest() == ["SIGTERM"]


def test_an_agent_behind_a_shim_is_killed(spawn: Spawner, diary: Diary) -> None:
    """The shim ends by SIGTERM, and the agent does not."""

    async def main() -> int:
        async with spawn("odd.py", "ignores_everything", shim=SHIM, terminate_seconds=0.3):
            return int(await next_entry(diary))

    started = run(main())
    assert diary.rest() == ["SIGTERM"]
    wait_until_gone(started)


def test_an_agent_behind_a_shim_ends_in_good_order(spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("puppet.py", shim=SHIM) as agent:
            assert (await spawn.initialize(agent)).protocol_version == 1

    run(main())
    assert diary.rest() == ["closed: the peer has closed the connection", "returned"]


def test_what_an_agent_leaves_behind_does_not_hold_up_the_end(spawn: Spawner, diary: Diary) -> None:
    """A process in a session of its own lives on, even where it holds on to the pipe of stderr."""

    async def main() -> int:
        async with spawn("odd.py", "leaves_a_daemon", terminate_seconds=600):
            return int(await next_entry(diary))

    started = run(main())
    try:
        assert is_running(started)
    finally:
        os.kill(started, signal.SIGKILL)


def test_an_agent_that_still_writes_ends_in_good_order(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    """What waits to be read does not hold it up, until it would be killed."""

    patient = spawn.env | {"ACP_OPTIONS": json.dumps({"cleanup_seconds": 60})}

    async def main() -> None:
        async with spawn("puppet.py", env=patient) as agent:
            task = asyncio.create_task(spawn.prompt(agent, "stream 100000 100000"))
            await spawn.text()
        with pytest.raises(acp.ConnectionClosed):
            await task

    run(main())
    assert diary.rest() == ["cleaned up", "closed: the peer has closed the connection", "returned"]


def test_an_exception_in_the_block_ends_the_agent(spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("puppet.py") as agent:
            await spawn.initialize(agent)
            raise LookupError("of the user")

    with pytest.raises(LookupError, match="of the user"):
        run(main())
    assert diary.rest() == ["closed: the peer has closed the connection", "returned"]


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_the_block_ends_the_agent(spawn: Spawner, diary: Diary, times: int) -> None:
    """Where that is not patient enough, cancelling again kills the agent."""
    script = ("puppet.py",) if times == 1 else ("odd.py", "ignores_eof")

    async def block(entered: asyncio.Event) -> None:
        async with spawn(*script, terminate_seconds=0.5 if times == 1 else 600):
            entered.set()
            await asyncio.Event().wait()

    async def main() -> None:
        entered = asyncio.Event()
        task = asyncio.create_task(block(entered))
        await entered.wait()
        if times == 2:
            assert await next_entry(diary) == "ready"
        for _ in range(times):
            task.cancel()
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(task), 0.5 if times == 2 else None)
        await task

    with pytest.raises(asyncio.CancelledError):
        run(main())


def test_cancelling_before_the_agent_runs(spawn: Spawner) -> None:
    async def block() -> None:
        async with spawn("puppet.py"):
            raise AssertionError

    async def main() -> None:
        for steps in range(8):
            task = asyncio.create_task(block())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises((asyncio.CancelledError, AssertionError)):
                await task

    run(main())


@pytest.mark.parametrize("policy", ["inherit", "log", "discard"])
def test_ctrl_c_is_for_the_client(acp: ModuleType, diary: Diary, tmp_path: Path, policy: str) -> None:
    """The client's whole process group gets SIGINT; the agent gets the end of its stdin, and ends in good order."""
    argv = command("driver.py", policy, json.dumps(command("puppet.py")))
    env = environment(acp, ACP_DIARY=str(diary.path))
    with AgentProcess(argv, env, tmp_path / "stderr", start_new_session=True) as client:
        assert client.read() == "hangs"
        os.killpg(client.process.pid, signal.SIGINT)
        assert client.end() == 130
        assert client.read() is None
    assert diary.rest() == ["cleaned up", "closed: the peer has closed the connection", "returned"]
    assert complaints(client.stderr) == []
    assert "Traceback" not in client.stderr
