"""MCP servers at URLs of this computer: those of a client for an agent that takes no others, and the way round."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from acpgen.roles import RoleChoice
from tests.mcp_support import REQUIRED, VERSION, Pair, helper, pair
from tests.needs import need
from tests.runtime_support import V1, V2, run
from tests.support import Packages


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    for library in ("mcp", "httpx2", "uvicorn"):
        need(library)
    base = V1 if request.param == 1 else V2
    return packages(replace(base, extensions=("mcp-over-acp",)), roles=RoleChoice.BOTH.roles)


@asynccontextmanager
async def at_url(url: str, headers: dict[str, str], **options: Any) -> AsyncGenerator[Any, None]:
    """A client of `mcp` for a server at a URL."""
    import httpx2
    import mcp
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        mcp.Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


def headers_of(entry: Any) -> dict[str, str]:
    return {each.name: each.value for each in entry.headers}


@asynccontextmanager
async def bridged(both: Pair, entry: Any, **limits: Any) -> AsyncGenerator[Any, None]:
    """What an agent has in the place of a server of the connection."""
    servers = helper(both.acp, "mcp_servers")
    bridge = helper(both.acp, "mcp_bridge").McpBridge(both.caller, **limits)
    try:
        found = servers.AcpParameters(name=entry.name, server_id=entry.server_id, meta={"a": 1})
        yield await bridge.at_url(found)
    finally:
        await bridge.close()


def test_what_is_offered_while_the_endpoint_closes_is_ended(acp: ModuleType) -> None:
    """Nobody would end it later."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def main() -> None:
        endpoint = helper(acp, "mcp_endpoint").McpEndpoint()
        offering = asyncio.ensure_future(endpoint.offer(tools.server()))
        await asyncio.sleep(0)
        await endpoint.close()
        with pytest.raises(RuntimeError, match="closed before it served tools"):
            await offering
        assert (tools.entered, tools.left) == (1, 1)

    run(main())


# --- The client offers at a URL what the agent does not take through the connection -----------------------------------


@pytest.mark.parametrize("mode", [VERSION, "legacy"])
def test_an_agent_that_takes_urls_alone_gets_one(acp: ModuleType, mode: str) -> None:
    """By the same call; it works with clients of the older MCP, too."""
    from tests.mcp_tools import Tools

    tools = Tools()

    async def main() -> None:
        async with pair(acp, kinds=("stdio", "http")) as both:
            entry = await both.provider.offer(tools.server(), name="shown")
            assert (entry.name, entry.type) == ("shown", "http")
            assert entry.url.startswith("http://127.0.0.1:")
            async with at_url(entry.url, headers_of(entry), mode=mode) as client:
                assert (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text == "5"
            await both.provider.withdraw(entry)
            other = await both.provider.offer(Tools().server())
            assert (await post(entry, {})).status_code == 404
            assert other.url != entry.url
            assert headers_of(other) != headers_of(entry)
        assert tools.left == 1
        with pytest.raises(Exception, match="connect"):
            await post(other, {})

    run(main())
    assert (tools.entered, tools.left) == (1, 1)


def test_a_token_opens_its_own_server_alone(acp: ModuleType) -> None:
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp, kinds=("http",)) as both:
            one, two = [await both.provider.offer(Tools().server()) for _ in range(2)]
            listing = envelope("tools/list")
            assert (await post(one, listing)).status_code == 200
            for headers in ({"Authorization": headers_of(two)["Authorization"]}, {"Authorization": "Bearer x"}):
                assert (await post(one, listing, **headers)).status_code == 401
            assert (await post(one, listing, without=("Authorization",))).status_code == 401
            for each in (one, two):
                assert headers_of(each)["Authorization"] not in repr(
                    helper(acp, "mcp_servers").HttpParameters(
                        name="n", url=each.url, headers=[*headers_of(each).items()]
                    )
                )

    run(main())


def envelope(method: str, params: Any = None, *, number: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": REQUIRED}}


async def post(entry: Any, body: Any, *, verb: str = "POST", without: tuple[str, ...] = (), **more: str) -> Any:
    """Send an HTTP request as a client of MCP would; `more` are headers."""
    import httpx2

    params = body.get("params", {}) if isinstance(body, dict) else {}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": body.get("method", "") if isinstance(body, dict) else "",
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
        **(headers_of(entry) if hasattr(entry.headers[0], "name") else dict(entry.headers)),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    kept = {name: value for name, value in headers.items() if name not in without}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with httpx2.AsyncClient(timeout=30) as http:
        return await http.request(verb, entry.url, content=content, headers=kept)


# --- The agent makes URLs of the servers of the connection ------------------------------------------------------------


@pytest.mark.parametrize("mode", [VERSION, "legacy"])
def test_a_client_that_knows_urls_alone_uses_a_server_of_the_connection(acp: ModuleType, mode: str) -> None:
    from tests.mcp_tools import Tools

    seen = list[float]()

    async def report(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def main() -> None:
        tools = Tools()
        async with pair(acp) as both:
            entry = await both.provider.offer(tools.server())
            async with bridged(both, entry) as found:
                assert (found.name, found.kind, found.meta) == ("tools", "http", {"a": 1})
                async with at_url(found.url, dict(found.headers), mode=mode) as client:
                    assert "add" in [each.name for each in (await client.list_tools()).tools]
                    counted = await client.call_tool("count", {"to": 5}, progress_callback=report)
                    assert counted.content[0].text == "counted"
                    assert (await client.read_resource("note://one")).contents[0].text == "a note"
                    assert (await client.call_tool("broken", {})).is_error
        assert {each.server_id for each in both.requests} == {entry.server_id}
        assert seen == [1, 2, 3, 4, 5]

    run(main())


def test_a_subscription_by_url(acp: ModuleType) -> None:
    """Its events carry the id that the client of the URL knows; leaving it cancels the request at its owner, once."""
    from mcp.shared.subscriptions import ToolsListChanged

    from tests.mcp_tools import Tools

    async def main() -> None:
        tools = Tools()
        async with pair(acp) as both:
            async with bridged(both, await both.provider.offer(tools.server())) as found:
                async with at_url(found.url, dict(found.headers), mode=VERSION) as client:
                    async with client.listen(tools_list_changed=True) as events:
                        await tools.bus.publish(ToolsListChanged())
                        async for event in events:
                            assert isinstance(event, ToolsListChanged)
                            break
                    while not both.cancellations:
                        await asyncio.sleep(0.01)
            assert len(both.cancellations) == 1

    run(main())


def test_a_response_that_is_closed_cancels_the_call(acp: ModuleType) -> None:
    from tests.mcp_tools import Tools

    async def main() -> None:
        tools = Tools()
        async with pair(acp) as both:
            async with bridged(both, await both.provider.offer(tools.server())) as found:
                call = asyncio.ensure_future(post(found, envelope("tools/call", {"name": "wait", "arguments": {}})))
                await tools.started.wait()
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await call
                while not tools.cancelled:
                    await asyncio.sleep(0.01)
            assert (tools.cancelled, len(both.cancellations)) == (1, 1)

    run(main())


def test_what_the_listener_refuses(acp: ModuleType) -> None:
    """Nothing of it reaches the client."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp) as both:
            async with bridged(both, await both.provider.offer(Tools().server()), limit=1, max_body=2000) as found:
                both.requests.clear()
                listing = envelope("tools/list")
                statuses = [
                    (await post(found, listing, Authorization="Bearer wrong")).status_code,
                    (await post(found, listing, Origin="http://elsewhere")).status_code,
                    (await post(found, listing, Host="elsewhere")).status_code,
                    (await post(found, b"", verb="GET", without=("Content-Type",))).status_code,
                    (await post(found, envelope("tools/list", {"x": "y" * 3000}))).status_code,
                    (await post(found, [listing])).status_code,
                    (await post(found, b"{")).status_code,
                    (await post(found, listing, Mcp_Method="tools/call")).status_code,
                ]
                assert statuses == [401, 403, 421, 405, 413, 400, 400, 400]
                assert both.requests == []
                assert (await post(replace(found, url=found.url[:-1]), listing)).status_code == 404

    run(main())


def test_connections_without_a_token_are_few(acp: ModuleType) -> None:
    """Whoever sends half a request, or one without a token, keeps neither the others nor the descriptors."""
    from tests.mcp_tools import Tools

    async def main() -> None:
        async with pair(acp, kinds=("http",)) as both:
            entry = await both.provider.offer(Tools().server())
            where = urlsplit(entry.url)
            before = len([*Path("/proc/self/fd").iterdir()])
            idle = []
            for text in [
                b"POST /mcp HTTP/1.1\r\nHost: a",
                b"",
                f"GET {where.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
            ] * 40:
                reader, writer = await asyncio.open_connection(where.hostname, where.port)
                writer.write(text)
                idle.append((reader, writer))
            assert (await post(entry, envelope("tools/list"))).status_code == 200
            await asyncio.wait(
                [asyncio.ensure_future(reader.read()) for reader, _ in idle[:90]]
            )  # the server ended them
            assert len([*Path("/proc/self/fd").iterdir()]) - before - len(idle) <= 20
            await asyncio.wait(
                [asyncio.ensure_future(reader.read()) for reader, _ in idle]
            )  # and after a while, the rest
            for _, writer in idle:
                writer.close()
            assert (await post(entry, envelope("tools/list"))).status_code == 200

    run(main())


def test_too_many_calls_by_url(acp: ModuleType) -> None:
    from tests.mcp_tools import Tools

    async def main() -> None:
        tools = Tools()
        async with pair(acp) as both:
            async with bridged(both, await both.provider.offer(tools.server()), limit=1) as found:
                call = asyncio.ensure_future(post(found, envelope("tools/call", {"name": "wait", "arguments": {}})))
                await tools.started.wait()
                assert (await post(found, envelope("tools/list"))).status_code == 429
                tools.go.set()
                assert (await call).status_code == 200

    run(main())


def test_a_server_that_does_not_answer_gets_no_url(acp: ModuleType) -> None:
    import mcp

    async def main() -> None:
        async with pair(acp) as both:
            entry = acp.McpServerAcp(name="lost", server_id="nowhere")
            with pytest.raises(mcp.MCPError) as error:
                async with bridged(both, entry):
                    pass
            assert error.value.code == -33001

    run(main())


@pytest.mark.parametrize("described", [[], "text", None, 5])
def test_a_server_that_is_described_by_no_object_gets_no_url(acp: ModuleType, described: Any) -> None:
    """As the client can answer with any JSON."""
    import mcp

    async def main() -> None:
        async with pair(acp) as both:
            entry = await both.provider.offer(mcp.server.MCPServer("odd"))

            async def answer(params: Any) -> Any:
                return acp.MessageMcpResponseResult(result=described)

            both.provider.handle = answer
            with pytest.raises(mcp.MCPError, match="no object"):
                async with bridged(both, entry):
                    pass

    run(main())


def test_others_stay_as_they_are(acp: ModuleType) -> None:
    servers = helper(acp, "mcp_servers")
    given = servers.HttpParameters(name="n", url="http://h", headers=[])

    async def main() -> None:
        async with pair(acp) as both:
            bridge = helper(acp, "mcp_bridge").McpBridge(both.caller)
            assert await bridge.at_url(given) is given
            await bridge.close()

    run(main())


@pytest.mark.parametrize("kinds", [("acp",), ("http",)])
def test_servers_of_fastmcp(acp: ModuleType, kinds: tuple[str, ...]) -> None:
    need("fastmcp")
    fastmcp = importlib.import_module("fastmcp")
    server = fastmcp.FastMCP("fast")

    @server.tool  # type: ignore[untyped-decorator]
    def twice(number: int) -> int:
        return 2 * number

    async def main() -> None:
        async with pair(acp, kinds=kinds) as both:
            entry = await both.provider.offer(server)
            reached = both.mcp(entry.server_id) if kinds == ("acp",) else at_url(entry.url, headers_of(entry))
            async with reached as client:
                assert (await client.call_tool("twice", {"number": 4})).content[0].text == "8"

    run(main())
