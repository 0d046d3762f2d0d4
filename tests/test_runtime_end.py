"""How connections end: what is rejected, what is cleaned up, and what happens to later calls."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import (
    V1,
    V2,
    acp_log,
    agent_of,
    client_of,
    pair,
    raw_peer,
    run,
    started,
    stub_of,
    texts,
    unchecked,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
ENDS = pytest.mark.parametrize("end", ["the peer closes", "this side closes", "this side stops"])


async def bring_about(end: str, peer: Any) -> None:
    """End the connection of `peer` in one of the ways in which that happens."""
    if end == "the peer closes":
        await peer.transport.close()
        await peer.connection.wait_closed()
    elif end == "this side closes":
        await peer.connection.close()
    else:
        peer.connection.stop()
        await peer.connection.wait_closed()


def never_ending(ends: list[Any]) -> Any:
    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method != "_wait":
            return method
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # cleaning up may take its time
            ends.append(params)

    return ext_method


@BOTH
@ENDS
def test_pending_calls_fail_and_handlers_clean_up(packages: Packages, sources: SchemaChoice, end: str) -> None:
    acp = packages(sources)
    ends: list[Any] = []
    reasons: list[Any] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        reasons.append((reason, list(ends)))

    async def main() -> None:
        options = acp.ConnectionOptions(finish_seconds=0.02)
        kind = agent_of(acp, ext_method=never_ending(ends), connection_closed=connection_closed)
        async with raw_peer(acp, kind, options=options) as peer:
            waiters = [asyncio.create_task(peer.stub.ext_method("_ask", n)) for n in range(5)]
            for number in range(3):
                await peer.request(number, "_wait", number)
            assert len(await peer.ping()) == len(waiters)
            await bring_about(end, peer)
            found = await asyncio.gather(*waiters, return_exceptions=True)
            assert [type(each) for each in found] == [acp.ConnectionClosed] * 5
            assert all(isinstance(each, ConnectionError) for each in found)

    run(main())
    ((reason, before),) = reasons
    assert isinstance(reason, acp.ConnectionClosed)
    assert sorted(before) == [0, 1, 2]  # connection_closed comes last
    assert sorted(ends) == [0, 1, 2]


@ENDS
def test_a_call_after_the_end_fails(packages: Packages, end: str) -> None:
    acp = packages(V1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            await bring_about(end, peer)
            with pytest.raises(acp.ConnectionClosed):
                await peer.stub.ext_method("_ask", None)
            with pytest.raises(acp.ConnectionClosed):
                await peer.stub.ext_notification("_tell", None)
            with pytest.raises(acp.ConnectionClosed):
                await peer.stub.session_request_permission(
                    acp.RequestPermissionRequest(
                        session_id="s", tool_call=acp.ToolCallUpdate(tool_call_id="t"), options=[]
                    )
                )

    run(main())


@ENDS
def test_a_handler_that_waits_for_the_peer_learns_of_the_end(packages: Packages, end: str) -> None:
    """Which it can tell from being cancelled; and that is no failure of its own."""
    acp = packages(V1)
    seen: list[Any] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        try:
            await self.client.ext_method("_ask", params)
        except BaseException as error:
            seen.append(type(error))
            raise

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.request(1, "_wait")
            await peer.receive()
            await bring_about(end, peer)

    with acp_log() as records:
        run(main())
    assert seen == [acp.ConnectionClosed]
    assert texts(records, logging.ERROR) == ""


@ENDS
def test_a_notification_handler_that_waits_for_the_peer_learns_of_the_end(packages: Packages, end: str) -> None:
    acp = packages(V1)
    seen: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        try:
            await self.client.ext_method("_ask", params)
        except BaseException as error:
            seen.append(type(error))
            raise

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            await peer.notify("_n")
            await peer.receive()
            await bring_about(end, peer)

    run(main())
    assert seen == [acp.ConnectionClosed]


def test_a_handler_may_finish_after_the_end(packages: Packages) -> None:
    """The peer has sent its request and the end at once, and reads the answer, as `printf … | agent` does."""
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        await asyncio.sleep(0.01)
        return "finished"

    async def main() -> list[Any]:
        near, far = acp.memory_transports()
        connection, _ = started(acp, agent_of(acp, ext_method=ext_method), HalfClosing(near))
        await far.write(b'{"jsonrpc":"2.0","id":1,"method":"_a"}')
        answer = await far.read()
        await connection.wait_closed()
        return [answer, await far.read()]

    assert run(main()) == [b'{"jsonrpc":"2.0","id":1,"result":"finished"}', None]


class HalfClosing:
    """A transport whose peer sends one message, and keeps reading."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._left = 1
        self.write, self.close = transport.write, transport.close

    async def read(self) -> Any:
        self._left -= 1
        return await self._transport.read() if self._left >= 0 else None


class Failing:
    """A transport that fails with what is given, in the way that is given."""

    def __init__(self, transport: Any, **faults: BaseException) -> None:
        self._transport = transport
        self._faults = faults

    async def read(self) -> Any:
        return await self._do("read")

    async def write(self, message: bytes) -> None:
        await self._do("write", message)

    async def close(self) -> None:
        await self._transport.close()
        if "close" in self._faults:
            raise self._faults["close"]

    async def _do(self, what: str, *args: Any) -> Any:
        if what in self._faults:
            raise self._faults[what]
        return await getattr(self._transport, what)(*args)


@pytest.mark.parametrize("what", ["read", "write", "close"])
@pytest.mark.parametrize("fault", [ConnectionResetError("reset"), BrokenPipeError("gone"), OSError(5, "io error")])
def test_a_transport_that_fails_ends_the_connection(packages: Packages, what: str, fault: OSError) -> None:
    acp = packages(V1)
    reasons: list[Any] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        reasons.append(reason)

    async def main() -> None:
        near, far = acp.memory_transports()
        kind = agent_of(acp, connection_closed=connection_closed)
        connection, _ = started(acp, kind, Failing(near, **{what: fault}))
        if what == "close":
            await far.close()
        else:
            with pytest.raises(acp.ConnectionClosed):
                await stub_of(acp, kind, connection).ext_method("_ask", None)
        await connection.wait_closed()
        await far.close()

    run(main())
    assert [type(reason) for reason in reasons] == [acp.ConnectionClosed]


class Stop(BaseException):
    """As pytest's `Failed` and trio's `Cancelled` are."""


@pytest.mark.parametrize(("what", "fault"), [("read", Stop("S")), ("read", GeneratorExit("S")), ("write", Stop("S"))])
def test_a_transport_that_raises_no_exception_ends_the_connection(
    packages: Packages, what: str, fault: BaseException
) -> None:
    acp = packages(V1)

    async def main() -> None:
        near, far = acp.memory_transports()
        kind = agent_of(acp)
        connection, _ = started(acp, kind, Failing(near, **{what: fault}))
        with pytest.raises(acp.ConnectionClosed, match=f"cannot {what}: S"):
            await stub_of(acp, kind, connection).ext_method("_ask", None)
        await connection.wait_closed()
        await far.close()

    with acp_log() as records:
        run(main())
    assert "the transport failed" in texts(records)


def test_a_transport_that_does_not_stick_to_the_rules(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        near, far = acp.memory_transports()
        connection, _ = started(acp, agent_of(acp), Failing(near, read=ValueError("what a transport")))
        await connection.wait_closed()
        await far.close()

    with acp_log() as records:
        run(main())
    assert "what a transport" in texts(records)


# --- Ending twice, at once, and in between --------------------------------------------------------------------------


def test_ending_again_does_nothing(packages: Packages) -> None:
    acp = packages(V1)
    reasons: list[Any] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        reasons.append(reason)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, connection_closed=connection_closed)) as peer:
            peer.connection.stop()
            peer.connection.stop()
            await asyncio.gather(*(peer.connection.close() for _ in range(3)))
            await peer.connection.wait_closed()
            peer.connection.stop()
            await peer.connection.close()

    run(main())
    assert len(reasons) == 1


def test_a_connection_that_was_never_started_can_be_closed(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        near, far = acp.memory_transports()
        await acp.Connection(near).close()
        await near.close()
        await far.close()

    run(main())


def test_both_sides_close_at_once(packages: Packages) -> None:
    acp = packages(V1)
    ends: list[Any] = []

    async def main() -> None:
        async with pair(acp, agent_of(acp, ext_method=never_ending(ends)), client_of(acp)) as both:
            waiters = [asyncio.create_task(both.agent.ext_method("_wait", n)) for n in range(3)]
            assert await both.agent.ext_method("_begun", None) == "_begun"
            await asyncio.gather(both.client_side.close(), both.agent_side.close())
            found = await asyncio.gather(*waiters, return_exceptions=True)
            assert [type(each) for each in found] == [acp.ConnectionClosed] * 3

    run(main())
    assert sorted(ends) == [0, 1, 2]


def test_serve_agent_and_connect_end_together(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> Any:
        near, far = acp.memory_transports()
        serving = asyncio.create_task(acp.serve_agent(agent_of(acp, ext_method=echo), near, options=unchecked(acp)))
        async with acp.connect(client_of(acp), far) as agent:
            answer = await agent.ext_method("_a", 1)
        await serving
        return answer

    assert run(main()) == 1


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


def test_cancelling_serve_agent_ends_the_connection(packages: Packages) -> None:
    acp = packages(V1)
    ends: list[Any] = []

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.create_task(
            acp.serve_agent(agent_of(acp, ext_method=never_ending(ends)), near, options=unchecked(acp))
        )
        async with acp.connect(client_of(acp), far) as agent:
            waiter = asyncio.create_task(agent.ext_method("_wait", "cleaned up"))
            assert await agent.ext_method("_begun", None) == "_begun"
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
            with pytest.raises(acp.ConnectionClosed):
                await waiter

    run(main())
    assert ends == ["cleaned up"]


def test_an_exception_in_the_block_of_connect_ends_the_connection(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.create_task(acp.serve_agent(agent_of(acp), near))
        with pytest.raises(ZeroDivisionError):
            async with acp.connect(client_of(acp), far):
                raise ZeroDivisionError
        await serving

    run(main())


def test_a_handler_may_end_the_connection(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp)) as peer:

            async def ext_notification(method: str, params: Any) -> None:
                peer.connection.stop()

            peer.handler.ext_notification = ext_notification
            await peer.notify("_bye")
            await peer.connection.wait_closed()
            return await peer.receive()

    assert run(main()) is None


def test_a_result_that_comes_too_late_is_no_failure_of_its_handler(packages: Packages) -> None:
    acp, began = packages(V1), asyncio.Event()
    failures: list[Any] = []

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "in time, it thinks"

    async def main() -> None:
        options = acp.ConnectionOptions(on_error=lambda *failure: failures.append(failure))
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options) as peer:
            await peer.request(1, "_m")
            await began.wait()

    run(main())
    assert failures == []
