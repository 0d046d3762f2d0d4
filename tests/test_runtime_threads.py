"""Stubs outside of the event loop of their connection: they refuse, and `blocking` calls from any other thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import between, package, proxy_of
from tests.runtime_support import SECONDS, V1, agent_of, client_of, pair, run, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python

REFUSED = "outside of the event loop of its connection.*blocking\\(stub\\)"


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1)


def update(acp: ModuleType, text: str = "x") -> Any:
    content = acp.ContentBlockText(text=text)
    return acp.SessionNotification(session_id="s", update=acp.SessionUpdateAgentMessageChunk(content=content))


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns or raises."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whichever it is
        return error


class Echoing:
    """Handlers of both sides, and what they were asked."""

    def __init__(self, acp: ModuleType) -> None:
        self.seen: list[Any] = []
        self.cancelled: list[str] = []
        self.parked = threading.Event()
        self.acp = acp

        async def ext_method(_: Any, method: str, params: Any) -> Any:
            if method == "_park":
                self.parked.set()
                try:
                    await asyncio.sleep(SECONDS)
                except asyncio.CancelledError:
                    self.cancelled.append(method)
                    raise
            if method == "_fail":
                raise acp.InvalidParamsError("no")
            return params

        async def ext_notification(_: Any, method: str, params: Any) -> None:
            self.seen.append(params)

        async def session_update(_: Any, params: Any) -> None:
            self.seen.append(params.update.content.text)

        self.agent = agent_of(acp, ext_method=ext_method, ext_notification=ext_notification)
        self.client = client_of(
            acp, ext_method=ext_method, ext_notification=ext_notification, session_update=session_update
        )

    def pair(self) -> Any:
        options = unchecked(self.acp)
        return pair(self.acp, self.agent, self.client, agent_options=options, client_options=options)


# --- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["agent", "client"])
@pytest.mark.parametrize("how", ["ext_method", "ext_notification"])
def test_a_stub_in_another_loop_refuses(acp: ModuleType, side: str, how: str) -> None:
    echoing = Echoing(acp)

    async def main() -> None:
        async with echoing.pair() as both:
            call = getattr(getattr(both, side), how)
            with pytest.raises(RuntimeError, match=REFUSED):
                await asyncio.to_thread(lambda: asyncio.run(call("_x", {})))
            await call("_x", {"still": "works"})

    run(main())


@pytest.mark.parametrize("how", ["ext_method", "ext_notification"])
def test_a_stub_without_a_loop_refuses(acp: ModuleType, how: str) -> None:
    """As in the loop of another library, which drives coroutines itself."""
    echoing = Echoing(acp)

    async def main() -> None:
        async with echoing.pair() as both:
            call = getattr(both.client, how)
            with pytest.raises(RuntimeError, match=rf"called by .*{__name__.rpartition('.')[2]}.*{REFUSED}"):
                await asyncio.to_thread(lambda: call("_x", {}).send(None))
            await call("_x", {"still": "works"})

    run(main())


def test_the_error_names_the_place(acp: ModuleType) -> None:
    echoing = Echoing(acp)

    async def main() -> None:
        async with echoing.pair() as both:

            async def tool() -> None:
                await both.client.session_update(update(acp))

            with pytest.raises(RuntimeError, match=f"{REFUSED}|tool in line .*{__name__}"):
                await asyncio.to_thread(lambda: asyncio.run(tool()))
            with pytest.raises(RuntimeError, match=r"a stub, called by .*tool in line \d+ of .*test_runtime_threads"):
                await asyncio.to_thread(lambda: asyncio.run(tool()))
        assert echoing.seen == []

    run(main())


def test_a_connection_in_another_loop_refuses_to_close(acp: ModuleType) -> None:
    echoing = Echoing(acp)

    async def main() -> Any:
        async with echoing.pair() as both:
            for method in (both.agent_side.close, both.agent_side.wait_closed):
                with pytest.raises(RuntimeError, match="outside of the event loop"):
                    await asyncio.to_thread(lambda method=method: asyncio.run(method()))
            assert await both.agent.ext_method("_x", 1) == 1
        return both.agent_side

    closed = run(main())
    run(closed.close())  # it is closed: there is nothing to wait for


@pytest.mark.parametrize("target", ["agent", "client"])
def test_a_proxy_in_another_loop_refuses(packages: Packages, target: str) -> None:
    acp = package(packages)
    found: list[Any] = []

    async def from_client(self: Any, call: Any) -> Any:
        if call.method != "_ask":
            return await call.forward()
        stub = getattr(self, target)
        calls = stub.ext_method("_x", {}), stub.ext_notification("_x", {}), call.forward()
        found.extend(await asyncio.to_thread(lambda: [outcome(lambda each=each: asyncio.run(each)) for each in calls]))
        return await asyncio.to_thread(acp.blocking(self.agent).ext_method, "_b", {})

    async def main() -> None:
        async with between(acp, [proxy_of(acp, from_client=from_client)]) as stage:
            await stage.client.request("_ask", {})
            request = await stage.agent.receive()
            assert request["method"] == "_b"
            await stage.agent.answer(request, result={"seen": True})
            assert (await stage.client.receive())["result"] == {"seen": True}

    run(main())
    assert [type(error) for error in found] == [RuntimeError] * 3
    assert all("blocking(stub)" in str(error) for error in found)


# --- blocking --------------------------------------------------------------------------------------------------------


def test_blocking_calls_from_a_thread(acp: ModuleType) -> None:
    echoing = Echoing(acp)

    def tool(client: Any) -> Any:
        stub = acp.blocking(client)
        assert stub.session_update(update(acp, "one")) is None
        acp.blocking(client.session_update)(update(acp, "two"))
        stub.ext_notification("_n", "three")
        assert stub.supports("fs/read_text_file") is client.supports("fs/read_text_file")
        error = outcome(lambda: stub.ext_method("_fail", {}))
        assert isinstance(error, acp.InvalidParamsError)
        assert isinstance(outcome(lambda: stub.session_update(5)), TypeError)
        return stub.ext_method("_x", {"n": 1})

    async def main() -> None:
        async with echoing.pair() as both:
            assert await asyncio.to_thread(tool, both.client) == {"n": 1}
            assert echoing.seen == ["one", "two", "three"]
            assert await asyncio.to_thread(acp.blocking(both.agent).ext_method, "_x", 2) == 2

    run(main())


def test_a_notification_may_block_on_a_request_of_its_own(acp: ModuleType) -> None:
    """Its handler waits for a thread, and the answer must be read meanwhile."""
    found: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        found.append(await asyncio.to_thread(acp.blocking(self.client).ext_method, "_x", params))

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return params

    async def main() -> None:
        agent = agent_of(acp, ext_notification=ext_notification, ext_method=ext_method)
        client, options = client_of(acp, ext_method=ext_method), unchecked(acp)
        async with pair(acp, agent, client, agent_options=options, client_options=options) as both:
            await both.agent.ext_notification("_n", 7)
            while not found:
                await asyncio.sleep(0.01)

    run(main())
    assert found == [7]


def test_blocking_in_the_thread_of_the_loop_refuses(acp: ModuleType) -> None:
    echoing = Echoing(acp)

    async def main() -> None:
        async with echoing.pair() as both:
            with pytest.raises(RuntimeError, match=r"would wait for itself: await RemoteClient\.session_update"):
                acp.blocking(both.client).session_update(update(acp))
            with pytest.raises(RuntimeError, match="would wait for itself"):
                acp.blocking(both.client.session_update)(update(acp))

    run(main())


def test_time_out(acp: ModuleType) -> None:
    """The request is cancelled at the peer, and the connection goes on."""
    echoing = Echoing(acp)

    async def main() -> None:
        async with echoing.pair() as both:
            stub = acp.blocking(both.client, seconds=0.1)
            with pytest.raises(TimeoutError, match=r"no answer within 0\.1 seconds"):
                await asyncio.to_thread(stub.ext_method, "_park", {})
            assert await both.client.ext_method("_x", 1) == 1
            assert echoing.cancelled == ["_park"]

    run(main())


def test_the_end_of_the_connection(acp: ModuleType) -> None:
    echoing = Echoing(acp)

    async def main() -> Any:
        async with echoing.pair() as both:
            stub = acp.blocking(both.client)
            waiting = asyncio.ensure_future(asyncio.to_thread(outcome, lambda: stub.ext_method("_park", {})))
            await asyncio.to_thread(echoing.parked.wait)
        return await waiting, await asyncio.to_thread(outcome, lambda: stub.ext_method("_x", {})), stub

    during, after, stub = run(main())
    assert [type(error) for error in (during, after)] == [acp.ConnectionClosed] * 2
    error = outcome(lambda: stub.ext_method("_x", {}))
    assert isinstance(error, acp.ConnectionClosed)
    assert str(error) == "the event loop of the connection has ended"


def test_a_loop_that_ends_without_a_word(acp: ModuleType) -> None:
    """A loop that is stopped resolves nothing: whoever waits for it must not wait for ever."""
    echoing = Echoing(acp)
    loop = asyncio.new_event_loop()
    connection: list[Any] = []

    async def begin() -> None:
        near, far = acp.memory_transports()
        for kind, transport in ((echoing.agent, near), (echoing.client, far)):
            side = acp.Connection(transport, unchecked(acp))
            stub = (acp.RemoteClient if kind is echoing.agent else acp.RemoteAgent)(side)
            side.start(kind(stub))
            connection.append((side, stub))

    loop.run_until_complete(begin())
    found: list[Any] = []
    call = acp.blocking(connection[0][1]).ext_method
    thread = threading.Thread(target=lambda: found.append(outcome(lambda: call("_park", {}))))

    async def wait() -> None:
        await asyncio.to_thread(echoing.parked.wait)

    loop.call_soon(thread.start)
    loop.run_until_complete(wait())
    try:
        thread.join(SECONDS)
        assert isinstance(found[0], acp.ConnectionClosed)
    finally:
        loop.run_until_complete(connection[0][0].close())
        loop.run_until_complete(connection[1][0].close())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
    assert isinstance(outcome(lambda: call("_x", {})), acp.ConnectionClosed)


def test_misuse(acp: ModuleType) -> None:
    class Custom:
        async def request(self, method: str, params: Any) -> Any: ...

        async def notify(self, method: str, params: Any) -> None: ...

    for wrong in (None, 5, "stub", acp.RemoteClient, len, asyncio.sleep):
        with pytest.raises(TypeError, match=r"blocking got .*; expected a stub, or a method of one"):
            acp.blocking(wrong)
    with pytest.raises(TypeError, match="of no connection"):
        acp.blocking(acp.RemoteClient(Custom())).ext_method("_x", {})
    with pytest.raises(AttributeError, match="nothing"):
        _ = acp.blocking(acp.RemoteClient(Custom())).nothing
