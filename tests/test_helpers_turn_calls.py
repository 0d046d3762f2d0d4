"""Tool calls by ids, and what goes out after a response: in turns that end in all ways, in both protocols."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.runtime_support import raw_peer, run
from tests.support import Packages
from tests.turns_support import PROTOCOLS, helpers_of, is_v1

pytestmark = pytest.mark.every_python

Work = Callable[[Any, Any, Any], Awaitable[Any]]
"""The work of an agent, with the agent, the params and the helpers."""
FINAL = {"completed", "failed", "cancelled"}


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


class Talk:
    """A client by hand; `seen` has all that it has received."""

    def __init__(self, acp: Any, peer: Any) -> None:
        self.acp = acp
        self.peer = peer
        self.seen: list[Any] = []

    async def prompt(self, number: int = 1) -> None:
        params = {"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]}
        await self.peer.request(number, "session/prompt", params)

    async def cancel(self) -> None:
        await self.peer.notify("session/cancel", {"sessionId": "s"})

    async def until(self, wanted: Callable[[Any], bool]) -> Any:
        while True:
            message = await self.peer.receive()
            assert message is not None, f"the connection has ended after {self.seen}"
            self.seen.append(message)
            if wanted(message):
                return message

    async def end(self, number: int = 1) -> str:
        """Wait until the turn has ended; returns why."""
        if is_v1(self.acp):
            answer = await self.until(lambda message: message.get("id") == number)
            return str(answer["result"]["stopReason"]) if "result" in answer else "error"
        found = await self.until(lambda message: update_of(message).get("state") == "idle")
        return str(update_of(found)["stopReason"])

    @property
    def calls(self) -> list[tuple[Any, ...]]:
        """The updates of tool calls in short."""
        found = [update_of(each) for each in self.seen]
        return [
            (each.get("title"), each.get("status"))
            for each in found
            if each.get("sessionUpdate", "")[:9] == "tool_call"
        ]


def update_of(message: Any) -> dict[str, Any]:
    return dict((message.get("params") or {}).get("update") or {})


def talk(acp: Any, work: Work, client: Callable[[Talk], Awaitable[Any]]) -> tuple[Talk, Any]:
    """Let a client talk with an agent of this work; returns what it has received, and its result."""
    helpers = helpers_of(acp)

    class Worker(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def work(self, params: Any) -> Any:
            return await work(self, params, helpers)

        async def session_new(self, params: Any) -> Any:
            for name in "ab":
                helpers.after_response(self.client.session_update(told(helpers, acp, name)))
            return acp.NewSessionResponse(session_id="s")

        async def session_close(self, params: Any) -> Any:
            helpers.after_response(self.client.session_update(told(helpers, acp, "closed")))
            raise acp.InvalidParamsError("not this")

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

    async def main() -> tuple[Talk, Any]:
        async with raw_peer(acp, Worker) as peer:
            found = Talk(acp, peer)
            return found, await client(found)

    return run(main())


def told(helpers: Any, acp: Any, text: str) -> Any:
    return helpers.agent_message("s", text, **({} if is_v1(acp) else {"message_id": "m"}))


def ended_as(acp: Any, status: str) -> str:
    return "failed" if is_v1(acp) else status


# --- Tool calls ------------------------------------------------------------------------------------------------------


def test_events_become_updates(acp: Any) -> None:
    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await calls.start("1", "Read", kind="read", name="read_file", raw_input={"path": "/a"}, meta={"x": 1})
        await calls.start("2", "Find")
        await calls.update("1", content=["50 %"])
        await calls.end("2", "failed", raw_output=None)
        assert "1" in calls
        assert "3" not in calls
        await calls["1"].add("more", meta={"x": 2})
        await calls.end("1", content=["done"], raw_output={"lines": 3}, meta={"x": 3})
        await calls.end("1", "failed")  # it has ended
        await calls.start("1", "Read again")  # models use ids again
        await calls.end("1")

    seen, end = talk(acp, work, _prompted)
    assert end == "end_turn"
    updates = [update_of(each) for each in seen.seen if "toolCallId" in update_of(each)]
    ids = list(dict.fromkeys(each["toolCallId"] for each in updates))
    assert len(ids) == 3
    first = [each for each in updates if each["toolCallId"] == ids[0]]
    assert [each.get("_meta") for each in first] == [{"x": 1}, None, {"x": 2}, {"x": 3}]
    assert (first[0]["name"], first[0]["rawInput"], first[0]["kind"]) == ("read_file", {"path": "/a"}, "read")
    assert first[-1]["status"] == "completed"
    assert first[-1]["rawOutput"] == {"lines": 3}
    assert first[-1]["content"] == [{"type": "content", "content": {"type": "text", "text": "done"}}]
    assert [each["status"] for each in updates if each["toolCallId"] == ids[1]] == ["in_progress", "failed"]


async def _prompted(client: Talk) -> str:
    await client.prompt()
    return await client.end()


def test_mistakes_are_named(acp: Any) -> None:
    found: list[str] = []

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await calls.start("1", "Read")
        for wrong in (calls.start("1", "Read"), calls.end("2"), calls.update("2", title="x")):
            with pytest.raises((RuntimeError, KeyError)) as raised:
                await wrong
            found.append(str(raised.value))
        with pytest.raises(RuntimeError, match=r"session_id 'other', called by .* has no turn that runs"):
            helpers.ToolCalls(agent.client, "other", agent.turns)

    talk(acp, work, _prompted)
    assert "'1' is open" in found[0]
    assert ["no tool call '2'" in each for each in found] == [False, True, True]


def test_what_is_open_at_the_end_has_failed(acp: Any) -> None:
    kept: list[Any] = []

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        kept.append(calls)
        for name in "abc":
            await calls.start(name, name)
        await calls.end("b")

    async def client(talk: Talk) -> str:
        end = await _prompted(talk)
        await kept[0].end("a")
        await kept[0].update("a", title="late")
        with pytest.raises(RuntimeError, match="has ended"):
            await kept[0].start("d", "late")
        return end

    seen, end = talk(acp, work, client)
    assert end == "end_turn"
    started = [(name, "in_progress") for name in "abc"]
    assert seen.calls == [*started, (None, "completed"), (None, "failed"), (None, "failed")]


def test_a_task_that_goes_on_after_the_work_leaves_no_call_open(acp: Any) -> None:
    """Whatever it starts is ended, until it can start no more."""
    ends: list[str] = []

    async def goes_on(agent: Any, helpers: Any) -> None:
        try:
            for number in range(1000):
                await helpers.ToolCalls(agent.client, "s", agent.turns).start(f"{number}", "Read")
                await asyncio.sleep(0)
        except RuntimeError as error:
            ends.append(str(error))

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        tasks.append(asyncio.create_task(goes_on(agent, helpers)))
        for _ in range(5):
            await asyncio.sleep(0)

    async def client(talk: Talk) -> None:
        await talk.prompt()
        await talk.end()
        await asyncio.wait(tasks)
        await talk.peer.request(9, "_last")
        await talk.until(lambda message: message.get("id") == 9)

    tasks: list[asyncio.Task[None]] = []
    seen, _ = talk(acp, work, client)
    assert len(seen.calls) > 1
    assert seen.calls.count(("Read", "in_progress")) == seen.calls.count((None, "failed"))
    assert "has ended" in ends[0]


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_call_that_has_ended_with_its_turn_reports_nothing_more(acp: Any, is_cancelled: bool) -> None:
    kept: list[Any] = []

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        kept.extend([await calls.start(name, name) for name in "ab"])
        await calls.end("b")
        kept.append(asyncio.create_task(asks(await calls.start("c", "c", status="pending"))))
        await agent.client.session_update(told(helpers, acp, "started"))
        if is_cancelled:
            await asyncio.Event().wait()

    async def asks(call: Any) -> bool:
        return bool(await call.permission(foreground=False))

    async def client(talk: Talk) -> None:
        await talk.prompt()
        if is_cancelled:
            await talk.until(is_told("started"))
            await talk.cancel()
        await talk.end()
        first, second, asking = kept
        for call in (first, second):
            for late in (call.add("late"), call.fail("late"), call.update(title="late"), call.permission()):
                with pytest.raises(RuntimeError, match=r"^the turn of this tool call has ended"):
                    await late
            assert await call.end() is None
        asked = next((each for each in talk.seen if each.get("method") == "session/request_permission"), None)
        asked = asked or await talk.until(lambda message: message.get("method") == "session/request_permission")
        allowed = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        await talk.peer.answer(asked["id"], result=allowed)
        with pytest.raises(RuntimeError, match=r"^the turn of this tool call has ended"):
            await asking
        await talk.peer.request(9, "_last")
        await talk.until(lambda message: message.get("id") == 9)

    seen, _ = talk(acp, work, client)
    end = ended_as(acp, "cancelled") if is_cancelled else "failed"
    started = [("a", "in_progress"), ("b", "in_progress"), (None, "completed"), ("c", "pending")]
    assert seen.calls == [*started, (None, end), (None, end)]


def test_an_error_ends_them_too(acp: Any) -> None:
    async def work(agent: Any, params: Any, helpers: Any) -> None:
        await helpers.ToolCalls(agent.client, params.session_id, agent.turns).start("a", "a")
        raise acp.InvalidParamsError("not this")

    seen, end = talk(acp, work, _prompted)
    assert end == "error"
    assert seen.calls == [("a", "in_progress"), (None, "failed")]


def test_a_cancelled_turn_cancels_them(acp: Any) -> None:
    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await calls.start("a", "a")
        await agent.client.session_update(told(helpers, acp, "started"))
        await asyncio.Event().wait()

    async def client(talk: Talk) -> str:
        await talk.prompt()
        await talk.until(is_told("started"))
        await talk.cancel()
        return await talk.end()

    seen, end = talk(acp, work, client)
    assert end == "cancelled"
    assert seen.calls == [("a", "in_progress"), (None, ended_as(acp, "cancelled"))]


def test_a_cancelled_request_cancels_them(packages: Packages) -> None:
    acp = packages(PROTOCOLS["v1"])

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await calls.start("a", "a")
        await agent.client.session_update(told(helpers, acp, "started"))
        await asyncio.Event().wait()

    async def client(talk: Talk) -> str:
        await talk.prompt()
        await talk.until(is_told("started"))
        await talk.peer.notify("$/cancel_request", {"requestId": 1})
        return await talk.end()

    seen, end = talk(acp, work, client)
    assert end == "error"
    assert seen.calls == [("a", "in_progress"), (None, "failed")]


@pytest.mark.parametrize("seed", range(20))
def test_random_cancellations_leave_none_open(acp: Any, seed: int) -> None:
    """Tools that a framework runs side by side, in tasks of its own."""
    chance = random.Random(seed)
    steps = chance.randrange(60)

    async def tool(calls: Any, name: str) -> None:
        for _ in range(3):
            call = await calls.start(name, name)
            await asyncio.sleep(0)
            await call.add("half")
            await calls.end(name, content=[name])

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await asyncio.gather(*(tool(calls, name) for name in "abcd"))

    async def client(talk: Talk) -> str:
        await talk.prompt()
        for _ in range(steps):
            await asyncio.sleep(0)
        await talk.cancel()
        return await talk.end()

    seen, _ = talk(acp, work, client)
    last: dict[str, Any] = {}
    for message in seen.seen:
        if "status" in (update := update_of(message)):
            assert last.get(update["toolCallId"]) not in FINAL
            last[update["toolCallId"]] = update["status"]
    assert set(last.values()) <= FINAL


def test_an_edit_shows_its_diff(acp: Any) -> None:
    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        await calls.start_edit("1", "/a/notes.txt", old="x\n", new="y\n", raw_input={"new": "y"})
        await calls.end("1")
        async with helpers.edit_call(agent.client, params.session_id, "/a/new.txt", old=None, new="y\n", meta={"x": 1}):
            pass
        await calls.start_edit("2", "/a/old.txt", old="x\n", new=None, title="Away", status="pending")

    seen, _ = talk(acp, work, _prompted)
    firsts = [update_of(each) for each in seen.seen if update_of(each).get("title")]
    assert [(each["title"], each["kind"], each["status"]) for each in firsts] == [
        ("Edit notes.txt", "edit", "in_progress"),
        ("Create new.txt", "edit", "in_progress"),
        ("Away", "delete", "pending"),
    ]
    assert [each["content"][0]["type"] for each in firsts] == ["diff"] * 3
    assert firsts[0]["locations"] == [{"path": "/a/notes.txt"}]
    assert firsts[1]["_meta"] == {"x": 1}


def test_a_call_whose_start_cannot_be_sent_is_forgotten(acp: Any) -> None:
    async def work(agent: Any, params: Any, helpers: Any) -> None:
        calls = helpers.ToolCalls(agent.client, params.session_id, agent.turns)
        with pytest.raises(TypeError):
            await calls.start("a", "Read", raw_input={"no": object()})
        assert "a" not in calls
        await calls.start("a", "Read again")

    seen, end = talk(acp, work, _prompted)
    assert end == "end_turn"
    assert seen.calls == [("Read again", "in_progress"), (None, "failed")]


# --- After a response ------------------------------------------------------------------------------------------------


def order(seen: Talk) -> list[str]:
    """What has come: ids of responses, states, and the texts of messages."""
    found = []
    for each in seen.seen:
        update = update_of(each)
        text = update["content"]["text"] if update.get("sessionUpdate") == "agent_message_chunk" else ""
        found.append(str(each.get("id") or text or update.get("state") or update["sessionUpdate"]))
    return found


async def nothing(agent: Any, params: Any, helpers: Any) -> None:
    pass


def is_told(text: str) -> Callable[[Any], bool]:
    return lambda message: bool((update_of(message).get("content") or {}) == {"type": "text", "text": text})


def test_updates_after_a_new_session(acp: Any) -> None:
    async def client(talk: Talk) -> None:
        await talk.peer.request(7, "session/new", {"cwd": "/a", "mcpServers": []})
        await talk.until(is_told("b"))

    seen, _ = talk(acp, nothing, client)
    assert order(seen) == ["7", "a", "b"]


def test_updates_after_an_error(acp: Any) -> None:
    async def client(talk: Talk) -> None:
        await talk.peer.request(7, "session/close", {"sessionId": "s"})
        await talk.until(is_told("closed"))

    seen, _ = talk(acp, nothing, client)
    assert order(seen) == ["7", "closed"]


def test_updates_after_a_turn(acp: Any) -> None:
    async def later(agent: Any, helpers: Any, text: str) -> None:
        await agent.client.session_update(told(helpers, acp, text))
        if text == "a":
            raise ValueError("what fails is logged, and the rest is sent")

    async def from_elsewhere(agent: Any, helpers: Any, session_id: str) -> None:
        for text in "ab":
            helpers.after_turn(agent.turns, session_id, later(agent, helpers, text))

    async def work(agent: Any, params: Any, helpers: Any) -> None:
        await asyncio.create_task(from_elsewhere(agent, helpers, params.session_id))
        await agent.client.session_update(told(helpers, acp, "within"))

    async def client(talk: Talk) -> None:
        await talk.prompt()
        await talk.until(is_told("b"))

    seen, _ = talk(acp, work, client)
    last = "1" if is_v1(acp) else "idle"
    assert order(seen)[-4:] == ["within", last, "a", "b"]


def test_what_cannot_run_later_is_an_error(acp: Any) -> None:
    helpers = helpers_of(acp)

    async def later() -> None:
        raise AssertionError("it must not run")

    with pytest.raises(TypeError, match="must be a coroutine, found function"):
        helpers.after_response(later)

    async def main() -> None:
        turns = helpers.Turns() if is_v1(acp) else helpers.Turns(None)
        with pytest.raises(RuntimeError, match="no turn that runs"):
            helpers.after_turn(turns, "s", later())

    run(main())


def test_where_no_response_follows_nothing_can_run_after_it(acp: Any) -> None:
    """In the handlers of notifications, one of which sends a request, in a turn, and in a task of a handler."""
    helpers, raised = helpers_of(acp), list[str]()

    async def later() -> None:
        raise AssertionError("it must not run")

    async def refused(where: str) -> None:
        with pytest.raises(RuntimeError, match=r"^after_response, called by .*, is not called in the handler of a req"):
            helpers.after_response(later())
        raised.append(where)

    class Agent(helpers.TurnAgent):  # type: ignore[name-defined, misc]
        async def work(self, params: Any) -> None:
            await refused("turn")

        async def ext_notification(self, method: str, params: Any) -> None:
            await refused("notification")
            await self.client.ext_method("_ask", None)
            await refused("notification that asks")
            await self.client.ext_notification("_told", None)

        async def ext_method(self, method: str, params: Any) -> None:
            await asyncio.create_task(refused("task"))

    async def main() -> None:
        async with raw_peer(acp, Agent) as peer:
            found = Talk(acp, peer)
            await peer.request(1, "_ask")  # the read loop has the context of what came before
            await found.until(lambda message: message.get("id") == 1)
            await peer.notify("_tell")
            asked = await found.until(lambda message: message.get("method") == "_ask")
            await peer.answer(asked["id"], result=None)
            await found.until(lambda message: message.get("method") == "_told")
            await found.prompt(2)
            await found.end(2)

    run(main())
    asyncio.run(refused("elsewhere"))
    assert raised == ["task", "notification", "notification that asks", "turn", "elsewhere"]


def test_the_end_of_the_connection_drops_the_rest(acp: Any) -> None:
    helpers, ran = helpers_of(acp), []

    async def later(text: str) -> None:
        ran.append(text)
        raise acp.ConnectionClosed("it has ended")

    class Agent(acp.Agent):  # type: ignore[name-defined, misc]
        async def ext_method(self, method: str, params: Any) -> None:
            for text in "ab":
                helpers.after_response(later(text))

    async def main() -> None:
        async with raw_peer(acp, Agent) as peer:
            await peer.request(1, "_ask")
            await peer.receive()
            for _ in range(5):
                await asyncio.sleep(0)

    run(main())
    assert ran == ["a"]
