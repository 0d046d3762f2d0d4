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

HELLO = {"protocolVersion": 2, "info": {"name": "tests", "version": "1"}}


class QuickAgent(EchoAgent):
    pause = 0


class SlowAgent(EchoAgent):
    pause = 3600


class Editor:
    """The other end of the connection, with one session open."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self.session_id = ""

    async def send(self, **message: Any) -> None:
        await self._transport.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self) -> Any:
        line = await asyncio.wait_for(self._transport.read(), timeout=30)
        assert line is not None, "the agent has closed the connection"
        return json.loads(line)

    async def open(self) -> None:
        await self.send(id="hello", method="initialize", params=HELLO)
        agreed = await self.receive()
        assert agreed["result"]["protocolVersion"] == 2, agreed
        await self.send(id="open", method="session/new", params={"cwd": "/", "mcpServers": []})
        self.session_id = (await self.receive())["result"]["sessionId"]

    async def prompt(self, text: str) -> None:
        prompt = [{"type": "text", "text": text}]
        await self.send(id="prompt", method="session/prompt", params={"sessionId": self.session_id, "prompt": prompt})

    async def cancel(self) -> None:
        await self.send(method="session/cancel", params={"sessionId": self.session_id})

    async def updates(self) -> list[Any]:
        """What the agent tells until it is idle, or asks for permission; the last one is why."""
        found: list[Any] = []
        while True:
            message = await self.receive()
            if message.get("method") == "session/request_permission":
                return [*found, message]
            if message.get("method") == "session/update":
                found.append(message["params"]["update"])
                if found[-1].get("state") == "idle":
                    return found
            elif "error" in message:
                raise AssertionError(message)

    async def result(self, name: str = "") -> Any:
        """A part of the answer to request 1."""
        while (message := await self.receive()).get("id") != 1:
            pass
        return message["result"].get(name)


class EchoAgentTest(unittest.IsolatedAsyncioTestCase):
    async def start(self, kind: type[EchoAgent], max_messages: int = 64) -> Editor:
        ours, theirs = memory_transports(max_messages)
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
        message, running, *chunks, idle = await editor.updates()
        self.assertEqual((message["sessionUpdate"], running["state"]), ("user_message", "running"))
        self.assertEqual([chunk["content"]["text"] for chunk in chunks], ["Hello, ", "my ", "world"])
        self.assertEqual(len({chunk["messageId"] for chunk in chunks}), 1)
        self.assertEqual(idle["stopReason"], "end_turn")

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                editor = await self.start(QuickAgent)
                await editor.prompt("edit")
                *_, call, state, question = await editor.updates()
                self.assertEqual((call["sessionUpdate"], state["state"]), ("tool_call_update", "requires_action"))
                outcome = {"outcome": "selected", "optionId": chosen}
                await editor.send(id=question["id"], result={"outcome": outcome})
                running, *calls, chunk, idle = await editor.updates()
                self.assertEqual((running["state"], [call["status"] for call in calls]), ("running", statuses))
                self.assertEqual((chunk["content"]["text"], idle["stopReason"]), ("edit", "end_turn"))

    async def test_the_answer_can_be_cancelled(self) -> None:
        editor = await self.start(SlowAgent)
        for _ in range(2):  # another prompt may follow
            await editor.prompt("Hello, my world")
            await editor.cancel()
            message, *_, idle = await editor.updates()
            self.assertEqual((message["sessionUpdate"], idle["stopReason"]), ("user_message", "cancelled"))

    async def test_a_client_that_does_not_read_can_cancel_too(self) -> None:
        editor = await self.start(SlowAgent, max_messages=1)
        await editor.prompt("Hello, my world")
        await editor.cancel()
        for _ in range(2):  # there is room for one message: when the second is on its way, the first has been read
            await editor.send(method="session/cancel", params={"sessionId": "none"})
        *_, idle = await editor.updates()
        self.assertEqual(idle["stopReason"], "cancelled")

    async def test_a_question_can_be_cancelled(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.prompt("edit")
        *_, question = await editor.updates()
        await editor.cancel()
        *_, call, idle = await editor.updates()
        self.assertEqual((call["status"], idle["stopReason"]), ("cancelled", "cancelled"))
        await editor.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})

    async def test_sessions_can_be_listed_resumed_and_closed(self) -> None:
        editor = await self.start(SlowAgent)
        await editor.prompt("Hello")
        await editor.send(id=1, method="session/list", params={})
        self.assertEqual([session["cwd"] for session in await editor.result("sessions")], ["/"])
        await editor.send(id=1, method="session/resume", params={"sessionId": editor.session_id, "cwd": "/"})
        await editor.result()
        await editor.send(id=1, method="session/close", params={"sessionId": editor.session_id})
        await editor.result()
        await editor.send(id=1, method="session/list", params={})
        self.assertEqual(await editor.result("sessions"), [])

    async def test_an_unknown_session_is_refused(self) -> None:
        editor = await self.start(QuickAgent)
        await editor.send(id=1, method="session/close", params={"sessionId": "none"})
        self.assertEqual((await editor.receive())["error"]["code"], -32602)


if __name__ == "__main__":
    unittest.main()
