"""Sessions that outlive their connection: an agent by hand dies at each point, and the next one goes on."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import HELLO, until
from tests.recovery_support import QUICK, Play, playing, read, shown
from tests.runtime_support import V1, V2, acp_log, pass_time, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
BARE: dict[int, Any] = {1: {}, 2: {"info": {"name": "a", "version": "1"}}}
"""The answer of an agent that cannot open sessions again."""
BACK = ["ConnectionLost", "Reconnecting", "SessionRecovered"]


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


async def replay(agent: Any, *said: tuple[str, str]) -> None:
    """Report a conversation, with ids of its own."""
    for number, (tag, words) in enumerate(said):
        block: Any = {"type": "text", "text": words}
        whole = agent.version == 2 and tag == "user_message"
        members = {"content": [block] if whole else block}
        await agent.update(tag if whole else f"{tag}_chunk", messageId=f"r{number}", **members)


async def ended_turn(play: Play, session: Any, words: str, answer: str) -> None:
    """A turn with an answer."""
    turn = asyncio.ensure_future(read(session.prompt(words)))
    request = await prompted(play.agents[-1], words)
    await play.agents[-1].say(answer, message=f"m{request['id']}")
    await play.agents[-1].end(request)
    assert (await turn)[1] is None


async def prompted(agent: Any, words: str) -> Any:
    """The next prompt, which has these words; in protocol 2 it is inserted and confirmed."""
    request = await agent.receive("session/prompt")
    assert [block["text"] for block in request["params"]["prompt"]] == [words]
    if agent.version == 2:
        block = {"type": "text", "text": words}
        await agent.update("user_message", messageId=f"u{request['id']}", content=[block])
        await agent.answer(request, {"messageId": f"u{request['id']}"})
    return request


def test_a_turn_is_interrupted_and_the_session_is_resumed(acp: ModuleType, version: int) -> None:
    """The state stays, calls that ran have ended, and the prompt is not sent again; one that waited is sent then."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            state = session.state
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await prompted(play.agents[0], "one")
            await play.agents[0].say("half an ")
            await play.agents[0].tool("pending")
            await play.settled(play.agents[0])
            waiting = asyncio.ensure_future(read(session.prompt("two"))) if version == 1 else None
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, "resume")
            assert request["params"]["cwd"] == "/work"
            assert request["params"]["additionalDirectories"] == ["/more"]
            if version == 2:
                await second.state("idle")
            await second.answer(request)
            changes, error = await reading
            assert play.names(changes) == BACK
            lost, _, back = (each for each in changes if isinstance(each, play.helpers.ConnectionChange))
            assert [each.prompt[0].text for each in lost.prompts] == ["one"]
            assert (back.by, back.before, session.state) == ("resume", state, state)
            assert isinstance(error, play.helpers.TurnInterruptedError)
            assert isinstance(error, acp.ConnectionClosed)
            assert (error.prompt, error.outcome, error.in_replay) == (lost.prompts[0], back, None)
            ended = "failed" if version == 1 else "cancelled"
            assert shown(state)[:3] == [
                ("UserMessage", "one"),
                ("AgentMessage", "half an "),
                ("ToolCall", f"Edit {ended}"),
            ]
            ends = [each for each in changes if isinstance(each, play.helpers.ToolCallChange) and each.has_ended]
            assert [each.call for each in ends] == state.tool_calls
            waiting = waiting or asyncio.ensure_future(read(session.prompt("two")))
            await second.end(await prompted(second, "two"))
            assert (await waiting)[1] is None
            assert [each for each in second.read if each.get("method") == "session/prompt"] == []
            assert play.between == []

    run(main())


@pytest.mark.parametrize("arrived", [True, False, None])
def test_a_session_is_loaded_and_the_replay_is_no_change(
    acp: ModuleType, version: int, *, arrived: bool | None
) -> None:
    """The state is the replay alone. It tells whether the agent has the prompt, as long as it has the words."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}) as play:
            session = await play.opened()
            await ended_turn(play, session, "again", "first")
            reading = asyncio.ensure_future(read(session.prompt("again")))
            await prompted(play.agents[0], "again")
            await play.agents[0].say("never saved")
            await play.settled(play.agents[0])
            before = shown(session.state)
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, "load")
            first = ("user_message", "again" if arrived is not None else "<context/> again")
            said = [first, ("agent_message", "first"), *([("user_message", "again")] if arrived else [])]
            await replay(second, *said)
            await second.answer(request)
            changes, error = await reading
            assert play.names(changes) == BACK
            assert not any(isinstance(each, play.helpers.MessageChange) for each in changes[-1:])
            assert [each.text for each in changes if isinstance(each, play.helpers.MessageChange)] == [
                "again",
                "never saved",
            ]
            assert shown(changes[-1].before) == before
            kinds = {"user_message": "UserMessage", "agent_message": "AgentMessage"}
            assert shown(session.state) == [(kinds[tag], words) for tag, words in said]
            assert (error.in_replay, error.outcome.by, play.between) == (arrived, "load", [])
            await ended_turn(play, session, "more", "of it")
            assert shown(session.state)[-2:] == [("UserMessage", "more"), ("AgentMessage", "of it")]

    run(main())


def test_between_turns_the_changes_are_those_of_the_session(acp: ModuleType, version: int) -> None:
    """Of the client of the connection that there is; the session object stays the same."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            client = play.keeper.client
            await play.settled(play.agents[0])
            play.between.clear()
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await until(lambda: len(play.names([change for _, change in play.between])) == 3)
            changes = [change for _, change in play.between]
            assert play.names(changes) == BACK
            assert {id(each) for each, _ in play.between} == {id(session)}
            assert changes[0].prompts == ()
            assert play.keeper.client is not client
            assert play.keeper.client.sessions == {"s": session}
            await ended_turn(play, session, "hello", "there")

    run(main())


@pytest.mark.parametrize("place", ["before initialize", "before the answer", "in the replay"])
def test_an_agent_that_dies_while_it_is_started_is_started_again(acp: ModuleType, version: int, place: str) -> None:
    """What it had replayed until then is forgotten."""

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": "load"}) as play:
            session = await play.opened()
            await ended_turn(play, session, "one", "1")
            before = shown(session.state)
            reading = asyncio.ensure_future(read(session.prompt("two")))
            await prompted(play.agents[0], "two")
            await play.agents[0].transport.close()
            if place == "before initialize":
                await until(lambda: len(play.agents) == 2)
            else:
                request = await play.reopening(await play.agent(1), "load")
                if place == "in the replay":
                    await replay(play.agents[1], ("user_message", "one"), ("agent_message", "a part"))
            await play.agents[1].transport.close()
            third = await play.agent(2)
            assert shown(session.state)[: len(before)] == before
            request = await play.reopening(third, "load")
            await replay(third, ("user_message", "one"), ("agent_message", "1"))
            await third.answer(request)
            changes, error = await reading
            assert play.names(changes) == ["ConnectionLost", "Reconnecting", "Reconnecting", "SessionRecovered"]
            assert shown(session.state) == before
            assert error.in_replay is False
            again = [each.attempt for each in changes if isinstance(each, play.helpers.Reconnecting)]
            assert again == [1, 2]

    run(main())


def test_a_crash_loop_is_one_error(acp: ModuleType, version: int) -> None:
    """Two ends within the time: no third agent is started, and each prompt raises the same."""

    async def main() -> None:
        async with playing(acp, version, policy={"crashes": 2}) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await prompted(play.agents[0], "one")
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            assert play.names((await reading)[0]) == BACK
            reading = asyncio.ensure_future(read(session.prompt("two")))
            await prompted(second, "two")
            await second.transport.close()
            changes, error = await reading
            assert play.names(changes) == ["ConnectionLost", "SessionLost"]
            assert isinstance(error.outcome, play.helpers.SessionLost)
            reason = changes[-1].error
            assert str(reason).startswith("the agent has ended 2 times within 60 s")
            assert isinstance(reason.reason, acp.ConnectionClosed)
            for call in (session.ask("three"), play.keeper.open("/work")):
                with pytest.raises(play.helpers.RecoveryError) as caught:
                    await call
                assert caught.value is reason
            assert len(play.agents) == 2

    run(main())


def test_ends_that_are_far_apart_are_no_crash_loop(one: ModuleType) -> None:
    async def main() -> None:
        async with playing(one, 1, policy={"crashes": 2, "crash_seconds": 2.0}) as play:
            session = await play.opened()
            for number in range(1, 4):
                await play.agents[-1].transport.close()
                agent = await play.agent(number)
                await agent.answer(await play.reopening(agent, "resume"))
                await ended_turn(play, session, "still", "here")
                pass_time(3)

    run(main())


def test_attempts_have_growing_pauses_and_an_end(one: ModuleType) -> None:
    """What cannot connect is tried again as often as the policy says; `reconnect` begins anew."""
    policy = {"attempts": 4, "first_seconds": 100.0, "most_seconds": 250.0}

    async def main() -> None:
        async with playing(one, 1, policy=policy) as play:
            session = await play.opened()
            play.failures += [ConnectionRefusedError("refused"), one.ConnectionClosed("a cut")] * 2
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await play.agents[0].receive("session/prompt")
            await play.agents[0].transport.close()
            for left in (3, 2, 1, 0):
                await until(lambda left=left: len(play.failures) == left)  # type: ignore[misc]
                for _ in range(50):
                    await asyncio.sleep(0)
                assert len(play.failures) == left
                pass_time(251)
            changes, error = await reading
            pauses = [each.seconds for each in changes if isinstance(each, play.helpers.Reconnecting)]
            assert pauses == [0.0, 100.0, 200.0, 250.0]
            assert str(error.outcome.error) == "4 attempts to connect again have failed, the last: a cut"
            trying = asyncio.ensure_future(play.keeper.reconnect())
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await trying
            await ended_turn(play, session, "two", "2")

    run(main(), seconds=10_000)


def test_reconnect_ends_a_pause(one: ModuleType) -> None:
    async def main() -> None:
        async with playing(one, 1, policy={"first_seconds": 1000.0, "most_seconds": 1000.0}) as play:
            session = await play.opened()
            play.failures.append(OSError("no program"))
            await play.agents[0].transport.close()
            await until(lambda: len(play.between) and getattr(play.between[-1][1], "attempt", 0) == 2)
            trying = asyncio.ensure_future(play.keeper.reconnect())
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await trying
            await ended_turn(play, session, "two", "2")

    run(main())


@pytest.mark.parametrize("kind", ["permanent", "refused", "mistake"])
def test_what_would_end_in_the_same_way_is_not_tried_again(one: ModuleType, kind: str) -> None:
    errors = {
        "permanent": one.ConnectionClosed("the token is wrong", is_permanent=True, status=401),
        "refused": one.InternalError("not today"),
        "mistake": KeyError("a mistake in `connect`"),
    }

    async def main() -> None:
        async with playing(one, 1) as play:
            session = await play.opened()
            play.failures.append(errors[kind])
            await play.agents[0].transport.close()
            await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
            with pytest.raises(play.helpers.RecoveryError) as caught:
                await session.ask("?")
            assert caught.value.reason is errors[kind]
            assert caught.value.status == (401 if kind == "permanent" else None)
            assert len(play.agents) == 1

    run(main())


def test_one_session_is_lost_and_another_one_goes_on(acp: ModuleType, version: int) -> None:
    """The agent does not know one of them any more, and wants a login for another one."""

    async def main() -> None:
        async with playing(acp, version) as play:
            sessions = [await play.opened(name) for name in ("gone", "locked", "s")]
            for each in sessions:  # otherwise they would be opened anew
                turn = asyncio.ensure_future(each.ask("hello"))
                await play.agents[0].end(await play.agents[0].prompted(each.id), session=each.id)
                await turn
            await play.agents[0].transport.close()
            second = await play.agent(1)
            answers: list[Any] = [
                {"code": -32002, "message": "Resource not found"},
                {"code": -32000, "message": "Authentication required"},
                {},
            ]
            for answer in answers:
                await second.answer(await play.reopening(second, "resume"), **answer)
            await ended_turn(play, sessions[2], "hello", "there")
            for session, kind in zip(sessions, ("ResourceNotFoundError", "AuthenticationRequiredError"), strict=False):
                with pytest.raises(play.helpers.RecoveryError, match="cannot be opened again") as caught:
                    await session.ask("?")
                assert type(caught.value.reason).__name__ == kind
            trying = asyncio.ensure_future(play.keeper.reconnect())  # after a login
            await second.answer(await play.reopening(second, "resume"), code=-32002, message="Resource not found")
            await second.answer(await play.reopening(second, "resume"))
            await trying
            assert len(play.agents) == 2
            turn = asyncio.ensure_future(sessions[1].ask("hello"))
            await second.end(await second.prompted("locked"), session="locked")
            await turn

    run(main())


def test_an_agent_that_keeps_no_sessions_loses_them(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        able = {"agentCapabilities": {"sessionCapabilities": {"additionalDirectories": {}}}}
        hello = able if version == 1 else HELLO[version]  # protocol 2 has no sessions without this
        async with playing(acp, version, hello=hello) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await prompted(play.agents[0], "one")
            await play.agents[0].transport.close()
            await play.agent(1, BARE[version])
            changes, error = await reading
            assert play.names(changes) == ["ConnectionLost", "Reconnecting", "SessionLost"]
            assert str(error.outcome.error) == "the agent has neither session/resume nor session/load"
            assert shown(session.state) == [("UserMessage", "one")]

    run(main())


@pytest.mark.parametrize("by", ["resume", "load"])
def test_what_there_is_is_used_whatever_is_preferred(one: ModuleType, by: str) -> None:
    other = {"resume": "load", "load": "resume"}[by]
    able: Any = {"loadSession": True} if by == "load" else {"sessionCapabilities": {"resume": {}}}

    async def main() -> None:
        async with playing(one, 1, policy={"prefer": other}, hello={"agentCapabilities": able}) as play:
            opening = asyncio.ensure_future(play.keeper.open("/work"))
            await play.agents[0].answer(await play.agents[0].receive("session/new"), {"sessionId": "s"})
            await opening
            await play.agents[0].transport.close()
            second = await play.agent(1, {"agentCapabilities": able})
            await second.answer(await play.reopening(second, by))
            await until(lambda: play.names([change for _, change in play.between]) == BACK)
            assert play.between[-1][1].by == by

    run(main())


def test_a_way_that_is_advertised_and_missing_is_not_the_last(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            await play.opened()
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"), code=-32601, message="Method not found")
            await second.answer(await play.reopening(second, "load"))
            await until(lambda: play.names([change for _, change in play.between]) == BACK)
            assert play.between[-1][1].by == "load"

    run(main())


def options(version: int, *, level: str, fast: bool) -> list[Any]:
    """The options of a session."""
    key = "id" if version == 1 else "configId"
    levels = [{"value": each, "name": each} for each in ("low", "high")]
    return [
        {key: "level", "name": "Level", "type": "select", "currentValue": level, "options": levels},
        {key: "fast", "name": "Fast", "type": "boolean", "currentValue": fast},
    ]


@pytest.mark.parametrize("by", ["resume", "load"])
def test_mode_and_options_are_set_again_where_the_agent_says_otherwise(acp: ModuleType, version: int, by: str) -> None:
    """What it refuses stays as it says, and what it does not mention is left alone."""

    def modes(current: str) -> Any:
        named = [{"id": each, "name": each} for each in ("ask", "plan")]
        return {"modes": {"currentModeId": current, "availableModes": named}} if version == 1 else {}

    async def main() -> None:
        async with playing(acp, version, policy={"prefer": by}) as play:
            session = await play.opened(configOptions=options(version, level="high", fast=True), **modes("plan"))
            await play.agents[0].transport.close()
            second = await play.agent(1)
            now = {"configOptions": options(version, level="low", fast=False), **modes("ask")}
            await second.answer(await play.reopening(second, by), now)
            request = await second.receive("session/set_config_option")
            assert (request["params"]["configId"], request["params"]["value"]) == ("level", "high")
            await second.answer(request, {"configOptions": options(version, level="high", fast=False)})
            request = await second.receive("session/set_config_option")
            assert (request["params"]["configId"], request["params"]["value"]) == ("fast", True)
            if version == 1:
                await second.answer(request, {"configOptions": options(version, level="high", fast=True)})
                request = await second.receive("session/set_mode")
                assert request["params"]["modeId"] == "plan"
                await second.answer(request)
            else:
                await second.answer(request, code=-32602, message="not now")
            await ended_turn(play, session, "hello", "there")
            values = [option.current_value for option in session.state.config_options]
            assert values == (["high", True] if version == 1 else ["high", False])
            if version == 1:
                assert session.state.current_mode_id == "plan"
            await second.transport.close()
            third = await play.agent(2)
            await third.answer(await play.reopening(third, by))
            await ended_turn(play, session, "hello", "there")
            assert not [each for each in third.read if "set_" in each["method"]]

    with acp_log() as log:
        run(main())
    assert ("cannot be set again" in texts(log)) == (version == 2)


def test_questions_are_closed_with_the_connection(acp: ModuleType, version: int) -> None:
    ends: list[str] = []

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("closed")

    async def main() -> None:
        async with playing(acp, version, answer_permission=answer_permission) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await prompted(play.agents[0], "one")
            await play.agents[0].ask()
            await until(lambda: session.state.tool_calls)
            await play.settled(play.agents[0])
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await reading
            assert ends == ["closed"]

    run(main())


def test_an_attempt_that_hangs_is_given_up(one: ModuleType) -> None:
    async def main() -> None:
        async with playing(one, 1, policy={"attempt_seconds": 500.0}) as play:
            session = await play.opened()
            await play.agents[0].transport.close()
            await until(lambda: len(play.agents) == 2)
            await play.agents[1].receive("initialize")  # and no answer
            pass_time(501)
            third = await play.agent(2)
            await third.answer(await play.reopening(third, "resume"))
            await ended_turn(play, session, "hello", "there")
            reasons = [str(getattr(change, "reason", "")) for _, change in play.between]
            assert "an attempt to connect has taken more than 500 s" in reasons

    run(main(), seconds=10_000)


@pytest.mark.parametrize("way", ["leave", "cancel", "cancel the session", "close the session", "close the keeper"])
def test_a_turn_that_waits_for_the_connection_can_be_ended(acp: ModuleType, version: int, way: str) -> None:
    """It leaves nothing behind, and a session that was closed is not opened again."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("one")
            reading = asyncio.ensure_future(read(turn))
            await prompted(play.agents[0], "one")
            await play.settled(play.agents[0])
            await play.agents[0].transport.close()
            second = await play.agent(1)
            request = await play.reopening(second, "resume")
            if way == "leave":
                reading.cancel()
            elif way == "cancel":
                await turn.cancel()
            elif way == "cancel the session":
                await session.cancel()
            elif way == "close the session":
                await session.close()
            else:
                await play.keeper.__aexit__(None, None, None)
            found = await asyncio.gather(reading, return_exceptions=True)
            if way == "leave":
                assert isinstance(found[0], asyncio.CancelledError)
            elif way.startswith("cancel"):
                assert turn.result.stop_reason == "cancelled"
            else:
                assert isinstance(turn_error := found[0][1], play.helpers.TurnInterruptedError)
                assert str(turn_error.outcome.error).endswith("was closed")
            if way in ("leave", "cancel", "cancel the session"):
                await second.answer(request)
                await ended_turn(play, session, "two", "2")
            elif way == "close the session":
                await second.answer(request)
                await second.answer(await second.receive("session/close"))
                await play.settled(second)
                assert play.keeper.client.sessions == {}
                await second.transport.close()
                third = await play.agent(2)
                await play.settled(third)
                assert third.read == []

    run(main())


def test_the_end_of_the_block_ends_turns_as_without_a_keeper(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await prompted(play.agents[0], "one")
        _, error = await reading
        assert type(error) is acp.ConnectionClosed

    run(main())


def test_the_first_failure_is_raised(one: ModuleType) -> None:
    """A wrong name of a program, or a wrong token, is none to try again."""

    async def main() -> None:
        play = Play(one, 1, {})
        for failure in (FileNotFoundError("no program"), one.ConnectionClosed("refused"), KeyError("x")):
            play.failures.append(failure)
            keeper = play.helpers.SessionKeeper(play.connect, play.start)
            with pytest.raises(type(failure)) as caught:
                await keeper.__aenter__()
            assert caught.value is failure
            with pytest.raises(RuntimeError):
                await keeper.open("/work")
        assert play.agents == []

    run(main())


def test_a_handler_that_fails_does_not_stop_the_recovery(one: ModuleType) -> None:
    failing: list[bool] = []

    def session_changed(self: Any, session: Any, change: Any) -> None:
        if failing:
            raise KeyError("a mistake")

    async def main() -> None:
        async with playing(one, 1, session_changed=session_changed) as play:
            session = await play.opened()
            failing.append(True)
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"))
            await ended_turn(play, session, "still", "here")

    with acp_log() as log:
        run(main())
    assert "`session_changed` has failed" in texts(log)


def test_many_sessions_share_one_connection(acp: ModuleType, version: int) -> None:
    """Each has the events of its own, and no prompt goes to another one."""

    async def main() -> None:
        async with playing(acp, version) as play:
            sessions = [await play.opened(f"s{number}") for number in range(20)]
            reading = [asyncio.ensure_future(read(each.prompt(each.id))) for each in sessions[::2]]
            for _ in reading:
                await play.agents[0].receive("session/prompt")
            await play.agents[0].transport.close()
            second = await play.agent(1)
            opened = [await second.receive("session/resume")]
            await second.answer(opened[0])
            while len(opened) < len(sessions):
                opened.append(await second.receive("session/resume"))
                await second.answer(opened[-1])
            assert [each["params"]["sessionId"] for each in opened] == [each.id for each in sessions]
            for session, found in zip(sessions[::2], await asyncio.gather(*reading), strict=True):
                assert play.names(found[0]) == BACK
                assert [block.text for block in found[1].prompt.prompt] == [session.id]
            between = [(session.id, type(change).__name__) for session, change in play.between]
            for session in sessions[1::2]:
                assert [name for key, name in between if key == session.id and name in BACK] == BACK

    run(main())


@pytest.mark.parametrize(
    ("name", "value"),
    [("attempts", 0), ("crashes", 0), ("growth", 0.5), ("first_seconds", -1.0), ("prefer", "fork"), ("growth", "fast")],
)
def test_a_policy_that_makes_no_sense_is_refused(one: ModuleType, name: str, value: Any) -> None:
    helpers = Play(one, 1, {}).helpers
    kind = TypeError if isinstance(value, str) and name != "prefer" else ValueError
    with pytest.raises(kind, match=name):
        helpers.RecoveryPolicy(**{**QUICK, name: value})


def test_what_cannot_be_kept_is_refused(one: ModuleType) -> None:
    """A session of another client, and what is no way to connect."""

    async def main() -> None:
        async with playing(one, 1) as play:
            helpers = play.helpers
            with pytest.raises(TypeError, match="a session of a `KeptClient`"):
                play.keeper.keep(helpers.SessionClient(play.keeper.client.agent).new_session("s", "/"))
            with pytest.raises(TypeError, match="`connect` is a function"):
                helpers.SessionKeeper(play.connect(), play.start)
            with pytest.raises(TypeError, match="`policy` is a RecoveryPolicy"):
                helpers.SessionKeeper(play.connect, play.start, policy={})
            with pytest.raises(RuntimeError, match="make another one"):
                await play.keeper.__aenter__()

    run(main())
