"""Tool calls within turns: the order of what a client gets, also after a cancellation, and the states of sessions."""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_support import V2, agent_of, raw_peer, run
from tests.support import Packages
from tests.turns_support import PROTOCOLS, Talk, is_v1, short, talk, told, turns_agent

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    return packages(request.param)


def helpers_of(acp: ModuleType) -> Any:
    return importlib.import_module(f"{acp.__name__}.helpers")


def start(acp: Any, agent: Any, call_id: str = "c", **given: Any) -> Any:
    return helpers_of(acp).tool_call(agent.client, "s", "Edit", tool_call_id=call_id, **given)


async def settled() -> None:
    """Let all tasks run until they wait for something."""
    for _ in range(100):
        await asyncio.sleep(0)


def brief(message: Any) -> str:
    """A message of the agent in short: "c: failed", "c+b" if a piece of content is sent, "c?" for a question."""
    if message.get("method") == "session/request_permission":
        params = message["params"]
        return f"{params.get('subject', params)['toolCall']['toolCallId']}?"
    if message.get("method") == "$/cancel_request":
        return "withdrawn"
    update = message.get("params", {}).get("update", {})
    if not update.get("sessionUpdate", "").startswith("tool_call"):
        return short(message)
    if content := update.get("content"):
        added = content if isinstance(content, list) else [content]
        return "+".join([update["toolCallId"], *(each["content"]["text"] for each in added)])
    return f"{update['toolCallId']}: {update['status']}"


async def rest(client: Talk) -> list[str]:
    return [brief(message) for message in await client.peer.ping()]


async def until(client: Talk, last: str) -> list[str]:
    found = [brief(await client.peer.receive())]
    while found[-1] != last:
        found.append(brief(await client.peer.receive()))
    return found


async def next_question(client: Talk, before: list[str]) -> Any:
    """The id of the next question; what comes before it is appended to `before`."""
    while (message := await client.peer.receive()).get("method") != "session/request_permission":
        before.append(brief(message))
    before.append(brief(message))
    return message["id"]


async def answer(client: Talk, question: Any, kind: str = "allow_once") -> None:
    await client.peer.answer(question, result={"outcome": {"outcome": "selected", "optionId": kind}})


def pieces(acp: Any, *texts: str) -> list[str]:
    """What is sent if content is added to the call."""
    return ["+".join(["c", *texts])] if is_v1(acp) else [f"c+{text}" for text in texts]


def only_v2(acp: Any, *states: str) -> list[str]:
    return [] if is_v1(acp) else [*states]


# --- A client that does not read -------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [1, 2, 3, 4])
def test_the_end_comes_after_the_pieces_and_before_that_of_the_turn(acp: Any, room: int) -> None:
    """The transport has room for the start of the turn and so many more messages when the turn is cancelled."""

    async def work(agent: Any, params: Any) -> None:
        async with start(acp, agent) as call:
            await call.add("a", "b", "c", "d")
            await asyncio.Event().wait()

    async def main() -> None:
        async with talk(acp, work, max_messages=room if is_v1(acp) else room + 3) as client:
            await client.prompt(1)
            await settled()
            await client.cancel()
            await settled()
            end = "c: failed" if is_v1(acp) else "c: cancelled"
            expected = told(acp, 1, "cancelled", "c: in_progress", *pieces(acp, "a", "b", "c", "d"), end)
            found = await until(client, expected[-1])
            assert sorted(found) == sorted(expected)  # the response may come later than the first updates
            assert [each for each in found if each != "1: accepted"] == [x for x in expected if x != "1: accepted"]
            assert await rest(client) == []

    run(main(), seconds=60)


def test_a_report_that_is_no_longer_waited_for_comes_before_later_ones(acp: Any) -> None:
    async def main() -> None:
        are_cancelled = asyncio.Event()

        async def work(agent: Any, params: Any) -> None:
            async with start(acp, agent, status="pending") as call:
                tasks = [asyncio.create_task(call.add(*texts)) for texts in ("ab", "cd")]
                await settled()
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                are_cancelled.set()
                await call.permission()

        async with talk(acp, work, max_messages=1 if is_v1(acp) else 4) as client:
            await client.prompt(1)
            await are_cancelled.wait()
            found = list[str]()
            await answer(client, await next_question(client, found))
            added = ["c+a+b", "c+a+b+c+d"] if is_v1(acp) else pieces(acp, "a", "b", "c", "d")
            asked = only_v2(acp, "1: accepted", "user_message", "running")
            expected = [*asked, "c: pending", *added, *only_v2(acp, "requires_action"), "c?"]
            assert sorted(found) == sorted(expected)
            assert [x for x in found if x != "1: accepted"] == [x for x in expected if x != "1: accepted"]
            end = "1: end_turn" if is_v1(acp) else "idle end_turn"
            assert await until(client, end) == [*only_v2(acp, "running"), "c: in_progress", "c: completed", end]

    run(main(), seconds=60)


@pytest.mark.parametrize("room", [1, 2, 3, 4])
def test_a_question_that_is_cancelled_while_the_client_does_not_read(acp: Any, room: int) -> None:
    async def work(agent: Any, params: Any) -> None:
        async with start(acp, agent, status="pending") as call:
            await call.permission()

    async def main() -> None:
        async with talk(acp, work, max_messages=room if is_v1(acp) else room + 3) as client:
            await client.prompt(1)
            await settled()
            await client.cancel()
            await settled()
            ends = ["c: failed", "1: cancelled"] if is_v1(acp) else ["c: cancelled", "idle cancelled"]
            found = [each for each in await until(client, ends[-1]) if each != "withdrawn"]
            assert found[-2:] == ends
            assert found.count("c: pending") == 1
            assert found.count("running") == len(only_v2(acp, "running"))  # at the start
            assert set(await rest(client)) <= {"withdrawn"}

    run(main(), seconds=60)


# --- The state of the session while a question is open ---------------------------------------------------------------


def test_it_runs_when_the_last_question_is_answered(acp: Any) -> None:
    async def ask(agent: Any, call_id: str) -> None:
        async with start(acp, agent, call_id, status="pending") as call:
            await call.permission()

    async def work(agent: Any, params: Any) -> None:
        await asyncio.gather(ask(agent, "c"), ask(agent, "d"))

    async def main() -> None:
        async with talk(acp, work) as client:
            await client.prompt(1)
            found = list[str]()
            questions = [await next_question(client, found) for _ in range(2)]
            assert found.count("requires_action") == len(only_v2(acp, "once", "twice"))
            await answer(client, questions[0])
            assert await until(client, "c: completed") == ["c: in_progress", "c: completed"]
            await client.peer.answer(questions[1], error={"code": -32603, "message": "no"})
            assert (await rest(client))[: len(only_v2(acp, "running")) + 1] == [*only_v2(acp, "running"), "d: failed"]

    run(main(), seconds=60)


def test_the_questions_of_other_sessions_do_not_count(packages: Packages) -> None:
    acp = packages(V2)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            client = Talk(peer)
            known = acp.ToolCallUpdate(tool_call_id="c", title="Edit")
            ask = helpers_of(acp).ask_permission
            tasks = [asyncio.create_task(ask(peer.handler.client, session, known)) for session in ("s", "t")]
            questions = [await next_question(client, []) for _ in tasks]
            for question, task in zip(questions, tasks, strict=True):
                await answer(client, question)
                message = await peer.receive()
                assert (brief(message), await task) == ("running", await task)
            assert message["params"]["sessionId"] == "t"

    run(main(), seconds=60)


def test_a_cancelled_turn_does_not_run_again(acp: Any) -> None:
    async def ask(agent: Any, call_id: str) -> None:
        async with start(acp, agent, call_id, status="pending") as call:
            await call.permission()

    async def work(agent: Any, params: Any) -> None:
        await asyncio.gather(ask(agent, "c"), ask(agent, "d"))

    async def main() -> None:
        async with talk(acp, work) as client:
            await client.prompt(1)
            questions = [await next_question(client, []) for _ in range(2)]
            await client.cancel()
            for question in questions:
                await client.peer.answer(question, result={"outcome": {"outcome": "cancelled"}})
            end = "1: cancelled" if is_v1(acp) else "idle cancelled"
            found = [each for each in await until(client, end) if each != "withdrawn"]
            status = "failed" if is_v1(acp) else "cancelled"
            assert found == [f"c: {status}", f"d: {status}", end]

    run(main(), seconds=60)


def test_a_question_after_a_cancelled_one(packages: Packages) -> None:
    """The one that was cancelled is not counted any more."""
    acp = packages(V2)

    async def work(agent: Any, params: Any) -> None:
        async with start(acp, agent, status="pending") as call:
            task = asyncio.create_task(call.permission())
            await settled()
            task.cancel()
            await asyncio.wait([task])
            await call.permission()

    async def main() -> None:
        async with talk(acp, work) as client:
            await client.prompt(1)
            await next_question(client, [])
            found = list[str]()
            await answer(client, await next_question(client, found))
            assert [each for each in found if each != "withdrawn"] == ["requires_action", "c?"]
            assert await until(client, "c: in_progress") == ["running", "c: in_progress"]

    run(main(), seconds=60)


def test_a_call_in_the_background_leaves_the_state_alone(acp: Any) -> None:
    async def main() -> None:
        begin, tasks = asyncio.Event(), set[asyncio.Task[None]]()

        async def in_background(agent: Any) -> None:
            await begin.wait()
            async with start(acp, agent, status="pending") as call:
                assert await call.permission(foreground=False)

        async def work(agent: Any, params: Any) -> None:
            tasks.add(asyncio.create_task(in_background(agent)))

        async with talk(acp, work) as client:
            await client.prompt(1)
            await until(client, "1: end_turn" if is_v1(acp) else "idle end_turn")
            begin.set()
            found = list[str]()
            await answer(client, await next_question(client, found))
            assert found == ["c: pending", "c?"]
            assert await until(client, "c: completed") == ["c: in_progress", "c: completed"]
            await asyncio.wait(tasks)
            assert await rest(client) == []

    run(main(), seconds=60)


# --- What was not sent, and misuse -----------------------------------------------------------------------------------


def test_what_was_sent_before_a_message_that_is_too_large(acp: Any) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_message_bytes=1000)
        async with raw_peer(acp, turns_agent(acp, None), options=options) as peer:  # type: ignore[arg-type]
            async with start(acp, peer.handler) as call:
                with pytest.raises(acp.MessageTooLarge):
                    await call.add("a", "b", "x" * 1000, "c")
                await call.add("d")
                reported = [each.content.text for each in call.reported.content]
            added = ["c+d"] if is_v1(acp) else ["c+a", "c+b", "c+d"]
            assert reported == [text for each in added for text in each.split("+")[1:]]
            assert await rest(Talk(peer)) == ["c: in_progress", *added, "c: completed"]

    run(main(), seconds=60)


def test_misuse_is_refused(acp: Any) -> None:
    async def main() -> None:
        async with raw_peer(acp, turns_agent(acp, None)) as peer:  # type: ignore[arg-type]
            call = start(acp, peer.handler)
            for report in (call.update(title="x"), call.add("a"), call.fail("no"), call.permission()):
                with pytest.raises(RuntimeError, match="async with"):
                    await report
            async with call:
                await call.fail()
                with pytest.raises(RuntimeError, match="ended"):
                    await call.update(status="in_progress")
                await call.update(status="completed")
            with pytest.raises(RuntimeError, match="already"):
                async with call:
                    pass
            assert await rest(Talk(peer)) == ["c: in_progress", "c: failed", "c: completed"]

    run(main(), seconds=60)
