"""`Turns`: the work for prompts, and what may come between."""

from __future__ import annotations

import asyncio
import logging
from itertools import chain
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import OLD, V1, V2, acp_log, run, texts
from tests.support import Packages
from tests.turns_support import PROTOCOLS, talk, told

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", PROTOCOLS.values(), ids=PROTOCOLS.keys())


async def for_ever(agent: Any, params: Any) -> None:
    await agent.tell(params.session_id, "begun")
    await asyncio.Event().wait()


def last_of(sources: SchemaChoice, number: int, end: str) -> str:
    """The last message of a turn."""
    return told(sources, number, end)[-1]


@pytest.mark.parametrize("sources", [V1, OLD, V2], ids=["v1", "old v1", "v2"])
@pytest.mark.parametrize("end", [None, "end_turn", "max_tokens", "max_turn_requests", "refusal"])
def test_the_work_ends_the_turn(packages: Packages, sources: SchemaChoice, end: str | None) -> None:
    async def work(agent: Any, params: Any) -> Any:
        await agent.tell(params.session_id, params.prompt[0].text)
        return end

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            return [*await client.until(last_of(expected, 1, reason)), *await client.rest()]

    expected, reason = V1 if sources == OLD else sources, end or "end_turn"
    assert run(main()) == told(expected, 1, reason, "hello")


@BOTH
def test_the_work_may_return_all_of_its_end(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def work(agent: Any, params: Any) -> Any:
        if sources == V1:
            return acp.PromptResponse(stop_reason="refusal", meta={"a": 1})
        return acp.SessionUpdateStateUpdateIdleOther(stop_reason="_tired", meta={"a": 1})

    async def main() -> Any:
        async with talk(acp, work) as client:
            await client.prompt(1)
            while True:
                message = await client.peer.receive()
                if sources == V1:
                    return message["result"]
                if message.get("params", {}).get("update", {}).get("state") == "idle":
                    return message["params"]["update"]

    end = run(main())
    assert (end["stopReason"], end["_meta"]) == ("refusal" if sources == V1 else "_tired", {"a": 1})


@BOTH
def test_a_cancel_in_the_same_read_as_the_prompt(packages: Packages, sources: SchemaChoice) -> None:
    """The work has not begun, and never does: what was passed in is closed."""
    begun: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        begun.append(params.session_id)

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.cancel()
            return [*await client.until(last_of(sources, 1, "cancelled")), *await client.rest()]

    assert run(main()) == told(sources, 1, "cancelled")
    assert begun == []


@BOTH
def test_a_cancel_lets_the_work_clean_up_once(packages: Packages, sources: SchemaChoice) -> None:
    cleaning, go_on = asyncio.Event(), asyncio.Event()

    async def work(agent: Any, params: Any) -> None:
        try:
            await for_ever(agent, params)
        finally:
            cleaning.set()
            await go_on.wait()
            await agent.tell(params.session_id, "cleaned up")

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            found = await client.until("begun")
            await client.cancel()
            await cleaning.wait()
            await client.cancel()
            found += await client.rest()
            await client.cancel()
            go_on.set()
            return found + await client.until(last_of(sources, 1, "cancelled"))

    assert run(main()) == told(sources, 1, "cancelled", "begun", "cleaned up")


@BOTH
@pytest.mark.parametrize("session", ["s", "unknown"])
def test_a_cancel_without_a_turn_changes_nothing(packages: Packages, sources: SchemaChoice, session: str) -> None:
    async def work(agent: Any, params: Any) -> None:
        pass

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.cancel(session)
            await client.prompt(1)
            await client.until(last_of(sources, 1, "end_turn"))
            await client.cancel(session)
            await client.cancel(session)
            await client.prompt(2)
            return [*await client.until(last_of(sources, 2, "end_turn")), *await client.rest()]

    assert run(main()) == told(sources, 2, "end_turn")


@BOTH
@pytest.mark.parametrize("ends_by", ["returning", "waiting"])
def test_work_that_ends_by_itself_as_the_cancel_arrives(
    packages: Packages, sources: SchemaChoice, ends_by: str
) -> None:
    """A client that has cancelled a turn waits for `cancelled`."""

    async def work(agent: Any, params: Any) -> str:
        agent.turns.cancel(params.session_id)
        if ends_by == "waiting":
            await agent.tell(params.session_id, "told all the same")
            await asyncio.Event().wait()
        return "max_tokens"

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until(last_of(sources, 1, "cancelled"))
            await client.prompt(2)
            return [*await client.until(last_of(sources, 2, "cancelled")), *await client.rest()]

    told_by_work = ["told all the same"] if ends_by == "waiting" else []
    assert run(main()) == told(sources, 2, "cancelled", *told_by_work)


@BOTH
@pytest.mark.parametrize("reaction", ["raises", "returns"])
def test_how_cancelled_work_ends_makes_no_difference(packages: Packages, sources: SchemaChoice, reaction: str) -> None:
    async def work(agent: Any, params: Any) -> str:
        try:
            await for_ever(agent, params)
        except asyncio.CancelledError:
            if reaction == "raises":
                raise ValueError("aborted") from None
        return "end_turn"

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            found = await client.until("begun")
            await client.cancel()
            return found + await client.until(last_of(sources, 1, "cancelled"))

    with acp_log(logging.WARNING) as records:
        assert run(main()) == told(sources, 1, "cancelled", "begun")
    assert texts(records) == ""


@BOTH
@pytest.mark.parametrize("kind", ["own", "other"])
def test_work_that_fails(packages: Packages, sources: SchemaChoice, kind: str) -> None:
    """A `RequestError` is for the client; other exceptions are logged."""
    acp = packages(sources)

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
        assert error == {"code": -32602, "message": "no images", "data": [1]}
        assert texts(records) == ""
    else:
        assert error == {"code": -32603, "message": "Internal error"}
        assert "ValueError: private" in texts(records)


@BOTH
def test_a_second_prompt_waits_for_the_first(packages: Packages, sources: SchemaChoice) -> None:
    running: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        running.append(params.prompt[0].text)
        assert len(running) == 1
        for _ in range(3):
            await agent.tell(params.session_id, params.prompt[0].text)
            await asyncio.sleep(0)
        running.clear()

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            for number in (1, 2, 3):
                await client.prompt(number, f"prompt {number}")
            found = await client.until(*(last_of(sources, number, "end_turn") for number in (1, 2, 3)))
            return [*found, *await client.rest()]

    expected = [told(sources, number, "end_turn", *[f"prompt {number}"] * 3) for number in (1, 2, 3)]
    assert run(main()) == [*chain(*expected)]


@BOTH
def test_sessions_do_not_wait_for_each_other(packages: Packages, sources: SchemaChoice) -> None:
    async def work(agent: Any, params: Any) -> None:
        if params.session_id == "s":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2, session="other")
            await client.cancel("other")
            await client.prompt(3, session="other")
            return [*await client.until(last_of(sources, 3, "end_turn")), *await client.rest()]

    assert run(main()) == [*told(sources, 2, "cancelled"), *told(sources, 3, "end_turn")]


@BOTH
def test_a_cancel_is_for_all_prompts_before_it(packages: Packages, sources: SchemaChoice) -> None:
    """The one that runs, the one that waits, and not the one that follows in the same read."""

    async def work(agent: Any, params: Any) -> None:
        if params.prompt[0].text != "last":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.cancel()
            await client.prompt(3, "last")
            return [*await client.until(last_of(sources, 3, "end_turn")), *await client.rest()]

    first, second = ("1: cancelled", "2: cancelled") if sources == V1 else ("idle cancelled", "2: -32800")
    assert sorted(run(main())) == sorted([first, second, *told(sources, 3, "end_turn")])


@BOTH
def test_a_request_that_waits_is_cancelled(packages: Packages, sources: SchemaChoice) -> None:
    async def work(agent: Any, params: Any) -> None:
        if params.prompt[0].text != "last":
            await for_ever(agent, params)

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.cancel_request(2)
            assert await client.until("2: -32800") == ["2: -32800"]
            await client.cancel()
            await client.until(last_of(sources, 1, "cancelled"))
            await client.prompt(3, "last")
            return [*await client.until(last_of(sources, 3, "end_turn")), *await client.rest()]

    assert run(main()) == told(sources, 3, "end_turn")


@BOTH
def test_a_request_that_runs_is_cancelled(packages: Packages, sources: SchemaChoice) -> None:
    """In protocol 2 it is answered already, so this changes nothing."""
    end = "1: -32800" if sources == V1 else "idle cancelled"

    async def main() -> list[str]:
        async with talk(packages(sources), for_ever) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.cancel_request(1)
            found = await client.rest()
            await client.cancel()
            await client.cancel_request(1)
            return [*found, *(await client.until(end) if sources == V2 else await client.rest())]

    assert run(main()) == [end]


@BOTH
def test_a_session_is_closed_when_its_turns_have_ended(packages: Packages, sources: SchemaChoice) -> None:
    """Also the prompt that comes while the work cleans up is cancelled."""
    go_on = asyncio.Event()

    async def work(agent: Any, params: Any) -> None:
        try:
            await for_ever(agent, params)
        finally:
            await go_on.wait()

    async def main() -> tuple[list[str], list[str]]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until("begun")
            await client.prompt(2)
            await client.close(3)
            before = await client.rest()
            await client.prompt(4)
            await client.close(5)
            before += await client.rest()
            go_on.set()
            after = await client.until("3: ok", "5: ok")
            assert not client.peer.handler.turns.is_running("s")
            return sorted(before), after

    end = "cancelled" if sources == V1 else "-32800"
    assert run(main()) == ([f"2: {end}", f"4: {end}"], [last_of(sources, 1, "cancelled"), "3: ok", "5: ok"])


@BOTH
def test_a_session_without_a_turn_is_closed_at_once(packages: Packages, sources: SchemaChoice) -> None:
    async def main() -> list[str]:
        async with talk(packages(sources), for_ever) as client:
            await client.close(1)
            await client.close(2, "unknown")
            return await client.until("1: ok", "2: ok")

    assert run(main()) == ["1: ok", "2: ok"]


@BOTH
def test_work_may_close_its_own_session(packages: Packages, sources: SchemaChoice) -> None:
    async def work(agent: Any, params: Any) -> None:
        await agent.turns.close(params.session_id)

    async def main() -> list[str]:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            return await client.until(last_of(sources, 1, "cancelled"))

    assert run(main()) == told(sources, 1, "cancelled")


@BOTH
@pytest.mark.parametrize("messages", [0, 1, 2, 1_000], ids=lambda number: f"room-for-{number or 'none'}")
@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "running"])
def test_no_task_outlives_the_connection(
    packages: Packages, sources: SchemaChoice, messages: int, is_cancelled: bool
) -> None:
    """Whether the client reads or not; `run` fails if a task is left."""
    begun: list[str] = []

    async def work(agent: Any, params: Any) -> None:
        begun.append("begun")
        try:
            for _ in range(3):
                await for_ever(agent, params)
        finally:
            begun.pop()
            await agent.tell(params.session_id, "cleaned up")

    async def main() -> None:
        async with talk(packages(sources), work, max_messages=max(messages, 1)) as client:
            for number in (1, 2):
                await client.prompt(number)
            if messages:
                await client.until("begun")
            if is_cancelled:
                await client.cancel()
            await client.prompt(3)

    run(main())
    assert begun == []


@BOTH
def test_a_cancel_reaches_work_that_streams_without_waiting(packages: Packages, sources: SchemaChoice) -> None:
    sent: list[int] = []

    async def work(agent: Any, params: Any) -> None:
        for number in range(500):
            await agent.tell(params.session_id, f"chunk {number}")
            sent.append(number)

    async def main() -> None:
        async with talk(packages(sources), work) as client:
            await client.prompt(1)
            await client.until("chunk 0")
            await client.cancel()
            await client.until(last_of(sources, 1, "cancelled"))

    run(main())
    assert len(sent) < 250


def test_the_state_is_idle_even_if_its_reason_cannot_be_sent(packages: Packages) -> None:
    acp = packages(V2)

    async def work(agent: Any, params: Any) -> None:
        raise acp.InvalidParamsError(data=object())

    async def main() -> list[str]:
        async with talk(acp, work) as client:
            await client.prompt(1)
            return await client.until("idle error")

    with acp_log() as records:
        assert run(main()) == told(V2, 1, "error")
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

    assert run(main()) == told(V2, 1, "error")


def test_the_message_of_the_user_has_the_id_of_the_response(packages: Packages) -> None:
    async def work(agent: Any, params: Any) -> None:
        pass

    async def main() -> list[Any]:
        async with talk(packages(V2), work) as client:
            await client.prompt(1)
            return [await client.peer.receive() for _ in range(2)]

    response, message = run(main())
    update = message["params"]["update"]
    assert update["messageId"] == response["result"]["messageId"]
    assert update["content"] == [{"type": "text", "text": "hello"}]
