"""What agents replay when a session is opened again, before and after they answer, and sessions that are young."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import stage, until
from tests.recovery_support import Play, playing, read, shown
from tests.runtime_support import V1, V2, pass_time, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
QUIET = 30.0
"""Longer than any test takes: only `pass_time` reaches it."""
LOADS: Any = {"agentCapabilities": {"loadSession": True, "sessionCapabilities": {"additionalDirectories": {}}}}
"""An agent of protocol 1 that cannot resume, as gemini-cli 0.61."""


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,))


async def idle(seconds: float) -> None:
    """Let so much time pass, and all that is due happen."""
    pass_time(seconds)
    for _ in range(50):
        await asyncio.sleep(0)


async def part(agent: Any, tag: str, words: str) -> None:
    """A part of a conversation."""
    await agent.update(f"{tag}_chunk", content={"type": "text", "text": words}, messageId=f"{tag}-{words}")


async def turn_of(agent: Any, session: Any) -> None:
    """A turn as usual."""
    turn = asyncio.ensure_future(session.ask("hello"))
    await agent.end(await agent.prompted(session.id), session=session.id)
    await turn


@pytest.mark.parametrize("by", ["load", "resume"])
def test_a_session_is_open_when_it_is_quiet(acp: ModuleType, version: int, by: str) -> None:
    """gemini-cli answers after the first part. A part that comes late begins the time anew, and nothing else does."""

    async def main() -> None:
        async with stage(acp, version, quiet_seconds=QUIET) as play:
            opening = asyncio.ensure_future(getattr(play.client, by)("s", "/work"))
            request = await play.agent.receive("session/load" if version == 1 and by == "load" else "session/resume")
            await part(play.agent, "user_message", "one")
            await play.agent.answer(request)
            await play.barrier()
            await idle(0.9 * QUIET)
            await part(play.agent, "agent_message", "two")
            await play.barrier()
            await idle(0.9 * QUIET)
            assert not opening.done()
            await play.agent.update("available_commands_update", availableCommands=[])
            await play.barrier()
            await idle(0.2 * QUIET)
            session = await opening
            assert shown(session.state) == [("UserMessage", "one"), ("AgentMessage", "two")]

    run(main(), seconds=100 * QUIET)


def test_an_agent_that_is_never_quiet_has_a_minute(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, quiet_seconds=QUIET) as play:
            opening = asyncio.ensure_future(play.client.load("s", "/work"))
            await play.agent.answer(await play.agent.receive("session/load" if version == 1 else "session/resume"))
            for _ in range(4):
                await part(play.agent, "agent_message", "more")
                await play.barrier()
                await idle(20)
            await opening

    run(main(), seconds=100 * QUIET)


def test_a_connection_that_ends_in_the_replay_fails_the_load(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, quiet_seconds=QUIET) as play:
            opening = asyncio.ensure_future(play.client.load("s", "/work"))
            await play.agent.answer(await play.agent.receive("session/load" if version == 1 else "session/resume"))
            await play.barrier()
            await play.agent.transport.close()
            with pytest.raises(acp.ConnectionClosed):
                await opening
            assert play.client.sessions == {}

    run(main())


async def interrupted(play: Play) -> tuple[Any, Any]:
    """A session with one turn that has ended, and one that was interrupted, which is being read."""
    session = await play.opened()
    turn = asyncio.ensure_future(session.ask("one"))
    request = await play.agents[0].receive("session/prompt")
    if play.version == 2:
        await play.agents[0].insert("m1")
        await play.agents[0].answer(request, {"messageId": "m1"})
    await play.agents[0].say("1", message="a1")
    await play.agents[0].end(request)
    await turn
    reading = asyncio.ensure_future(read(session.prompt("two")))
    await play.agents[0].prompted()
    await play.settled(play.agents[0])
    await play.agents[0].transport.close()
    return session, reading


def test_a_kept_session_goes_on_when_it_is_quiet(acp: ModuleType, version: int) -> None:
    """By load: the rest of the replay is no answer to a prompt that waits, and tells what the agent has."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}, quiet_seconds=QUIET) as play:
            session, reading = await interrupted(play)
            second = await play.agent(1)
            request = await play.reopening(second, "load")
            await part(second, "user_message", "one" if version == 1 else "?")
            await second.answer(request)
            await until(lambda: any(each.id.startswith("user_message") for each in session.reported.entries))
            waiting = asyncio.ensure_future(session.ask("three"))
            await part(second, "agent_message", "1")
            await part(second, "user_message", "two")
            await play.settled(second)
            await idle(0.9 * QUIET)
            assert not session.is_open
            await idle(0.2 * QUIET)
            changes, error = await reading
            assert (error.in_replay, error.outcome.by) == (True, "load")
            assert [each.text for each in changes if isinstance(each, play.helpers.MessageChange)][1:] == []
            request = await second.prompted()
            await second.say("3")
            await second.end(request)
            assert await waiting == "3"
            assert [text for _, text in shown(session.state)][:3] == ["one" if version == 1 else "?", "1", "two"]

    run(main(), seconds=100 * QUIET)


def test_what_is_replayed_by_resume_is_there_already(acp: ModuleType, version: int) -> None:
    """It is neither added nor reported, before the answer and until the session is quiet; what is new is, then."""

    async def main() -> None:
        async with playing(acp, version, quiet_seconds=QUIET) as play:
            session, reading = await interrupted(play)
            second = await play.agent(1)
            request = await play.reopening(second, "resume")
            before = shown(session.state)
            await part(second, "user_message", "one")
            await second.tool("completed", "old")
            await second.answer(request)
            await part(second, "agent_message", "1")
            await second.update("session_info_update", title="A title")
            await play.settled(second)
            await idle(1.1 * QUIET)
            changes, error = await reading
            assert error.outcome.by == "resume"
            assert play.names(changes) == ["ConnectionLost", "Reconnecting", "SessionRecovered"]
            assert (shown(session.state), session.state.title) == (before, "A title")
            await part(second, "agent_message", "new")
            await play.settled(second)
            assert shown(session.state) == [*before, ("AgentMessage", "new")]

    run(main(), seconds=100 * QUIET)


def test_an_agent_that_dies_after_its_answer_is_started_again(acp: ModuleType, version: int) -> None:
    """It had not replayed all: that attempt counts for nothing."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}, quiet_seconds=QUIET) as play:
            session, reading = await interrupted(play)
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "load"))
            await part(second, "user_message", "half")
            await play.settled(second)
            await second.transport.close()
            third = await play.agent(2)
            request = await play.reopening(third, "load")
            await part(third, "user_message", "all")
            await third.answer(request)
            await play.settled(third)
            await idle(1.1 * QUIET)
            changes, _ = await reading
            assert play.names(changes) == ["ConnectionLost", "Reconnecting", "Reconnecting", "SessionRecovered"]
            assert shown(session.state) == [("UserMessage", "all")]

    run(main(), seconds=100 * QUIET)


def test_many_sessions_are_quiet_together(acp: ModuleType, version: int) -> None:
    """One request follows the other, and they wait once."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}, quiet_seconds=QUIET) as play:
            sessions = [await play.opened(f"s{number}") for number in range(10)]
            await play.agents[0].transport.close()
            second = await play.agent(1)
            for session in sessions:
                request = await play.reopening(second, "load")
                assert request["params"]["sessionId"] == session.id
                await play.settled(second)
                assert second.read == []
                await second.answer(request)
            await play.settled(second)
            await idle(1.1 * QUIET)
            await until(lambda: all(session.is_open for session in sessions))

    run(main(), seconds=100 * QUIET)


# --- Young sessions --------------------------------------------------------------------------------------------------


def test_a_young_session_is_not_loaded(one: ModuleType) -> None:
    """An agent that can only load gets no request before the session is old enough."""

    async def main() -> None:
        async with playing(one, 1, policy={"young_seconds": 60.0, "attempt_seconds": 500.0}, hello=LOADS) as play:
            session, reading = await interrupted(play)
            second = await play.agent(1, LOADS)
            await idle(40)
            await play.settled(second)
            assert second.read == []
            await idle(30)
            await second.answer(await play.reopening(second, "load"))
            changes, _ = await reading
            assert play.names(changes) == ["ConnectionLost", "Reconnecting", "ReopeningLater", "SessionRecovered"]
            assert 0 < changes[-2].seconds <= 60
            await turn_of(second, session)

    run(main(), seconds=1000)


def test_an_old_session_is_loaded_at_once(one: ModuleType) -> None:
    async def main() -> None:
        async with playing(one, 1, policy={"young_seconds": 60.0}, hello=LOADS) as play:
            opened = await play.opened()
            await turn_of(play.agents[0], opened)
            loading = asyncio.ensure_future(play.keeper.load("of yesterday", "/work"))
            await play.agents[0].answer(await play.agents[0].receive("session/load"))
            await loading
            await idle(61)
            await play.agents[0].transport.close()
            second = await play.agent(1, LOADS)
            for name in ("s", "of yesterday"):
                request = await play.reopening(second, "load")
                assert request["params"]["sessionId"] == name
                await second.answer(request)
            await turn_of(second, opened)

    run(main(), seconds=1000)


def test_a_young_session_is_resumed_where_the_agent_can(acp: ModuleType, version: int) -> None:
    """Whatever is preferred: an attempt to load it may spoil it."""

    async def main() -> None:
        async with playing(acp, version, policy={"young_seconds": 60.0, "prefer": "load"}) as play:
            session, reading = await interrupted(play)
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            _, error = await reading
            assert error.outcome.by == "resume"
            await idle(61)
            await second.transport.close()
            third = await play.agent(2)
            await third.answer(await play.reopening(third, "load"))
            await turn_of(third, session)

    run(main(), seconds=1000)


@pytest.mark.parametrize("failure", ["young", "refused", "missing"])
def test_a_session_in_which_nothing_was_said_is_opened_anew(acp: ModuleType, version: int, failure: str) -> None:
    """Agents save a session with its first prompt. It has another id then, and what waits goes there."""

    async def main() -> None:
        hello = LOADS if failure == "young" and version == 1 else None
        policy = {"young_seconds": 60.0 if failure == "young" else 0.0}
        async with playing(acp, version, policy=policy, hello=hello) as play:
            session = await play.opened()
            before = session.state
            await play.agents[0].transport.close()
            second = await play.agent(1, hello)
            waiting = asyncio.ensure_future(session.ask("one"))
            if hello is None:
                code = -32601 if failure == "missing" else -32603
                await second.answer(await play.reopening(second, "resume"), code=code, message="no such thing")
                if failure == "missing":
                    await second.answer(await play.reopening(second, "load"), code=code, message="no such thing")
            request = await second.receive("session/new")
            assert request["params"]["cwd"] == "/work"
            assert request["params"]["additionalDirectories"] == ["/more"]
            await second.answer(request, {"sessionId": "another"})
            request = await second.prompted("another")
            assert request["params"]["sessionId"] == "another"
            await second.end(request, session="another")
            await waiting
            assert (session.id, session.state.session_id) == ("another", "another")
            assert session.state is not before
            assert {**play.keeper.client.sessions} == {"another": session}
            (recovered,) = [each for _, each in play.between if isinstance(each, play.helpers.SessionRecovered)]
            assert (recovered.by, recovered.before) == ("new", before)
            await second.transport.close()
            third = await play.agent(2, hello)
            await idle(61)
            await third.answer(await play.reopening(third, "load" if hello else "resume"))
            await turn_of(third, session)

    run(main(), seconds=1000)


def test_a_conversation_is_left_only_where_the_policy_says_so(acp: ModuleType, version: int) -> None:
    """The state is empty then; what was said is in the change alone. A login that is missing leaves nothing."""

    async def main() -> None:
        async with playing(acp, version, policy={"anew": True}) as play:
            session, reading = await interrupted(play)
            said = shown(session.state)
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"), code=-32603, message="no such thing")
            await second.answer(await second.receive("session/new"), {"sessionId": "another"})
            changes, error = await reading
            assert (changes[-1].by, shown(changes[-1].before), session.state.entries) == ("new", said, [])
            assert (error.outcome.by, error.in_replay) == ("new", None)
            await turn_of(second, session)
            await second.transport.close()
            third = await play.agent(2)
            await third.answer(await play.reopening(third, "resume"), code=-32000, message="Log in")
            await until(lambda: any(isinstance(each, play.helpers.SessionLost) for _, each in play.between))
            assert session.id == "another"

    run(main())
