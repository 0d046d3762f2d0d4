"""The proxy, as its editor and its agent meet it: in messages."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import unittest
from typing import Any

from new_project.acp import ConnectionOptions, MemoryTransport, memory_transports, serve_proxy
from new_project.guard import Guard

CHECKED = ConnectionOptions(check_sent=True)
"""A message of the proxy that does not fit the protocol is an error."""


class End:
    """The editor or the agent."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport

    async def send(self, **message: Any) -> None:
        await self._transport.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> Any:
        line = await asyncio.wait_for(self._transport.read(), timeout=30)
        assert line is not None, "the proxy has closed the connection"
        return json.loads(line)

    async def answer(self, result: Any) -> Any:
        """Receive a request, and answer it; returns it."""
        request = await self.receive()
        await self.send(id=request["id"], result=result)
        return request

    async def choose(self, option: str) -> Any:
        """The same for the question whether something is allowed."""
        question = await self.answer({"outcome": {"outcome": "selected", "optionId": option}})
        assert question["method"] == "session/request_permission", question
        return question["params"]


class GuardTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = os.path.realpath(home.name)
        self.project = os.path.join(self.home, "project")
        os.mkdir(self.project)
        ours, client = memory_transports()
        agent, theirs = memory_transports()
        self.editor, self.agent = End(ours), End(theirs)
        proxy = asyncio.create_task(serve_proxy(Guard, client, agent, options=CHECKED))

        async def stop() -> None:
            await ours.close()
            await asyncio.wait_for(proxy, timeout=30)

        self.addAsyncCleanup(stop)
        await self.editor.send(id="hello", method="initialize", params={"protocolVersion": 1})
        await self.agent.answer({"protocolVersion": 1})
        await self.editor.receive()
        await self.editor.send(id="open", method="session/new", params={"cwd": self.project, "mcpServers": []})
        await self.agent.answer({"sessionId": "s"})
        await self.editor.receive()

    async def write(self, path: str, session_id: str = "s") -> Any:
        """Begin to write a file; returns the params."""
        params = {"sessionId": session_id, "path": path, "content": "text", "unknown": 1.0}
        await self.agent.send(id="write", method="fs/write_text_file", params=params)
        return params

    async def test_a_write_inside_passes_unchanged(self) -> None:
        for name in ("notes.txt", os.path.join("new folder", "notes.txt"), "."):
            params = await self.write(os.path.join(self.project, name))
            request = await self.editor.answer({})
            self.assertEqual((request["method"], request["params"]), ("fs/write_text_file", params))
            self.assertEqual(await self.agent.receive(), {"jsonrpc": "2.0", "id": "write", "result": {}})

    async def test_a_write_outside_is_asked_for(self) -> None:
        path = os.path.join(self.home, "secrets.txt")
        params = await self.write(path)
        question = await self.editor.choose("allow_once")
        self.assertIn(path, question["toolCall"]["title"])
        request = await self.editor.answer({})
        self.assertEqual((request["method"], request["params"]), ("fs/write_text_file", params))
        self.assertEqual((await self.agent.receive())["result"], {})

    async def test_a_write_that_is_rejected_does_not_happen(self) -> None:
        await self.write(os.path.join(self.home, "secrets.txt"))
        await self.editor.choose("reject_once")
        self.assertIn("the user has not allowed", (await self.agent.receive())["error"]["message"])
        await self.agent.send(method="_next")
        self.assertEqual((await self.editor.receive())["method"], "_next")  # and no write before it

    async def test_a_question_that_is_cancelled_allows_nothing(self) -> None:
        await self.write(os.path.join(self.home, "secrets.txt"))
        await self.editor.answer({"outcome": {"outcome": "cancelled"}})
        self.assertIn("error", await self.agent.receive())

    async def test_ways_out_of_the_project_are_found(self) -> None:
        ways = [os.path.join(self.project, "..", "secrets.txt"), self.project + "-2"]
        if hasattr(os, "symlink") and os.name != "nt":
            os.symlink(self.home, os.path.join(self.project, "link"))
            ways.append(os.path.join(self.project, "link", "secrets.txt"))
        for way in ways:
            with self.subTest(way):
                await self.write(way)
                await self.editor.choose("reject_once")
                await self.agent.receive()

    async def test_an_unknown_session_has_no_folder(self) -> None:
        await self.write(os.path.join(self.project, "notes.txt"), session_id="other")
        await self.editor.choose("reject_once")
        self.assertIn("error", await self.agent.receive())

    async def test_everything_else_passes_unchanged(self) -> None:
        for sender, receiver in ((self.editor, self.agent), (self.agent, self.editor)):
            message = {"method": "_unknown/thing", "params": {"number": 1.0, "nothing": None}}
            await sender.send(**message)
            self.assertEqual(await receiver.receive(), {"jsonrpc": "2.0", **message})


if __name__ == "__main__":
    unittest.main()
