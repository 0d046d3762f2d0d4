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
    return {"name": name, "command": name, "args": [], "env": []}


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
        self.assertEqual([update["content"]["text"] for update in ended.updates], ["Hello, ", "my ", "world"])
        self.assertEqual(ended.stop_reason, "end_turn")

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                async with opened(QuickAgent, choose(chosen)) as (editor, session):
                    ended = await editor.prompt(session, "edit")
                call, *updates, chunk = ended.updates
                self.assertEqual(call["sessionUpdate"], "tool_call")
                self.assertEqual([update["status"] for update in updates], statuses)
                self.assertEqual((chunk["content"]["text"], ended.stop_reason), ("edit", "end_turn"))

    async def test_the_answer_can_be_cancelled_and_another_prompt_follows(self) -> None:
        async with opened(SlowAgent) as (editor, session):
            for count in (1, 2):
                turn = asyncio.create_task(editor.prompt(session, "Hello, my world"))
                await editor.update(session, count)
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

    async def test_a_prompt_waits_for_the_one_before_it(self) -> None:
        async with opened(QuickAgent) as (editor, session):
            await asyncio.gather(editor.prompt(session, "one"), editor.prompt(session, "two"))
            self.assertEqual([update["content"]["text"] for update in editor.updates(session)], ["one", "two"])

    async def test_an_unknown_session_is_refused(self) -> None:
        async with opened(QuickAgent) as (editor, _):
            with self.assertRaisesRegex(RequestError, "none"):
                await editor.prompt("none", "Hello")

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
