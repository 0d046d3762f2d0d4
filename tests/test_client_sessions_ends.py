"""How turns of a client end when two things happen at once: each ends once, in bounded time, and leaves nothing."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import stage, until
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
YES = {"outcome": {"outcome": "selected", "optionId": "yes"}}
CANCELLED = {"outcome": {"outcome": "cancelled"}}


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


async def _answer(agent: Any, number: str) -> Any:
    """The result that answers a request of the agent."""
    while (message := await agent.receive()).get("id") != number or "method" in message:
        agent.read.append(message)
    return message["result"]


def test_a_turn_that_is_left_at_once_is_cancelled_after_its_prompt(acp: ModuleType, version: int) -> None:
    """`session/cancel` never comes before the prompt that it is about: it would cancel nothing."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()

            async def use() -> Any:
                async with session.prompt("Hi") as turn:
                    pass
                return turn

            using = asyncio.ensure_future(use())
            request = await play.agent.prompted()
            assert play.agent.read == []
            await play.agent.receive("session/cancel")
            await play.agent.end(request, "cancelled")
            assert (await using).result.stop_reason == "cancelled"

    run(main())


def test_a_turn_that_is_cancelled_before_its_prompt_is_sent_ends_its_reader(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")

            async def read() -> list[Any]:
                return [change async for change in turn]

            reading, cancelling = asyncio.ensure_future(read()), asyncio.ensure_future(turn.cancel())
            await asyncio.wait_for(asyncio.gather(reading, cancelling), 5)
            assert turn.result.stop_reason == "cancelled"

    run(main())


def test_a_turn_that_is_cancelled_before_it_is_used_is_not_sent(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            await turn.cancel()
            assert (await asyncio.wait_for(asyncio.ensure_future(turn), 5)).stop_reason == "cancelled"
            await play.barrier()
            assert [each["method"] for each in play.agent.read if "method" in each] == []

    run(main())


def test_a_task_that_is_cancelled_twice_still_abandons_the_turn(acp: ModuleType, version: int) -> None:
    """The second one comes while the first waits for a deaf agent: the next prompt does not wait for ever."""

    async def main() -> None:
        async with stage(acp, version, cancel_seconds=0.05) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            asking = asyncio.ensure_future(turn)
            await play.agent.prompted()
            asking.cancel()
            await play.agent.receive("session/cancel")
            asking.cancel()
            await asyncio.wait({asking})
            following = asyncio.ensure_future(session.ask("next"))
            request = await asyncio.wait_for(play.agent.prompted(), 5)
            await play.agent.end(request)
            await following
            await asyncio.wait_for(until(lambda: turn.has_ended), 5)

    run(main())


def test_a_slow_reader_waits_for_the_end_of_its_turn(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, max_pending=3) as play:
            session = await play.opened()
            await session_overflows(play, session)

    async def session_overflows(play: Any, session: Any) -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def use() -> None:
            async with session.prompt("Hi"):
                entered.set()
                await leave.wait()

        using = asyncio.ensure_future(use())
        await entered.wait()
        request = await play.agent.prompted()
        for number in range(5):
            await play.agent.say("x", message=f"m{number}")
        await play.agent.receive("session/cancel")
        leave.set()
        for _ in range(50):
            await asyncio.sleep(0)
        assert not using.done(), "the block was left before the turn has ended"
        await play.agent.end(request, "cancelled")
        await using
        assert not session.has_turns

    run(main())


def test_an_answer_that_comes_with_the_cancellation_is_cancelled(one: ModuleType) -> None:
    """The user answers in the moment of `session/cancel`, or the dialog does not let itself be closed."""

    async def main(*, is_deaf: bool) -> None:
        opened, answered = asyncio.Event(), asyncio.Event()

        async def answer_permission(self: Any, session: Any, request: Any) -> Any:
            opened.set()
            try:
                await answered.wait()
            except asyncio.CancelledError:
                if not is_deaf:
                    raise
            return play.helpers.select_permission_option("yes")

        async with stage(one, 1, answer_permission=answer_permission) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            async with turn:
                request = await play.agent.prompted()
                await play.agent.ask("q")
                await opened.wait()
                if not is_deaf:
                    answered.set()
                    await asyncio.sleep(0)  # the answer is there, but not sent
                await turn.cancel()
                assert await _answer(play.agent, "q") == CANCELLED
                await play.agent.end(request, "cancelled")

    run(main(is_deaf=True))
    run(main(is_deaf=False))


def test_loading_that_fails_leaves_the_open_session_open(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                loading = asyncio.ensure_future(play.client.resume("s", "/work"))
                await play.agent.answer(await play.agent.receive("session/resume"), code=-32602, message="no")
                with pytest.raises(play.acp.RequestError):
                    await loading
                assert play.client.sessions["s"] is session
                await play.agent.end(request)
                await asyncio.wait_for(until(lambda: turn.has_ended), 5)
            assert turn.result.stop_reason == "end_turn"

    run(main())


def test_questions_of_a_closed_session_are_cancelled(acp: ModuleType, version: int) -> None:
    """They can be under way: the agent has asked before it has read that it is to close."""

    async def main() -> None:
        asked = list[Any]()

        async def answer_permission(self: Any, session: Any, request: Any) -> Any:
            asked.append(request)
            return play.helpers.select_permission_option("yes")

        async with stage(acp, version, answer_permission=answer_permission) as play:
            session = await play.opened()
            closing = asyncio.ensure_future(session.close())
            request = await play.agent.receive("session/close")
            await play.agent.ask("q")
            assert await _answer(play.agent, "q") == CANCELLED
            await play.agent.answer(request)
            await closing
            assert asked == []

    run(main())


def test_a_connection_that_dies_before_the_answer_leaves_no_complaint(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            await play.agent.receive("session/prompt")
            await play.agent.transport.close()
            with pytest.raises(play.acp.ConnectionClosed):
                await asking

    run(main())
