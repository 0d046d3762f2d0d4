"""An MCP server with tools for each case of a call, by the package `mcp`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.subscriptions import InMemorySubscriptionBus
from pydantic import BaseModel


class Person(BaseModel):
    """What a tool asks the user for."""

    name: str


def ask_for_name() -> Elicit[Person]:
    """The question."""
    return Elicit("Who are you?", Person)


class Tools:
    """The tools, and what they have seen."""

    def __init__(self) -> None:
        self.added = 0
        self.begun = 0
        self.cancelled = 0
        self.entered = 0
        self.left = 0
        self.reported = 0
        self.started = asyncio.Event()
        self.go = asyncio.Event()
        self.bus = InMemorySubscriptionBus()
        self.context: Any = None

    def server(self, name: str = "tools") -> Any:
        """A server with these tools, a resource and a prompt."""
        server: Any = MCPServer(name, lifespan=self._lifespan, subscriptions=self.bus)
        for tool in (self.add, self.count, self.wait, self.stubborn, self.broken, self.greet):
            server.add_tool(tool)
        server.resource("note://one")(self.note)
        server.prompt("hello")(self.hello)
        return server

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncGenerator[dict[str, Any], None]:
        self.entered += 1
        try:
            yield {}
        finally:
            self.left += 1

    async def add(self, a: int, b: int) -> int:
        """Add."""
        self.added += 1
        return a + b

    async def count(self, to: int, ctx: Context) -> str:  # type: ignore[type-arg]
        """Report progress."""
        for number in range(to):
            await ctx.report_progress(number + 1, to)
            self.reported += 1
        self.context = ctx
        return "counted"

    async def wait(self) -> str:
        """Wait, and end if cancelled."""
        self.begun += 1
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return "waited"

    async def stubborn(self) -> str:
        """Wait, and answer although cancelled."""
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
        return "done all the same"

    async def broken(self) -> str:
        """Fail."""
        raise ValueError("a secret")

    async def greet(self, person: Annotated[Person, Resolve(ask_for_name)]) -> str:
        """Ask the user for a name."""
        return f"Hello {person.name}"

    def note(self) -> str:
        """A resource."""
        return "a note"

    def hello(self, name: str) -> str:
        """A prompt."""
        return f"Say hello to {name}"
