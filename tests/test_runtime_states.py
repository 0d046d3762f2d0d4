"""The states of connections: the tables, walked; and an endpoint made with callbacks, which goes as they say."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from types import ModuleType
from typing import Any, get_args

import pytest

from tests.runtime_support import V1, acp_log, run
from tests.support import Packages, runtime_module

pytestmark = pytest.mark.every_python


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


# --- The tables ------------------------------------------------------------------------------------------------------


def test_each_state_of_a_connection_is_left_as_the_table_says(acp: ModuleType) -> None:
    async def main() -> None:
        states = runtime_module(acp, "state")
        events = ("read end", "finished", "stop", "cleaned up")
        ways: dict[Any, tuple[str, ...]] = {"open": ()}
        rest: list[Any] = ["open"]
        while rest:
            state = rest.pop()
            for event in events:
                reasons: list[Any] = []
                life = states.Lifecycle(reasons.append)
                for each in (*ways[state], event):
                    life.handle(each)
                assert life.state is states.TRANSITIONS.get((state, event), state)
                assert len(reasons) == (life.state != "open")  # pending requests are rejected once
                assert (life.reason is None) is life.is_open
                if life.state not in ways:
                    ways[life.state] = (*ways[state], event)
                    rest.append(life.state)
        assert set(ways) == set(get_args(states.State))
        assert not [event for event in events if ("closed", event) in states.TRANSITIONS]

    run(main())


@pytest.mark.parametrize("seed", range(10))
def test_the_handshake_is_done_with_the_first_success_and_awaited_while_none_runs(acp: ModuleType, seed: int) -> None:
    chance, handshake = random.Random(seed), runtime_module(acp, "state").Handshake()
    handshake.require("initialize")
    running, is_done = 0, False
    for _ in range(200):
        step = handshake.step
        assert step == ("done" if is_done else "running" if running else "awaited")
        assert (handshake.refusal("other") is not None) is (step == "awaited")
        assert handshake.refusal("initialize") is None
        if running == 0 or chance.random() < 0.5:
            handshake.begins("initialize")
            running += 1
        else:
            succeeded = chance.random() < 0.02
            handshake.ends("initialize", succeeded=succeeded)
            running, is_done = running - 1, is_done or succeeded


def test_the_reading_always_comes_back_to_taking(acp: ModuleType) -> None:
    table = runtime_module(acp, "state").READING
    states = {state for moves in table.values() for pair in moves.items() for state in pair}
    assert states == {"taking", "idle", "handling"}
    for start in states - {"taking"}:
        ends = [moves[start] for moves in table.values() if start in moves]
        assert set(ends) == {"taking"}, "nothing follows but to take the next message"
        assert [moves["taking"] for moves in table.values() if moves.get("taking") == start], "it is reached"


# --- An endpoint -----------------------------------------------------------------------------------------------------


class Eager:
    """A transport of messages that tells what has arrived."""

    peer_kind = "process"

    def __init__(self, acp: ModuleType) -> None:
        self.message = runtime_module(acp, "message")
        self.waiting: list[Any] = []
        self.sent: list[Any] = []

    def attach(self, arrived: Callable[[bool], None]) -> None:
        self.arrived = arrived

    def ready(self) -> Any:
        return self.waiting.pop(0) if self.waiting else None

    async def read(self) -> Any:
        return self.ready()

    def send(self, message: Any) -> None:
        try:
            json.dumps(message.value)
        except TypeError as error:
            raise self.message.Unsendable(str(error)) from error
        self.sent.append(message.to_json())

    async def close(self) -> None:
        pass

    def feed(self, *messages: dict[str, Any]) -> None:
        self.waiting += [self.message.message_of({"jsonrpc": "2.0", **each}) for each in messages]
        self.arrived(False)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def made(acp: ModuleType, on_notification: Callable[[str, Any], Awaitable[None]]) -> tuple[Any, Eager]:
    transport = Eager(acp)

    async def on_request(method: str, params: Any) -> Any:
        return {method: params}

    options = acp.ConnectionOptions()
    endpoint = runtime_module(acp, "endpoint").Endpoint(
        transport, options, on_request=on_request, on_notification=on_notification
    )
    return endpoint, transport


def test_a_request_that_arrives_while_the_handler_of_a_notification_waits_for_its_own(acp: ModuleType) -> None:
    """It is answered at once: the handler has handed the reading over."""
    seen: list[Any] = []

    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            seen.append((method, endpoint.reading))
            seen.append((await endpoint.request("mine", None), endpoint.reading))

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        await settled()
        seen.append(endpoint.reading)
        transport.feed({"method": "changed"})
        await settled()
        seen.append(endpoint.reading)
        transport.feed({"id": 7, "method": "theirs", "params": [1]})
        await settled()
        transport.feed({"id": 0, "result": "read"})
        await settled()
        assert transport.sent == [
            {"jsonrpc": "2.0", "id": 0, "method": "mine"},
            {"jsonrpc": "2.0", "id": 7, "result": {"theirs": [1]}},
        ]
        await endpoint.close()

    run(main())
    assert seen == ["idle", ("changed", "handling"), "idle", ("read", "idle")]


def test_without_a_request_of_its_own_the_handler_keeps_the_reading(acp: ModuleType) -> None:
    async def main() -> None:
        over = asyncio.Event()

        async def on_notification(method: str, params: Any) -> None:
            await over.wait()

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        transport.feed({"method": "changed"}, {"id": 7, "method": "theirs"})
        await settled()
        assert (endpoint.reading, transport.sent) == ("handling", [])
        over.set()
        await settled()
        assert endpoint.reading == "idle"
        assert transport.sent == [{"jsonrpc": "2.0", "id": 7, "result": {"theirs": None}}]
        await endpoint.close()

    run(main())


def test_an_error_of_a_callback_has_no_details(acp: ModuleType) -> None:
    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            raise ValueError("secret")

        endpoint, transport = made(acp, on_notification)

        async def on_request(method: str, params: Any) -> Any:
            raise acp.RequestError("told", code=7) if method == "tells" else ValueError("secret")

        endpoint.serve(on_request, on_notification)
        endpoint.start()
        transport.feed({"method": "changed"}, {"id": 1, "method": "tells"}, {"id": 2, "method": "fails"})
        await settled()
        errors = [each["error"] for each in transport.sent]
        assert errors[0] == {"code": 7, "message": "told"}
        assert errors[1]["code"] == -32603
        assert "secret" not in json.dumps(transport.sent)
        await endpoint.close()

    with acp_log():
        run(main())


# --- Handing the reading over ----------------------------------------------------------------------------------------

mode: ContextVar[str] = ContextVar("mode", default="none")


def test_the_context_of_a_handler_is_not_that_of_the_loop_that_it_hands_over(acp: ModuleType) -> None:
    seen: list[str] = []

    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            seen.append(mode.get())
            mode.set(method)
            if method == "asks":
                await endpoint.request("mine", None)

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        transport.feed({"method": "asks"}, {"method": "second"}, {"method": "third"})
        await settled()
        await endpoint.close()

    run(main())
    assert seen == ["none", "none", "second"], "without a request, the next handler has the same context"


def test_a_request_that_cannot_be_sent_leaves_the_reading_with_the_handler(acp: ModuleType) -> None:
    """So the next message waits for that handler, as for any that sends nothing."""
    seen: list[str] = []

    async def main() -> None:
        over = asyncio.Event()

        async def on_notification(method: str, params: Any) -> None:
            seen.append(method)
            if method == "first":
                with pytest.raises(TypeError):
                    await endpoint.request("mine", {1})
                assert endpoint.reading == "handling"
                await over.wait()
                seen.append("over")

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        transport.feed({"method": "first"}, {"method": "second"})
        await settled()
        assert seen == ["first"]
        over.set()
        await settled()
        await endpoint.close()

    run(main())
    assert seen == ["first", "over", "second"]


@pytest.mark.parametrize("turns", range(6))
def test_a_loop_that_is_cancelled_twice_goes_on(acp: ModuleType, turns: int) -> None:
    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            cancel_later(task, turns)

        def cancel_later(task: asyncio.Task[None], turns: int) -> None:
            if turns:
                asyncio.get_running_loop().call_soon(cancel_later, task, turns - 1)
            else:
                task.cancel()

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        await settled()
        transport.feed({"method": "changed"})
        await settled()
        transport.feed({"id": 7, "method": "theirs"})
        await settled()
        assert transport.sent == [{"jsonrpc": "2.0", "id": 7, "result": {"theirs": None}}]
        await endpoint.close()

    with acp_log():
        run(main())


def test_what_a_listener_returns_is_awaited_before_the_next_message(acp: ModuleType) -> None:
    """Also if its response arrives while the loop is idle."""
    seen: list[Any] = []

    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            seen.append(method)

        async def rest() -> None:
            await settled()
            seen.append("rest")

        endpoint, transport = made(acp, on_notification)
        endpoint.start()
        await settled()
        request = asyncio.create_task(endpoint.request("mine", None, listener=lambda _: rest()))
        await settled()
        transport.feed({"id": 0, "result": 1}, {"method": "next"})
        assert await request == 1
        for _ in range(3):
            await settled()
        await endpoint.close()

    run(main())
    assert seen == ["rest", "next"]


def test_a_request_whose_task_is_cancelled_before_it_begins_is_over(acp: ModuleType) -> None:
    async def main() -> None:
        async def on_notification(method: str, params: Any) -> None:
            pass

        endpoint, transport = made(acp, on_notification)
        endpoint.handshake.require("hello", is_alone=True)
        endpoint.start()
        await settled()
        before = asyncio.all_tasks()
        transport.feed({"id": 1, "method": "hello"})
        (task,) = asyncio.all_tasks() - before
        task.cancel()
        await settled()
        transport.feed({"id": 1, "method": "hello"})
        await settled()
        assert [(each["id"], "error" in each) for each in transport.sent] == [(1, True), (1, False)]
        await endpoint.close()

    with acp_log():
        run(main())
