"""Terminals that agents open through a client: output, exit, and that nothing is left of any command."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import os
import random
import shlex
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import HandAgent, hand_agent, helpers_of
from tests.runtime_support import V1, run
from tests.support import DEEP, Packages

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

NOT_FOUND, REFUSED, INVALID = -32002, -32602, -32600
IGNORES = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.05; done"


@pytest.fixture(name="acp")
def package(packages: Packages) -> Any:
    """A package of protocol 1."""
    return packages(V1)


def client_of(acp: Any, **options: Any) -> type[Any]:
    """A client with terminals."""
    helpers = helpers_of(acp)

    class Shell(helpers.TerminalClient):  # type: ignore[name-defined, misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.terminals = helpers.Terminals(**{"terminate_seconds": 0.05, **options})

    return Shell


async def create(agent: HandAgent, script: str, *args: str, mark: str | None = None, **params: Any) -> str:
    """Start a script of the shell, with `mark` in its environment; returns the id of the terminal."""
    if mark is not None:
        params["env"] = [{"name": "MARK", "value": mark}]
    answer = await agent.call("terminal/create", command="sh", args=["-c", script, "sh", *args], **params)
    assert isinstance(answer, dict), answer
    return str(answer["terminalId"])


async def until(agent: HandAgent, terminal: str, text: str) -> Any:
    """Wait until the output has `text`; returns the answer."""
    while text not in (answer := await agent.call("terminal/output", terminalId=terminal))["output"]:
        await asyncio.sleep(0.01)
    return answer


def alive(*pids: int) -> list[int]:
    """Those processes that run: zombies, whose parent may be this container's first process, do not."""
    found = []
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").exists():
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                found += [] if state in "ZX" else [pid]
            else:
                os.kill(pid, 0)
                found.append(pid)
    return found


async def ended(*pids: int) -> None:
    """Wait until the processes have ended: a signal takes a moment."""
    while alive(*pids):
        await asyncio.sleep(0.01)


# --- Output and exit -------------------------------------------------------------------------------------------------


def test_a_command_from_start_to_release(acp: Any, tmp_path: Path) -> None:
    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp)) as agent:
            script = 'pwd; echo "$A $1" >&2; read x || echo no input; exit 3'
            terminal = await create(agent, script, "an argument", cwd=str(tmp_path), env=[{"name": "A", "value": "ä"}])
            status = await agent.call("terminal/wait_for_exit", terminalId=terminal)
            output = await agent.call("terminal/output", terminalId=terminal)
            kill = await agent.call("terminal/kill", terminalId=terminal)
            release = await agent.call("terminal/release", terminalId=terminal)
            gone = [
                await agent.call(f"terminal/{each}", terminalId=terminal)
                for each in ("output", "wait_for_exit", "kill", "release")
            ]
            return [status, output, kill, release, gone]

    status, output, kill, release, gone = run(main())
    assert status == {"exitCode": 3}
    assert output["output"] == f"{tmp_path}\nä an argument\nno input\n"
    assert (output["truncated"], output["exitStatus"]["exitCode"]) == (False, 3)
    assert (kill, release, gone) == ({}, {}, 4 * [NOT_FOUND])


def test_output_does_not_wait_and_has_no_status_while_the_command_runs(acp: Any) -> None:
    async def main() -> tuple[Any, Any]:
        async with hand_agent(acp, client_of(acp, terminate_seconds=60)) as agent:
            terminal = await create(agent, "echo begun; sleep 1000")
            running = await until(agent, terminal, "begun")
            await agent.call("terminal/kill", terminalId=terminal)
            return running, await agent.call("terminal/output", terminalId=terminal)

    running, killed = run(main())
    assert not running.get("exitStatus")
    assert killed == {
        "output": "begun\n",
        "truncated": False,
        "exitStatus": {"signal": "SIGTERM"},
    }


@pytest.mark.parametrize("script", ["kill -9 $$", "kill -40 $$"])
def test_the_name_of_a_signal(acp: Any, script: str) -> None:
    async def main() -> Any:
        async with hand_agent(acp, client_of(acp)) as agent:
            return await agent.call("terminal/wait_for_exit", terminalId=await create(agent, script))

    status = run(main())
    assert "exitCode" not in status
    assert status["signal"].startswith("SIG")


def test_several_wait_and_a_release_ends_the_wait(acp: Any) -> None:
    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp, terminate_seconds=60)) as agent:
            terminal = await create(agent, "sleep 1000")
            waiting = [await agent.ask("terminal/wait_for_exit", terminalId=terminal) for _ in range(3)]
            await agent.peer.notify("$/cancel_request", {"requestId": waiting[0]})
            cancelled = await agent.answer(waiting[0])
            await agent.call("terminal/release", terminalId=terminal)
            return [cancelled, *[await agent.answer(each) for each in waiting[1:]]]

    ended = {"signal": "SIGTERM"}
    assert run(main()) == [-32800, ended, ended]


def test_a_background_process_that_holds_the_pipe_delays_nothing(acp: Any) -> None:
    """asyncio's `Process.wait` waits for it in some versions of Python."""

    async def main() -> tuple[Any, Any, int]:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, "sleep 1000 & echo $!; exit 7")
            status = await agent.call("terminal/wait_for_exit", terminalId=terminal)
            output = await agent.call("terminal/output", terminalId=terminal)
            pid = int(output["output"])
            was_alive = alive(pid)
            await agent.call("terminal/release", terminalId=terminal)
            await ended(pid)
            return status, was_alive, pid

    status, was_alive, pid = run(main())
    assert status == {"exitCode": 7}
    assert was_alive == [pid]


def test_what_was_written_before_the_exit_has_arrived(acp: Any) -> None:
    async def main() -> list[str]:
        async with hand_agent(acp, client_of(acp)) as agent:
            found = []
            for _ in range(15):
                terminal = await create(agent, "printf '%01000d' 0")
                await agent.call("terminal/wait_for_exit", terminalId=terminal)
                found.append((await agent.call("terminal/output", terminalId=terminal))["output"])
                await agent.call("terminal/release", terminalId=terminal)
            return found

    assert {len(each) for each in run(main())} == {1000}


@pytest.mark.parametrize(
    ("limit", "output", "truncated"),
    [
        (100, "a" + "é€😀" * 2, False),
        (19, "a" + "é€😀" * 2, False),
        (18, "é€😀" * 2, True),
        (17, "€😀é€😀", True),
        (15, "😀é€😀", True),
        (7, "€😀", True),
        (3, "", True),
        (0, "", True),
    ],
)
def test_the_oldest_output_goes_at_whole_characters(acp: Any, limit: int, output: str, truncated: bool) -> None:
    async def main() -> Any:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, "printf %s aé€😀é€😀", outputByteLimit=limit)
            await agent.call("terminal/wait_for_exit", terminalId=terminal)
            return await agent.call("terminal/output", terminalId=terminal)

    answer = run(main())
    assert (answer["output"], answer["truncated"]) == (output, truncated)


def test_characters_that_arrive_in_parts_and_bytes_that_are_none(acp: Any) -> None:
    async def main() -> Any:
        async with hand_agent(acp, client_of(acp)) as agent:
            script = r"printf '\303'; sleep 0.2; printf '\251|\377\376|\303'"
            terminal = await create(agent, script, outputByteLimit=12)
            await agent.call("terminal/wait_for_exit", terminalId=terminal)
            return await agent.call("terminal/output", terminalId=terminal)

    answer = run(main())
    assert answer["output"] == "|\ufffd\ufffd|\ufffd"
    assert len(answer["output"].encode()) <= 12


@pytest.mark.parametrize("seed", range(3))
def test_the_output_that_is_kept_equals_a_model(acp: Any, seed: int) -> None:
    generator = random.Random(seed)
    module = importlib.import_module(f"{acp.__name__}.helpers.terminals")
    params = acp.CreateTerminalRequest(session_id="s", command="c")
    for _ in range(200):
        limit, whole = generator.randrange(40), ""
        shown = module.ClientTerminal("t", params, limit)
        for _ in range(generator.randrange(30)):
            text = "".join(generator.choices("aé€😀\n", k=generator.randrange(12)))
            shown.add(text)
            whole += text
            data = whole.encode()
            expected = data[max(0, len(data) - limit) :].decode(errors="ignore")
            assert shown.output == expected
            assert shown.truncated == (len(data) > limit)


# --- What is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"command": "echo hello"},
        {"command": "/nowhere/at/all"},
        {"command": "/etc/passwd"},
        {"command": "a\0b"},
        {"command": ""},
        {"command": "echo", "args": ["\0"]},
        {"command": "echo", "args": ["\ud800"]},
        {"command": "echo", "args": ["x" * 3_000_000]},
        {"command": "echo", "cwd": "relative"},
        {"command": "echo", "cwd": "/nowhere"},
        {"command": "echo", "cwd": "/etc/passwd"},
        {"command": "echo", "cwd": "/\0"},
        *(
            {"command": "echo", "env": [{"name": name, "value": "x"}]}
            for name in ("LD_PRELOAD", "ld_preload", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV", "PS4")
        ),
        *({"command": "echo", "env": [{"name": name, "value": "x"}]} for name in ("", "A=B", "A\0", "BASH_FUNC_ls%%")),
        {"command": "echo", "env": [{"name": "A", "value": "\0"}]},
    ],
    ids=lambda params: repr(params)[:60],
)
def test_a_command_that_cannot_be_started(acp: Any, params: Any) -> None:
    async def main() -> tuple[Any, Any]:
        async with hand_agent(acp, client_of(acp, max_terminals=1)) as agent:
            answer = await agent.call("terminal/create", **params)
            return answer, await agent.call("terminal/create", command="true")

    refused, after = run(main())
    assert refused == REFUSED
    assert "terminalId" in after


def test_secrets_of_the_client_are_withheld(acp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = (
        "ACME_API_KEY",
        "acme_token",
        "MYSQL_PWD",
        "SECRET_KEY_BASE",
        "GITHUB_PAT",
        "OPENAI_API_KEYS",
        "LC_TOKEN",
    )
    for name in secrets:
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("ACME_NAME", "harmless")
    monkeypatch.setenv("LC_TIME", "C")

    async def main(**options: Any) -> str:
        async with hand_agent(acp, client_of(acp, **options)) as agent:
            terminal = await create(agent, "env", env=[{"name": "MY_TOKEN", "value": "of the agent"}])
            await agent.call("terminal/wait_for_exit", terminalId=terminal)
            return str((await agent.call("terminal/output", terminalId=terminal))["output"])

    usual = run(main())
    assert "hunter2" not in usual
    assert "ACME_NAME" not in usual
    assert {"MY_TOKEN=of the agent", "LC_TIME=C", f"PATH={os.environ['PATH']}"} <= {*usual.splitlines()}
    more = run(main(env=helpers_of(acp).terminal_environment("ACME_NAME", "is not set")))
    assert "ACME_NAME=harmless" in more
    assert "hunter2" not in more
    assert "ACME_API_KEY=hunter2" in run(main(env=dict(os.environ)))
    assert "ACME_NAME" not in run(main(env={"PATH": os.environ["PATH"]}))


def test_variables_of_the_agent_are_part_of_the_command(acp: Any, tmp_path: Path) -> None:
    """They may make its name another program: who asks before a command shows them, and remembers them with it."""
    evil = tmp_path / "ls"
    evil.write_text("#!/bin/sh\necho another program\n")
    evil.chmod(0o755)
    helpers = helpers_of(acp)
    plain = {"command": "ls", "args": [str(tmp_path)], "cwd": str(tmp_path)}
    env = [{"name": "PATH", "value": str(tmp_path)}]
    asked = list[Any]()

    class Careful(client_of(acp)):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.permissions = helpers.PermissionRules()

        async def terminal_create(self, params: Any) -> Any:
            subject = helpers.terminal_subject(params, cwd="/")
            if self.permissions.decide(subject) == "ask":
                asked.append(subject)
                if subject.env:
                    raise acp.InvalidParamsError("no")
                self.permissions.remember_answer(subject, "allow")
            return await super().terminal_create(params)

    async def main() -> tuple[list[Any], Any]:
        async with hand_agent(acp, Careful) as agent:
            calls = [plain, plain, {**plain, "env": env}, {**plain, "cwd": "/"}, {**plain, "args": []}]
            answers = [await agent.call("terminal/create", **call) for call in calls]
            agent.client.permissions.forget()
            return answers, agent.client.terminals.find(answers[0]["terminalId"])

    answers, shown = run(main())
    assert [isinstance(answer, dict) for answer in answers] == [True, True, False, True, True]
    assert [(each.command, each.args, each.folder, each.env) for each in asked] == [
        ("ls", (str(tmp_path),), str(tmp_path), ()),
        ("ls", (str(tmp_path),), str(tmp_path), (("PATH", str(tmp_path)),)),
        ("ls", (str(tmp_path),), "/", ()),
        ("ls", (), str(tmp_path), ()),
    ]
    assert (shown.command, shown.cwd, dict(shown.env)) == ("ls", str(tmp_path), {})


def test_a_terminal_shows_its_folder_and_the_variables_of_the_agent(acp: Any, tmp_path: Path) -> None:
    names = ("PATH", "NODE_OPTIONS", "PYTHONPATH", "GIT_CONFIG_COUNT")

    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp)) as agent:
            variables = [{"name": name, "value": str(tmp_path)} for name in names]
            first = await agent.call("terminal/create", command=sys.executable, args=["-c", ""], env=variables)
            second = await agent.call("terminal/create", command="true", cwd=str(tmp_path))
            return [agent.client.terminals.find(each["terminalId"]) for each in (first, second)]

    first, second = run(main())
    assert (first.cwd, dict(first.env)) == (str(Path.cwd()), dict.fromkeys(names, str(tmp_path)))
    assert (second.cwd, dict(second.env)) == (str(tmp_path), {})


def test_ids_belong_to_a_session(acp: Any) -> None:
    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, "sleep 1000")
            methods = ["output", "wait_for_exit", "kill", "release"]
            others = [
                await agent.call(f"terminal/{method}", sessionId="other", terminalId=terminal) for method in methods
            ]
            running = await agent.call("terminal/output", terminalId=terminal)
            await agent.client.terminals.release_session("other")
            same = await agent.call("terminal/output", terminalId=terminal)
            await agent.client.terminals.release_session("s")
            return [others, running, same, await agent.call("terminal/output", terminalId=terminal)]

    others, running, same, released = run(main())
    assert others == 4 * [NOT_FOUND]
    assert running == same
    assert not running.get("exitStatus")
    assert released == NOT_FOUND


def test_the_number_of_terminals_is_bounded(acp: Any) -> None:
    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp, max_terminals=5, terminate_seconds=5)) as agent:
            numbers = [await agent.ask("terminal/create", command="sh", args=["-c", IGNORES]) for _ in range(9)]
            answers = [await agent.answer(each) for each in numbers]
            open_ones = [each["terminalId"] for each in answers if isinstance(each, dict)]
            await until(agent, open_ones[0], "ready")
            release = await agent.ask("terminal/release", terminalId=open_ones[0])
            while_ending = await agent.call("terminal/create", command="true")
            await agent.peer.notify("$/cancel_request", {"requestId": release})  # kills it at once
            await agent.answer(release)
            after = await agent.call("terminal/create", command="true")
            for terminal in open_ones[1:]:
                release = await agent.ask("terminal/release", terminalId=terminal)
                await agent.peer.notify("$/cancel_request", {"requestId": release})
                await agent.answer(release)
            return [len(open_ones), answers.count(INVALID), while_ending, after]

    opened, refused, while_ending, after = run(main())
    assert (opened, refused, while_ending) == (5, 4, INVALID)
    assert "terminalId" in after


def test_a_terminal_is_shown_after_its_release(acp: Any) -> None:
    async def main() -> list[Any]:
        seen: list[str] = []
        kind = client_of(acp, max_terminals=2, on_output=lambda terminal, text: seen.append(text))
        async with hand_agent(acp, kind) as agent:
            terminals = []
            for number in range(4):
                terminals.append(await create(agent, f"echo {number}"))
                await agent.call("terminal/wait_for_exit", terminalId=terminals[-1])
                await agent.call("terminal/release", terminalId=terminals[-1])
            found = [agent.client.terminals.find(each) for each in terminals]
            return [[each and (each.output, each.exit_status.exit_code, each.is_released) for each in found], seen]

    found, seen = run(main())
    assert found == [None, None, ("2\n", 0, True), ("3\n", 0, True)]
    assert seen == ["0\n", "1\n", "2\n", "3\n"]


def test_all_five_methods_are_advertised_at_once(acp: Any) -> None:
    message = acp.advertise(client_of(acp), acp.InitializeRequest(protocol_version=1))
    assert message.client_capabilities.terminal is True


def test_the_folder_of_a_session(acp: Any, tmp_path: Path) -> None:
    class Shell(client_of(acp)):  # type: ignore[misc]
        def terminal_folder(self, session_id: str) -> str | None:
            return str(tmp_path) if session_id == "s" else None

    async def main() -> list[str]:
        async with hand_agent(acp, Shell) as agent:
            found = []
            for session in ("s", "other"):
                answer = await agent.call("terminal/create", sessionId=session, command="pwd")
                params = {"sessionId": session, "terminalId": answer["terminalId"]}
                await agent.call("terminal/wait_for_exit", **params)
                found.append((await agent.call("terminal/output", **params))["output"].strip())
            return found

    assert run(main()) == [str(tmp_path), str(Path.cwd())]


# --- Hostile commands ------------------------------------------------------------------------------------------------

HOSTILE = {
    "ignores signals": IGNORES,
    "children that ignore signals": f"({IGNORES}) & ({IGNORES}) & echo ready; wait",
    "has ended, its children have not": f"({IGNORES}) & ({IGNORES}) & exit 0",
    "daemons without the pipe": f"({IGNORES}) >/dev/null 2>&1 & echo ready; exit 0",
    "is stopped": "echo ready; kill -STOP $$",
    "floods": "yes ready",
    "a tree": "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep 1000; }; echo ready; f 4",
    "keeps forking": "echo ready; while :; do sleep 1000 & sleep 0.01; done",
    "closes its output": "echo ready; exec >&- 2>&-; sleep 1000",
}
LINUX = sys.platform == "linux"
CHAINS = dict[str, str]()
"""On a loaded machine, some may not be found in time."""
if LINUX:
    HOSTILE["other process groups"] = "timeout 1000 sh -c 'echo ready; sleep 1000'; echo over"
    # each child is in a group, or a session, of its own, and its parent has gone; they end if the test fails, too
    chain = "import os, time\nend = time.time() + 600\n"
    chain += "while time.time() < end:\n    time.sleep(0.005)\n    if os.fork(): os._exit(0)\n    os.{}"
    for name, call in (("groups", "setpgid(0, 0)"), ("sessions", "setsid()")):
        code = shlex.quote(chain.format(call))
        CHAINS[f"chains of {name}"] = f"for i in 1 2 3; do {sys.executable} -c {code} & done; echo ready; sleep 1000"
    HOSTILE["job control"] = "set -m; (echo ready; sleep 1000) & wait"


def processes() -> list[int]:
    """All processes, on Linux."""
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()] if LINUX else []


def marked(mark: str) -> list[int]:
    """The processes that have a variable with this value in their environment."""
    found = []
    for pid in processes():
        with suppress(OSError):
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return alive(*found)


async def gone(mark: str) -> None:
    """Wait until no process is left that has this mark."""
    while marked(mark):
        await asyncio.sleep(0.01)


async def check_room(agent: HandAgent, count: int) -> None:
    """Fail unless `count` terminals can be opened, and no more: all others are released."""
    answers = [await agent.call("terminal/create", command="true") for _ in range(count + 1)]
    assert [isinstance(each, dict) for each in answers] == [True] * count + [False]
    assert answers[count] == INVALID


@pytest.mark.parametrize(
    "how", ["release", "connection", *(pytest.param(each, marks=pytest.mark.full) for each in ("kill", "session"))]
)
@pytest.mark.parametrize(
    "script",
    [*HOSTILE.values(), *(pytest.param(each, marks=pytest.mark.deep) for each in CHAINS.values())],
    ids=[*HOSTILE, *CHAINS],
)
def test_no_process_is_left(acp: Any, script: str, how: str) -> None:
    mark = os.urandom(8).hex()

    async def main() -> None:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, script, mark=mark, outputByteLimit=1000)
            if "ready" in script:
                while not agent.client.terminals.find(terminal).output:
                    await asyncio.sleep(0.01)
                assert marked(mark) or not LINUX
            if how == "session":
                await agent.client.terminals.release_session("s")
            elif how != "connection":
                await agent.call(f"terminal/{how}", terminalId=terminal)
        await gone(mark)

    run(main())


@pytest.mark.needs("linux")
def test_other_tasks_run_while_processes_are_looked_for(acp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take two seconds, and all else would stand still."""
    turns, searches, listdir = itertools.count(), list[int](), os.listdir
    now = 0

    async def turn() -> None:
        nonlocal now
        for now in turns:  # noqa: B007
            await asyncio.sleep(0)

    def noted(path: Any) -> list[str]:
        searches.append(now)
        return listdir(path)

    async def main() -> None:
        turning = asyncio.ensure_future(turn())
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, "echo ready; sleep 1000")
            await until(agent, terminal, "ready")
            monkeypatch.setattr(os, "listdir", noted)
            await agent.call("terminal/kill", terminalId=terminal)
        turning.cancel()
        await asyncio.wait([turning])

    run(main())
    assert len({*searches}) >= 5


async def start_marked(agent: HandAgent, mark: str, turns: int) -> list[int]:
    """Ask for three commands, and let the event loop turn; returns the ids of the requests."""
    env = [{"name": "MARK", "value": mark}]
    args = ["-c", f"({IGNORES}) & wait"]
    numbers = [await agent.ask("terminal/create", command="sh", args=args, env=env) for _ in range(3)]
    for _ in range(turns):
        await asyncio.sleep(0)
    return numbers


def test_a_create_that_is_cancelled_leaves_no_process(acp: Any) -> None:
    mark = os.urandom(8).hex()

    async def main() -> None:
        async with hand_agent(acp, client_of(acp, max_terminals=3)) as agent:
            for turns in range(12):
                numbers = await start_marked(agent, mark, turns)
                for number in numbers:
                    await agent.peer.notify("$/cancel_request", {"requestId": number})
                for number in numbers:
                    answer = await agent.answer(number)
                    if isinstance(answer, dict):
                        await agent.call("terminal/release", **answer)
            await gone(mark)
            await check_room(agent, 3)

    run(main())


def test_a_release_that_is_cancelled_leaves_no_process(acp: Any) -> None:
    mark = os.urandom(8).hex()

    async def main() -> None:
        async with hand_agent(acp, client_of(acp, max_terminals=1, terminate_seconds=1000)) as agent:
            terminal = await create(agent, f"({IGNORES}) & wait", mark=mark)
            await until(agent, terminal, "ready")
            number = await agent.ask("terminal/release", terminalId=terminal)
            await agent.peer.notify("$/cancel_request", {"requestId": number})
            assert await agent.answer(number) == -32800
            await gone(mark)
            await check_room(agent, 1)

    run(main())


def test_a_create_while_the_terminals_are_closed(acp: Any) -> None:
    mark = os.urandom(8).hex()

    async def main() -> None:
        terminals = helpers_of(acp).Terminals()
        env = [acp.EnvVariable(name="MARK", value=mark)]
        params = acp.CreateTerminalRequest(session_id="s", command="sleep", args=["1000"], env=env)
        creating = asyncio.ensure_future(terminals.create(params))
        await asyncio.sleep(0)
        await terminals.close()
        with pytest.raises(acp.InvalidRequestError):
            await creating
        await gone(mark)

    run(main())


def test_the_end_of_the_connection_while_commands_start(acp: Any) -> None:
    mark = os.urandom(8).hex()

    async def main() -> None:
        for turns in range(12):
            async with hand_agent(acp, client_of(acp)) as agent:
                await start_marked(agent, mark, turns)
            with pytest.raises(acp.InvalidRequestError):
                await agent.client.terminals.create(acp.CreateTerminalRequest(session_id="s", command="true"))
        await gone(mark)

    run(main())


def test_a_flood_takes_bounded_memory(acp: Any) -> None:
    async def main() -> tuple[Any, int]:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(
                agent, "head -c 200000000 /dev/zero | tr '\\0' x; printf end", outputByteLimit=2**40
            )
            tracemalloc.start()
            try:
                await agent.call("terminal/wait_for_exit", terminalId=terminal)
                return await agent.call("terminal/output", terminalId=terminal), tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    answer, peak = run(main())
    assert len(answer["output"]) == 1 << 20
    assert answer["output"].endswith("xend")
    assert answer["truncated"] is True
    assert peak < 20 << 20


def test_a_number_that_another_process_has_got_is_not_signalled(acp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[Any]()

    async def main() -> list[Any]:
        async with hand_agent(acp, client_of(acp)) as agent:
            terminal = await create(agent, "echo $$")
            await agent.call("terminal/wait_for_exit", terminalId=terminal)
            number = int((await agent.call("terminal/output", terminalId=terminal))["output"])
            with monkeypatch.context() as patched:  # the system can hardly be made to give a number again

                def noted(pid: int, sign: int) -> None:
                    if (pid, sign) != (number, 0):
                        sent.append((pid, sign))

                patched.setattr(os, "kill", noted)
                patched.setattr(os, "killpg", noted)
                patched.setattr(os, "getsid", lambda pid: 0)  # as of a process whose session is outside of a container
                return [await agent.call(f"terminal/{each}", terminalId=terminal) for each in ("kill", "release")]

    assert run(main()) == [{}, {}]
    assert sent == []


@pytest.mark.full
def test_many_terminals_in_random_order(acp: Any) -> None:
    generator, mark = random.Random(7), os.urandom(8).hex()

    async def main() -> None:
        async with hand_agent(acp, client_of(acp, max_terminals=20, terminate_seconds=0.05)) as agent:
            terminals: list[str] = []
            pending: list[int] = []
            for _ in range(1500 if DEEP else 400):
                if len(terminals) < 20 and generator.random() < 0.4:
                    script = generator.choice([*HOSTILE.values(), "exit 1", "echo a", "sleep 0.1"])
                    limit = generator.randrange(5000)
                    terminals.append(await create(agent, script, mark=mark, outputByteLimit=limit))
                elif terminals:
                    method = generator.choice(["output", "kill", "release", "wait_for_exit"])
                    terminal = generator.choice(terminals)
                    number = await agent.ask(f"terminal/{method}", terminalId=terminal)
                    if method in {"wait_for_exit", "kill"}:
                        pending.append(number)
                    else:
                        await agent.answer(number)
                    if method == "release":
                        terminals.remove(terminal)
            for terminal in terminals:
                await agent.call("terminal/release", terminalId=terminal)
            for number in pending:
                await agent.answer(number)
        await gone(mark)

    run(main(), seconds=600)
