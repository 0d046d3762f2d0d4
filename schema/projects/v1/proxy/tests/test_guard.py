"""The proxy in version 1 of the protocol, as its editor and its agent meet it: in messages."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import unittest
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from new_project.acp import ConnectionOptions, RequestError, StreamTransport, memory_transports, serve_proxy
from new_project.acp.helpers import ScriptedAgent, ScriptedClient, ScriptedTurn, choose
from new_project.guard import Guard

SOURCE = Path(__file__).resolve().parent.parent / "src"
AGENT = "from new_project.acp.helpers import ScriptedAgent; ScriptedAgent(None).run()"
CHECKED = ConnectionOptions(check_sent=True)
"""A message of the proxy that does not fit the protocol is an error."""


async def idle(turn: ScriptedTurn) -> None:
    """There are no prompts."""


class Ends:
    """The editor and the agent, with a session."""

    def __init__(self, editor: ScriptedClient, agent: ScriptedAgent, session_id: str) -> None:
        self.editor = editor
        self.agent = agent
        self.session_id = session_id

    async def write(self, path: str, session_id: str = "") -> dict[str, Any]:
        """Let the agent write a file; returns the params when the editor has done so."""
        params = {"sessionId": session_id or self.session_id, "path": path, "content": "text", "unknown": 1.0}
        await self.agent.request("fs/write_text_file", **params)
        return params

    @property
    def written(self) -> list[Any]:
        return self.editor.calls("fs/write_text_file")

    @property
    def asked(self) -> list[Any]:
        return self.editor.calls("session/request_permission")


class GuardTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = os.path.realpath(home.name)
        self.project = os.path.join(self.home, "project")
        os.mkdir(self.project)

    @asynccontextmanager
    async def opened(self, *kinds: str) -> AsyncGenerator[Ends, None]:
        """Both ends, with a session in the project. The user chooses an option of these kinds."""
        ours, client = memory_transports()
        server, theirs = memory_transports()
        proxy = asyncio.create_task(serve_proxy(Guard, client, server, options=CHECKED))
        answers = {"session/request_permission": choose(*kinds), "fs/write_text_file": {}}
        editor, agent = ScriptedClient(answers=answers), ScriptedAgent(idle)
        agent.wait_seconds = 30
        async with agent.connected(theirs), editor.connected(ours):
            yield Ends(editor, agent, await editor.open(self.project))
        await asyncio.wait_for(proxy, timeout=30)

    async def test_a_write_inside_passes_unchanged(self) -> None:
        async with self.opened() as ends:
            names = ("notes.txt", os.path.join("new folder", "notes.txt"), ".")
            sent = [await ends.write(os.path.join(self.project, name)) for name in names]
            self.assertEqual((ends.written, ends.asked), (sent, []))

    async def test_a_write_outside_is_asked_for(self) -> None:
        path = os.path.join(self.home, "secrets.txt")
        async with self.opened("allow_once") as ends:
            sent = await ends.write(path)
            self.assertEqual(ends.written, [sent])
            self.assertIn(path, ends.asked[0]["toolCall"]["title"])

    async def test_a_write_that_is_not_allowed_does_not_happen(self) -> None:
        for kinds in (("reject_once",), ()):  # without any, the question is cancelled
            with self.subTest(kinds):
                async with self.opened(*kinds) as ends:
                    with self.assertRaisesRegex(RequestError, "the user has not allowed"):
                        await ends.write(os.path.join(self.home, "secrets.txt"))
                    self.assertEqual((ends.written, len(ends.asked)), ([], 1))

    async def test_ways_out_of_the_project_are_found(self) -> None:
        ways = [os.path.join(self.project, "..", "secrets.txt"), self.project + "-2"]
        if hasattr(os, "symlink") and os.name != "nt":
            os.symlink(self.home, os.path.join(self.project, "link"))
            ways.append(os.path.join(self.project, "link", "secrets.txt"))
        async with self.opened("reject_once") as ends:
            for way in ways:
                with self.subTest(way), self.assertRaises(RequestError):
                    await ends.write(way)
            self.assertEqual(ends.written, [])

    async def test_an_unknown_session_has_no_folder(self) -> None:
        async with self.opened("reject_once") as ends:
            with self.assertRaises(RequestError):
                await ends.write(os.path.join(self.project, "notes.txt"), session_id="other")

    async def test_everything_else_passes_unchanged(self) -> None:
        async with self.opened() as ends:
            for sender, receiver in ((ends.editor, ends.agent), (ends.agent, ends.editor)):
                params = {"number": 1.0, "nothing": None}
                await sender.notify("_unknown/thing", **params)
                self.assertEqual(await receiver.call("_unknown/thing"), params)

    async def test_the_program_starts_an_agent_of_this_version(self) -> None:
        command = [sys.executable, "-m", "new_project", sys.executable, "-c", AGENT]
        program = await asyncio.create_subprocess_exec(*command, cwd=SOURCE, stdin=PIPE, stdout=PIPE)
        assert program.stdout is not None
        assert program.stdin is not None
        async with ScriptedClient().connected(StreamTransport(program.stdout, program.stdin)) as editor:
            self.assertTrue(await editor.open(self.project))
        self.assertEqual(await asyncio.wait_for(program.wait(), timeout=30), 0)


if __name__ == "__main__":
    unittest.main()
