"""`spawn_agent` as the user of a client meets it: agents that are processes, and all the ways in which they end."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import AgentProcess, Diary, command, complaints, environment, is_running, wait_until_gone
from tests.runtime_support import run
from tests.support import Packages
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.skipif(sys.platform == "win32", reason="the processes here are those of POSIX"),
]


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path)
    yield diary
    diary.close()


class Editor:
    """What the client saw; `acp.Client` is mixed in once it is known."""

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.texts: asyncio.Queue[str] = asyncio.Queue()
        self.reasons: list[Any] = []

    async def session_update(self, params: Any) -> None:
        self.texts.put_nowait(params.update.content.text)

    async def connection_closed(self, reason: Any) -> None:
        self.reasons.append(reason)


class Spawner:
    """Spawns scripts, and keeps the clients made for them."""

    def __init__(self, acp: ModuleType, diary: Diary) -> None:
        self.acp = acp
        self.env = environment(acp, ACP_DIARY=str(diary.path))
        self.clients: list[Any] = []

    def __call__(
        self, script: str, *arguments: str, shim: tuple[str, ...] = (), **options: Any
    ) -> AbstractAsyncContextManager[Any]:
        kind = type("TestClient", (Editor, self.acp.Client), {})

        def factory(agent: Any) -> Any:
            self.clients.append(kind(agent))
            return self.clients[-1]

        argv = [*shim, *command(script, *arguments)]
        return self.acp.spawn_agent(factory, argv, **{"env": self.env} | options)

    @property
    def client(self) -> Any:
        return self.clients[-1]

    async def initialize(self, agent: Any) -> Any:
        return await agent.initialize(self.acp.InitializeRequest(protocol_version=1))

    async def prompt(self, agent: Any, text: str) -> Any:
        prompt = [self.acp.ContentBlockText(text=text)]
        return await agent.session_prompt(self.acp.PromptRequest(session_id="s", prompt=prompt))

    async def text(self) -> str:
        return str(await self.client.texts.get())


@pytest.fixture
def spawn(acp: ModuleType, diary: Diary, capfd: pytest.CaptureFixture[str]) -> Iterator[Spawner]:
    yield Spawner(acp, diary)
    assert complaints(capfd.readouterr().err) == []


async def next_entry(diary: Diary) -> str:
    return str(await asyncio.to_thread(diary.next))


SHIM = ("sh", "-c", '"$@"; true', "sh")
"""Starts the agent as its child, and waits for it, as the launchers of package managers do."""


def _children() -> set[int]:
    """The processes of this one, zombies among them; none where the system does not tell."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            _, _, rest = stat.read_text().rpartition(")")
            if int(rest.split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Checks that nothing that the test has started is left, not even as a zombie. Other tests have processes, too."""
    before = _children()
    yield
    assert _children() <= before


# --- In good order --------------------------------------------------------------------------------------------------


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
    with pytest.raises(FileNotFoundError):
        run(main([sys.executable], cwd=tmp_path / "missing"))


def test_what_the_factory_raises_ends_the_agent(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    def factory(agent: Any) -> Any:
        raise LookupError("no settings")

    async def main() -> None:
        async with acp.spawn_agent(factory, command("puppet.py"), env=spawn.env):
            raise AssertionError

    with pytest.raises(LookupError, match="no settings"):
        run(main())
    assert diary.rest() == ["closed: the peer has closed the connection", "returned"]


# --- Agents that die ------------------------------------------------------------------------------------------------


def test_an_agent_that_dies_at_start(acp: ModuleType, spawn: Spawner) -> None:
    async def main() -> None:
        async with spawn("odd.py", "dies_at_start", stderr="discard") as agent:
            with pytest.raises(acp.ConnectionClosed) as caught:
                await spawn.initialize(agent)
            error = caught.value
            assert error.exit_code == 1
            assert error.stderr == (*(f"line {number}" for number in range(11, 30)), "no key is set")
            assert str(error).startswith("the agent has ended with exit code 1; its last lines on stderr:\n")
            assert str(error).endswith("\n  line 29\n  no key is set")
            with pytest.raises(acp.ConnectionClosed) as again:
                await spawn.initialize(agent)
            assert again.value.exit_code == 1
        assert [reason.exit_code for reason in spawn.client.reasons] == [1]

    run(main())


def test_an_agent_that_ends_without_a_word(acp: ModuleType, spawn: Spawner) -> None:
    async def main() -> None:
        async with spawn("odd.py", "ends_at_once") as agent:
            with pytest.raises(acp.ConnectionClosed, match=r"^the agent has ended with exit code 0$") as caught:
                await spawn.initialize(agent)
            assert (caught.value.exit_code, caught.value.stderr) == (0, ())

    run(main())


@pytest.mark.parametrize("word", ["leave 3", "kill"])
def test_an_agent_that_dies_in_the_middle(acp: ModuleType, spawn: Spawner, word: str) -> None:
    code, lines = (3, ("last words",)) if word == "leave 3" else (-signal.SIGKILL, ())

    async def main() -> None:
        async with spawn("puppet.py", stderr="discard") as agent:
            hanging = [asyncio.create_task(spawn.prompt(agent, "hang")) for _ in range(3)]
            for _ in hanging:
                assert await spawn.text() == "hangs"
            outcomes = await asyncio.gather(spawn.prompt(agent, word), *hanging, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [acp.ConnectionClosed] * 4
            assert {(outcome.exit_code, outcome.stderr) for outcome in outcomes} == {(code, lines)}
            expected = f"was ended by signal {signal.SIGKILL}" if code < 0 else "has ended with exit code 3"
            assert expected in str(outcomes[0])
            with pytest.raises(acp.ConnectionClosed):
                await agent.session_cancel(acp.CancelNotification(session_id="s"))
        assert [reason.exit_code for reason in spawn.client.reasons] == [code]

    run(main())


def test_an_agent_that_closes_stdout_and_lives_on(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    async def main() -> None:
        async with spawn("odd.py", "closes_stdout") as agent:
            with pytest.raises(acp.ConnectionClosed, match="has closed its stdin or stdout") as caught:
                await spawn.initialize(agent)
            assert (caught.value.exit_code, caught.value.stderr) == (None, ())

    run(main())
    assert diary.rest() == ["ready"]


def test_rubbish_on_stdout(spawn: Spawner, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with spawn("odd.py", "writes_rubbish") as agent:
            for _ in range(3):
                assert (await spawn.initialize(agent)).protocol_version == 1

    run(main())
    assert "cannot be handled" in caplog.text
    assert "on stdout: Welcome to this agent!" in caplog.text
    assert "on stdout: \ufffd\ufffd\\x00" in caplog.text


def test_what_an_agent_prints_before_it_ends(acp: ModuleType, spawn: Spawner, caplog: pytest.LogCaptureFixture) -> None:
    """The user has to learn of it, and the terminal must not take it for commands."""

    async def main() -> None:
        async with spawn("odd.py", "says_goodbye") as agent:
            with pytest.raises(acp.ConnectionClosed) as caught:
                await spawn.initialize(agent)
        error = caught.value
        assert (error.exit_code, error.stderr, len(error.stdout)) == (0, (), 20)
        assert error.stdout[0] == "line 11"
        assert "\x1b[1mThis agent" in error.stdout[-1]
        assert "\\x1b[1mThis agent" in str(error)
        assert "\x1b" not in str(error)
        assert "no longer maintained" in error.stdout[-1]
        assert len(error.stdout[-1]) <= 1000
        assert str(error).startswith("the agent has ended with exit code 0; its last lines on stdout:\n  line 26\n")
        assert "is no longer maintained: install another one" in str(error)
        assert spawn.client.reasons[0].stdout == error.stdout

    run(main())
    assert "on stdout: line 3" in caplog.text
    assert "\x1b" not in caplog.text
    assert len(caplog.text) < 10_000


def test_what_an_agent_prints_is_not_answered(acp: ModuleType, spawn: Spawner) -> None:
    seen = []
    options = acp.ConnectionOptions(on_message=lambda direction, line: seen.append((direction, line)))
    program = r"import sys; print('Welcome!\n[INFO] ready\n \t{}', flush=True); sys.stdin.read()"

    async def main() -> None:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program], options=options):
            while len(seen) < 2:
                await asyncio.sleep(0.01)

    run(main())
    assert seen[0] == ("in", b" \t{}")
    assert [json.loads(line)["error"]["code"] for _, line in seen[1:]] == [-32600]


@pytest.mark.parametrize(
    "text", ["[[],[]]", "[1]", "[INFO] ready", "7", "null", '"x"', "{'a': 1}", "{", "{error}", "[", "}", "[{error}]"]
)
def test_text_is_not_parsed(acp: ModuleType, text: str) -> None:
    """Its memory would be estimated too late."""
    parsed: list[bytes] = []

    def loads(line: bytes) -> Any:
        parsed.append(line)
        return json.loads(line)

    program = f"import sys; print({text!r}); print({{}}, flush=True); sys.stdin.read()"
    options = acp.ConnectionOptions(loads=loads)

    async def main() -> None:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program], options=options):
            while not parsed:
                await asyncio.sleep(0.01)

    run(main())
    assert parsed == [b"{}"]


@pytest.mark.parametrize("start", ['{"level": "error"}', "{'no': 'more'}", "[1]"])
def test_text_after_what_looks_like_a_message(acp: ModuleType, start: str) -> None:
    """The answer to a line fails when the agent has exited, and the lines after it are read all the same."""
    program = f"import sys; sys.stdin.readline(); print({start!r}); print('  use another')"

    async def main() -> Any:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program]) as agent:
            with pytest.raises(acp.ConnectionClosed) as caught:
                await agent.initialize(acp.InitializeRequest(protocol_version=1))
        return caught.value

    error = run(main())
    assert error.stdout[-1] == "use another"
    assert (start in error.stdout) == (start[:2] != '{"')
    assert str(error).endswith("\n  use another")


def test_stderr_in_the_log_and_in_errors_is_escaped(acp: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    program = "import sys; print('\\x1b[2Jgone', 'x' * 5000, file=sys.stderr)"

    async def main() -> Any:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program], stderr="log") as agent:
            with pytest.raises(acp.ConnectionClosed) as caught:
                await agent.initialize(acp.InitializeRequest(protocol_version=1))
        return caught.value

    with caplog.at_level(logging.INFO, logger="acp.agent"):
        error = run(main())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "acp.agent"]
    assert line.startswith("\\x1b[2Jgone xxx")
    assert len(line) < 1010
    assert "\n  \\x1b[2Jgone xxx" in str(error)
    assert len(str(error)) < 400
    assert error.stderr == ("\x1b[2Jgone " + "x" * 5000,)


# --- Agents that leave processes behind -----------------------------------------------------------------------------


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
            with pytest.raises(acp.ConnectionClosed, match="exit code 3") as caught:
                await spawn.initialize(agent)
            assert caught.value.stderr == ("no key is set",)
            with pytest.raises(acp.ConnectionClosed, match="exit code 3"):
                await spawned._process.write(b"{}")
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process take orphans in")
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


def test_what_was_written_before_the_end_is_read(acp: ModuleType, spawn: Spawner, diary: Diary) -> None:
    """It is in the pipe, which is not read while the client is behind."""

    class Slow(Editor, acp.Client):  # type: ignore[name-defined, misc]
        async def session_update(self, params: Any) -> None:
            await super().session_update(params)
            if self.texts.qsize() == 1:
                stdout = spawned._process._control.get_pipe_transport(1)
                stdout.pause_reading()
                await self.agent.ext_notification("_go", None)
                while spawned.returncode is None:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.2)
                stdout.resume_reading()

    argv = command("odd.py", "answers_and_leaves_a_child")
    spawned = acp.spawn_agent(Slow, argv, env=spawn.env, terminate_seconds=0.3)

    async def main() -> int:
        async with spawned as agent:
            assert (await spawn.prompt(agent, "hello")).stop_reason == "end_turn"
            assert spawned.handler.texts.qsize() == 51
            return int(await next_entry(diary))

    wait_until_gone(run(main()))


def _ending_first(acp: ModuleType) -> Callable[[int, int], None]:
    """An `os.killpg` for which the group ends just before it is asked whether the group exists."""
    killpg = os.killpg

    def end_first(group: int, number: int) -> None:
        if number == 0:
            with contextlib.suppress(ProcessLookupError):
                killpg(group, signal.SIGKILL)
                while not acp.process._has_only_zombies(group):
                    time.sleep(0.01)
        killpg(group, number)

    return end_first


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process take orphans in")
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
        monkeypatch.setattr(os, "killpg", _ending_first(spawn.acp))
    prctl(set_child_subreaper, 1)
    try:
        started = run(main())
    finally:
        prctl(set_child_subreaper, 0)
    assert not is_running(started)


# --- The end --------------------------------------------------------------------------------------------------------


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
