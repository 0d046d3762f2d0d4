"""The proxy in version 2 of the protocol, as its editor and its agent meet it: in messages."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import unittest
from typing import Any

from new_project.acp import ConnectionOptions, MemoryTransport, memory_transports, serve_proxy
from new_project.__main__ import GUARDS

CHECKED = ConnectionOptions(check_sent=True)
"""A message of the proxy that does not fit the protocol is an error."""

HELLO = {"protocolVersion": 2, "info": {"name": "tests", "version": "1"}}


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


class GuardV2Test(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        self.home = os.path.realpath(home.name)
        self.project = os.path.join(self.home, "project")
        os.mkdir(self.project)
        ours, client = memory_transports()
        agent, theirs = memory_transports()
        self.editor, self.agent = End(ours), End(theirs)
        proxy = asyncio.create_task(serve_proxy(GUARDS, client, agent, options=CHECKED))

        async def stop() -> None:
            await ours.close()
            await asyncio.wait_for(proxy, timeout=30)

        self.addAsyncCleanup(stop)
        await self.editor.send(id="hello", method="initialize", params=HELLO)
        await self.agent.answer(HELLO)
        await self.editor.receive()
        await self.editor.send(id="open", method="session/new", params={"cwd": self.project, "mcpServers": []})
        await self.agent.answer({"sessionId": "s"})
        await self.editor.receive()

    async def tell(self, path: str, **fields: Any) -> None:
        """Report a tool call: the editor gets it unchanged."""
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "unknown": 1.0, **fields}
        update["locations"] = [{"path": path}]
        await self.agent.send(method="session/update", params={"sessionId": "s", "update": update})
        self.assertEqual((await self.editor.receive())["params"]["update"], update)

    async def begin(self, path: str, **fields: Any) -> None:
        """Report that the work on a file has begun."""
        await self.tell(path, kind="edit", status="in_progress", **fields)

    async def next(self, receiver: End, sender: End) -> None:
        """The next message is the one that `sender` sends now."""
        await sender.send(method="_next")
        self.assertEqual((await receiver.receive())["method"], "_next")

    async def test_work_inside_is_not_asked_about(self) -> None:
        await self.begin(os.path.join(self.project, "notes.txt"))
        await self.next(self.editor, self.agent)

    async def test_reading_is_not_asked_about(self) -> None:
        await self.tell(os.path.join(self.home, "notes.txt"), kind="read", status="in_progress")
        await self.next(self.editor, self.agent)

    async def test_work_outside_goes_on_if_that_is_allowed(self) -> None:
        path = os.path.join(self.home, "secrets.txt")
        await self.tell(path, kind="edit", status="pending")
        await self.begin(path)
        question = await self.editor.choose("allow_once")
        self.assertEqual((question["description"], question["subject"]["toolCall"]), (path, {"toolCallId": "c"}))
        await self.begin(path)  # it is asked about once
        await self.next(self.editor, self.agent)
        await self.next(self.agent, self.editor)

    async def test_a_tool_call_is_cancelled_if_the_agent_can_do_that(self) -> None:
        await self.begin(os.path.join(self.home, "secrets.txt"), capabilities={"cancel": {}})
        await self.editor.choose("reject_once")
        cancel = await self.agent.answer({})
        self.assertEqual(cancel["method"], "tool_call/cancel")
        self.assertEqual(cancel["params"], {"sessionId": "s", "toolCallId": "c"})

    async def test_the_work_in_the_session_is_cancelled_otherwise(self) -> None:
        await self.begin(os.path.join(self.home, "secrets.txt"))
        await self.editor.answer({"outcome": {"outcome": "cancelled"}})
        cancel = await self.agent.receive()
        self.assertEqual((cancel["method"], cancel["params"]), ("session/cancel", {"sessionId": "s"}))

    async def test_a_question_of_the_agent_says_what_is_outside(self) -> None:
        path = os.path.join(self.home, "secrets.txt")
        call = {"toolCallId": "c", "kind": "edit", "locations": [{"path": path}]}
        option = {"optionId": "yes", "name": "Yes", "kind": "allow_once"}
        subject = {"type": "tool_call", "toolCall": call}
        params = {"sessionId": "s", "title": "Edit?", "subject": subject, "options": [option]}
        await self.agent.send(id="ask", method="session/request_permission", params=params)
        question = await self.editor.choose("yes")
        self.assertEqual(question, {**params, "description": f"Outside the project: {path}"})
        self.assertEqual((await self.agent.receive())["result"]["outcome"]["optionId"], "yes")
        await self.begin(path)  # the user has been asked
        await self.next(self.editor, self.agent)

    async def test_the_user_can_cancel_instead_of_an_answer(self) -> None:
        await self.begin(os.path.join(self.home, "secrets.txt"))
        question = await self.editor.receive()
        await self.editor.send(method="session/cancel", params={"sessionId": "s"})
        self.assertEqual((await self.agent.receive())["method"], "session/cancel")
        withdrawn = await self.editor.receive()
        self.assertEqual(withdrawn["params"], {"requestId": question["id"]})
        await self.next(self.agent, self.editor)

    async def test_everything_else_passes_unchanged(self) -> None:
        for sender, receiver in ((self.editor, self.agent), (self.agent, self.editor)):
            message = {"method": "_unknown/thing", "params": {"number": 1.0, "nothing": None}}
            await sender.send(**message)
            self.assertEqual(await receiver.receive(), {"jsonrpc": "2.0", **message})


if __name__ == "__main__":
    unittest.main()
