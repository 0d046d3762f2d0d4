"""Cancellation: `$/cancel_request` in both directions, and one answer for each request whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import (
    OLD,
    V1,
    V2,
    acp_log,
    agent_of,
    client_of,
    pair,
    raw_peer,
    run,
    texts,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

CANCELLING = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
CANCEL = "$/cancel_request"


def waiting_agent(acp: Any, *, ends: list[str] | None = None, catches: Any = None) -> type[Any]:
    """Agents whose `_wait` never ends by itself; `catches` is what it makes of being cancelled."""

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method != "_wait":
            return method
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if catches is None:
                raise
            return await catches()
        finally:
            if ends is not None:
                ends.append(method)

    return agent_of(acp, ext_method=ext_method)


@CANCELLING
@pytest.mark.parametrize("number", [7, 0, -1, "seven", ""])
def test_a_cancelled_request_is_answered_with_its_error(packages: Packages, sources: SchemaChoice, number: Any) -> None:
    acp = packages(sources)
    ends: list[str] = []

    async def main() -> tuple[Any, list[Any]]:
        async with raw_peer(acp, waiting_agent(acp, ends=ends)) as peer:
            await peer.request(number, "_wait")
            await peer.notify(CANCEL, {"requestId": number})
            return await peer.receive(), await peer.ping()

    answer, more = run(main())
    assert (answer["id"], answer["error"]["code"], more) == (number, -32800, [])
    assert ends == ["_wait"]


def test_a_handler_may_answer_all_the_same(packages: Packages) -> None:
    acp = packages(V1)

    async def partial_result() -> Any:
        await asyncio.sleep(0)  # nothing cancels it a second time
        return {"partial": True}

    async def main() -> tuple[Any, list[Any]]:
        async with raw_peer(acp, waiting_agent(acp, catches=partial_result)) as peer:
            await peer.request(1, "_wait")
            await peer.notify(CANCEL, {"requestId": 1})
            return await peer.receive(), await peer.ping()

    assert run(main()) == ({"jsonrpc": "2.0", "id": 1, "result": {"partial": True}}, [])


def test_a_handler_may_answer_another_error(packages: Packages) -> None:
    acp = packages(V1)

    async def other_error() -> Any:
        raise acp.ResourceNotFoundError(data={"uri": "x"})

    async def main() -> Any:
        async with raw_peer(acp, waiting_agent(acp, catches=other_error)) as peer:
            await peer.request(1, "_wait")
            await peer.notify(CANCEL, {"requestId": 1})
            return await peer.receive()

    assert run(main())["error"] == {"code": -32002, "message": "Resource not found", "data": {"uri": "x"}}


def test_a_typed_prompt_is_cancelled(packages: Packages) -> None:
    acp = packages(V1)

    async def session_prompt(self: Any, params: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return acp.PromptResponse(stop_reason="cancelled")

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp, session_prompt=session_prompt)) as peer:
            await peer.request(1, "session/prompt", {"sessionId": "s", "prompt": []})
            await peer.notify(CANCEL, {"requestId": 1})
            return await peer.receive()

    assert run(main())["result"] == {"stopReason": "cancelled"}


@CANCELLING
def test_a_cancel_that_comes_too_often(packages: Packages, sources: SchemaChoice) -> None:
    """The second one must not disturb the handler, which is cleaning up after the first."""
    acp = packages(sources)

    async def main() -> tuple[Any, list[Any]]:
        go = asyncio.Event()

        async def clean_up() -> Any:
            await go.wait()
            return "cleaned up"

        async with raw_peer(acp, waiting_agent(acp, catches=clean_up)) as peer:
            await peer.request(1, "_wait")
            for _ in range(3):
                await peer.notify(CANCEL, {"requestId": 1})
                assert await peer.ping() == []
            go.set()
            answer = await peer.receive()
            await peer.notify(CANCEL, {"requestId": 1})
            return answer, await peer.ping()

    answer, more = run(main())
    assert (answer["result"], more) == ("cleaned up", [])


@CANCELLING
@pytest.mark.parametrize(
    "params",
    [
        {"requestId": 5},
        {"requestId": "1"},
        {"requestId": 1.0},
        {"requestId": True},
        {"requestId": None},
        {"requestId": [1]},
        {"requestId": {}},
        {},
        None,
        [1],
        1,
    ],
)
def test_a_cancel_of_nothing_is_ignored(packages: Packages, sources: SchemaChoice, params: Any) -> None:
    """No other request stops, not even one whose id compares equal."""
    acp = packages(sources)

    async def main() -> list[Any]:
        async with raw_peer(acp, waiting_agent(acp)) as peer:
            await peer.request(1, "_wait")
            await peer.notify(CANCEL, params)
            before = await peer.ping()
            await peer.notify(CANCEL, {"requestId": 1})
            return [*before, await peer.receive()]

    (answer,) = run(main())
    assert (answer["id"], answer["error"]["code"]) == (1, -32800)


def test_a_cancel_of_a_finished_request_is_ignored(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, waiting_agent(acp)) as peer:
            assert (await peer.ask(1, "_quick"))["result"] == "_quick"
            await peer.notify(CANCEL, {"requestId": 1})
            await peer.ping()
            await peer.request(1, "_wait")  # the id is free again
            before = await peer.ping()
            await peer.notify(CANCEL, {"requestId": 1})
            return [*before, await peer.receive()]

    (answer,) = run(main())
    assert answer["error"]["code"] == -32800


def test_the_handler_of_cancels_hears_of_them(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[Any] = []

    async def cancel_request(self: Any, params: Any) -> None:
        seen.append(params.request_id)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, cancel_request=cancel_request)) as peer:
            await peer.notify(CANCEL, {"requestId": 12})
            await peer.ping()

    run(main())
    assert seen == [12]


# --- This side withdraws --------------------------------------------------------------------------------------------


@CANCELLING
def test_cancelling_the_task_that_waits_withdraws_its_request(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiters = [asyncio.create_task(peer.stub.ext_method("_work", n)) for n in range(3)]
            asked = [await peer.receive() for _ in waiters]
            waiters[1].cancel()
            waiters[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiters[1]
            waiters[1].cancel()
            expected = {"jsonrpc": "2.0", "method": CANCEL, "params": {"requestId": asked[1]["id"]}}
            assert await peer.receive() == expected
            assert await peer.ping() == []
            for message in (asked[0], asked[2]):
                await peer.answer(message["id"], result=message["params"])
            assert await asyncio.gather(waiters[0], waiters[2]) == [0, 2]

    run(main())


def test_a_timeout_withdraws_the_request(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> tuple[Any, Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(peer.stub.ext_method("_work", None), 0.01)
            return await peer.receive(), await peer.receive()

    request, cancel = run(main())
    assert cancel["params"] == {"requestId": request["id"]}


@pytest.mark.parametrize("late", [{"result": 1}, {"error": {"code": -32800, "message": "Request cancelled"}}])
def test_late_answers_are_ignored(packages: Packages, late: dict[str, Any]) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_work", None))
            number = (await peer.receive())["id"]
            waiter.cancel()
            await peer.receive()
            for _ in range(2):
                await peer.answer(number, **late)
            return await peer.ping()

    with acp_log() as records:
        assert run(main()) == []
    assert texts(records) == ""  # that is usual, and no reason for a warning


def test_an_answer_that_is_there_already_needs_no_cancel(packages: Packages) -> None:
    """The answer has come in, and the waiter is cancelled before it gets to see it."""
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_work", None))
            number = (await peer.receive())["id"]

            async def ext_notification(method: str, params: Any) -> None:
                waiter.cancel()

            peer.handler.ext_notification = ext_notification
            await peer.answer(number, result=None)
            await peer.notify("_cancel_it")
            before = await peer.ping()
            await asyncio.wait([waiter])
            assert waiter.result() is None  # it went on before the notification was looked at
            return before + await peer.ping()

    assert run(main()) == []


def test_a_cancel_goes_through_to_the_peer_and_back(packages: Packages) -> None:
    """The client gives up; the agent's handler ends, and withdraws what it asked the client meanwhile."""
    acp = packages(V1)
    ends: list[str] = []

    async def main() -> None:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def agent_method(self: Any, method: str, params: Any) -> Any:
            try:
                return await self.client.ext_method("_inner", params)
            finally:
                ends.append("agent")

        async def client_method(self: Any, method: str, params: Any) -> Any:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ends.append("client")
                ended.set()

        agent, client = agent_of(acp, ext_method=agent_method), client_of(acp, ext_method=client_method)
        async with pair(acp, agent, client) as both:
            waiter = asyncio.create_task(both.agent.ext_method("_outer", None))
            await asked.wait()
            waiter.cancel()
            await ended.wait()
            assert waiter.cancelled()

    run(main())
    assert ends == ["agent", "client"]


def test_a_peer_that_cancels_raises_the_error_of_that(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_work", None))
            number = (await peer.receive())["id"]
            await peer.answer(number, error={"code": -32800, "message": "stopped"})
            with pytest.raises(acp.RequestCancelledError, match="stopped"):
                await waiter

    run(main())


# --- A base without cancellation ------------------------------------------------------------------------------------


def test_a_base_without_cancel_sends_none(packages: Packages) -> None:
    acp = packages(OLD)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_work", None))
            number = (await peer.receive())["id"]
            waiter.cancel()
            await asyncio.wait([waiter])
            before = await peer.ping()
            await peer.answer(number, result="late")
            return before + await peer.ping()

    assert run(main()) == []


def test_a_base_without_cancel_takes_none(packages: Packages) -> None:
    acp = packages(OLD)
    ends: list[str] = []

    async def main() -> None:
        async with raw_peer(acp, waiting_agent(acp, ends=ends)) as peer:
            await peer.request(1, "_wait")
            await peer.notify(CANCEL, {"requestId": 1})
            assert await peer.ping() == []
            assert ends == []

    run(main())
    assert ends == ["_wait"]  # when the connection ended


def test_a_request_that_was_answered_is_not_cancelled_at_the_peer(packages: Packages) -> None:
    """The task is cancelled after the response has arrived, and before the task continues."""
    acp = packages(V1)
    sent: list[Any] = []

    async def ask(stub: Any) -> Any:
        return await stub.ext_method("_quick", {})

    async def main() -> list[Any]:
        asking: list[asyncio.Task[Any]] = []

        def see(direction: str, line: bytes) -> None:
            if direction == "in" and b'"result"' in line:
                asyncio.get_running_loop().call_soon(asking[0].cancel)

        async with raw_peer(acp, agent_of(acp), options=acp.ConnectionOptions(on_message=see)) as peer:
            asking.append(asyncio.create_task(ask(peer.stub)))
            request = await peer.receive()
            sent.append(request["method"])
            await peer.answer(request["id"], result={})
            assert isinstance((await asyncio.gather(*asking, return_exceptions=True))[0], asyncio.CancelledError)
            await asyncio.sleep(0)
            return [each.get("method") for each in await peer.ping()]

    assert (run(main()), sent) == ([], ["_quick"])
