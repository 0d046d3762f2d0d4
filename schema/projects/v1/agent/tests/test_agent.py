"""The agent, as an editor meets it: in messages."""

from __future__ import annotations

import asyncio
import json
import unittest
from typing import Any

from new_project.acp import ConnectionOptions, MemoryTransport, memory_transports, serve_agent
from new_project.agent import EchoAgent

CHECKED = ConnectionOptions(check_sent=True)
"""A message of the agent that does not fit the protocol is an error."""


class QuickAgent(EchoAgent):
    pause = 0


class SlowAgent(EchoAgent):
    pause = 3600


class Editor:
    """The other end of the connection, with one session open."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self._session_id = ""

    async def send(self, **message: Any) -> None:
        await self._transport.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> Any:
        line = await asyncio.wait_for(self._transport.read(), timeout=30)
        assert line is not None, "the agent has closed the connection"
        return json.loads(line)

    async def open(self) -> None:
        await self.send(id="hello", method="initialize", params={"protocolVersion": 1})
        agreed = await self.receive()
        assert agreed["result"]["protocolVersion"] == 1, agreed
        await self.send(id="open", method="session/new", params={"cwd": "/", "mcpServers": []})
        self._session_id = (await self.receive())["result"]["sessionId"]

    async def prompt(self, text: str) -> None:
        prompt = [{"type": "text", "text": text}]
        await self.send(id=text, method="session/prompt", params={"sessionId": self._session_id, "prompt": prompt})

    async def cancel(self) -> None:
        await self.send(method="session/cancel", params={"sessionId": self._session_id})

    async def update(self) -> Any:
        """The next message, which is an update."""
        message = await self.receive()
        assert message["method"] == "session/update", message
        return message["params"]["update"]

    async def stop_reason(self) -> str:
        """The next message, which answers a prompt."""
        message = await self.receive()
        return str(message["result"]["stopReason"])


class EchoAgentTest(unittest.IsolatedAsyncioTestCase):
    async def start(self, kind: type[EchoAgent]) -> Editor:
        ours, theirs = memory_transports()
        agent = asyncio.create_task(serve_agent(kind, theirs, options=CHECKED))

        async def stop() -> None:
            await ours.close()
            await asyncio.wait_for(agent, timeout=30)

        self.addAsyncCleanup(stop)
        editor = Editor(ours)
        await editor.open()
        return editor

    async def test_the_prompt_is_streamed_back(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.prompt("Hello, my world")
        updates = [await editor.update() for _ in range(3)]
        self.assertEqual([update["content"]["text"] for update in updates], ["Hello, ", "my ", "world"])
        self.assertEqual(await editor.stop_reason(), "end_turn")

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                editor = await self.start(QuickAgent)
                await editor.prompt("edit")
                self.assertEqual((await editor.update())["sessionUpdate"], "tool_call")
                question = await editor.receive()
                self.assertEqual(question["method"], "session/request_permission")
                outcome = {"outcome": "selected", "optionId": chosen}
                await editor.send(id=question["id"], result={"outcome": outcome})
                self.assertEqual([(await editor.update())["status"] for _ in statuses], statuses)
                self.assertEqual((await editor.update())["content"]["text"], "edit")
                self.assertEqual(await editor.stop_reason(), "end_turn")

    async def test_the_answer_can_be_cancelled(self) -> None:
        editor = await self.start(SlowAgent)
        await editor.prompt("Hello, my world")
        await editor.update()
        await editor.cancel()
        self.assertEqual(await editor.stop_reason(), "cancelled")

    async def test_a_question_can_be_cancelled(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.prompt("edit")
        await editor.update()
        question = await editor.receive()
        await editor.cancel()
        await editor.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})
        while "method" in (message := await editor.receive()):  # the end of the tool call, among others
            pass
        self.assertEqual(message["result"]["stopReason"], "cancelled")

    async def test_after_a_cancelled_prompt_comes_another(self) -> None:
        editor = await self.start(SlowAgent)
        for _ in range(2):
            await editor.prompt("Hello, my world")
            await editor.update()
            await editor.cancel()
            self.assertEqual(await editor.stop_reason(), "cancelled")

    async def test_a_prompt_waits_for_the_one_before_it(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.prompt("one")
        await editor.prompt("two")
        for word in ("one", "two"):
            self.assertEqual((await editor.update())["content"]["text"], word)
            self.assertEqual(await editor.stop_reason(), "end_turn")

    async def test_an_unknown_session_is_refused(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.send(id=1, method="session/prompt", params={"sessionId": "none", "prompt": []})
        self.assertEqual((await editor.receive())["error"]["code"], -32602)


if __name__ == "__main__":
    unittest.main()
