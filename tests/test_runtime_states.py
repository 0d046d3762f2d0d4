"""The states of connections: the tables, walked; and an endpoint made with callbacks, which goes as they say."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

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
        ways: dict[Any, tuple[str, ...]] = {states.State.OPEN: ()}
        rest = [states.State.OPEN]
        while rest:
            state = rest.pop()
            for event in events:
                reasons: list[Any] = []
                life = states.Lifecycle(reasons.append)
                for each in (*ways[state], event):
                    life.handle(each)
                assert life.state is states.TRANSITIONS.get((state, event), state)
                assert len(reasons) == (life.state is not states.State.OPEN)  # pending requests are rejected once
                assert (life.reason is None) is life.is_open
                if life.state not in ways:
                    ways[life.state] = (*ways[state], event)
                    rest.append(life.state)
        assert set(ways) == set(states.State)
        assert not [event for event in events if (states.State.CLOSED, event) in states.TRANSITIONS]

    run(main())


@pytest.mark.parametrize("seed", range(10))
def test_the_handshake_is_done_with_the_first_success_and_awaited_while_none_runs(acp: ModuleType, seed: int) -> None:
    chance, handshake = random.Random(seed), runtime_module(acp, "state").Handshake()
    handshake.require("initialize")
    running, is_done = 0, False
    for _ in range(200):
        step = handshake.step
        assert step is (
            runtime_module(acp, "state").Step.DONE
            if is_done
            else runtime_module(acp, "state").Step[("AWAITED", "RUNNING")[running > 0]]
        )
        assert (handshake.refusal("other") is not None) is (step is runtime_module(acp, "state").Step.AWAITED)
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
