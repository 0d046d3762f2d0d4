"""Spawned agents that die, or write what is no message."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import Diary
from tests.runtime_support import run
from tests.spawn.spawner import Spawner

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]


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
    program = r"""import sys; print('Welcome!\n[INFO] ready\n{"level": "info"}\n{}\n \t{"id": 5}', flush=True)
sys.stdin.read()"""

    async def main() -> None:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program], options=options):
            while len(seen) < 2:
                await asyncio.sleep(0.01)

    run(main())
    assert seen[0] == ("in", b' \t{"id": 5}')
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

    program = f"import sys; print({text!r}); print('[{{}}]', flush=True); sys.stdin.read()"
    options = acp.ConnectionOptions(loads=loads)

    async def main() -> None:
        async with acp.spawn_agent(acp.Client, [sys.executable, "-c", program], options=options):
            while not parsed:
                await asyncio.sleep(0.01)

    run(main())
    assert parsed == [b"[{}]"]


LOG_LINE = '{"level": "fatal", "method": "GET", "error": "no memory left", "fields": {"id": 5, "jsonrpc": "2.0"}}'
CLAIMS = [
    '{"jsonrpc": "2.0"}',
    '{"id": 7}',
    '{"level": "info", "id": 7}',
    '{"level": "info", "\\u006aethod": 1, "jsonrpc": "1.0"}',
    '{"level": "info", not JSON',
    '{"level": "info", "text": "' + 70_000 * "x" + '"}',
]
"""Lines that claim to be JSON-RPC, that cannot be parsed, or that are too long to be parsed twice."""


def test_a_line_of_a_structured_log_is_text(acp: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, is quoted when the agent ends, and is not answered; what claims to be JSON-RPC is answered."""
    program = f"""import sys
print({LOG_LINE!r}, *{CLAIMS!r}, sep="\\n", flush=True)
for _ in range({len(CLAIMS)}):
    print(sys.stdin.readline(), file=sys.stderr)
"""
    seen = []
    options = acp.ConnectionOptions(on_message=lambda direction, line: seen.append((direction, line)))

    async def main() -> Any:
        spawned = acp.spawn_agent(acp.Client, [sys.executable, "-c", program], options=options, stderr="discard")
        async with spawned as agent:
            while spawned.returncode is None:
                await asyncio.sleep(0.01)
            assert sum(direction == "out" for direction, _ in seen) == len(CLAIMS)
            with pytest.raises(acp.ConnectionClosed) as caught:
                await agent.initialize(acp.InitializeRequest(protocol_version=1))
        return caught.value

    error = run(main())
    assert error.stdout == (LOG_LINE,)
    assert "no memory left" in str(error)
    assert f"on stdout: {LOG_LINE}" in caplog.text
    assert [line.decode() for direction, line in seen if direction == "in"] == CLAIMS


@pytest.mark.parametrize("start", ['{"jsonrpc": 1}', '{"level": "error"}', "{'no': 'more'}", "[1]"])
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
    assert (start in error.stdout) == ("jsonrpc" not in start)
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
