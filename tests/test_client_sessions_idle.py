"""Turns with `idle_seconds`: one whose agent says nothing more is cancelled, and ends with an error of its own."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import stage
from tests.runtime_support import V1, V2, acp_log, pass_time, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
LIMIT = 30.0
"""Longer than any test takes: only `pass_time` reaches it."""


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,))


def run_jumping(main: Any) -> None:
    """Run `main`, which lets the clock jump: its limit is longer by that."""
    run(main, seconds=40 * LIMIT)


async def idle(seconds: float) -> None:
    """Let so much time pass, and all that is due happen."""
    pass_time(seconds)
    for _ in range(50):
        await asyncio.sleep(0)


async def ended(play: Any, request: Any, waiting: Any) -> Any:
    """The error of a turn that has stalled, after the agent was asked to cancel it and has ended it."""
    await play.agent.receive("session/cancel")
    await play.agent.end(request, "cancelled")
    with pytest.raises(play.helpers.TurnStalledError) as caught:
        await waiting
    return caught.value


def test_a_turn_that_stalls_is_cancelled(acp: ModuleType, version: int) -> None:
    """What was said before is read first."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi", idle_seconds=LIMIT)
            found = list[Any]()

            async def read() -> None:
                async for change in turn:
                    found.append(change)

            reading = asyncio.ensure_future(read())
            request = await play.agent.prompted()
            await play.agent.say("Hel")
            await play.barrier()
            await idle(LIMIT + 1)
            assert turn.is_cancelled
            error = await ended(play, request, reading)
            assert str(error) == "the agent has been idle for 30 s: the turn was cancelled"
            assert found[-1].text == "Hel"
            assert turn.has_ended
            with pytest.raises(play.helpers.TurnStalledError):
                _ = turn.result
            following = asyncio.ensure_future(session.ask("And now?", idle_seconds=LIMIT))
            await play.agent.end(await play.agent.prompted())
            assert await following == ""
            assert play.agent.read == []  # one cancellation alone

    run_jumping(main())


def test_an_agent_that_does_not_stop_is_given_up(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, cancel_seconds=0.01) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            await play.agent.prompted()
            await play.barrier()
            await idle(LIMIT + 1)
            with pytest.raises(play.helpers.TurnStalledError):
                await asking
            await play.agent.receive("session/cancel")
            assert not session.has_turns

    run_jumping(main())


def test_any_update_of_the_session_is_life(acp: ModuleType, version: int) -> None:
    """Also one that changes nothing; one of another session is not. The timer is not moved by any."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session, _ = await play.opened(), await play.opened("other")
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            for _ in range(5):
                await play.agent.update("current_mode_update", currentModeId="a")
                await play.barrier()
                await idle(0.9 * LIMIT)
            assert play.agent.read == []
            assert not asking.done()
            await play.agent.say("x", "other")
            await idle(0.2 * LIMIT)  # without a barrier, which is a request, and so life
            await ended(play, request, asking)

    run_jumping(main())


def test_updates_make_no_timers(acp: ModuleType, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.barrier()
            loop, made = asyncio.get_running_loop(), list[Any]()
            call_later = loop.call_later
            monkeypatch.setattr(
                loop, "call_later", lambda *args, **more: made.append(args) or call_later(*args, **more)
            )
            for _ in range(200):
                await play.agent.say("x")
            await play.agent.end(request)
            assert await asking == "x" * 200
            assert made == []

    run_jumping(main())


@pytest.mark.parametrize("question", ["permission", "an unknown request", "one of no session"])
def test_an_open_request_is_no_silence(acp: ModuleType, version: int, question: str) -> None:
    """The user may take any time; after the answer, the whole time begins."""

    async def main() -> None:
        is_open, may_answer = asyncio.Event(), asyncio.Event()

        async def answer(self: Any, *_: Any) -> Any:
            is_open.set()
            await may_answer.wait()
            return play.helpers.select_permission_option("yes") if question == "permission" else {}

        async with stage(acp, version, answer_permission=answer, ext_method=answer) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            if question == "permission":
                await play.agent.ask("q")
            else:
                params = {"sessionId": "s"} if question == "an unknown request" else {}
                await play.agent.send(id="q", method="_run", params=params)
            await is_open.wait()
            for _ in range(3):
                await idle(1.5 * LIMIT)
            assert not asking.done()
            may_answer.set()
            while (await play.agent.receive()).get("id") != "q":
                pass
            if question == "permission":  # the call goes on until its end
                await idle(1.5 * LIMIT)
                assert not asking.done()
                await play.agent.tool("completed")
                await play.barrier()
            await idle(0.9 * LIMIT)
            assert play.agent.read == []
            assert not asking.done()
            await idle(0.2 * LIMIT)
            await ended(play, request, asking)

    run_jumping(main())


@pytest.mark.parametrize("status", ["pending", "in_progress"])
def test_a_tool_call_without_an_end_is_no_silence(acp: ModuleType, version: int, status: str) -> None:
    """Agents run commands that say nothing, and some leave the call at `pending` until then. Its end is life."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Build it", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.agent.tool("pending")
            await play.agent.tool(status)
            await play.barrier()
            for _ in range(5):
                await idle(1.5 * LIMIT)
            assert not asking.done()
            await play.agent.tool("completed")
            await play.agent.tool("completed", "other")
            await play.barrier()
            await idle(0.9 * LIMIT)
            assert play.agent.read == []
            assert not asking.done()
            await idle(0.2 * LIMIT)
            error = await ended(play, request, asking)
            assert str(error) == "the agent has been idle for 30 s: the turn was cancelled"

    run_jumping(main())


@pytest.mark.parametrize("seconds", [3 * LIMIT, LIMIT / 2, None])
def test_silence_during_a_tool_call_has_a_limit_of_its_own(
    acp: ModuleType, version: int, seconds: float | None
) -> None:
    """Which is at least that of the turn; what the agent says begins it anew."""

    async def main() -> None:
        async with stage(acp, version, call_seconds=seconds) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Build it", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.agent.tool("pending")
            await play.barrier()
            limit = 30 * LIMIT if seconds is None else max(LIMIT, seconds)
            await idle(0.9 * limit)
            await play.agent.say("still at it")
            await play.barrier()
            await idle(0.9 * limit)
            assert not asking.done()
            assert play.agent.read == []
            await idle(0.2 * limit)
            if seconds is None:
                await play.agent.end(request)
                assert await asking == "still at it"
            else:
                error = await ended(play, request, asking)
                assert str(error) == f"the agent has been idle for {limit:g} s: the turn was cancelled"

    run(main(), seconds=400 * LIMIT)


def test_a_call_of_an_earlier_turn_does_not_count(acp: ModuleType, version: int) -> None:
    """Some calls get no end: codex tells none of a command that it goes on with."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Run it", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.agent.tool("in_progress")
            await play.agent.end(request)
            await asking
            asking = asyncio.ensure_future(session.ask("And now?", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.barrier()
            await idle(1.1 * LIMIT)
            await ended(play, request, asking)

    run_jumping(main())


def test_a_call_counts_for_all_turns_of_its_time(packages: Packages) -> None:
    """In protocol 2 a prompt that waits is sent, perhaps after the call has begun."""

    async def main() -> None:
        async with stage(packages(V2, roles=(Role.CLIENT,)), 2) as play:
            session = await play.opened()
            first = asyncio.ensure_future(session.ask("one"))
            await play.agent.prompted()
            await play.agent.tool("in_progress")
            await play.barrier()
            second = asyncio.ensure_future(session.ask("two", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.barrier()
            await idle(1.1 * LIMIT)
            assert not second.done()
            await play.agent.end(request)
            await asyncio.gather(first, second)

    run_jumping(main())


@pytest.mark.parametrize("names_session", [True, False])
def test_a_request_from_before_the_prompt_is_no_silence(acp: ModuleType, version: int, names_session: bool) -> None:
    """Also one that was opened before the session was: the agent may ask first, and answer `session/new` then."""

    async def main() -> None:
        is_open, may_answer = asyncio.Event(), asyncio.Event()

        async def answer(self: Any, *_: Any) -> Any:
            is_open.set()
            await may_answer.wait()
            return {}

        async with stage(acp, version, ext_method=answer) as play:
            await play.agent.send(id="q", method="_run", params={"sessionId": "s"} if names_session else {})
            await is_open.wait()
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            for _ in range(3):
                await idle(1.5 * LIMIT)
            assert not asking.done()
            may_answer.set()
            assert (await play.agent.receive())["id"] == "q"
            await idle(0.9 * LIMIT)
            assert not asking.done()
            await idle(0.2 * LIMIT)
            await ended(play, request, asking)

    run_jumping(main())


def test_a_handler_that_is_no_coroutine_function_is_explained(acp: ModuleType, version: int) -> None:
    def ext_method(self: Any, *_: Any) -> Any:
        return {}

    async def main() -> None:
        async with stage(acp, version, ext_method=ext_method) as play:
            await play.agent.send(id="q", method="_run", params={})
            assert (await play.agent.receive())["error"]["code"] == -32603

    with acp_log() as records:
        run(main())
    assert "write `async def ext_method(" in texts(records)


def test_a_request_of_another_session_is_silence(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async def answer(self: Any, *_: Any) -> Any:
            await asyncio.Event().wait()

        async with stage(acp, version, answer_permission=answer) as play:
            session, _ = await play.opened(), await play.opened("other")
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            request = await play.agent.prompted()
            await play.agent.ask("q", "other")
            await play.barrier()
            await idle(LIMIT + 1)
            await ended(play, request, asking)

    run_jumping(main())


def test_a_turn_that_waits_for_another_is_not_idle(acp: ModuleType, version: int) -> None:
    """In protocol 1 it is not sent before; in protocol 2 what the agent says about the first is life for both."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            first = asyncio.ensure_future(session.ask("one"))
            request = await play.agent.prompted()
            second = asyncio.ensure_future(session.ask("two", idle_seconds=LIMIT))
            if version == 2:
                other = await play.agent.receive("session/prompt")
                await play.agent.answer(other, {"messageId": "u2"})
            for _ in range(3):
                await play.agent.say("x")
                await play.barrier()
                await idle(0.9 * LIMIT)
            assert not second.done()
            await play.agent.end(request)
            await first
            if version == 1:
                other = await play.agent.prompted()
            else:
                await play.agent.insert("u2")
            await play.barrier()
            await idle(LIMIT + 1)
            await ended(play, other, second)

    run_jumping(main())


def test_several_turns_that_stall_each_end(packages: Packages) -> None:
    """Protocol 2 has several at once."""

    async def main() -> None:
        async with stage(packages(V2, roles=(Role.CLIENT,)), 2) as play:
            session = await play.opened()
            limits = (LIMIT, 2 * LIMIT, None)
            asking = [asyncio.ensure_future(session.ask("Hi", idle_seconds=each)) for each in limits]
            for _ in limits:
                await play.agent.prompted()
            await play.barrier()
            await idle(1.1 * LIMIT)
            await play.agent.state("idle", stopReason="cancelled")
            outcomes = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(each).__name__ for each in outcomes] == ["TurnStalledError", "NoAnswerError", "NoAnswerError"]

    run_jumping(main())


def test_the_end_of_a_turn_comes_before_the_limit(acp: ModuleType, version: int) -> None:
    """What has arrived in the same turn of the loop counts; nothing is cancelled afterwards, and nothing is left."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            for rounds in range(12):
                asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
                request = await play.agent.prompted()
                await play.barrier()
                await play.agent.end(request)
                for _ in range(rounds):
                    await asyncio.sleep(0)
                await idle(LIMIT + 1)
                try:
                    assert await asyncio.wait_for(asking, 20 * LIMIT) == ""
                except play.helpers.TurnStalledError:
                    assert rounds < 5  # the limit was reached before the end was read
                assert not session.has_turns
            await idle(3 * LIMIT)
            await play.barrier()
            cancels = [each for each in play.agent.read if each.get("method") == "session/cancel"]
            assert len(cancels) <= 5

    run_jumping(main())


def test_a_turn_that_was_left_keeps_its_result(acp: ModuleType, version: int) -> None:
    """`cancel_seconds` is the limit of what was left."""

    async def main() -> None:
        async with stage(acp, version, cancel_seconds=5 * LIMIT) as play:
            session = await play.opened()
            turn = session.prompt("Hi", idle_seconds=LIMIT)
            leaving = asyncio.ensure_future(_leave(turn))
            request = await play.agent.prompted()
            await play.agent.receive("session/cancel")
            await idle(2 * LIMIT)
            await play.agent.end(request, "cancelled")
            await leaving
            assert turn.result.stop_reason == "cancelled"

    run_jumping(main())


async def _leave(turn: Any) -> None:
    async with turn:
        pass


def test_a_turn_that_was_cancelled_may_stall(acp: ModuleType, version: int) -> None:
    """Reading on, after `cancel`: the agent is asked once, and then given up."""

    async def main() -> None:
        async with stage(acp, version, cancel_seconds=0.01) as play:
            session = await play.opened()
            turn = session.prompt("Hi", idle_seconds=LIMIT)
            async with turn:
                await play.agent.prompted()
                await turn.cancel()
                await play.agent.receive("session/cancel")
                await play.barrier()
                await idle(LIMIT + 1)
                with pytest.raises(play.helpers.TurnStalledError):
                    await turn
            await play.barrier()
            assert [each for each in play.agent.read if each.get("method") == "session/cancel"] == []

    run_jumping(main())


def test_the_end_of_the_connection_is_no_stall(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi", idle_seconds=LIMIT))
            await play.agent.prompted()
            await play.agent.transport.close()
            with pytest.raises(acp.ConnectionClosed):
                await asking
            await idle(LIMIT + 1)

    run_jumping(main())


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_limit_is_above_zero(acp: ModuleType, version: int, seconds: float) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            with pytest.raises(ValueError, match="idle_seconds must be above 0"):
                session.prompt("Hi", idle_seconds=seconds)

    run_jumping(main())


def test_files_and_commands_are_no_silence(packages: Packages) -> None:
    """Requests of protocol 1 that other parts answer; what is advertised does not change."""
    acp = packages(V1, roles=(Role.CLIENT,))

    async def main() -> None:
        is_open, may_answer = asyncio.Event(), asyncio.Event()

        async def terminal_wait_for_exit(self: Any, params: Any) -> Any:
            is_open.set()
            await may_answer.wait()
            return acp.WaitForTerminalExitResponse(exit_code=0)

        async with stage(acp, 1, terminal_wait_for_exit=terminal_wait_for_exit) as play:
            session = await play.opened()
            before = acp.advertise(play.client, acp.InitializeRequest(protocol_version=1))
            asking = asyncio.ensure_future(session.ask("Run it", idle_seconds=LIMIT))
            assert acp.advertise(play.client, acp.InitializeRequest(protocol_version=1)) == before
            request = await play.agent.prompted()
            params = {"sessionId": "s", "terminalId": "t"}
            await play.agent.send(id="w", method="terminal/wait_for_exit", params=params)
            await is_open.wait()
            await idle(3 * LIMIT)
            may_answer.set()
            assert (await play.agent.receive())["result"] == {"exitCode": 0}
            await idle(0.9 * LIMIT)
            assert not asking.done()
            await play.agent.end(request)
            assert await asking == ""

    run_jumping(main())
