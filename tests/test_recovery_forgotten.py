"""Sessions that the agent loses while its process goes on: they are opened again, and no prompt is worked on twice."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import helpers_of, until
from tests.recovery_support import Play, playing, read, shown
from tests.runtime_agents import environment
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
AGENT = Path(__file__).with_name("recovery_agent.py")
ID = "s-17"
FORGOTTEN: dict[str, dict[str, Any]] = {
    "gemini-cli 0.61.0": {"code": -32602, "message": f"Session not found: {ID}"},
    "codex-acp 2.6.0": {"code": -32002, "message": f"Session {ID} not found", "data": {"sessionId": ID}},
    "claude-agent-acp 0.101.0": {"code": -32002, "message": "Resource not found", "data": {"sessionId": ID}},
    "qwen-code 0.24.4": {
        "code": -32603,
        "message": "Internal error",
        "data": {"details": f"Session not found: {ID}"},
    },
    "opencode 1.18.33": {
        "code": -32602,
        "message": f"Invalid params: session not found: {ID}",
        "data": {"sessionId": ID},
    },
    "a StoredAgent": {"code": -32002, "message": "Resource not found: session not found"},
    "an agent of init": {"code": -32602, "message": f"Invalid params: no session '{ID}'"},
    "the schema": {"code": -32002, "message": "Resource not found"},
}
"""What agents answer to a prompt of a session that they do not know."""
OTHERS: list[dict[str, Any]] = [
    {"code": -32603, "message": "Internal error"},
    {"code": -32603, "message": "Internal error", "data": {"details": f"the model of session {ID} is overloaded"}},
    {"code": -32002, "message": "Resource not found", "data": {"uri": "file:///x"}},
    {"code": -32602, "message": "Invalid params: mode not found: nope", "data": {"mode": "nope"}},
    {"code": -32000, "message": "Authentication required"},
    {"code": -32603, "message": "x", "data": [{"path": ["prompt"]}]},
]
REFUSED = FORGOTTEN["claude-agent-acp 0.101.0"]
BACK = ["SessionForgotten", "SessionRecovered"]


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,))


def words(request: Any) -> str:
    """The text of a prompt."""
    return str(request["params"]["prompt"][0]["text"])


async def begun(play: Play, agent: Any, expected: str) -> Any:
    """A prompt with these words, which the agent takes."""
    request = await agent.prompted(ID)
    assert (words(request), request["params"]["sessionId"]) == (expected, ID)
    return request


async def turn_of(play: Play, agent: Any, session: Any, said: str = "hello") -> None:
    """A turn as usual."""
    turn = asyncio.ensure_future(session.ask(said))
    await agent.end(await begun(play, agent, said), session=ID)
    await turn


@pytest.mark.parametrize("answer", FORGOTTEN.values(), ids=FORGOTTEN.keys())
@pytest.mark.parametrize("by", ["resume", "load"])
def test_a_session_that_was_forgotten_is_opened_again(
    acp: ModuleType, version: int, answer: dict[str, Any], by: str
) -> None:
    """The prompt, which nobody has worked on, is sent once more, and stands in the transcript once."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            await turn_of(play, agent, session, "first")
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await agent.answer(await agent.receive("session/prompt"), **answer)
            request = await play.reopening(agent, by)
            assert not session.is_open
            await agent.answer(request)
            request = await begun(play, agent, "one")
            await agent.say("done", ID)
            await agent.end(request, session=ID)
            changes, error = await reading
            assert error is None
            assert play.names(changes) == BACK
            assert changes[-1 if version == 1 else -2].text == "done"
            prompts = [text for kind, text in shown(session.state) if kind == "UserMessage"]
            echo = "one" if version == 1 else "?"
            assert prompts == ([echo] if by == "load" else ["first" if version == 1 else "?", echo])
            assert (len(play.agents), agent.read) == (1, [])
            await turn_of(play, agent, session)

    run(main())


@pytest.mark.parametrize("answer", OTHERS)
def test_another_error_is_that_of_the_prompt(acp: ModuleType, version: int, answer: dict[str, Any]) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            asking = asyncio.ensure_future(session.ask("one"))
            (agent,) = play.agents
            await agent.answer(await agent.receive("session/prompt"), **answer)
            with pytest.raises(acp.RequestError) as caught:
                await asking
            assert caught.value.code == answer["code"]
            await play.settled(agent)
            assert agent.read == []

    run(main())


def test_a_session_that_is_not_kept_has_the_error(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            opening = asyncio.ensure_future(play.keeper.client.open("/work"))
            (agent,) = play.agents
            await agent.answer(await agent.receive("session/new"), {"sessionId": ID})
            asking = asyncio.ensure_future((await opening).ask("one"))
            await agent.answer(await agent.receive("session/prompt"), **REFUSED)
            with pytest.raises(acp.RequestError):
                await asking

    run(main())


@pytest.mark.parametrize("sign", ["message", "tool call", "question"])
def test_a_prompt_that_was_perhaps_worked_on_is_not_sent_again(acp: ModuleType, version: int, sign: str) -> None:
    """The agent has said something before it told that it has no session."""

    async def answer_permission(self: Any, *_: Any) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        async with playing(acp, version, answer_permission=answer_permission) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            reading = asyncio.ensure_future(read(session.prompt("one")))
            request = await agent.receive("session/prompt")
            if sign == "message":
                await agent.say("I will", ID)
            elif sign == "tool call":
                await agent.tool("in_progress", session=ID)
            else:
                await agent.ask("q", ID)
                await play.settled(agent)
            await agent.answer(request, **REFUSED)
            await agent.answer(await play.reopening(agent, "resume"))
            changes, error = await reading
            assert play.names(changes) == BACK
            assert isinstance(error, play.helpers.TurnInterruptedError)
            assert (error.prompt.prompt[0].text, error.outcome.by) == ("one", "resume")
            assert [each.status for each in session.state.tool_calls] == (
                [] if sign == "message" else ["failed" if version == 1 else "cancelled"]
            )
            await turn_of(play, agent, session, "two")
            assert [each for each in agent.read if each.get("method") == "session/prompt"] == []

    run(main())


def test_what_is_about_the_session_is_no_work(acp: ModuleType, version: int) -> None:
    """Commands and the like come at any time."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            asking = asyncio.ensure_future(session.ask("one"))
            request = await agent.receive("session/prompt")
            await agent.update("available_commands_update", ID, availableCommands=[])
            await agent.answer(request, **REFUSED)
            await agent.answer(await play.reopening(agent, "resume"))
            await agent.end(await begun(play, agent, "one"), session=ID)
            await asking

    run(main())


def test_it_is_opened_again_once(acp: ModuleType, version: int) -> None:
    """An agent that forgets it at once has its error in the prompt; the next prompt tries again."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            for _ in range(2):
                asking = asyncio.ensure_future(session.ask("one"))
                await agent.answer(await agent.receive("session/prompt"), **REFUSED)
                await agent.answer(await play.reopening(agent, "resume"))
                await agent.answer(await agent.receive("session/prompt"), **REFUSED)
                with pytest.raises(acp.RequestError, match="Resource not found"):
                    await asking
            await play.settled(agent)
            assert agent.read == []

    run(main())


def test_a_session_that_cannot_be_opened_is_lost(acp: ModuleType, version: int) -> None:
    """Its prompts say why; `reconnect` tries again."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            await turn_of(play, agent, session)
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await agent.answer(await agent.receive("session/prompt"), **REFUSED)
            await agent.answer(await play.reopening(agent, "resume"), code=-32603, message="no such luck")
            changes, error = await reading
            assert play.names(changes) == ["SessionForgotten", "SessionLost"]
            assert isinstance(error, play.helpers.RecoveryError)
            assert "no such luck" in str(error)
            with pytest.raises(play.helpers.RecoveryError):
                await session.ask("two")
            trying = asyncio.ensure_future(play.keeper.reconnect())
            await agent.answer(await play.reopening(agent, "resume"))
            await trying
            await turn_of(play, agent, session)

    run(main())


def test_prompts_stay_in_their_order(acp: ModuleType, version: int) -> None:
    """Those that are refused together have one opening, and each is sent again; those that wait follow."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            names = ["one", "two", "three"]
            asking = [asyncio.ensure_future(session.ask(each)) for each in names]
            for _ in names if version == 2 else names[:1]:
                await agent.answer(await agent.receive("session/prompt"), **REFUSED)
            await agent.answer(await play.reopening(agent, "resume"))
            for each in names:
                await agent.end(await begun(play, agent, each), session=ID)
            await asyncio.gather(*asking)
            assert agent.read == []

    run(main())


@pytest.mark.parametrize("way", ["turn", "session", "leave", "close"])
def test_a_prompt_that_waits_can_be_cancelled(acp: ModuleType, version: int, way: str) -> None:
    """It is not sent again, and the agent gets no cancellation of what it has refused."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            (agent,) = play.agents
            turn = session.prompt("one")
            reading = asyncio.ensure_future(read(turn))
            await agent.answer(await agent.receive("session/prompt"), **REFUSED)
            request = await play.reopening(agent, "resume")
            if way == "leave":
                reading.cancel()
            elif way == "close":
                await session.close()
            else:
                await (turn.cancel() if way == "turn" else session.cancel())
            found = await asyncio.gather(reading, return_exceptions=True)
            if way == "close":
                assert isinstance(found[0][1], play.helpers.RecoveryError)
            elif way != "leave":
                assert turn.result.stop_reason == "cancelled"
            await agent.answer(request)
            if way == "close":
                await agent.answer(await agent.receive("session/close"))
            else:
                await turn_of(play, agent, session, "two")
            assert agent.read == []

    run(main())


def test_the_connection_may_end_meanwhile(acp: ModuleType, version: int) -> None:
    """The next one opens the session, and gets the prompt, which was refused before."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await play.agents[0].answer(await play.agents[0].receive("session/prompt"), **REFUSED)
            await play.reopening(play.agents[0], "resume")
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await second.end(await begun(play, second, "one"), session=ID)
            changes, error = await reading
            assert error is None
            assert play.names(changes) == ["SessionForgotten", "ConnectionLost", "Reconnecting", "SessionRecovered"]
            await turn_of(play, second, session)

    run(main())


def test_the_end_of_the_block_ends_the_wait(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await play.agents[0].answer(await play.agents[0].receive("session/prompt"), **REFUSED)
            await play.reopening(play.agents[0], "resume")
        _, error = await reading
        assert isinstance(error, play.helpers.RecoveryError)

    run(main())


# --- On demand -------------------------------------------------------------------------------------------------------


def test_reconnect_opens_sessions_again_while_the_agent_runs(acp: ModuleType, version: int) -> None:
    """Those in which no turn runs; prompts wait for them."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session, busy = await play.opened(ID), await play.opened("busy")
            (agent,) = play.agents
            asking = asyncio.ensure_future(busy.ask("work"))
            request = await agent.prompted("busy")
            trying = asyncio.ensure_future(play.keeper.reconnect())
            opening = await play.reopening(agent, "resume")
            assert opening["params"]["sessionId"] == ID
            assert busy.is_open
            waiting = asyncio.ensure_future(session.ask("one"))
            await agent.answer(opening)
            await trying
            await agent.end(await begun(play, agent, "one"), session=ID)
            await waiting
            await agent.end(request, session="busy")
            await asking
            assert (len(play.agents), agent.read) == (1, [])

    run(main())


def test_restart_makes_another_connection(acp: ModuleType, version: int) -> None:
    """As often as one likes: an end that was wanted is no crash. The turn that runs is interrupted."""

    async def main() -> None:
        async with playing(acp, version, policy={"crashes": 2, "first_seconds": 1000.0}) as play:
            session = await play.opened(ID)
            for number in range(1, 4):
                reading = asyncio.ensure_future(read(session.prompt("one")))
                await play.agents[-1].prompted(ID)
                trying = asyncio.ensure_future(play.keeper.restart())
                while await play.agents[number - 1].transport.read() is not None:
                    pass
                await play.agents[number - 1].transport.close()
                agent = await play.agent(number)
                await agent.answer(await play.reopening(agent, "resume"))
                await trying
                changes, error = await reading
                assert play.names(changes) == ["ConnectionLost", "Reconnecting", "SessionRecovered"]
                assert isinstance(error, play.helpers.TurnInterruptedError)
                await turn_of(play, agent, session)
            assert len(play.agents) == 4

    run(main())


def test_restart_without_a_connection_makes_one(acp: ModuleType, version: int) -> None:
    """After giving up, and in a pause; two at once make one."""

    async def main() -> None:
        async with playing(acp, version, policy={"attempts": 1}) as play:
            session = await play.opened(ID)
            play.failures += [OSError("no program")] * 2
            await play.agents[0].transport.close()
            await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
            trying = [asyncio.ensure_future(play.keeper.restart()) for _ in range(2)]
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await asyncio.gather(*trying)
            await turn_of(play, second, session)
            assert len(play.agents) == 2

    run(main())


def test_a_restart_that_fails_says_so(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(ID)
            play.failures.append(acp.AuthenticationRequiredError())
            trying = asyncio.ensure_future(play.keeper.restart())
            while await play.agents[0].transport.read() is not None:
                pass
            await play.agents[0].transport.close()
            with pytest.raises(play.helpers.RecoveryError):
                await trying
            with pytest.raises(play.helpers.RecoveryError):
                await session.ask("?")

    run(main())


def test_restart_starts_another_process(packages: Packages, version: int, tmp_path: Path) -> None:
    """With the environment that `connect` gives it then, for a login by a variable; the session goes on there."""
    acp = packages(BASES[version])
    helpers = helpers_of(acp)
    folder, name = Path(str(acp.__file__)).parents[1], acp.__name__
    command = [sys.executable, str(AGENT), "ours", str(folder), name, str(tmp_path / "store.db"), str(tmp_path / "n")]
    made: list[Any] = []

    def connect() -> Any:
        made.append(acp.spawn_agent(helpers.KeptClient, command, env=environment(acp), stderr="log"))
        return made[-1]

    async def start(client: Any) -> None:
        await client.start("tests", "1")

    async def main() -> None:
        async with helpers.SessionKeeper(connect, start) as keeper:
            session = await keeper.open(str(tmp_path))
            assert await session.ask("p1 one two") == "one two "
            await keeper.restart()
            assert [each.returncode is None for each in made] == [False, True]
            assert await session.ask("p2 three") == "three "
        assert (tmp_path / "n").read_text().split() == ["p1", "p2"]

    run(main())
