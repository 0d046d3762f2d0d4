"""MCP servers that a client offers through the connection, and an agent that calls them, by the package `mcp`.

Each test is a rule of `mcp/message`, as other implementations speak it.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from acpgen.roles import Role, RoleChoice
from tests.mcp_support import REQUIRED, VERSION, Pair, greeting, hello, helper, pair, play
from tests.needs import need
from tests.runtime_support import V1, V2, pass_time, run
from tests.support import Packages

if TYPE_CHECKING:
    from tests.mcp_tools import Tools
NO_TOOLS = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    need("mcp")
    base = V1 if request.param == 1 else V2
    return packages(replace(base, extensions=("mcp-over-acp",)), roles=RoleChoice.BOTH.roles)


# --- By the client of `mcp` ------------------------------------------------------------------------------------------


def test_tools_resources_and_prompts(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            assert names == ["add", "count", "wait", "stubborn", "broken", "greet"]
            assert (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text == "5"
            assert (await client.read_resource("note://one")).contents[0].text == "a note"
            assert "Ada" in (await client.get_prompt("hello", {"name": "Ada"})).messages[0].content.text
        assert {each.server_id for each in both.requests} == {server_id}
        assert len({each.request_id for each in both.requests}) == len(both.requests)

    play(acp, talk)


def test_the_entry_names_the_server(acp: ModuleType) -> None:
    async def main() -> None:
        async with pair(acp) as both:
            from tests.mcp_tools import Tools

            one = await both.provider.offer(Tools().server("weather"))
            two = await both.provider.offer(Tools().server("weather"), name="shown")
            assert (one.name, two.name, one.type) == ("weather", "shown", "acp")
            assert one.server_id != two.server_id

    run(main())


def test_progress_comes_in_order_and_before_the_result(acp: ModuleType) -> None:
    seen = list[float]()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        seen.append(progress)

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as client:
            await client.call_tool("count", {"to": 400}, progress_callback=report)
            for _ in range(10_000):
                if len(seen) == 400:
                    break
                await asyncio.sleep(0)
            assert seen == [*range(1, 401)]
            both.notifications.clear()
            await client.call_tool("count", {"to": 3})
            assert both.notifications == []  # nobody has asked for it

    play(acp, talk)


def test_a_call_that_is_cancelled_ends_at_the_server(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as client:
            call = asyncio.ensure_future(client.call_tool("wait", {}))
            await tools.started.wait()
            call.cancel()
            await asyncio.wait({call})
            assert call.cancelled()
            assert (await client.call_tool("add", {"a": 1, "b": 1})).content[0].text == "2"
            assert len(both.cancellations) == 1

    assert play(acp, talk).cancelled == 1


def test_a_subscription(acp: ModuleType) -> None:
    """Its notifications carry the id that the client of `mcp` knows; leaving it cancels the request, once."""
    from mcp.shared.subscriptions import ToolsListChanged

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as client:
            async with client.listen(tools_list_changed=True) as events:
                await tools.bus.publish(ToolsListChanged())
                async for event in events:
                    assert isinstance(event, ToolsListChanged)
                    break
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(both.cancellations) == 1
        methods = [each.method for each in both.notifications]
        assert methods == ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"]

    play(acp, talk)


def test_a_server_that_is_withdrawn(acp: ModuleType) -> None:
    """What is active is cancelled; then the server is unknown."""
    import mcp

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as client:
            call = asyncio.ensure_future(client.call_tool("wait", {}))
            await tools.started.wait()
            await both.provider.withdraw(acp.McpServerAcp(name="tools", server_id=server_id))
            with pytest.raises(mcp.MCPError) as error:
                await call
            assert error.value.error.code == -32800
            with pytest.raises(mcp.MCPError) as error:
                await client.list_tools()
            assert error.value.error.code == -33001

    play(acp, talk)


def test_the_end_of_the_connection_ends_calls(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        call = asyncio.ensure_future(both.raw(server_id, "tools/call", {"name": "wait", "arguments": {}}))
        await tools.started.wait()
        talks.append(call)

    talks = list[Any]()
    tools = play(acp, talk)
    assert tools.cancelled == 1
    assert isinstance(talks[0].exception(), (acp.ConnectionClosed, acp.RequestError))


# --- On the wire -----------------------------------------------------------------------------------------------------


def test_a_result_is_wrapped_and_complete(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        answer = await both.raw(server_id, "tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
        assert answer.keys() == {"result"}
        assert answer["result"]["content"] == [{"type": "text", "text": "3"}]
        assert answer["result"]["resultType"] == "complete"
        assert "tools" in (await both.raw(server_id, "server/discover", {}))["result"]["capabilities"]

    play(acp, talk)


def test_a_tool_that_fails_is_a_result_without_its_text(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        for name, arguments in (("broken", {}), ("add", {"a": "x"}), ("nothing", {})):
            answer = await both.raw(server_id, "tools/call", {"name": name, "arguments": arguments})
            assert answer["result"]["isError"] is True
            assert "secret" not in str(answer)

    play(acp, talk)


@pytest.mark.parametrize(
    ("method", "meta", "code"),
    [
        ("nothing/here", REQUIRED, -32601),
        ("initialize", REQUIRED, -32601),
        ("ping", REQUIRED, -32601),
        ("tools/list", {"io.modelcontextprotocol/protocolVersion": VERSION}, -32602),
        ("tools/list", {**REQUIRED, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}, -32022),
    ],
)
def test_what_the_server_refuses_is_an_inner_error(acp: ModuleType, method: str, meta: Any, code: int) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        answer = await both.raw(server_id, method, {}, meta=meta)
        assert answer.keys() == {"error"}
        assert answer["error"]["code"] == code

    play(acp, talk)


def test_ids_that_are_active_and_reused(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        waiting = {"name": "wait", "arguments": {}}
        first = asyncio.ensure_future(both.raw(server_id, "tools/call", waiting))
        await tools.started.wait()
        with pytest.raises(acp.InvalidParamsError) as error:
            await both.raw(server_id, "tools/list", {})
        assert error.value.data == {"requestId": "r1"}
        other = type(tools)()
        entry = await both.provider.offer(other.server())
        assert "result" in await both.raw(entry.server_id, "tools/list", {})
        tools.go.set()
        await first
        assert "result" in await both.raw(server_id, "tools/list", {})
        with pytest.raises(acp.InvalidParamsError):
            await both.raw(server_id, "tools/list", {}, number="i" * 1000)

    play(acp, talk)


def test_too_many_requests(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        waiting = {"name": "wait", "arguments": {}}
        calls = [
            asyncio.ensure_future(both.raw(server_id, "tools/call", waiting, number=f"{each}")) for each in range(3)
        ]
        await tools.started.wait()
        with pytest.raises(acp.RequestError) as error:
            await both.raw(server_id, "tools/list", {}, number="one more")
        assert error.value.code == -33000
        tools.go.set()
        assert all("result" in each for each in await asyncio.gather(*calls))

    play(acp, talk, limit=3)


def test_an_unknown_server(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        with pytest.raises(acp.RequestError) as error:
            await both.raw("s" * 10_000, "tools/list", {})
        assert (error.value.code, len(error.value.data["serverId"])) == (-33001, 256)

    play(acp, talk)


def test_cancellation_of_a_tool_that_goes_on(acp: ModuleType) -> None:
    """A handler that finishes all the same may answer; one that ends is an error."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        call = asyncio.ensure_future(both.raw(server_id, "tools/call", {"name": "stubborn", "arguments": {}}))
        await tools.started.wait()
        call.cancel()
        await asyncio.wait({call})
        assert "result" in await both.raw(server_id, "tools/list", {}, number="next")

    assert play(acp, talk).cancelled == 1


def test_nothing_is_sent_after_the_end(acp: ModuleType) -> None:
    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        meta = {**REQUIRED, "progressToken": "p"}
        await both.raw(server_id, "tools/call", {"name": "count", "arguments": {"to": 2}}, meta=meta)
        assert [each.params["progress"] for each in both.notifications] == [1, 2]
        await tools.context.report_progress(3, 3)
        await both.raw(server_id, "tools/list", {})
        assert len(both.notifications) == 2

    play(acp, talk)


def test_a_server_of_the_low_level(acp: ModuleType) -> None:
    from mcp.server import Server
    from mcp_types import ListToolsResult, Tool

    async def list_tools(context: Any, params: Any) -> Any:
        return ListToolsResult(tools=[Tool(name="low", input_schema={"type": "object"})])

    async def main() -> None:
        async with pair(acp) as both:
            entry = await both.provider.offer(Server("low", on_list_tools=list_tools))
            async with both.mcp(entry.server_id) as client:
                assert [each.name for each in (await client.list_tools()).tools] == ["low"]

    run(main())


def test_a_proxy_offers_beside_the_client(packages: Packages) -> None:
    """Each server is reached at its owner, and notifications of both arrive."""
    need("mcp")
    from tests.mcp_tools import Tools

    acp = packages(replace(V1, extensions=("mcp-over-acp",)), roles=RoleChoice.BOTH.roles)
    between = packages(replace(V1, extensions=("mcp-over-acp",)), roles=(Role.PROXY,))
    proxies = list[Any]()

    class Adding(between.Proxy):  # type: ignore[name-defined,misc]
        def __init__(self, client: Any, agent: Any) -> None:
            super().__init__(client, agent)
            self.servers = helper(between, "mcp_provider").McpProvider(agent)
            proxies.append(self)

        async def mcp_message(self, params: Any) -> Any:
            if params.server_id in self.servers:
                return await self.servers.handle(params)
            return await self.client.mcp_message(params)

        async def connection_closed(self, reason: Any) -> None:
            await self.servers.close()

    async def main() -> None:
        async with pair(acp, proxy=(between, Adding)) as both:
            seen = list[float]()

            async def report(progress: float, total: float | None, message: str | None) -> None:
                seen.append(progress)

            owners = (both.provider, proxies[0].servers)
            entries = [await each.offer(Tools().server(f"{at}")) for at, each in enumerate(owners)]
            for entry in entries:
                async with both.mcp(entry.server_id) as client:
                    answer = await client.call_tool("count", {"to": 3}, progress_callback=report)
                    assert answer.content[0].text == "counted"
            assert seen == [1, 2, 3, 1, 2, 3]
            assert {each.server_id for each in both.requests} == {entries[0].server_id}

    run(main())


def test_what_is_no_server(acp: ModuleType) -> None:
    async def main() -> None:
        async with pair(acp) as both:
            with pytest.raises(TypeError, match="an MCP server is a `Server`"):
                await both.provider.offer(object())

    run(main())


def test_a_lifespan_that_fails(acp: ModuleType) -> None:
    """`offer` raises what the server has raised, and nothing is left."""
    from mcp.server import Server

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[dict[str, Any], None]:
        raise OSError("no database")
        yield {}

    async def main() -> None:
        async with pair(acp) as both:
            with pytest.raises(OSError, match="no database"):
                await both.provider.offer(Server("s", lifespan=lifespan))

    run(main())


@pytest.mark.parametrize(("acp", "kinds"), [(1, ("stdio",)), (1, ("stdio", "sse")), (2, ("stdio",))], indirect=["acp"])
def test_an_agent_that_takes_no_servers_gets_none(acp: ModuleType, kinds: tuple[str, ...]) -> None:
    """`offer` says so, and starts nothing. Protocol 2 has no servers with server-sent events."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def main() -> None:
        async with pair(acp, kinds=kinds) as both:
            with pytest.raises(acp.CapabilityError, match="mcp/message"):
                await both.provider.offer(tools.server())

    run(main())
    assert tools.entered == 0


def test_a_failure_that_is_no_error_of_mcp(acp: ModuleType, caplog: pytest.LogCaptureFixture) -> None:
    """The agent learns that the server failed; the text goes to the log of the client alone."""
    import mcp
    from mcp.server import Server

    async def fail(context: Any, params: Any) -> Any:
        raise mcp.MCPError(-1, "odd", data=object())  # it cannot be written as JSON

    async def main() -> None:
        async with pair(acp) as both:
            entry = await both.provider.offer(Server("odd", on_list_tools=fail))
            with pytest.raises(acp.RequestError) as error:
                await both.raw(entry.server_id, "tools/list", {})
            assert (error.value.code, error.value.message, error.value.data) == (
                -33002,
                "MCP server handler failed",
                acp.UNSET,
            )

    run(main())
    assert "the MCP server odd failed" in caplog.text


def test_a_question_of_a_tool_is_asked_by_its_result(acp: ModuleType) -> None:
    """The client of `mcp` asks its user, and calls again: another request, with the state of the first."""
    from mcp_types import ElicitResult

    async def elicit(context: Any, params: Any) -> Any:
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id, elicitation_callback=elicit) as client:
            answer = await client.call_tool("greet", {})
            assert answer.content[0].text == "Hello Ada"
        first, second = (each for each in both.requests if each.method == "tools/call")
        assert first.request_id != second.request_id
        assert "requestState" not in first.params
        assert second.params["requestState"]

    play(acp, talk)


# --- What the agent gets from others ---------------------------------------------------------------------------------


@asynccontextmanager
async def scripted(acp: ModuleType, answer: Callable[[Any], Any], **options: Any) -> AsyncGenerator[Any, None]:
    """The caller of an agent whose client answers as the function says: any JSON, or an error that it raises."""

    class Stub:
        async def mcp_message(self, params: Any) -> Any:
            found = answer(params)
            if asyncio.iscoroutine(found):
                found = await found
            return found

    yield helper(acp, "mcp_caller").McpCaller(Stub(), **options)


def test_errors_of_the_client_and_of_the_server(acp: ModuleType) -> None:
    """Both are errors of `mcp`, with their codes and data; a null result is a result."""
    import mcp

    def answer(params: Any) -> Any:
        match params.method:
            case "tools/list":
                raise acp.RequestError("gone", code=-33001, data={"serverId": "s"})
            case _:
                return acp.MessageMcpResponseError(error=acp.McpError(code=-7, message="no", data=None))

    async def main() -> None:
        async with scripted(acp, answer) as caller, mcp.Client(caller.transport("s"), mode=VERSION) as client:
            with pytest.raises(mcp.MCPError) as error:
                await client.list_tools()
            assert (error.value.error.code, error.value.error.data) == (-33001, {"serverId": "s"})
            with pytest.raises(mcp.MCPError) as error:
                await client.list_prompts()
            assert error.value.error.code == -7

    run(main())


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"result": NO_TOOLS, "error": {"code": 1, "message": "no"}}, None),
        ({}, -33002),
        ({"result": None}, -33002),
        ({"error": {"code": "1", "message": "no"}}, -33002),
        ([], -33002),
    ],
)
def test_responses_of_a_client_that_are_not_as_they_should_be(acp: ModuleType, answer: Any, code: int | None) -> None:
    """Of a result and an error, the result counts; none, or one that a client of MCP cannot take, is an error."""
    import mcp

    class Odd(acp.Client):  # type: ignore[name-defined,misc]
        async def fallback_request(self, method: str, params: Any) -> Any:
            return answer

    class Calling(acp.Agent):  # type: ignore[name-defined,misc]
        async def initialize(self, params: Any) -> Any:
            return acp.InitializeResponse(**hello(acp, ("acp",)))

        async def ext_method(self, method: str, params: Any) -> Any:
            caller = helper(acp, "mcp_caller").McpCaller(self.client)
            async with mcp.Client(caller.transport("s"), mode=VERSION) as client:
                try:
                    return {"tools": len((await client.list_tools()).tools)}
                except mcp.MCPError as error:
                    return {"code": error.code}

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.ensure_future(acp.serve_agent(Calling, near))
        async with acp.connect(Odd, far) as agent:
            await agent.initialize(acp.InitializeRequest(**greeting(acp)))
            assert await agent.ext_method("_call", {}) == ({"tools": 0} if code is None else {"code": code})
        await serving

    run(main())


def test_an_error_keeps_all_that_it_has(acp: ModuleType) -> None:
    """A member that MCP does not know, and data of null, reach the agent as they are."""
    error = {"code": -7, "message": "no", "data": None, "hint": {"a": [1]}}
    found = list[Any]()

    class Odd(acp.Client):  # type: ignore[name-defined,misc]
        async def fallback_request(self, method: str, params: Any) -> Any:
            return {"error": error}

    class Calling(acp.Agent):  # type: ignore[name-defined,misc]
        async def initialize(self, params: Any) -> Any:
            return acp.InitializeResponse(**hello(acp, ("acp",)))

        async def ext_method(self, method: str, params: Any) -> Any:
            request = acp.MessageMcpRequest(server_id="s", request_id="r", method="tools/list")
            found.append(await self.client.mcp_message(request))
            return {}

    async def main() -> None:
        near, far = acp.memory_transports()
        serving = asyncio.ensure_future(acp.serve_agent(Calling, near))
        async with acp.connect(Odd, far) as agent:
            await agent.initialize(acp.InitializeRequest(**greeting(acp)))
            await agent.ext_method("_call", {})
        await serving

    run(main())
    assert acp.encode(found[0]) == {"error": error}


def test_a_result_of_null_is_a_result(acp: ModuleType) -> None:
    async def main() -> None:
        async with scripted(acp, lambda _: acp.MessageMcpResponseResult(result=None)) as caller:
            assert await caller.request("s", "tools/list") is None

    run(main())


def test_notifications_that_are_not_read_end_the_call(acp: ModuleType) -> None:
    """They wait in a queue of a bounded length; the connection is held up for some seconds at most."""
    import mcp

    gate = asyncio.Event

    async def main() -> None:
        callers, cancelled, given = list[Any](), list[bool](), list[int]()
        reading = gate()

        async def answer(params: Any) -> Any:
            try:
                for number in range(50):
                    given.append(number)
                    meta = {"progressToken": params.params["_meta"]["progressToken"], "progress": number + 1}
                    await callers[0].handle(
                        acp.MessageMcpNotification(
                            server_id="s", request_id=params.request_id, method="notifications/progress", params=meta
                        )
                    )
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        async def slow(*_: Any) -> None:
            await reading.wait()

        async with scripted(acp, answer, queue=4) as caller:
            callers.append(caller)
            streams = caller.transport("s")
            async with streams as (read, write):
                from mcp.shared.message import SessionMessage
                from mcp_types import JSONRPCRequest

                meta = {"_meta": {"progressToken": 1}}
                await write.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=meta)))
                while len(given) < 5:
                    await asyncio.sleep(0.01)
                pass_time(6.0)
                while not cancelled:
                    await asyncio.sleep(0.01)
                got = [(await read.receive()).message for _ in range(5)]
                assert [each.params["progress"] for each in got[:4]] == [1, 2, 3, 4]
                assert "not read in time" in got[4].error.message

    assert mcp is not None
    run(main())


def test_notifications_that_are_not_read_are_bounded_in_bytes(acp: ModuleType) -> None:
    """Far fewer wait than the queue has places for, if they are large; none is lost once they are read."""

    async def main() -> None:
        callers, given = list[Any](), list[int]()

        async def answer(params: Any) -> Any:
            for number in range(20):
                given.append(number)
                meta = {"progressToken": 1, "progress": number + 1, "message": "x" * 2**20}
                await callers[0].handle(
                    acp.MessageMcpNotification(
                        server_id="s", request_id=params.request_id, method="notifications/progress", params=meta
                    )
                )
            return acp.MessageMcpResponseResult(result={})

        async with scripted(acp, answer, queue=256) as caller:
            callers.append(caller)
            async with caller.transport("s") as (read, write):
                from mcp.shared.message import SessionMessage
                from mcp_types import JSONRPCRequest

                meta = {"_meta": {"progressToken": 1}}
                await write.send(SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params=meta)))
                while len(given) < 8:
                    await asyncio.sleep(0)
                for _ in range(1_000):
                    await asyncio.sleep(0)
                assert len(given) == 8  # the last of them waits
                got = [(await read.receive()).message for _ in range(21)]
                assert [each.params["progress"] for each in got[:20]] == [*range(1, 21)]
                assert got[20].result == {}

    run(main())


def test_calls_of_several_sessions_stay_apart(acp: ModuleType) -> None:
    """Two clients of one server have the same ids; the requests that go out do not."""

    async def talk(both: Pair, tools: Tools, server_id: str) -> None:
        async with both.mcp(server_id) as one, both.mcp(server_id) as two:
            await asyncio.gather(*(each.list_tools() for each in (one, two) for _ in range(5)))
        assert len({each.request_id for each in both.requests}) == len(both.requests) >= 10

    play(acp, talk)


def test_the_helpers_are_no_part_of_the_others(acp: ModuleType) -> None:
    """`import *` of the helpers works without `mcp`: what needs a library is imported by its module."""
    assert "McpProvider" not in importlib.import_module(f"{acp.__name__}.helpers").__all__
    assert "mcp" in sys.modules
