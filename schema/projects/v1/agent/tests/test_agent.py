"""The agent in version 1 of the protocol, as an editor meets it: in messages."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import unittest
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from new_project.acp import PROTOCOL_VERSION, ConnectionOptions, RequestError, memory_transports, serve_agent
from new_project.acp.helpers import ScriptedClient, choose
from new_project.agent import EchoAgent

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHECKED = ConnectionOptions(check_sent=True)
"""A message of the agent that does not fit the protocol is an error."""


@asynccontextmanager
async def opened(
    answer: Callable[[Any], Any] | None = None, pause: float = 0, servers: Sequence[Any] = ()
) -> AsyncGenerator[tuple[ScriptedClient, str], None]:
    """An editor that answers the agent's questions so, and the session that it has open with MCP servers."""
    ours, theirs = memory_transports()
    editor = ScriptedClient(answers={"session/request_permission": answer or choose("allow_once")})
    with patch("new_project.work.PAUSE", pause):
        agent = asyncio.create_task(serve_agent(EchoAgent, theirs, options=CHECKED))
        async with editor.connected(ours):
            yield editor, await editor.open(mcpServers=[*servers])
        await asyncio.wait_for(agent, timeout=30)


class EchoAgentTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_prompt_is_streamed_back(self) -> None:
        async with opened() as (editor, session):
            ended = await editor.prompt(session, "Hello, my world")
        self.assertEqual([update["content"]["text"] for update in ended.updates], ["Hello, ", "my ", "world"])
        self.assertEqual(ended.stop_reason, "end_turn")

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                async with opened(choose(chosen)) as (editor, session):
                    ended = await editor.prompt(session, "edit")
                call, *updates, chunk = ended.updates
                self.assertEqual(call["sessionUpdate"], "tool_call")
                self.assertEqual([update["status"] for update in updates], statuses)
                self.assertEqual((chunk["content"]["text"], ended.stop_reason), ("edit", "end_turn"))

    async def test_the_answer_can_be_cancelled_and_another_prompt_follows(self) -> None:
        async with opened(pause=3600) as (editor, session):
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

        async with opened(dialog) as (editor, session):
            turn = asyncio.create_task(editor.prompt(session, "edit"))
            await editor.call("session/request_permission")
            await editor.cancel(session)
            closed.set()
            self.assertEqual((await turn).stop_reason, "cancelled")

    async def test_a_prompt_waits_for_the_one_before_it(self) -> None:
        async with opened() as (editor, session):
            await asyncio.gather(editor.prompt(session, "one"), editor.prompt(session, "two"))
            self.assertEqual([update["content"]["text"] for update in editor.updates(session)], ["one", "two"])

    async def test_an_unknown_session_is_refused(self) -> None:
        async with opened() as (editor, _):
            with self.assertRaises(RequestError) as refused:
                await editor.prompt("none", "Hello")
            self.assertEqual((refused.exception.code, refused.exception.data), (-32002, {"sessionId": "none"}))

    async def test_a_relative_folder_is_refused(self) -> None:
        async with opened() as (editor, _):
            with self.assertRaisesRegex(RequestError, "absolute"):
                await editor.open(cwd=".")

    async def test_the_tools_of_the_mcp_servers_are_shown(self) -> None:
        server = {"name": "weather", "command": "weather", "args": [], "env": []}
        for servers, found in ([], "no MCP servers"), ([server], "weather: its tools need the package mcp"):
            with self.subTest(found), patch.dict(sys.modules, {"mcp": None}):
                async with opened(servers=servers) as (editor, session):
                    ended = await editor.prompt(session, "tools")
                self.assertIn(found, ended.text)

    def test_the_program_speaks_this_version(self) -> None:
        params = {"protocolVersion": PROTOCOL_VERSION, "info": {"name": "tests", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        command = [sys.executable, "-m", "new_project"]
        answer = subprocess.check_output(command, cwd=SOURCE, input=json.dumps(request), text=True, timeout=60)
        self.assertEqual(json.loads(answer)["result"]["protocolVersion"], PROTOCOL_VERSION)


if __name__ == "__main__":
    unittest.main()
