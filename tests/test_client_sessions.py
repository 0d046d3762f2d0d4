"""Sessions of a client: turns that are iterated, awaited, cancelled and lost, in both versions of the protocol."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import Stage, helpers_of, stage, text_of, until
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}


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


@pytest.fixture
def two(packages: Packages) -> ModuleType:
    return packages(V2, roles=(Role.CLIENT,))


# --- A turn ----------------------------------------------------------------------------------------------------------


def test_changes_come_as_they_arrive_and_the_result_at_the_end(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session, seen = await play.opened(), list[Any]()

            async def read(turn: Any) -> None:
                async for change in turn:
                    seen.append(change)

            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(read(turn))
            request = await play.agent.prompted()
            assert request["params"] == {"sessionId": "s", "prompt": [{"type": "text", "text": "Hi"}]}
            await play.barrier()
            for _ in range(10):
                await asyncio.sleep(0)
            seen.clear()
            await play.agent.say("Hel")
            await until(lambda: seen)
            await play.agent.say("lo")
            await play.agent.tool("pending")
            await play.barrier()
            await until(lambda: len(seen) == 3)
            assert [each.text for each in seen[:2]] == ["Hel", "lo"]
            assert (seen[0].entry is seen[1].entry, seen[0].is_whole, seen[1].is_whole) == (True, True, False)
            assert (seen[2].is_new, seen[2].call.title) == (True, "Edit")
            with pytest.raises(RuntimeError, match="has not ended"):
                _ = turn.result
            await play.agent.end(request, "max_tokens")
            await reading
            assert (turn.result.stop_reason, turn.result.text) == ("max_tokens", "Hello")
            assert turn.result.message_id == ("" if version == 1 else f"u{request['id']}")

    run(main())


def test_a_question_gives_the_text(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("6 * 7?"))
            request = await play.agent.prompted()
            await play.agent.say("4")
            await play.agent.update("agent_thought_chunk", content={"type": "text", "text": "hm"}, messageId="th")
            await play.agent.say("2")
            await play.agent.end(request)
            assert await asking == "42"

    run(main())


def test_a_prompt_is_sent_when_the_turn_is_used(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            session.prompt("never")
            await play.barrier()
            assert [each.get("method") for each in play.agent.read] == []

    run(main())


def test_what_the_agent_has_not_advertised_is_refused_here(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            session.prompt(play.helpers.image(b"png", mime_type="image/png"), play.helpers.link("file:///a", name="a"))
            with pytest.raises(ValueError, match="the agent takes no audio in prompts: it has not advertised audio"):
                session.prompt(play.helpers.audio(b"wav", mime_type="audio/wav"))
            with pytest.raises(TypeError, match="a prompt has texts and content blocks, and no int"):
                await session.ask(5)

    run(main())


def test_an_error_of_the_request_ends_the_turn(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(text_of(turn, play.helpers))
            await play.agent.answer(await play.agent.receive("session/prompt"), code=-7, message="no")
            with pytest.raises(acp.RequestError, match="no") as error:
                await reading
            assert error.value.code == -7
            with pytest.raises(acp.RequestError):
                _ = turn.result

    run(main())


def test_the_end_of_the_connection_ends_turns_and_questions(acp: ModuleType, version: int) -> None:
    asked, closed = asyncio.Event, list[bool]()

    async def main() -> None:
        started = asked()

        async def answer_permission(self: Any, session: Any, request: Any) -> Any:
            started.set()
            try:
                await asyncio.sleep(1000)
            finally:
                closed.append(True)

        async with stage(acp, version, answer_permission=answer_permission) as play:
            session = await play.opened()
            turns = [asyncio.ensure_future(session.ask("Hi")), asyncio.ensure_future(session.ask("again"))]
            await play.agent.prompted()
            await play.agent.ask()
            await started.wait()
            await play.agent.transport.close()
            for each in turns:
                with pytest.raises(acp.ConnectionClosed):
                    await each
        assert closed == [True]

    run(main())


# --- Leaving a turn --------------------------------------------------------------------------------------------------


async def _break(turn: Any, has_seen: asyncio.Event) -> None:
    async for _ in turn:
        break


async def _raise(turn: Any, has_seen: asyncio.Event) -> None:
    try:
        async for _ in turn:
            raise ZeroDivisionError
    except ZeroDivisionError:
        return


async def _leave(turn: Any, has_seen: asyncio.Event) -> None:
    async with turn:
        async for _ in turn:
            break
    assert turn.has_ended


async def _cancelled_loop(turn: Any, has_seen: asyncio.Event) -> None:
    await _cancel_task(_endless(turn), turn, has_seen)


async def _cancelled_await(turn: Any, has_seen: asyncio.Event) -> None:
    async def wait() -> None:
        await turn

    await _cancel_task(wait(), turn, has_seen)


async def _endless(turn: Any) -> None:
    async for _ in turn:
        pass


async def _cancel_task(work: Any, turn: Any, has_seen: asyncio.Event) -> None:
    task = asyncio.ensure_future(work)
    await has_seen.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert turn.has_ended


@pytest.mark.parametrize("leave", [_break, _raise, _leave, _cancelled_loop, _cancelled_await])
def test_leaving_a_turn_cancels_it_once(acp: ModuleType, version: int, leave: Any) -> None:
    """And waits for its end: at the latest, the next prompt does so in protocol 1."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            has_seen = asyncio.Event()
            leaving = asyncio.ensure_future(leave(turn, has_seen))
            request = await play.agent.prompted()
            await play.agent.say("Hello")
            await play.barrier()
            has_seen.set()
            cancel = await play.agent.receive("session/cancel")
            assert cancel["params"] == {"sessionId": "s"}
            assert "id" not in cancel
            await play.agent.say(" and more")
            await play.agent.end(request, "cancelled")
            await leaving
            await until(lambda: turn.has_ended)
            assert turn.result.stop_reason == "cancelled"
            assert session.state.entries[-1].text == "Hello and more"
            following = asyncio.ensure_future(session.ask("next"))
            request = await play.agent.prompted()
            await play.agent.end(request)
            assert await following == ""
            assert [each["method"] for each in play.agent.read if "method" in each] == []

    run(main())


def test_an_agent_that_does_not_end_is_abandoned(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, cancel_seconds=0.01) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                await play.agent.prompted()
            assert turn.has_ended
            with pytest.raises(TimeoutError, match=r"did not end the turn in 0\.01 s"):
                _ = turn.result
            following = asyncio.ensure_future(session.ask("next"))
            request = await play.agent.prompted()
            await play.agent.say("here")
            await play.agent.end(request)
            assert await following == "here"

    run(main())


def test_cancel_without_a_turn_does_nothing(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            await session.cancel()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            await play.agent.end(request)
            await asking
            await session.cancel()
            await play.barrier()
            assert [each["method"] for each in play.agent.read if "method" in each] == []

    run(main())


# --- Several turns and sessions --------------------------------------------------------------------------------------


def test_sessions_stay_apart(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            first, second = await play.opened("s1"), await play.opened("s2")
            asking = [asyncio.ensure_future(each.ask("Hi")) for each in (first, second)]
            requests = [await play.agent.receive("session/prompt") for _ in asking]
            for number, request in enumerate(requests):
                name = f"s{number + 1}"
                if version == 2:
                    await play.agent.insert("u", name)
                    await play.agent.answer(request, {"messageId": "u"})
                await play.agent.say(name, name)
            for number, request in reversed([*enumerate(requests)]):
                await play.agent.end(request, session=f"s{number + 1}")
            assert await asyncio.gather(*asking) == ["s1", "s2"]

    run(main())


def test_prompts_of_a_session_run_one_by_one_in_protocol_1(one: ModuleType) -> None:
    async def main() -> None:
        async with stage(one, 1) as play:
            session = await play.opened()
            asking = [asyncio.ensure_future(session.ask(each)) for each in ("a", "b")]
            request = await play.agent.prompted()
            await play.barrier()
            assert play.agent.read == []
            await play.agent.say("1", message="m1")
            await play.agent.end(request)
            request = await play.agent.prompted()
            await play.agent.say("2", message="m2")
            await play.agent.end(request)
            assert await asyncio.gather(*asking) == ["1", "2"]

    run(main())


def test_a_prompt_that_waits_is_cancelled_without_a_message(one: ModuleType) -> None:
    async def main() -> None:
        async with stage(one, 1) as play:
            session = await play.opened()
            first = asyncio.ensure_future(session.ask("a"))
            request = await play.agent.prompted()
            async with session.prompt("b") as second:
                await asyncio.sleep(0)
            assert second.result.stop_reason == "cancelled"
            await play.agent.end(request)
            await first
            await play.barrier()
            assert play.agent.read == []

    run(main())


def test_updates_between_turns_reach_the_state_and_no_turn(acp: ModuleType, version: int) -> None:
    changes = list[Any]()

    def session_changed(self: Any, session: Any, change: Any) -> None:
        changes.append(change)

    async def main() -> None:
        async with stage(acp, version, session_changed=session_changed) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            await play.agent.end(request)
            assert await asking == ""
            changes.clear()
            await play.agent.say("late")
            await play.barrier()
            assert [each.text for each in changes] == ["late"]
            assert session.state.entries[-1].text == "late"
            asking = asyncio.ensure_future(session.ask("next"))
            request = await play.agent.prompted()
            await play.agent.end(request)
            assert await asking == ""

    run(main())


def test_updates_before_the_session_is_known_are_kept(acp: ModuleType, version: int) -> None:
    """The answer does not overwrite them. Those of sessions that nobody opens are ignored."""

    async def main() -> None:
        async with stage(acp, version) as play:
            opening = asyncio.ensure_future(play.client.open("/work"))
            request = await play.agent.receive("session/new")
            option = {"id": "o", "name": "O", "type": "boolean", "currentValue": True}
            key = "id" if version == 1 else "configId"
            option = {key: "o", **{name: each for name, each in option.items() if name != "id"}}
            await play.agent.update("session_info_update", title="early")
            await play.agent.update("session_info_update", "other", title="lost")
            await play.agent.answer(request, {"sessionId": "s", "configOptions": [option]})
            session = await opening
            assert session.state.title == "early"
            assert len(session.state.config_options) == 1
            await play.agent.update("session_info_update", "other", title="lost")
            await play.barrier()
            assert [*play.client.sessions] == ["s"]

    run(main())


# --- A slow reader ---------------------------------------------------------------------------------------------------


def test_changes_that_wait_are_joined_and_lose_nothing(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, max_pending=10) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                for number in range(500):
                    await play.agent.say(f"{number} ")
                for status in ("pending", "in_progress", "completed"):
                    await play.agent.tool(status)
                for number in range(500):
                    await play.agent.update("session_info_update", title=f"{number}")
                await play.agent.end(request)
                await play.barrier()
                found = [change async for change in turn]
            texts = [each.text for each in found if isinstance(each, play.helpers.MessageChange)]
            assert texts[-1] == turn.result.text == "".join(f"{number} " for number in range(500))
            (call,) = (each for each in found if isinstance(each, play.helpers.ToolCallChange))
            assert (call.is_new, call.has_ended) == (True, True)
            assert session.state.title == "499"

    run(main())


def test_too_many_changes_cancel_the_turn(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, max_pending=10) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                for number in range(30):
                    await play.agent.say("x", message=f"m{number}")
                await play.agent.receive("session/cancel")
                await play.agent.end(request, "cancelled")
                with pytest.raises(play.helpers.SlowReaderError, match=r"wait for their reader \(max_pending\)"):
                    async for _ in turn:
                        pass
            assert len(session.state.entries) >= 30
            following = asyncio.ensure_future(session.ask("next"))
            await play.agent.end(await play.agent.prompted())
            assert await following == ""

    run(main())


def test_nobody_who_reads_costs_nothing(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, max_pending=10) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            for number in range(100):
                await play.agent.say("x", message=f"m{number}")
            await play.agent.end(request)
            assert await asking == "x" * 100

    run(main())


# --- Permission ------------------------------------------------------------------------------------------------------


def answering(option: str = "yes") -> Any:
    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        return self.helpers.select_permission_option(option)

    return answer_permission


def test_a_question_is_a_change_and_is_answered(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, answer_permission=answering()) as play:
            type(play.client).helpers = play.helpers
            session = await play.opened()
            found = list[Any]()

            async def read() -> None:
                async for change in session.prompt("Hi"):
                    found.append(change)

            reading = asyncio.ensure_future(read())
            request = await play.agent.prompted()
            await play.agent.ask()
            answer = await play.agent.receive()
            assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "yes"}
            await play.agent.end(request)
            await reading
            (asked,) = (each for each in found if isinstance(each, play.helpers.PermissionAsked))
            assert [each.option_id for each in asked.request.options] == ["yes"]
            assert session.state.tool_calls[0].title == "Edit"

    run(main())


def test_a_question_that_nobody_answers_is_an_error(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            await play.opened()
            await play.agent.ask()
            assert (await play.agent.receive())["error"]["code"] == -32601

    run(main())


def never(closed: list[bool]) -> Any:
    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        try:
            await asyncio.sleep(1000)
        finally:
            closed.append(True)

    return answer_permission


def test_cancelling_closes_questions_in_protocol_1(one: ModuleType) -> None:
    """Those that are open, and those that come before the end; and unfinished tool calls are shown as cancelled."""
    closed = list[bool]()

    async def main() -> None:
        async with stage(one, 1, answer_permission=never(closed)) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.prompt("Hi").__aenter__())
            request = await play.agent.prompted()
            turn = await asking
            await play.agent.tool("pending", "done")
            await play.agent.tool("completed", "done")
            await play.agent.tool("pending", "open")
            await play.agent.ask("first")
            await play.barrier()
            await turn.cancel()
            await turn.cancel()
            await play.agent.ask("second")
            answers = {}
            while len(answers) < 2:
                message = await play.agent.receive()
                if "result" in message:
                    answers[message["id"]] = message["result"]["outcome"]["outcome"]
                else:
                    play.agent.read.append(message)
            assert answers == {"first": "cancelled", "second": "cancelled"}
            assert [each["method"] for each in play.agent.read if "method" in each] == ["session/cancel"]
            statuses = {each.id: each.status for each in session.state.tool_calls}
            assert statuses == {"done": "completed", "open": "cancelled", "t": "cancelled"}
            await play.agent.tool("failed", "open")
            await play.agent.end(request, "cancelled")
            await turn
            assert {each.id: each.status for each in session.state.tool_calls}["open"] == "failed"

    run(main())
    assert closed == [True]


def test_the_agent_cancels_a_question(acp: ModuleType, version: int) -> None:
    closed = list[bool]()

    async def main() -> None:
        async with stage(acp, version, answer_permission=never(closed)) as play:
            await play.opened()
            await play.agent.ask("q")
            await play.barrier()
            await play.agent.send(method="$/cancel_request", params={"requestId": "q"})
            assert (await play.agent.receive())["error"]["code"] == -32800

    run(main())
    assert closed == [True]


def test_cancelling_spares_questions_in_protocol_2(two: ModuleType) -> None:
    """The agent knows which of them belong to what goes on in the background."""

    async def main() -> None:
        gate = asyncio.Event()

        async def answer_permission(self: Any, session: Any, request: Any) -> Any:
            await gate.wait()
            return play.helpers.select_permission_option("yes")

        async with stage(two, 2, answer_permission=answer_permission) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                await play.agent.prompted()
                await play.agent.ask()
                await play.barrier()
                await turn.cancel()
                gate.set()
                await play.agent.receive("session/cancel")
                assert (await play.agent.receive())["result"]["outcome"]["outcome"] == "selected"
                await play.agent.state("idle", stopReason="cancelled")

    run(main())


# --- Protocol 2 ------------------------------------------------------------------------------------------------------


async def turn_of(play: Stage, *steps: tuple[str, Any]) -> Any:
    """A turn after these steps: what the agent sends for a prompt, in this order."""
    session = await play.opened()
    turn = session.prompt("Hi")
    asking = asyncio.ensure_future(text_of(turn, play.helpers))
    request = await play.agent.receive("session/prompt")
    for step, value in steps:
        await {
            "answer": lambda value: play.agent.answer(request, {"messageId": value}),
            "insert": play.agent.insert,
            "idle": lambda value: play.agent.state("idle", **value),
            "state": play.agent.state,
            "say": play.agent.say,
        }[step](value)
    await play.barrier()
    for _ in range(50):
        await asyncio.sleep(0)
    asking.add_done_callback(lambda task: task.exception() if not task.cancelled() else None)
    if not turn.has_ended:
        asking.cancel()
        await play.agent.receive("session/cancel")
        await play.agent.insert("u")
        await play.agent.state("idle", stopReason="cancelled")
        await asyncio.wait({asking})
        return None
    await asyncio.wait({asking})
    return turn


END = {"stopReason": "end_turn"}


@pytest.mark.parametrize(
    "steps",
    [
        [("answer", "u"), ("insert", "u"), ("state", "running"), ("say", "x"), ("idle", END)],
        [("insert", "u"), ("answer", "u"), ("idle", END)],
        [("insert", "u"), ("say", "x"), ("idle", END), ("answer", "u")],
        [("insert", "u"), ("idle", END), ("idle", {}), ("insert", "v"), ("answer", "u")],
        [("answer", "u"), ("idle", END), ("insert", "u"), ("state", "vendor_state"), ("idle", END)],
    ],
)
def test_a_turn_ends_when_the_agent_is_idle_after_its_message(two: ModuleType, steps: list[Any]) -> None:
    async def main() -> None:
        async with stage(two, 2) as play:
            turn = await turn_of(play, *steps)
            assert turn.result.stop_reason == "end_turn"
            assert turn.result.message_id == "u"

    run(main())


@pytest.mark.parametrize(
    "steps",
    [
        [("answer", "u"), ("insert", "u")],
        [("answer", "u"), ("insert", "u"), ("idle", {}), ("idle", {"stopReason": None})],
        [("answer", "u"), ("idle", END)],
        [("idle", END), ("answer", "u"), ("insert", "u")],
        [("answer", "u"), ("insert", "other"), ("idle", END)],
        [("answer", "u"), ("insert", "u"), ("state", "vendor_state"), ("state", "requires_action")],
    ],
)
def test_what_does_not_end_a_turn(two: ModuleType, steps: list[Any]) -> None:
    """An end before the message belongs to earlier work; without a reason it is a snapshot; unknown states are busy."""

    async def main() -> None:
        async with stage(two, 2) as play:
            assert await turn_of(play, *steps) is None

    run(main())


def test_one_end_may_end_several_turns(two: ModuleType) -> None:
    async def main() -> None:
        async with stage(two, 2) as play:
            session = await play.opened()
            asking = [asyncio.ensure_future(session.prompt(each).__aenter__()) for each in ("a", "b")]
            turns = [await each for each in asking]
            for _ in turns:
                await play.agent.prompted()
            await play.agent.say("x")
            await play.agent.state("idle", stopReason="end_turn")
            results = [await turn for turn in turns]
            assert [each.stop_reason for each in results] == ["end_turn", "end_turn"]
            assert sorted(each.text for each in results) == ["", "x"]

    run(main())


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [({"error": {"code": -9, "message": "broke"}}, -9, "broke"), ({}, -32603, "does not say how")],
)
def test_work_that_fails_raises(two: ModuleType, error: dict[str, Any], code: int, message: str) -> None:
    async def main() -> None:
        async with stage(two, 2) as play:
            turn = await turn_of(play, ("answer", "u"), ("insert", "u"), ("idle", {"stopReason": "error", **error}))
            with pytest.raises(two.RequestError, match=message) as found:
                _ = turn.result
            assert found.value.code == code

    run(main())


def test_a_new_session_is_idle_and_an_unprompted_agent_can_be_cancelled(two: ModuleType) -> None:
    async def main() -> None:
        async with stage(two, 2) as play:
            session = await play.opened()
            assert session.state.state.state == "idle"
            await play.agent.state("running")
            await play.barrier()
            await session.cancel()
            await play.agent.receive("session/cancel")

    run(main())


# --- Opening, listing, closing ---------------------------------------------------------------------------------------


def test_loading_gives_the_conversation_and_resuming_does_not(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            loading = asyncio.ensure_future(play.client.load("s", "/work"))
            request = await play.agent.receive("session/load" if version == 1 else "session/resume")
            assert request["params"].get("replayFrom") == (None if version == 1 else {"type": "start"})
            await play.agent.say("as before")
            await play.agent.answer(request)
            session = await loading
            assert session.state.entries[0].text == "as before"
            resuming = asyncio.ensure_future(play.client.resume("s", "/work"))
            request = await play.agent.receive("session/resume")
            assert "replayFrom" not in request["params"]
            await play.agent.answer(request)
            assert (await resuming).state.entries == []

    run(main())


def test_a_session_that_cannot_be_loaded_is_not_open(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            loading = asyncio.ensure_future(play.client.load("s", "/work"))
            request = await play.agent.receive("session/load" if version == 1 else "session/resume")
            await play.agent.answer(request, code=-32002, message="unknown")
            with pytest.raises(acp.ResourceNotFoundError):
                await loading
            assert play.client.sessions == {}

    run(main())


def test_sessions_are_listed_page_by_page(acp: ModuleType, version: int) -> None:
    """The cursor is handed back as it came, an empty one too; null ends the list."""

    async def main() -> None:
        async with stage(acp, version) as play:

            async def read() -> list[str]:
                return [info.session_id async for info in play.client.listed("/work")]

            reading = asyncio.ensure_future(read())
            for number, cursor in enumerate(["", "b", None]):
                request = await play.agent.receive("session/list")
                given = {} if number == 0 else {"cursor": ["", "b"][number - 1]}
                assert request["params"] == {"cwd": "/work", **given}
                info = {"sessionId": f"s{number}", "cwd": "/work"}
                await play.agent.answer(request, {"sessions": [info] if number != 1 else [], "nextCursor": cursor})
            assert await reading == ["s0", "s2"]

    run(main())


def test_a_list_whose_cursor_repeats_ends(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:

            async def read() -> list[str]:
                return [info.session_id async for info in play.client.listed()]

            reading = asyncio.ensure_future(read())
            for number in range(2):
                info = {"sessionId": f"s{number}", "cwd": "/work"}
                request = await play.agent.receive("session/list")
                await play.agent.answer(request, {"sessions": [info], "nextCursor": "again"})
            assert await reading == ["s0", "s1"]

    run(main())


def test_closing_ends_turns_and_updates(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            closing = asyncio.ensure_future(session.close())
            close = await play.agent.receive("session/close")
            if version == 1:
                await play.agent.end(request, "cancelled")
                await play.agent.answer(close)
                with pytest.raises(play.helpers.NoAnswerError):
                    await asking
            else:
                await play.agent.answer(close, code=-32002, message="gone already")
                with pytest.raises(RuntimeError, match="was closed"):
                    await asking
            await closing
            await play.agent.say("late")
            await play.barrier()
            assert session.state.entries == [each for each in session.state.entries if each.text != "late"]

    run(main())


def test_another_version_of_the_protocol(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, start=False) as play:
            starting = asyncio.ensure_future(play.client.start("tests", "1"))
            request = await play.agent.receive("initialize")
            assert request["params"]["protocolVersion"] == version
            other = {"info": {"name": "a", "version": "1"}, "protocolVersion": 7}
            await play.agent.answer(request, other)
            with pytest.raises((RuntimeError, acp.ConnectionClosed), match="version"):
                await starting

    run(main())


# --- With the other parts of a client --------------------------------------------------------------------------------


def test_permissions_of_a_session(acp: ModuleType, version: int) -> None:
    """Rules see the tool call as it was reported; a question for the user is closed with its turn in protocol 1."""
    seen = list[Any]()

    class Asking:
        async def ask_permission(self, question: Any) -> Any:
            seen.append(question.subject)
            try:
                await asyncio.sleep(1000)
            finally:
                seen.append("closed")

    async def main() -> None:
        helpers = helpers_of(acp)
        bases = (Asking, helpers.SessionClient, helpers.PermissionClient)
        async with stage(acp, version, bases=bases) as play:
            play.client.permissions = helpers.PermissionRules(helpers.PermissionRule("deny", kind="delete"))
            session = await play.opened()
            turn = await session.prompt("Hi").__aenter__()
            request = await play.agent.prompted()
            kind = "tool_call" if version == 1 else "tool_call_update"
            await play.agent.update(kind, toolCallId="t", title="Clean", kind="delete")
            await play.agent.ask("deny")
            answer = await play.agent.receive()
            assert answer["result"]["outcome"]["outcome"] == "cancelled"  # there is no option to reject
            await play.agent.update("tool_call_update", toolCallId="t", kind="edit")
            await play.agent.ask("ask")
            await play.barrier()
            await until(lambda: seen)
            await turn.cancel()
            if version == 2:
                await play.agent.send(method="$/cancel_request", params={"requestId": "ask"})
            await play.agent.receive("session/cancel")
            await play.agent.end(request, "cancelled")
            await turn
            await until(lambda: seen[-1] == "closed")

    run(main())


def test_terminals_start_in_the_folder_of_the_session(one: ModuleType, tmp_path: Path) -> None:
    async def session_closed(self: Any, session: Any) -> None:
        await self.terminals.release_session(session.id)

    async def main() -> None:
        helpers = helpers_of(one)
        bases = (helpers.SessionClient, helpers.TerminalClient)
        async with stage(one, 1, bases=bases, session_closed=session_closed) as play:
            opening = asyncio.ensure_future(play.client.open(str(tmp_path)))
            await play.agent.answer(await play.agent.receive("session/new"), {"sessionId": "s"})
            session = await opening
            args = ["-c", "import os, time; print(os.getcwd(), flush=True); time.sleep(1000)"]
            params = {"sessionId": "s", "command": sys.executable, "args": args}
            await play.agent.send(id="c", method="terminal/create", params=params)
            terminal = (await play.agent.receive())["result"]["terminalId"]
            output = ""
            while not output:
                await asyncio.sleep(0.01)
                await play.agent.send(
                    id="o", method="terminal/output", params={"sessionId": "s", "terminalId": terminal}
                )
                output = (await play.agent.receive())["result"]["output"]
            assert output.strip() == str(tmp_path.resolve())
            closing = asyncio.ensure_future(session.close())
            await play.agent.answer(await play.agent.receive("session/close"))
            await closing
            await play.agent.send(id="o", method="terminal/output", params={"sessionId": "s", "terminalId": terminal})
            assert (await play.agent.receive())["error"]["code"] == -32002

    run(main())
