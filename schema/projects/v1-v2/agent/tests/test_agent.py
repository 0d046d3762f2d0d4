"""The agent in both versions of the protocol, as an editor meets it: in messages."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import unittest
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, patch

from new_project.__main__ import agent_v1, agent_v2
from new_project.acp import ConnectionOptions, RequestError, memory_transports, serve_agent
from new_project.acp.v1.helpers import ScriptedClient as EditorV1
from new_project.acp.v1.helpers import choose
from new_project.acp.v2.helpers import ScriptedClient as EditorV2

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHECKED = ConnectionOptions(check_sent=True)
"""A message of the agent that does not fit the protocol is an error."""


def words(updates: list[Any]) -> list[str]:
    """The pieces of the answer."""
    return [each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk"]


def has_said(editor: EditorV1 | EditorV2, session: str, count: int) -> bool:
    """True if so many pieces have come."""
    return len(words(editor.updates(session))) >= count


def statuses(updates: list[Any]) -> list[str]:
    """What has become of the tool calls."""
    return [each["status"] for each in updates if "toolCallId" in each]


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


class AgentV1Test(unittest.IsolatedAsyncioTestCase):
    version = 1
    editor: type[EditorV1] | type[EditorV2] = EditorV1
    cancelled = "failed"
    """What an edit is when it was cancelled."""

    @asynccontextmanager
    async def opened(
        self, answer: Callable[[Any], Any] | None = None, pause: float = 0, servers: Sequence[Any] = ()
    ) -> AsyncGenerator[tuple[EditorV1 | EditorV2, str], None]:
        """An editor that answers the agent's questions so, and the session that it has open with MCP servers."""
        ours, theirs = memory_transports()
        editor = self.editor(answers={"session/request_permission": answer or choose("allow_once")})
        with patch("new_project.agent.PAUSE", pause):
            agent = asyncio.create_task(serve_agent({1: agent_v1, 2: agent_v2}, theirs, options=CHECKED))
            async with editor.connected(ours):
                yield editor, await editor.open(mcpServers=[*servers])
            await asyncio.wait_for(agent, timeout=30)

    async def test_the_prompt_is_streamed_back(self) -> None:
        async with self.opened() as (editor, session):
            ended = await editor.prompt(session, "Hello, my world")
        self.assertEqual((words(ended.updates), ended.stop_reason), (["Hello, ", "my ", "world"], "end_turn"))

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, found in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                async with self.opened(choose(chosen)) as (editor, session):
                    ended = await editor.prompt(session, "edit")
                self.assertEqual(statuses(ended.updates), ["pending", *found])
                self.assertEqual((ended.text, ended.stop_reason), ("edit", "end_turn"))

    async def test_the_answer_can_be_cancelled_and_another_prompt_follows(self) -> None:
        async with self.opened(pause=3600) as (editor, session):
            for count in (1, 2):
                turn: asyncio.Task[Any] = asyncio.create_task(editor.prompt(session, "Hello, my world"))
                await editor.until(partial(has_said, editor, session, count))
                await editor.cancel(session)
                self.assertEqual((await turn).stop_reason, "cancelled")

    async def test_a_question_can_be_cancelled(self) -> None:
        closed = asyncio.Event()

        async def dialog(params: Any) -> Any:
            await closed.wait()
            return choose()(params)

        async with self.opened(dialog) as (editor, session):
            turn: asyncio.Task[Any] = asyncio.create_task(editor.prompt(session, "edit"))
            await editor.call("session/request_permission")
            await editor.cancel(session)
            closed.set()
            ended = await turn
        self.assertEqual((statuses(ended.updates)[-1], ended.stop_reason), (self.cancelled, "cancelled"))

    async def test_a_prompt_waits_for_the_one_before_it(self) -> None:
        async with self.opened() as (editor, session):
            await asyncio.gather(editor.prompt(session, "one"), editor.prompt(session, "two"))
            self.assertEqual(words(editor.updates(session)), ["one", "two"])

    async def test_an_unknown_session_is_refused(self) -> None:
        async with self.opened() as (editor, _):
            with self.assertRaisesRegex(RequestError, "no session 'none'"):
                await editor.prompt("none", "Hi")

    async def test_the_tools_of_the_mcp_servers_are_shown(self) -> None:
        servers = [server("weather"), server("lost")]
        with patch("new_project.tools.connected", weather):
            async with self.opened(servers=servers) as (editor, session):
                ended = await editor.prompt(session, "tools")
        self.assertEqual(ended.text, "weather: forecast, history\nlost: no program lost\ntools")

    async def test_it_does_without_tools(self) -> None:
        for servers, found in ([], "no MCP servers"), ([server("weather")], "weather: its tools need the package mcp"):
            with self.subTest(found), patch.dict(sys.modules, {"mcp": None}):
                async with self.opened(servers=servers) as (editor, session):
                    ended = await editor.prompt(session, "tools")
                self.assertIn(found, ended.text)

    def test_the_program_answers_in_the_version_that_is_asked_for(self) -> None:
        params = {"protocolVersion": self.version, "info": {"name": "tests", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        command = [sys.executable, "-m", "new_project"]
        answer = subprocess.check_output(command, cwd=SOURCE, input=json.dumps(request), text=True, timeout=60)
        self.assertEqual(json.loads(answer)["result"]["protocolVersion"], self.version)


class AgentV2Test(AgentV1Test):
    version = 2
    editor = EditorV2
    cancelled = "cancelled"

    async def test_sessions_can_be_listed_resumed_and_closed(self) -> None:
        async with self.opened() as (editor, session):
            await editor.prompt(session, "Hello")
            found = await editor.request("session/list")
            self.assertEqual([each["cwd"] for each in found["sessions"]], ["/"])
            await editor.request("session/resume", sessionId=session, cwd="/")
            await editor.request("session/close", sessionId=session)
            self.assertEqual((await editor.request("session/list"))["sessions"], [])


if __name__ == "__main__":
    unittest.main()
