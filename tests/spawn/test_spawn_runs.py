"""`spawn_agent` as the user of a client meets it: agents that run, and what it cannot start."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import Diary, command, is_running
from tests.runtime_support import run
from tests.spawn.spawner import Editor, Spawner

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


def test_a_prompt(spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("puppet.py") as agent:
            assert (await spawn.initialize(agent)).protocol_version == 1
            assert (await spawn.prompt(agent, "size abc")).stop_reason == "end_turn"
            assert await spawn.text() == "3"
        assert [str(reason) for reason in spawn.client.reasons] == ["this side has closed the connection"]

    run(main())
    assert diary.rest() == ["closed: the peer has closed the connection", "returned"]


def test_environment_and_folder(spawn: Spawner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (spawn.env | {"ACP_GREETING": "inherited"}).items():
        monkeypatch.setenv(name, value)

    async def describe(**options: Any) -> list[str]:
        async with spawn("puppet.py", **options) as agent:
            await spawn.prompt(agent, "describe")
            return (await spawn.text()).split()

    assert run(describe(env=None))[:2] == [str(Path.cwd()), "inherited"]
    folder, greeting, pid, group = run(describe(env=spawn.env | {"ACP_GREETING": "hello"}, cwd=tmp_path))
    assert (Path(folder).resolve(), greeting) == (tmp_path.resolve(), "hello")
    assert pid == group
    assert run(describe(cwd=str(tmp_path)))[1] == "None"
    assert run(describe(extra_env={"ACP_GREETING": "more"}))[1] == "more"
    assert run(describe(env=None, extra_env={"ACP_GREETING": "more"}))[:2] == [str(Path.cwd()), "more"]


def test_the_handler_and_the_process(acp: ModuleType, spawn: Spawner) -> None:
    kind = type("TestClient", (Editor, acp.Client), {})
    spawned = acp.spawn_agent(kind, command("puppet.py"), env=spawn.env)

    async def main() -> None:
        async with spawned as agent:
            assert type(spawned.handler) is kind
            assert spawned.handler.agent is agent
            assert (spawned.returncode, is_running(spawned.pid)) == (None, True)
            await spawn.prompt(agent, "describe")
            assert int((await spawned.handler.texts.get()).split()[2]) == spawned.pid

    run(main())
    assert spawned.returncode == 0
    assert not is_running(spawned.pid)


def test_misuse(acp: ModuleType, spawn: Spawner) -> None:
    spawned = spawn("puppet.py")
    for name in ("handler", "pid", "returncode"):
        with pytest.raises(RuntimeError, match="when the block is entered"):
            getattr(spawned, name)

    async def main() -> None:
        async with spawned:
            with pytest.raises(RuntimeError, match="make another one"):
                await spawned.__aenter__()
        with pytest.raises(RuntimeError, match="make another one"):
            await spawned.__aenter__()

    run(main())


def test_the_handler_of_a_connection(acp: ModuleType) -> None:
    async def main() -> None:
        here, there = acp.memory_transports()
        await there.close()
        connected = acp.connect(type("TestClient", (Editor, acp.Client), {}), here)
        async with connected as agent:
            assert connected.handler.agent is agent
        assert len(connected.handler.reasons) == 1

    run(main())


def test_stderr_is_inherited(spawn: Spawner, capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with spawn("puppet.py") as agent:
            await spawn.prompt(agent, "mutter äöü")

    run(main())
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "äöü\n")


@pytest.mark.parametrize("policy", ["log", "discard"])
def test_stderr_is_logged_or_discarded(
    spawn: Spawner, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    async def main() -> None:
        async with spawn("puppet.py", stderr=policy) as agent:
            await spawn.prompt(agent, "mutter a word")

    with caplog.at_level(logging.INFO, logger="acp.agent"):
        run(main())
    logged = [record.getMessage() for record in caplog.records if record.name == "acp.agent"]
    assert logged == (["a word"] if policy == "log" else [])
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_started(acp: ModuleType, tmp_path: Path) -> None:
    async def main(argv: Any, **options: Any) -> None:
        async with acp.spawn_agent(acp.Client, argv, **options):
            raise AssertionError

    with pytest.raises(TypeError, match="command is a list"):
        run(main("agent --acp"))
    with pytest.raises(FileNotFoundError):
        run(main(["no-such-program"]))
    with pytest.raises(PermissionError):
        run(main([str(tmp_path)]))
    with pytest.raises(FileNotFoundError, match=r"cwd is .*missing, which is no folder"):
        run(main([sys.executable], cwd=tmp_path / "missing"))


@pytest.mark.parametrize("is_relative", [False, True])
def test_a_relative_command_is_looked_for_in_the_folder(acp: ModuleType, tmp_path: Path, *, is_relative: bool) -> None:
    """The error names it: a path relative to the folder of the client is what many write."""
    (tmp_path / "text").write_text("no program", encoding="utf-8")
    cwd = os.path.relpath(tmp_path) if is_relative else tmp_path

    async def main(program: str) -> None:
        async with acp.spawn_agent(acp.Client, [program], cwd=cwd):
            raise AssertionError

    place = re.escape(f" in {tmp_path} (cwd): ")
    with pytest.raises(FileNotFoundError, match=rf"No such file or directory{place}'bin/agent'"):
        run(main("bin/agent"))
    with pytest.raises(PermissionError, match=rf"Permission denied{place}'\./text'"):
        run(main("./text"))
    for program in ("no-such-program", "/no/such/program"):
        with pytest.raises(FileNotFoundError, match=rf"No such file or directory: '{program}'"):
            run(main(program))


def test_what_the_factory_raises_ends_the_agent(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    def factory(agent: Any) -> Any:
        raise LookupError("no settings")

    async def main() -> None:
        async with acp.spawn_agent(factory, command("puppet.py"), env=spawn.env, terminate_seconds=60):
            raise AssertionError

    with pytest.raises(LookupError, match="no settings"):
        run(main())
    assert diary.rest() == ["closed: the peer has closed the connection", "returned"]
