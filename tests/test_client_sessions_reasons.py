"""What the end of a turn means: which one is an answer, which one nobody has asked for, and what a result has."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.options import Options
from acpgen.roles import Role
from tests.client_sessions import Stage, stage, until
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}
NO = [{"optionId": "no", "name": "No", "kind": "reject_once"}]


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,), parts=("sessions", "forms"), options=Options(open=True))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,), parts=("sessions", "forms"), options=Options(open=True))


async def outcome(asking: Any) -> Any:
    """What a task returns or raises."""
    return (await asyncio.gather(asking, return_exceptions=True))[0]


@pytest.mark.parametrize("reason", ["refusal", "max_tokens", "max_turn_requests", "cancelled", "_acme/paused"])
def test_an_end_without_an_answer_is_an_error_of_ask(acp: ModuleType, version: int, reason: str) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            asking = asyncio.ensure_future(session.ask("Hi"))
            request = await play.agent.prompted()
            await play.agent.say("half an ")
            await play.agent.end(request, reason)
            error = await outcome(asking)
            assert isinstance(error, play.helpers.NoAnswerError)
            assert (error.stop_reason, error.text) == (reason, "half an ")
            assert error.result.is_unasked is (reason == "cancelled")
            assert "without an answer" in str(error)
            turn = asyncio.ensure_future(session.ask("and now?"))
            request = await play.agent.prompted()
            await play.agent.say("a whole one", message="m2")
            await play.agent.end(request)
            assert await turn == "a whole one"

    run(main())


def test_a_turn_tells_its_reason_and_raises_nothing(acp: ModuleType, version: int) -> None:
    """Awaited or read, the result is there for every end; `ask` alone needs an answer."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            reading = asyncio.ensure_future(_read(turn))
            request = await play.agent.prompted()
            await play.agent.end(request, "refusal")
            await reading
            assert (turn.result.stop_reason, turn.result.is_unasked) == ("refusal", False)

    run(main())


async def _read(turn: Any) -> list[Any]:
    return [change async for change in turn]


def test_the_result_has_the_response(packages: Packages, version: int) -> None:
    """With what extensions add to it, and `_meta`."""
    base = replace(BASES[version], extensions=("token-usage",)) if version == 1 else V2
    acp = packages(base, roles=(Role.CLIENT,))

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            waiting = asyncio.ensure_future(_awaited(turn))
            request = await play.agent.receive("session/prompt")
            meta = {"quota": 7}
            if version == 1:
                usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
                await play.agent.answer(request, {"stopReason": "end_turn", "usage": usage, "_meta": meta})
            else:
                await play.agent.insert("u")
                await play.agent.answer(request, {"messageId": "u", "_meta": {"place": 1}})
                await play.agent.state("idle", stopReason="end_turn", _meta=meta)
            result = await waiting
            if version == 1:
                assert (result.response.usage.total_tokens, result.response.meta) == (3, meta)
                assert result.update is None
            else:
                assert (result.response.message_id, result.response.meta) == ("u", {"place": 1})
                assert result.update.meta == meta

    run(main())


async def _awaited(turn: Any) -> Any:
    return await turn


def test_what_was_not_sent_has_no_response(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            turn = (await play.opened()).prompt("Hi")
            await turn.cancel()
            result = await turn
            assert (result.stop_reason, result.is_unasked, result.response) == ("cancelled", False, None)

    run(main())


@pytest.mark.parametrize("how", ["turn", "session", "leave", "close"])
def test_what_this_side_has_cancelled_was_asked_for(acp: ModuleType, version: int, how: str) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            turns = [session.prompt("one")] if version == 1 else [session.prompt("one"), session.prompt("two")]
            waiting = [asyncio.ensure_future(_awaited(turn)) for turn in turns]
            requests = [await play.agent.prompted() for _ in turns]
            if how == "leave":
                waiting[0].cancel()
            else:
                cancelling = {"turn": turns[0].cancel, "session": session.cancel, "close": session.close}[how]
                asking = asyncio.ensure_future(cancelling())
            if how == "close":
                request = await play.agent.receive("session/close")
            else:
                await play.agent.receive("session/cancel")
            for request_ in requests[: 1 if version == 2 else None]:
                await play.agent.end(request_, "cancelled")
            if how == "close":
                await play.barrier()
                await play.agent.answer(request)
            await asyncio.gather(*waiting, return_exceptions=True)
            await until(lambda: all(turn.has_ended for turn in turns))
            if how != "leave":
                await asking
            for turn in turns:  # in protocol 2, one cancellation ends all
                assert (turn.result.stop_reason, turn.result.is_unasked) == ("cancelled", False)

    run(main())


async def ask_the_user(play: Stage, number: str, options: Any) -> None:
    """A question of the agent, whose answer is waited for."""
    call = {"toolCallId": "t", "title": "Edit"}
    about = {"toolCall": call} if play.agent.version == 1 else {"subject": {"type": "tool_call", "toolCall": call}}
    extra = {} if play.agent.version == 1 else {"title": "May I?"}
    params = {"sessionId": "s", "options": options, **about, **extra}
    await play.agent.send(id=number, method="session/request_permission", params=params)
    while (message := await play.agent.receive()).get("id") != number:
        play.agent.read.append(message)
    assert "outcome" in message["result"]


@pytest.mark.parametrize(
    ("answer", "is_unasked"),
    [
        ("no", False),
        ("cancelled", False),
        ("no, status", False),
        ("yes", True),
        ("no, text", True),
        ("no, call", True),
    ],
)
def test_a_no_of_the_user_is_asked_for(acp: ModuleType, version: int, *, answer: str, is_unasked: bool) -> None:
    """codex ends the turn when the user says no. If the agent goes on with its work, an end is another matter."""

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        if answer == "cancelled":
            return play_helpers[0].permission_cancelled()
        return play_helpers[0].select_permission_option(said)

    play_helpers: list[Any] = []
    said, *more = answer.split(", ")
    yes = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}

    async def main() -> None:
        async with stage(acp, version, answer_permission=answer_permission) as play:
            play_helpers.append(play.helpers)
            session = await play.opened()
            waiting = asyncio.ensure_future(_awaited(session.prompt("Hi")))
            request = await play.agent.prompted()
            await play.agent.say("May I?")
            await ask_the_user(play, "q", [yes, *NO])
            for each in more:
                if each == "status":
                    await play.agent.tool("failed")
                elif each == "text":
                    await play.agent.say("Then I do something else.")
                else:
                    await play.agent.tool("pending", call="other")
            await play.agent.end(request, "cancelled")
            result = await waiting
            assert (result.stop_reason, result.is_unasked) == ("cancelled", is_unasked)

    run(main())


# --- Sessions that are over, and prompts that make no sense ---------------------------------------------------------


def test_a_closed_session_takes_no_prompt(acp: ModuleType, version: int) -> None:
    """Nothing is sent: of what is asked now, of a turn that was made before, of one that waits."""

    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            early = session.prompt("made before")
            if version == 1:
                running = asyncio.ensure_future(_awaited(session.prompt("one")))
                request = await play.agent.prompted()
                waiting = asyncio.ensure_future(session.ask("waits"))
                await asyncio.sleep(0)
            closing = asyncio.ensure_future(session.close())
            close = await play.agent.receive("session/close")
            if version == 1:
                await play.agent.end(request, "cancelled")
                await running
                assert isinstance(await outcome(waiting), play.helpers.SessionClosedError)
            await play.agent.answer(close)
            await closing
            with pytest.raises(play.helpers.SessionClosedError, match="was closed"):
                session.prompt("Hi")
            with pytest.raises(play.helpers.SessionClosedError):
                await session.ask("Hi")
            with pytest.raises(play.helpers.SessionClosedError):
                await early
            with pytest.raises(play.helpers.SessionClosedError):
                await session.set_option("x", "y")
            await play.barrier()
            assert [each for each in play.agent.read if "method" in each] == []

    run(main())


@pytest.mark.parametrize("way", ["load", "resume"])
def test_an_object_that_was_replaced_sends_nothing(acp: ModuleType, version: int, way: str) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            opening = asyncio.ensure_future(getattr(play.client, way)("s", "/work"))
            method = "session/load" if (way, version) == ("load", 1) else "session/resume"
            await play.agent.answer(await play.agent.receive(method))
            again = await opening
            assert again is not session
            with pytest.raises(play.helpers.SessionClosedError, match="opened again"):
                await session.ask("Hi")
            await play.barrier()
            assert [each for each in play.agent.read if "method" in each] == []
            asking = asyncio.ensure_future(again.ask("Hi"))
            await play.agent.end(await play.agent.prompted())
            await asking

    run(main())


def test_the_end_of_the_connection_while_a_session_is_loaded_again_reaches_the_former(
    acp: ModuleType, version: int
) -> None:
    """It has its questions and turns, and is not forgotten because another object has its place just then."""

    async def main() -> None:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def answer_permission(self: Any, session: Any, request: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with stage(acp, version, answer_permission=answer_permission) as play:
            session = await play.opened()
            lost: list[Exception] = []
            session.lose = lost.append
            opening = asyncio.ensure_future(play.client.load("s", "/work"))
            await play.agent.receive("session/load" if version == 1 else "session/resume")
            await play.agent.transport.close()
            assert isinstance(await outcome(opening), acp.ConnectionClosed)
            await until(lambda: lost)
            assert [type(each) for each in lost] == [acp.ConnectionClosed]

    run(main())


def test_a_prompt_has_content(acp: ModuleType, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            session = await play.opened()
            with pytest.raises(ValueError, match="content"):
                session.prompt()
            with pytest.raises(ValueError, match="content"):
                await session.ask()

    run(main())


# --- What a turn closes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["permission", "another request"])
def test_a_turn_that_waits_for_its_own_handler_is_refused(acp: ModuleType, version: int, kind: str) -> None:
    """The agent waits for the handler, and the handler would wait for the agent; a task of its own may wait."""
    errors: list[Any] = []
    later: list[Any] = []

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        for turn in (session.prompt("inner"), running[0]):
            for use in (_awaited, _read, _entered):
                try:
                    await use(turn)
                except RuntimeError as error:
                    errors.append(error)
        later.append(asyncio.ensure_future(session.ask("later")))
        return play_of[0].helpers.select_permission_option("yes")

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        await answer_permission(self, self.sessions["s"], None)
        return {}

    running: list[Any] = []
    play_of: list[Stage] = []

    async def main() -> None:
        async with stage(acp, version, answer_permission=answer_permission, ext_method=ext_method) as play:
            play_of.append(play)
            session = await play.opened()
            running.append(session.prompt("outer"))
            waiting = asyncio.ensure_future(_awaited(running[0]))
            request = await play.agent.prompted()
            if kind == "permission":
                await play.agent.ask("q")
            else:
                await play.agent.send(id="q", method="_acme/ask", params={"sessionId": "s"})
            while (message := await play.agent.receive()).get("id") != "q":
                play.agent.read.append(message)
            assert "result" in message
            await play.agent.end(request)
            assert (await waiting).stop_reason == "end_turn"
            assert len(errors) == 6
            assert all("waits for this handler" in str(each) for each in errors)
            await play.agent.end(await play.agent.prompted())
            await later[0]

    run(main())


async def _entered(turn: Any) -> None:
    async with turn:
        pass


def test_a_handler_between_turns_may_prompt(acp: ModuleType, version: int) -> None:
    """qwen asks for files when its turn is over: then nobody waits for the handler but that request."""
    said: list[str] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        said.append(await self.sessions["s"].ask("inner"))
        return {}

    async def main() -> None:
        async with stage(acp, version, ext_method=ext_method) as play:
            await play.opened()
            await play.agent.send(id="q", method="_acme/ask", params={"sessionId": "s"})
            request = await play.agent.prompted()
            await play.agent.say("yes")
            await play.agent.end(request)
            while (await play.agent.receive()).get("id") != "q":
                pass
            assert said == ["yes"]

    run(main())


FORM: dict[int, Any] = {
    version: {
        "sessionId": "s",
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    for version in (1, 2)
}


@pytest.mark.parametrize("how", ["cancel", "session", "leave", "stall", "close"])
def test_what_ends_a_turn_closes_its_forms(one: ModuleType, how: str) -> None:
    """As it closes its questions, in protocol 1: the dialog ends, and the agent gets `cancel`, once."""
    shown, ended = asyncio.Event(), []

    async def ask_form(self: Any, question: Any) -> Any:
        shown.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(question.message)

    async def main() -> None:
        helpers = __import__(f"{one.__name__}.helpers", fromlist=["x"])
        bases = (helpers.SessionClient, helpers.FormClient)
        async with stage(one, 1, bases=bases, ask_form=ask_form) as play:
            session = await play.opened()
            turn = session.prompt("Hi", idle_seconds=1000)
            waiting = asyncio.ensure_future(_awaited(turn))
            request = await play.agent.prompted()
            await play.agent.send(id="f", method="elicitation/create", params=FORM[1])
            await shown.wait()
            if how == "leave":
                waiting.cancel()
            elif how == "stall":
                turn.stall(1000.0)
            else:
                doing = {"cancel": turn.cancel, "session": session.cancel, "close": session.close}[how]()
                asking = asyncio.ensure_future(doing)
                if how == "session":
                    await play.agent.receive("session/cancel")
                    play.client.cancel_forms("s")  # as clients did before: it changes nothing
            while (message := await play.agent.receive()).get("id") != "f" or "method" in message:
                play.agent.read.append(message)
            assert message["result"]["action"] == "cancel"
            if how == "close":
                close = await play.agent.receive("session/close")
                await play.agent.end(request, "cancelled")
                await play.agent.answer(close)
            else:
                if how != "session":
                    await play.agent.receive("session/cancel")
                await play.agent.end(request, "cancelled")
            await asyncio.gather(waiting, return_exceptions=True)
            await until(lambda: turn.has_ended)
            if how not in ("leave", "stall"):
                await asking
            assert ended == ["Who?"]

    run(main())


@pytest.mark.parametrize("last", ["completed", "failed"])
def test_a_call_that_was_cancelled_ends_once(one: ModuleType, last: str) -> None:
    """By the protocol it is shown as cancelled at once; agents go on with it for a while, and end it in their way."""

    async def main() -> None:
        async with stage(one, 1) as play:
            session = await play.opened()
            turn = session.prompt("Hi")
            ends: list[tuple[str, bool]] = []

            async def watch() -> None:
                async for change in turn:
                    if isinstance(change, play.helpers.ToolCallChange):
                        ends.append((change.call.status, change.has_ended))
                    if change.__class__.__name__ == "ToolCallChange" and len(ends) == 1:
                        await turn.cancel()

            watching = asyncio.ensure_future(watch())
            request = await play.agent.prompted()
            await play.agent.tool("pending")
            await play.agent.receive("session/cancel")
            for status in ("pending", "in_progress", last):
                await play.agent.tool(status)
                await play.barrier()
            await play.agent.end(request, "cancelled")
            await watching
            assert [has_ended for _, has_ended in ends].count(True) == 1
            assert ends[1] == ("cancelled", True)
            assert "in_progress" not in [status for status, _ in ends[1:]]
            assert session.state.tool_call("t").status == last

    run(main())
