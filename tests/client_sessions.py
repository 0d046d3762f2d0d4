"""A client that talks in sessions, and an agent by hand at the other end: what the tests of sessions share."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

VERSIONS = {1: "one", 2: "two"}
HELLO: dict[int, dict[str, Any]] = {
    1: {
        "agentCapabilities": {
            "loadSession": True,
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
            "promptCapabilities": {"image": True},
        }
    },
    2: {
        "info": {"name": "a", "version": "1"},
        "capabilities": {"session": {"prompt": {"image": {}}, "mcp": {"stdio": {}}, "additionalDirectories": {}}},
    },
}


@dataclass
class HandAgent:
    """The agent: it reads and writes JSON. What it gets and does not expect stays in `read`."""

    transport: Any
    version: int
    read: list[Any] = field(default_factory=list[Any])

    async def receive(self, method: str | None = None) -> Any:
        """The next message; with `method`, the next one of it: those before it are kept in `read`."""
        for message in self.read if method is not None else ():
            if message.get("method") == method:
                self.read.remove(message)
                return message
        while True:
            line = await self.transport.read()
            assert line is not None, "the client has closed the connection"
            message = json.loads(line)
            if method in (None, message.get("method")):
                return message
            self.read.append(message)

    async def send(self, **message: Any) -> None:
        await self.transport.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def answer(self, request: Any, result: Any = None, **error: Any) -> None:
        outcome = {"error": error} if error else {"result": {} if result is None else result}
        await self.send(id=request["id"], **outcome)

    async def update(self, tag: str, session: str = "s", /, **members: Any) -> None:
        await self.send(
            method="session/update", params={"sessionId": session, "update": {"sessionUpdate": tag, **members}}
        )

    async def say(self, words: str, session: str = "s", message: str = "m") -> None:
        block = {"type": "text", "text": words}
        await self.update("agent_message_chunk", session, content=block, messageId=message)

    async def tool(self, status: str, call: str = "t", session: str = "s") -> None:
        kind = "tool_call" if self.version == 1 and status == "pending" else "tool_call_update"
        await self.update(kind, session, toolCallId=call, title="Edit", status=status)

    async def state(self, state: str, session: str = "s", **members: Any) -> None:
        """Of protocol 2."""
        await self.update("state_update", session, state=state, **members)

    async def prompted(self, session: str = "s") -> Any:
        """The next prompt; in protocol 2 it is inserted, and confirmed."""
        request = await self.receive("session/prompt")
        if self.version == 2:
            await self.insert(f"u{request['id']}", session)
            await self.answer(request, {"messageId": f"u{request['id']}"})
        return request

    async def insert(self, message: str, session: str = "s") -> None:
        """The message of the user, in protocol 2."""
        await self.update("user_message", session, messageId=message, content=[{"type": "text", "text": "?"}])

    async def end(self, request: Any, reason: str = "end_turn", session: str = "s") -> None:
        """End the turn of a prompt."""
        if self.version == 1:
            await self.answer(request, {"stopReason": reason})
        else:
            await self.state("idle", session, stopReason=reason)

    async def ask(self, number: Any = "q", session: str = "s") -> None:
        """Ask for permission."""
        call = {"toolCallId": "t", "title": "Edit"}
        about = {"toolCall": call} if self.version == 1 else {"subject": {"type": "tool_call", "toolCall": call}}
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        extra = {} if self.version == 1 else {"title": "May I?"}
        params = {"sessionId": session, "options": options, **about, **extra}
        await self.send(id=number, method="session/request_permission", params=params)


@dataclass
class Stage:
    """Both sides."""

    acp: ModuleType
    helpers: Any
    client: Any
    agent: HandAgent

    async def opened(self, session: str = "s", **result: Any) -> Any:
        """A new session with this id."""
        opening = asyncio.ensure_future(self.client.open("/work"))
        request = await self.agent.receive("session/new")
        await self.agent.answer(request, {"sessionId": session, **result})
        return await opening

    async def barrier(self) -> None:
        """Wait until the client has handled all that was sent before."""
        await self.agent.send(id="barrier", method="_barrier", params={})
        while (message := await self.agent.receive()).get("id") != "barrier":
            self.agent.read.append(message)


def helpers_of(acp: ModuleType) -> Any:
    return importlib.import_module(f"{acp.__name__}.helpers")


@asynccontextmanager
async def stage(
    acp: ModuleType, version: int, *, start: bool = True, bases: tuple[type, ...] = (), **attributes: Any
) -> AsyncGenerator[Stage, None]:
    """A client that has called `initialize`; `attributes` are those of its class. At the end nothing is left."""
    before = asyncio.all_tasks()
    helpers = helpers_of(acp)
    kind = type("Chat", bases or (helpers.SessionClient,), {"quiet_seconds": 0.0, **attributes})
    near, far = acp.memory_transports(100_000)
    agent = HandAgent(far, version)
    async with (connection := acp.connect(kind, near)):
        found = Stage(acp, helpers, connection.handler, agent)
        if start:
            starting = asyncio.ensure_future(found.client.start("tests", "1"))
            await agent.answer(await agent.receive(), {"protocolVersion": version, **HELLO[version]})
            await starting
        yield found
    await far.close()
    for _ in range(20):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before, asyncio.all_tasks() - before


async def until(condition: Callable[[], object]) -> None:
    """Let others run until the condition holds."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition does not hold")


async def text_of(turn: Any, helpers: Any) -> list[str]:
    """The texts of the changes of a turn."""
    return [change.text async for change in turn if isinstance(change, helpers.MessageChange)]
