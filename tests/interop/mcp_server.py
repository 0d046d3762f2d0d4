"""An MCP server in a process of its own: python mcp_server.py mcp|fastmcp stdio|http

With `http` it prints the port at which it serves. It has what `talk` of our_mcp_agent.py calls.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

CANCELLED: list[str] = []


def tools(server: Any, context: Any, changed: Any) -> Any:
    """A server with the tools, the resource and the prompt. `context` is the type that has `report_progress`."""

    async def echo(text: str) -> str:
        return text

    async def count(to: int, ctx: Any) -> str:
        for number in range(to):
            await ctx.report_progress(number + 1, to)
        return "counted"

    async def wait() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            CANCELLED.append("wait")
            raise
        return "waited"

    async def sleep(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "slept"

    async def broken() -> str:
        raise ValueError("a secret")

    async def cancelled() -> str:
        return ", ".join(CANCELLED)

    async def publish() -> str:
        await changed()
        return "published"

    count.__annotations__["ctx"] = context
    for each in (echo, count, wait, sleep, broken, cancelled, publish):
        server.add_tool(each)
    server.resource("note://one")(note)
    server.prompt("hello")(hello)
    return server


def note() -> str:
    return "a note"


def hello(name: str) -> str:
    return f"Say hello to {name}"


def of_mcp() -> Any:
    """A server of the package `mcp`."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context
    from mcp.server.subscriptions import InMemorySubscriptionBus, ToolsListChanged

    bus = InMemorySubscriptionBus()
    return tools(MCPServer("ours", subscriptions=bus), Context, lambda: bus.publish(ToolsListChanged()))


def of_fastmcp() -> Any:
    """A server of the package `fastmcp`, which has no subscriptions."""
    from fastmcp import Context, FastMCP

    async def nothing() -> None:
        """Publish nothing."""

    return tools(FastMCP("fast"), Context, nothing)


async def serve(app: Any) -> None:
    """Serve an ASGI application until the process ends."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    print(server.servers[0].sockets[0].getsockname()[1], flush=True)
    await serving


if __name__ == "__main__":
    library, transport = sys.argv[1:]
    found = of_mcp() if library == "mcp" else of_fastmcp()
    if transport == "stdio":
        found.run() if library == "mcp" else found.run(show_banner=False)
    else:
        asyncio.run(serve(found.streamable_http_app() if library == "mcp" else found.http_app()))
