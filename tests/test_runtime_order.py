"""Order: what the peer sent first is handled first, and no response overtakes an earlier message."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import EVERY_BASE, V1, V2, agent_of, client_of, pair, raw_peer, run, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python

WAYS = pytest.mark.parametrize("way", ["directly", "wait_for", "gather", "task"])


def call(way: str, coroutine: Any) -> Any:
    """Await `coroutine` in one of the ways in which people do; all but the first run it in a task of its own."""
    if way == "directly":
        return coroutine
    if way == "wait_for":
        return asyncio.wait_for(coroutine, 120)
    return asyncio.gather(coroutine) if way == "gather" else asyncio.create_task(coroutine)


@EVERY_BASE
def test_notifications_are_handled_one_after_the_other(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    seen: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        seen.append(("begin", params))
        for _ in range(7 - params):  # the later ones would overtake
            await asyncio.sleep(0)
        seen.append(("end", params))

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            for number in range(7):
                await peer.notify("_n", number)
            await peer.ping()

    run(main())
    assert seen == [(what, number) for number in range(7) for what in ("begin", "end")]


def test_a_request_sees_what_the_notifications_before_it_have_done(packages: Packages) -> None:
    acp = packages(V1)
    done: list[int] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await asyncio.sleep(0.001)
        done.append(params)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return list(done)

    async def main() -> Any:
        kind = agent_of(acp, ext_notification=ext_notification, ext_method=ext_method)
        async with raw_peer(acp, kind) as peer:
            for number in range(5):
                await peer.notify("_n", number)
            return await peer.ask(1, "_done")

    assert run(main())["result"] == [0, 1, 2, 3, 4]


@WAYS
@EVERY_BASE
def test_an_answer_comes_after_the_notifications_before_it(packages: Packages, sources: SchemaChoice, way: str) -> None:
    acp = packages(sources)
    done: list[int] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        done.append(params)

    async def main() -> list[int]:
        async with raw_peer(acp, client_of(acp, ext_notification=ext_notification)) as peer:
            waiter = asyncio.ensure_future(call(way, peer.stub.ext_method("_ask", None)))
            number = (await peer.receive())["id"]
            for each in range(9):
                await peer.notify("_n", each)
            await peer.answer(number, result=None)
            for each in range(9, 12):
                await peer.notify("_n", each)
            await waiter
            seen = list(done)
            await peer.ping()
            return seen

    assert run(main())[:9] == list(range(9))
    assert done == list(range(12))


def test_an_error_comes_after_the_notifications_before_it(packages: Packages) -> None:
    acp = packages(V1)
    done: list[int] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await asyncio.sleep(0.001)
        done.append(params)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp, ext_notification=ext_notification)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            number = (await peer.receive())["id"]
            await peer.notify("_n", 1)
            await peer.answer(number, error={"code": -32000, "message": "no"})
            with pytest.raises(acp.AuthenticationRequiredError):
                await waiter
            assert done == [1]

    run(main())


def test_answers_in_any_order_reach_who_asked(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiters = [asyncio.create_task(peer.stub.ext_method("_ask", n)) for n in range(6)]
            asked = [await peer.receive() for _ in waiters]
            assert len({message["id"] for message in asked}) == len(asked)
            for message in asked[1::2] + asked[-2::-2]:
                await peer.answer(message["id"], result=message["params"] * 10)
            return await asyncio.gather(*waiters)

    assert run(main()) == [0, 10, 20, 30, 40, 50]


@EVERY_BASE
def test_requests_begin_in_order_and_run_side_by_side(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    begun: list[int] = []

    async def main() -> list[Any]:
        gates = [asyncio.Event() for _ in range(5)]

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            begun.append(params)
            if params == 4:
                gates[3].set()
            await gates[params].wait() if params < 4 else None
            if params:
                gates[params - 1].set()
            return params

        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            for number in range(5):
                await peer.request(number, "_wait", number)
            return [(await peer.receive())["result"] for _ in range(5)]

    assert sorted(run(main())) == [0, 1, 2, 3, 4]
    assert begun == [0, 1, 2, 3, 4]


def test_a_notification_right_behind_a_request_sees_it_begun(packages: Packages) -> None:
    """All in one chunk, so that nothing gives the request time but the connection itself."""
    acp = packages(V1)
    seen: list[str] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        seen.append("prompt")
        self.stopped = asyncio.Event()
        await self.stopped.wait()
        return acp.PromptResponse(stop_reason="cancelled")

    async def session_cancel(self: Any, params: Any) -> None:
        seen.append("cancel")
        self.stopped.set()

    async def main() -> Any:
        kind = agent_of(acp, session_prompt=session_prompt, session_cancel=session_cancel)
        async with raw_peer(acp, kind) as peer:
            await peer.request(1, "session/prompt", {"sessionId": "s", "prompt": []})
            await peer.notify("session/cancel", {"sessionId": "s"})
            return await peer.receive()

    assert run(main()) == {"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "cancelled"}}
    assert seen == ["prompt", "cancel"]


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_session_cancel_is_handled_while_prompts_run(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def main() -> int:
        cancelled, release = asyncio.Event(), asyncio.Event()

        async def session_cancel(self: Any, params: Any) -> None:
            cancelled.set()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            await release.wait()

        def session_prompt(self: Any, params: Any) -> Any:
            return ext_method(self, "", params)

        kind = agent_of(acp, session_cancel=session_cancel, session_prompt=session_prompt, ext_method=ext_method)
        async with raw_peer(acp, kind) as peer:
            for number in range(20):
                await peer.request(number, "_work")
            if sources is V1:
                await peer.request(99, "session/prompt", {"sessionId": "s", "prompt": []})
            await peer.notify("session/cancel", {"sessionId": "s"})
            await cancelled.wait()
            assert not release.is_set()
            release.set()
            return len([await peer.receive() for _ in range(20)])

    assert run(main()) == 20


@WAYS
@EVERY_BASE
def test_a_notification_handler_may_ask_the_peer(packages: Packages, sources: SchemaChoice, way: str) -> None:
    """Its answer comes behind messages that would otherwise wait for it."""
    acp = packages(sources)
    seen: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        seen.append(await call(way, self.client.ext_method("_ask", params)))

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            await peer.notify("_n", 1)
            question = await peer.receive()
            await peer.ping()  # others are served meanwhile
            await peer.answer(question["id"], result="here")
            while not seen:
                await peer.ping()

    run(main())
    assert seen in (["here"], [["here"]])


def test_many_notification_handlers_that_ask_the_peer(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[int] = []

    async def answer(self: Any, method: str, params: Any) -> Any:
        return params

    async def main() -> None:
        everything = asyncio.Event()

        async def notified(self: Any, method: str, params: Any) -> None:
            await self.client.ext_method("_first", params)
            seen.append(await self.client.ext_method("_second", params))
            if len(seen) == 50:
                everything.set()

        agent, client = agent_of(acp, ext_notification=notified), client_of(acp, ext_method=answer)
        async with pair(acp, agent, client) as both:
            for number in range(50):
                await both.agent.ext_notification("_n", number)
            await everything.wait()

    run(main())
    assert sorted(seen) == list(range(50))


def test_a_handler_that_asks_twice_gives_up_one_turn(packages: Packages) -> None:
    """The task that runs the read loop after the first question keeps the order, also after the second one."""
    acp = packages(V1)
    seen: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        if method == "_asks":
            await self.client.ext_method("_first", None)
            await self.client.ext_method("_second", None)
            return
        seen.append(("begin", params))
        for _ in range(5):
            await asyncio.sleep(0)
        seen.append(("end", params))

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            await peer.notify("_asks")
            await peer.answer((await peer.receive())["id"], result=None)
            second = await peer.receive()
            for number in range(6):
                await peer.notify("_n", number)
            await peer.answer(second["id"], result=None)
            await peer.ping()

    run(main())
    assert seen == [(what, number) for number in range(6) for what in ("begin", "end")]


def test_what_a_handler_leaves_running_does_not_take_the_turn_of_another(packages: Packages) -> None:
    """A task that outlives its notification asks the peer while a later one is handled, which keeps its turn."""
    acp = packages(V1)
    seen: list[str] = []

    async def main() -> None:
        asked, go = asyncio.Event(), asyncio.Event()
        tasks: list[asyncio.Task[Any]] = []

        async def later(self: Any) -> None:
            await go.wait()
            await self.client.ext_method("_ask", None)

        async def ext_notification(self: Any, method: str, params: Any) -> None:
            if method == "_start":
                tasks.append(asyncio.create_task(later(self)))
            elif method == "_slow":
                go.set()
                await asked.wait()
                for _ in range(20):
                    await asyncio.sleep(0)
                seen.append("slow")
            else:
                seen.append("behind")

        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            for name in ("_start", "_slow", "_behind"):
                await peer.notify(name)
            question = await peer.receive()
            asked.set()
            await peer.answer(question["id"], result=None)
            await asyncio.gather(*tasks)

    run(main())
    assert seen == ["slow", "behind"]


def test_messages_are_sent_in_the_order_of_the_calls(packages: Packages) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        for number in range(200):
            await self.client.ext_notification("_n", number)
        return "end"

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), max_messages=3) as peer:
            await peer.request(1, "_stream")
            return [await peer.receive() for _ in range(201)]

    *updates, last = run(main())
    assert [update["params"] for update in updates] == list(range(200))
    assert last["result"] == "end"


def test_a_streamed_turn_arrives_whole_before_its_end(packages: Packages) -> None:
    """Both ends are ours: every update of a prompt is handled when the prompt returns."""
    acp = packages(V1)
    seen: list[Any] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        for block in params.prompt:
            update = acp.SessionUpdateAgentMessageChunk(content=block)
            await self.client.session_update(acp.SessionNotification(session_id=params.session_id, update=update))
        return acp.PromptResponse(stop_reason="end_turn")

    async def session_update(self: Any, params: Any) -> None:
        await asyncio.sleep(0)
        seen.append(params.update.content.text)

    async def main() -> None:
        agent, client = agent_of(acp, session_prompt=session_prompt), client_of(acp, session_update=session_update)
        async with pair(acp, agent, client, client_options=unchecked(acp)) as both:
            for start in range(0, 300, 100):
                blocks = [acp.ContentBlockText(text=str(start + number)) for number in range(100)]
                await both.agent.session_prompt(acp.PromptRequest(session_id="s", prompt=blocks))
                assert len(seen) == start + 100

    run(main())
    assert seen == [str(number) for number in range(300)]


@EVERY_BASE
def test_what_a_task_of_the_handler_sends_comes_after_the_answer(packages: Packages, sources: SchemaChoice) -> None:
    """For what a client can use only once it knows the session; `after_response` of the helpers rests on it."""
    acp = packages(sources)
    tasks = []

    async def ext_method(self: Any, method: str, params: Any) -> str:
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(self.client.ext_notification("_after", params)))
        return "answer"

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            for number in range(50):
                await peer.request(number, "_new", number)
            messages = [await peer.receive() for _ in range(100)]
            answered = {each["id"]: at for at, each in enumerate(messages) if "id" in each}
            told = {each["params"]: at for at, each in enumerate(messages) if "params" in each}
            assert all(told[number] > answered[number] for number in range(50))
        await asyncio.gather(*tasks)

    run(main())


# --- Which tasks run before the next message is dispatched -----------------------------------------------------------


def test_what_follows_the_answer_on_which_one_stops_is_not_handled(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[str] = []

    async def take(self: Any, method: str, params: Any) -> None:
        seen.append(method)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=take, ext_method=take)) as peer:

            async def ask() -> None:
                await peer.stub.ext_method("_ask", None)
                seen.append("answered")
                peer.connection.stop()

            asking = asyncio.create_task(ask())
            question = await peer.receive()
            await peer.answer(question["id"], result=None)
            await peer.notify("_behind")
            await peer.request(1, "_behind_too")
            await asking
            await peer.connection.wait_closed()

    run(main())
    assert seen == ["answered"]


def test_a_handler_that_cancels_the_reader_loses_nothing(packages: Packages) -> None:
    """A mistake, yet its price must not be a message: here the next one has been read already."""
    acp = packages(V1)
    seen: list[str] = []
    readers: list[asyncio.Task[Any]] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        seen.append(method)
        if not readers:
            task = asyncio.current_task()
            assert task is not None
            readers.append(task)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        if method == "_cancel":
            readers[0].cancel()

    async def main() -> list[Any]:
        agent = agent_of(acp, ext_notification=ext_notification, ext_method=ext_method)
        async with raw_peer(acp, agent) as peer:
            await peer.notify("_first")
            await peer.request(1, "_cancel")
            await peer.notify("_second")
            await peer.notify("_third")
            return await peer.ping()

    run(main())
    assert seen == ["_first", "_second", "_third"]


def test_a_request_begins_before_what_follows_it_is_refused(packages: Packages) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        await self.client.ext_notification("_begun", None)

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.request(1, "_a")
            await peer.send_line(b"no JSON")
            return [await peer.receive() for _ in range(3)]

    begun, answer, refusal = run(main())
    assert begun["method"] == "_begun"
    assert (answer["id"], refusal["id"]) == (1, None)
