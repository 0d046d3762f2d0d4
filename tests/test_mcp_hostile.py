"""Sides that misuse MCP through the connection: errors of the right code, limits that hold, and nothing left."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from acpgen.roles import RoleChoice
from tests.mcp_support import REQUIRED, Pair, pair, play
from tests.needs import need
from tests.runtime_support import V1, V2, run
from tests.support import DEEP, Packages

if TYPE_CHECKING:
    from tests.mcp_tools import Tools

WAIT = {"name": "wait", "arguments": {}}
MANY = 10_000 if DEEP else 2_000
PROGRESS = {"progressToken": "p", "progress": 1}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    need("mcp")
    base = V1 if request.param == 1 else V2
    return packages(replace(base, extensions=("mcp-over-acp",)), roles=RoleChoice.BOTH.roles)


async def code(call: Any) -> Any:
    """The code of the error that a call ends with, or None."""
    try:
        await call
    except Exception as error:  # noqa: BLE001  of the connection or of `mcp`
        return getattr(error, "code", type(error).__name__)
    return None


class Notes:
    """What takes the notifications about a call; the caller must keep it no longer than the call."""

    def __init__(self) -> None:
        self.seen = list[Any]()

    async def __call__(self, notification: Any) -> None:
        self.seen.append(notification.params)


# --- An agent that misuses the servers of its client -----------------------------------------------------------------


def test_a_flood_of_calls(acp: ModuleType) -> None:
    """As many as the limit says run; all others are refused, and then there is room again."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        for flood in (1, 2):
            tools.go.clear()
            calls = [
                asyncio.ensure_future(code(both.raw(server_id, "tools/call", WAIT, number=f"{each}")))
                for each in range(500)
            ]
            while sum(each.done() for each in calls) < 500 - 64:
                await asyncio.sleep(0.01)
            assert [each.result() for each in calls if each.done()] == [-33000] * (500 - 64)
            tools.go.set()
            assert [await each for each in calls if not each.done()] == [None] * 64
            assert tools.begun == flood * 64
        assert "result" in await both.raw(server_id, "tools/list", {})

    play(acp, talk)


def test_ids_that_were_never_given_out(acp: ModuleType) -> None:
    """Neither guesses nor the empty id reach a server, and asking does not make one known."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        guesses = ("", "0", server_id[:-1], f"{server_id} ", server_id.upper() + "G", "../" + server_id)
        assert [await code(both.raw(each, "tools/list", {})) for each in guesses] == [-33001] * len(guesses)
        assert [each in both.provider for each in (*guesses, server_id)] == [False] * len(guesses) + [True]

    play(acp, talk)


def test_a_server_of_another_connection(acp: ModuleType) -> None:
    """Its id is unknown here, and its owner learns nothing of the attempt."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp) as one, pair(acp) as other:
            entry = await other.provider.offer(Tools().server())
            assert await code(one.raw(entry.server_id, "tools/list", {})) == -33001
            assert other.requests == []

    run(main())


def test_servers_of_a_session_that_has_ended(acp: ModuleType) -> None:
    """Its calls end, and those of another session go on; its id stays unknown, also if its server comes again."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp) as both:
            ending, going_on = Tools(), Tools()
            first, second = [await both.provider.offer(each.server()) for each in (ending, going_on)]
            calls = [
                asyncio.ensure_future(code(both.raw(each.server_id, "tools/call", WAIT))) for each in (first, second)
            ]
            await asyncio.gather(ending.started.wait(), going_on.started.wait())
            await both.provider.withdraw(first)
            assert await calls[0] == -32800
            again = await both.provider.offer(ending.server())
            assert again.server_id != first.server_id
            assert await code(both.raw(first.server_id, "tools/list", {}, number="later")) == -33001
            assert not calls[1].done()
            going_on.go.set()
            assert await calls[1] is None
            assert (ending.cancelled, going_on.cancelled) == (1, 0)

    run(main())


def test_a_call_that_never_ends_goes_with_its_connection(acp: ModuleType) -> None:
    """With as many as there may be, and each of them ends at the server."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        calls.extend(
            asyncio.ensure_future(code(both.raw(server_id, "tools/call", WAIT, number=f"{each}"))) for each in range(64)
        )
        while tools.begun < 64:
            await asyncio.sleep(0.01)

    calls = list[Any]()
    assert play(acp, talk).cancelled == 64
    assert all(each.done() and each.result() is not None for each in calls)


def test_calls_after_the_end_of_the_connection(acp: ModuleType) -> None:
    """They are errors of `mcp`, at once."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp) as both:
            entry = await both.provider.offer(Tools().server())
        take = Notes()
        given = weakref.ref(take)
        assert await code(
            both.caller.request(entry.server_id, "tools/list", {"_meta": REQUIRED}, on_notification=take)
        ) == (-32000)
        del take
        await asyncio.sleep(0)  # until then, the event loop has the exception
        gc.collect()
        assert given() is None

    run(main())


def test_a_subscription_ends_with_its_server(acp: ModuleType) -> None:
    from mcp.shared.subscriptions import ToolsListChanged

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        params = {"notifications": {"toolsListChanged": True}}
        listening = asyncio.ensure_future(code(both.raw(server_id, "subscriptions/listen", params)))
        while len(both.notifications) < 1:
            await asyncio.sleep(0.01)
        await tools.bus.publish(ToolsListChanged())
        while len(both.notifications) < 2:
            await asyncio.sleep(0.01)
        await both.provider.withdraw(acp.McpServerAcp(name="tools", server_id=server_id))
        assert await listening == -32800
        await tools.bus.publish(ToolsListChanged())
        assert await code(both.raw(server_id, "subscriptions/listen", params)) == -33001
        assert len(both.notifications) == 2

    play(acp, talk)


# --- A client that misuses its agent ---------------------------------------------------------------------------------


def test_results_of_10_megabytes(acp: ModuleType) -> None:
    """They arrive whole, several at a time, and others pass between them."""
    from mcp.server import MCPServer

    server = MCPServer("large")

    @server.tool()
    async def large(letter: str) -> str:
        return letter * 10_000_000

    async def main() -> None:
        async with pair(acp) as both:
            entry = await both.provider.offer(server)
            async with both.mcp(entry.server_id) as client:
                found = await asyncio.gather(*(client.call_tool("large", {"letter": each}) for each in "abc"))
                assert [(each.content[0].text[0], len(each.content[0].text)) for each in found] == [
                    (letter, 10_000_000) for letter in "abc"
                ]
                assert len((await client.list_tools()).tools) == 1

    run(main())


@pytest.mark.full
def test_many_notifications_and_a_slow_reader(acp: ModuleType) -> None:
    """All of them come, in their order, before the result; what waits is bounded, as the server waits, too."""
    seen, most = list[float](), list[int]()

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async def take(notification: Any) -> None:
            await asyncio.sleep(0)
            seen.append(notification.params["progress"])
            most.append(tools.reported - len(seen))

        meta = {**REQUIRED, "progressToken": "p"}
        params = {"name": "count", "arguments": {"to": MANY}, "_meta": meta}
        await both.caller.request(server_id, "tools/call", params, on_notification=take)
        assert seen == [*range(1, MANY + 1)]
        assert max(most) < 1000

    play(acp, talk)


def test_notifications_about_calls_of_others(acp: ModuleType) -> None:
    """One reaches a call only with the ids of its server and of its request; a flood of others leaves nothing."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        params, take = {**WAIT, "_meta": REQUIRED}, Notes()
        seen, given = take.seen, weakref.ref(take)
        call = asyncio.ensure_future(both.caller.request(server_id, "tools/call", params, on_notification=take))
        del take
        await tools.started.wait()
        (request_id,) = (each.request_id for each in both.requests)
        wrong = [("other", request_id), (server_id, "other"), (request_id, server_id), ("", "")]
        for ids in (*wrong * 250, (server_id, request_id)):
            await notify(both, *ids)
        while not seen:
            await asyncio.sleep(0.01)
        tools.go.set()
        await call
        await notify(both, server_id, request_id)  # it is over
        await both.raw(server_id, "tools/list", {}, number="next")
        assert len(both.notifications) == 1002
        assert seen == [PROGRESS]
        del call
        gc.collect()
        assert given() is None

    async def notify(both: Pair, server_id: str, request_id: str) -> None:
        message = {"server_id": server_id, "request_id": request_id, "method": "notifications/progress"}
        await both.client.mcp_message_notification(acp.MessageMcpNotification(**message, params=PROGRESS))

    play(acp, talk)
