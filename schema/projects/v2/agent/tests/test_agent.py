"""The agent, as an editor meets it: in messages."""

from __future__ import annotations

import asyncio
import sys
import unittest
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, patch

from new_project.acp import ConnectionOptions, RequestError, memory_transports, serve_agent
from new_project.acp.helpers import ScriptedClient, choose
from new_project.agent import EchoAgent

CHECKED = ConnectionOptions(check_sent=True)
"""A message of the agent that does not fit the protocol is an error."""


class QuickAgent(EchoAgent):
    pause = 0


class SlowAgent(EchoAgent):
    pause = 3600


def server(name: str) -> dict[str, Any]:
    """An MCP server, as an editor names it."""
    return {"type": "stdio", "name": name, "command": name, "args": [], "env": []}


@asynccontextmanager
async def weather(server: Any) -> AsyncGenerator[Any, None]:
    """A connection to a server with two tools; there is none to other servers than "weather"."""
    if server.name != "weather":
        raise FileNotFoundError(f"no program {server.command}")
    found = SimpleNamespace(tools=[SimpleNamespace(name=name) for name in ("forecast", "history")])
    yield SimpleNamespace(list_tools=AsyncMock(return_value=found))


@asynccontextmanager
async def opened(
    kind: type[EchoAgent], answer: Callable[[Any], Any] | None = None, servers: Sequence[Any] = ()
) -> AsyncGenerator[tuple[ScriptedClient, str], None]:
    """An editor that answers the agent's questions so, and the session that it has open with MCP servers."""
    ours, theirs = memory_transports()
    agent = asyncio.create_task(serve_agent(kind, theirs, options=CHECKED))
    editor = ScriptedClient(answers={"session/request_permission": answer or choose("allow_once")})
    async with editor.connected(ours):
        yield editor, await editor.open(mcpServers=[*servers])
    await asyncio.wait_for(agent, timeout=30)


class EchoAgentTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_prompt_is_streamed_back(self) -> None:
        async with opened(QuickAgent) as (editor, session):
            ended = await editor.prompt(session, "Hello, my world")
        message, running, *chunks, idle = ended.updates
        self.assertEqual((message["sessionUpdate"], running["state"]), ("user_message", "running"))
        self.assertEqual([chunk["content"]["text"] for chunk in chunks], ["Hello, ", "my ", "world"])
        self.assertEqual(len({chunk["messageId"] for chunk in chunks}), 1)
        self.assertEqual((idle["state"], ended.stop_reason), ("idle", "end_turn"))

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                async with opened(QuickAgent, choose(chosen)) as (editor, session):
                    ended = await editor.prompt(session, "edit")
                calls = [update["status"] for update in ended.updates if update["sessionUpdate"] == "tool_call_update"]
                states = [update["state"] for update in ended.updates if update["sessionUpdate"] == "state_update"]
                self.assertEqual(calls, ["pending", *statuses])
                self.assertEqual(states, ["running", "requires_action", "running", "idle"])
                self.assertEqual((ended.text, ended.stop_reason), ("edit", "end_turn"))

    async def test_the_answer_can_be_cancelled_and_another_prompt_follows(self) -> None:
        async with opened(SlowAgent) as (editor, session):
            for _ in range(2):
                turn = asyncio.create_task(editor.prompt(session, "Hello, my world"))
                await asyncio.sleep(0)
                await editor.cancel(session)
                self.assertEqual((await turn).stop_reason, "cancelled")

    async def test_a_question_can_be_cancelled(self) -> None:
        closed = asyncio.Event()

        async def dialog(params: Any) -> Any:
            await closed.wait()
            return choose()(params)

        async with opened(QuickAgent, dialog) as (editor, session):
            turn = asyncio.create_task(editor.prompt(session, "edit"))
            await editor.call("session/request_permission")
            await editor.cancel(session)
            closed.set()
            self.assertEqual((await turn).stop_reason, "cancelled")

    async def test_sessions_can_be_listed_resumed_and_closed(self) -> None:
        async with opened(QuickAgent) as (editor, session):
            await editor.prompt(session, "Hello")
            found = await editor.request("session/list")
            self.assertEqual([each["cwd"] for each in found["sessions"]], ["/"])
            await editor.request("session/resume", sessionId=session, cwd="/")
            await editor.request("session/close", sessionId=session)
            self.assertEqual((await editor.request("session/list"))["sessions"], [])

    async def test_an_unknown_session_is_refused(self) -> None:
        async with opened(QuickAgent) as (editor, _):
            with self.assertRaisesRegex(RequestError, "none"):
                await editor.request("session/close", sessionId="none")

    async def test_the_tools_of_the_mcp_servers_are_shown(self) -> None:
        servers = [server("weather"), server("lost")]
        with patch("new_project.tools.connected", weather):
            async with opened(QuickAgent, servers=servers) as (editor, session):
                ended = await editor.prompt(session, "tools")
        self.assertEqual(ended.text, "weather: forecast, history\nlost: no program lost\ntools")

    async def test_it_does_without_tools(self) -> None:
        for servers, found in ([], "no MCP servers"), ([server("weather")], "weather: its tools need the package mcp"):
            with self.subTest(found), patch.dict(sys.modules, {"mcp": None}):
                async with opened(QuickAgent, servers=servers) as (editor, session):
                    ended = await editor.prompt(session, "tools")
                self.assertIn(found, ended.text)


if __name__ == "__main__":
    unittest.main()
