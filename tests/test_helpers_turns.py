"""`Turns`: the work for prompts, and what may come between."""

from __future__ import annotations

import asyncio
import logging
from itertools import chain
from typing import Any

import pytest

from tests.runtime_support import OLD, V2, RawPeer, acp_log, example_of, raw_peer, run, started, texts
from tests.support import Packages
from tests.turns_support import PROTOCOLS, Talk, helpers_of, is_v1, talk, told, turns_agent

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


async def for_ever(agent: Any, params: Any) -> None:
    await agent.tell(params.session_id, "begun")
    await asyncio.Event().wait()


def last_of(acp: Any, number: int, end: str) -> str:
    """The last message of a turn."""
    return told(acp, number, end)[-1]


def test_the_example_of_the_docstring(acp: Any) -> None:
    """Each of its methods is used, and the work ends with the connection."""
    ended: list[str] = []

    class Agent(example_of(helpers_of(acp).Turns, acp, acp.Agent)):  # type: ignore[misc]
        async def _work(self, params: Any) -> None:
            if params.prompt[0].text == "wait":
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.append(params.session_id)

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

    async def main() -> list[str]:
        async with raw_peer(acp, Agent) as peer:
            client = Talk(peer)
            await client.prompt(1)
            found = await client.until(last_of(acp, 1, "end_turn"))
            await client.prompt(2, "wait")
            await client.rest()
            await client.cancel()
            found += await client.until(last_of(acp, 2, "cancelled"))
            await client.close(3)
            found += await client.until("3: ok")
            await client.prompt(4, "wait", session="other")
            await client.rest()
            assert ended == ["s"]
        assert ended == ["s", "other"]
        return found

    with acp_log(logging.WARNING) as records:
        assert run(main()) == [*told(acp, 1, "end_turn"), last_of(acp, 2, "cancelled"), "3: ok"]
    assert texts(records) == ""


@pytest.mark.parametrize("end", [None, "end_turn", "max_tokens", "max_turn_requests", "refusal"])
def test_the_work_ends_the_turn(acp: Any, end: str | None) -> None:
    async def work(agent: Any, params: Any) -> Any:
        await agent.tell(params.session_id, params.prompt[0].text)
        return end

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return [*await client.until(last_of(acp, 1, reason)), *await client.rest()]

    reason = end or "end_turn"
    assert run(main()) == told(acp, 1, reason, "hello")


def test_the_oldest_release_has_it_too(packages: Packages) -> None:
    acp = packages(OLD)

    async def main() -> list[str]:
        async with talk(acp, for_ever) as client:
            await client.prompt(1)
            await client.cancel()
            return await client.until("1: cancelled")

    assert run(main()) == ["1: cancelled"]


def test_the_work_may_return_all_of_its_end(acp: Any) -> None:
    async def work(agent: Any, params: Any) -> Any:
        if is_v1(acp):
            return acp.PromptResponse(stop_reason="refusal", meta={"a": 1})
        return acp.SessionUpdateStateUpdateIdleOther(stop_reason="_busy", meta={"a": 1})

    async def main() -> Any:
        async with talk(acp, work) as client:
            await client.prompt(1)
            while True:
                message = await client.peer.receive()
                if is_v1(acp):
                    return message["result"]
                if message.get("params", {}).get("update", {}).get("state") == "idle":
                    return message["params"]["update"]

    end = run(main())
    assert (end["stopReason"], end["_meta"]) == ("refusal" if is_v1(acp) else "_busy", {"a": 1})


def test_a_stop_reason_of_ones_own(acp: Any) -> None:
    async def work(agent: Any, params: Any) -> str:
        return "_tired"

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until(last_of(acp, 1, "_tired"))

    assert run(main()) == told(acp, 1, "_tired")


def test_a_cancel_in_the_same_read_as_the_prompt(acp: Any) -> None:
    """The work has not begun, and never does: what was passed in is closed."""
    begun: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        begun.append(params.session_id)

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.cancel()
            return [*await client.until(last_of(acp, 1, "cancelled")), *await client.rest()]

    assert run(main()) == told(acp, 1, "cancelled")
    assert begun == []


def test_a_cancel_lets_the_work_clean_up_once(acp: Any) -> None:
    cleaning, go_on = asyncio.Event(), asyncio.Event()

    async def work(agent: Any, params: Any) -> None:
        try:
            await for_ever(agent, params)
        finally:
            cleaning.set()
            await go_on.wait()
            await agent.tell(params.session_id, "cleaned up")

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            found = await client.until("begun")
            await client.cancel()
            await cleaning.wait()
            await client.cancel()
            found += await client.rest()
            await client.cancel()
            go_on.set()
            return found + await client.until(last_of(acp, 1, "cancelled"))

    assert run(main()) == told(acp, 1, "cancelled", "begun", "cleaned up")


@pytest.mark.parametrize("session", ["s", "unknown"])
def test_a_cancel_without_a_turn_changes_nothing(acp: Any, session: str) -> None:
    async def work(agent: Any, params: Any) -> None:
        pass

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.cancel(session)
            await client.prompt(1)
            await client.until(last_of(acp, 1, "end_turn"))
            await client.cancel(session)
            await client.cancel(session)
            await client.prompt(2)
            return [*await client.until(last_of(acp, 2, "end_turn")), *await client.rest()]

    assert run(main()) == told(acp, 2, "end_turn")


@pytest.mark.parametrize("ends_by", ["returning", "waiting"])
def test_work_that_ends_by_itself_as_the_cancel_arrives(acp: Any, ends_by: str) -> None:
    """A client that has cancelled a turn waits for `cancelled`."""

    async def work(agent: Any, params: Any) -> str:
        agent.turns.cancel(params.session_id)
        if ends_by == "waiting":
            await agent.tell(params.session_id, "told all the same")
            await asyncio.Event().wait()
        return "max_tokens"

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until(last_of(acp, 1, "cancelled"))
            await client.prompt(2)
            return [*await client.until(last_of(acp, 2, "cancelled")), *await client.rest()]

    told_by_work = ["told all the same"] if ends_by == "waiting" else []
    assert run(main()) == told(acp, 2, "cancelled", *told_by_work)


@pytest.mark.parametrize("reaction", ["raises", "returns"])
def test_how_cancelled_work_ends_makes_no_difference(acp: Any, reaction: str) -> None:
    async def work(agent: Any, params: Any) -> str:
        try:
            await for_ever(agent, params)
        except asyncio.CancelledError:
            if reaction == "raises":
                raise ValueError("aborted") from None
        return "end_turn"

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            found = await client.until("begun")
            await client.cancel()
            return found + await client.until(last_of(acp, 1, "cancelled"))

    with acp_log(logging.WARNING) as records:
        assert run(main()) == told(acp, 1, "cancelled", "begun")
    assert texts(records) == ""


@pytest.mark.parametrize("kind", ["own", "other"])
def test_work_that_fails(acp: Any, kind: str) -> None:
    """A `RequestError` is for the client; other exceptions are logged."""

    async def work(agent: Any, params: Any) -> None:
        raise acp.InvalidParamsError("no images", data=[1]) if kind == "own" else ValueError("private")

    async def main() -> Any:
        async with talk(acp, work) as client:
            await client.prompt(1)
            while True:
                message = await client.peer.receive()
                if "error" in message:
                    return message["error"]
                if message.get("params", {}).get("update", {}).get("stopReason") == "error":
                    return message["params"]["update"]["error"]

    with acp_log() as records:
        error = run(main())
    if kind == "own":
        assert error == {"code": -32602, "message": "Invalid params: no images", "data": [1]}
        assert texts(records) == ""
    else:
        assert error == {"code": -32603, "message": "Internal error"}
        assert "ValueError: private" in texts(records)


def test_a_second_prompt_waits_for_the_first(acp: Any) -> None:
    running: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        running.append(params.prompt[0].text)
        assert len(running) == 1
        for _ in range(3):
            await agent.tell(params.session_id, params.prompt[0].text)
            await asyncio.sleep(0)
        running.clear()

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            for number in (1, 2, 3):
                await client.prompt(number, f"prompt {number}")
            found = await client.until(*(last_of(acp, number, "end_turn") for number in (1, 2, 3)))
            return [*found, *await client.rest()]

    expected = [told(acp, number, "end_turn", *[f"prompt {number}"] * 3) for number in (1, 2, 3)]
    assert run(main()) == [*chain(*expected)]


def test_sessions_do_not_wait_for_each_other(acp: Any) -> None:
    async def work(agent: Any, params: Any) -> None:
        if params.session_id == "s":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2, session="other")
            await client.cancel("other")
            await client.prompt(3, session="other")
            return [*await client.until(last_of(acp, 3, "end_turn")), *await client.rest()]

    assert run(main()) == [*told(acp, 2, "cancelled"), *told(acp, 3, "end_turn")]


def test_a_cancel_is_for_all_prompts_before_it(acp: Any) -> None:
    """The one that runs, the one that waits, and not the one that follows in the same read."""

    async def work(agent: Any, params: Any) -> None:
        if params.prompt[0].text != "last":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.cancel()
            await client.prompt(3, "last")
            return [*await client.until(last_of(acp, 3, "end_turn")), *await client.rest()]

    first, second = ("1: cancelled", "2: cancelled") if is_v1(acp) else ("idle cancelled", "2: -32800")
    assert sorted(run(main())) == sorted([first, second, *told(acp, 3, "end_turn")])


def test_a_request_that_waits_is_cancelled(acp: Any) -> None:
    async def work(agent: Any, params: Any) -> None:
        if params.prompt[0].text != "last":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.cancel_request(2)
            assert await client.until("2: -32800") == ["2: -32800"]
            await client.cancel()
            await client.until(last_of(acp, 1, "cancelled"))
            await client.prompt(3, "last")
            return [*await client.until(last_of(acp, 3, "end_turn")), *await client.rest()]

    assert run(main()) == told(acp, 3, "end_turn")


def test_a_request_that_runs_is_cancelled(acp: Any) -> None:
    """In protocol 2 it is answered already, so this changes nothing."""
    end = "1: -32800" if is_v1(acp) else "idle cancelled"

    async def main() -> list[str]:
        async with talk(acp, for_ever) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.cancel_request(1)
            found = await client.rest()
            await client.cancel()
            await client.cancel_request(1)
            return [*found, *(await client.until(end) if not is_v1(acp) else await client.rest())]

    assert run(main()) == [end]


def test_a_session_is_closed_when_its_turns_have_ended(acp: Any) -> None:
    """Also the prompt that comes while the work cleans up is cancelled."""
    go_on = asyncio.Event()

    async def work(agent: Any, params: Any) -> None:
        try:
            await for_ever(agent, params)
        finally:
            await go_on.wait()

    async def main() -> tuple[list[str], list[str]]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.close(3)
            before = await client.rest()
            await client.prompt(4)
            before += await client.rest()
            await client.close(5)
            assert await client.rest() == []
            go_on.set()
            after = await client.until("3: ok", "5: ok")
            assert not client.peer.handler.turns.has_turns("s")
            return before, after

    end = "cancelled" if is_v1(acp) else "-32800"
    assert run(main()) == ([f"2: {end}", f"4: {end}"], [last_of(acp, 1, "cancelled"), "3: ok", "5: ok"])


def test_a_session_without_a_turn_is_closed_at_once(acp: Any) -> None:
    async def main() -> list[str]:
        async with talk(acp, for_ever) as client:
            await client.close(1)
            await client.close(2, "unknown")
            return await client.until("1: ok", "2: ok")

    assert run(main()) == ["1: ok", "2: ok"]


def test_work_may_close_its_own_session(acp: Any) -> None:
    async def work(agent: Any, params: Any) -> None:
        await agent.turns.close(params.session_id)

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until(last_of(acp, 1, "cancelled"))

    assert run(main()) == told(acp, 1, "cancelled")


@pytest.mark.parametrize("room", [1, 2, 3, 1_000])
@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "running"])
@pytest.mark.parametrize("ends", ["agent", "client"])
def test_no_task_outlives_the_connection(acp: Any, room: int, is_cancelled: bool, ends: str) -> None:
    """The client reads nothing, so the agent waits with one message or another. `run` fails if a task is left."""
    working: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        working.append("works")
        try:
            await for_ever(agent, params)
        finally:
            working.pop()
            await agent.tell(params.session_id, "cleaned up")

    async def main() -> None:
        async with talk(acp, work, max_messages=room) as client:
            for number in (1, 2):
                await client.prompt(number)
            if is_cancelled:
                await client.cancel()
            await client.prompt(3)
            if ends == "agent":
                await client.peer.connection.close()

    with acp_log(logging.WARNING) as records:
        run(main())
    assert working == []
    assert texts(records) == ""


def test_a_cancel_reaches_work_that_streams_without_waiting(acp: Any) -> None:
    sent: list[int] = []

    async def work(agent: Any, params: Any) -> None:
        for number in range(500):
            await agent.tell(params.session_id, f"chunk {number}")
            sent.append(number)

    async def main() -> None:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await client.until("chunk 0")
            await client.cancel()
            await client.until(last_of(acp, 1, "cancelled"))

    run(main())
    assert len(sent) < 250


@pytest.mark.parametrize("how", ["awaits a cancelled task", "cancels its own task"])
def test_work_that_cancels_itself_fails(acp: Any, how: str) -> None:
    async def work(agent: Any, params: Any) -> None:
        if how == "cancels its own task":
            current = asyncio.current_task()
            assert current is not None
            current.cancel()
            await asyncio.sleep(0)
        other = asyncio.ensure_future(asyncio.Event().wait())
        other.cancel()
        await other

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until("1: -32603" if is_v1(acp) else "idle error")

    with acp_log() as records:
        assert run(main()) == (["1: -32603"] if is_v1(acp) else told(acp, 1, "error"))
    assert "the work on a prompt has cancelled itself" in texts(records)


def test_the_program_ends_while_a_turn_runs(acp: Any) -> None:
    """asyncio cancels all tasks: this is no failure of the work."""
    steps: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        steps.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("ended")

    async def main() -> None:
        near, far = acp.memory_transports()
        connection, handler = started(acp, turns_agent(acp, work), near)
        peer = RawPeer(far, connection, handler, None)
        await Talk(peer).prompt(1)
        await peer.ping()
        await asyncio.sleep(0)

    with acp_log(logging.WARNING) as records:
        asyncio.run(main())
    assert steps == ["begun", "ended"]
    assert "cancelled itself" not in texts(records)
    assert "failed" not in texts(records)


def test_all_turns_can_be_ended_at_any_time(acp: Any) -> None:
    async def main() -> list[str]:
        async with talk(acp, for_ever) as client:
            for number, session in enumerate(("one", "two", "two")):
                await client.prompt(number, session=session)
            await client.rest()
            turns = client.peer.handler.turns
            assert turns.has_turns("two")
            await turns.close_all()
            assert not turns.has_turns("one")
            assert not turns.has_turns("two")
            await turns.close_all()
            return await client.rest()

    ends = ["0: cancelled", "1: cancelled", "2: cancelled"] if is_v1(acp) else ["2: -32800", *["idle cancelled"] * 2]
    assert sorted(run(main())) == sorted(ends)


def test_a_prompt_that_cannot_be_echoed_fails(packages: Packages) -> None:
    """There is no turn, and the next prompt has one."""
    acp = packages(V2)
    begun: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        begun.append(params.session_id)

    async def main() -> list[str]:
        options = acp.ConnectionOptions(max_message_bytes=1_000)
        async with raw_peer(acp, turns_agent(acp, work), options=options) as peer:
            client = Talk(peer)
            await client.prompt(1, "x" * 850)
            found = await client.rest()
            await client.prompt(2)
            return [*found, *await client.until("idle end_turn")]

    with acp_log() as records:
        assert run(main()) == ["1: -32603", *told(acp, 2, "end_turn")]
    assert "MessageTooLarge" in texts(records)
    assert begun == ["s"]


def test_a_turn_that_has_not_started_ends_with_the_others(packages: Packages) -> None:
    """Its task is cancelled before its first line runs; `run` fails if the work is never awaited."""
    acp = packages(V2)

    async def main() -> None:
        async with talk(acp, for_ever) as client:
            agent = client.peer.handler
            params = acp.PromptRequest(session_id="s", prompt=[])
            await agent.turns.run(params, for_ever(agent, params))
            await agent.turns.close_all()
            assert not agent.turns.has_turns("s")

    run(main())


def test_the_state_is_idle_even_if_its_reason_cannot_be_sent(packages: Packages) -> None:
    acp = packages(V2)

    async def work(agent: Any, params: Any) -> None:
        raise acp.InvalidParamsError(data=object())

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until("idle error")

    with acp_log() as records:
        assert run(main()) == told(acp, 1, "error")
    assert "cannot be sent" in texts(records)


@pytest.mark.parametrize("error", [asyncio.CancelledError, "ConnectionClosed"])
def test_the_state_is_idle_after_errors_that_seem_to_be_of_this_connection(packages: Packages, error: Any) -> None:
    """Work may await a task that was cancelled, or use a connection of its own."""
    acp = packages(V2)

    async def work(agent: Any, params: Any) -> None:
        raise acp.ConnectionClosed("another one") if error == "ConnectionClosed" else error

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until("idle error")

    assert run(main()) == told(acp, 1, "error")


def test_the_message_of_the_user_has_the_id_of_the_response(packages: Packages) -> None:
    acp = packages(V2)

    async def work(agent: Any, params: Any) -> None:
        pass

    async def main() -> list[Any]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return [await client.peer.receive() for _ in range(2)]

    message, response = run(main())
    update = message["params"]["update"]
    assert update["messageId"] == response["result"]["messageId"]
    assert update["content"] == [{"type": "text", "text": "hello"}]
