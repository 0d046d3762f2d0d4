"""The agent in both versions of the protocol, as an editor meets it: in messages."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import patch

from new_project.__main__ import agent_v1, agent_v2
from new_project.acp import ConnectionOptions, MemoryTransport, memory_transports, serve_agent

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHECKED = ConnectionOptions(check_sent=True)
"""A message of the agent that does not fit the protocol is an error."""


def hello(version: int) -> dict[str, Any]:
    """The params of `initialize`, for any version."""
    return {"protocolVersion": version, "info": {"name": "tests", "version": "1"}}


def text(words: str) -> list[Any]:
    """A prompt."""
    return [{"type": "text", "text": words}]


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

    async def call(self, method: str, **params: Any) -> Any:
        """Send a request; returns the response. Other messages are skipped."""
        await self.send(id=method, method=method, params=params)
        while (message := await self.receive()).get("id") != method:
            pass
        return message

    async def open(self, version: int) -> None:
        agreed = await self.call("initialize", **hello(version))
        assert agreed["result"]["protocolVersion"] == version, agreed
        self.session_id = (await self.call("session/new", cwd="/", mcpServers=[]))["result"]["sessionId"]

    async def prompt(self, words: str) -> None:
        params = {"sessionId": self.session_id, "prompt": text(words)}
        await self.send(id=words, method="session/prompt", params=params)

    async def cancel(self) -> None:
        await self.send(method="session/cancel", params={"sessionId": self.session_id})

    async def events(self) -> list[str]:
        """What the agent does until it asks for permission, or has finished."""
        found: list[str] = []
        while not (found and found[-1].startswith(("?", "."))):
            found += event(await self.receive())
        return found


def event(message: Any) -> list[str]:
    """What a message tells, in words that are the same for all versions; nothing for one that only another version has."""
    match message:
        case {"method": "session/request_permission", "id": number}:
            return [f"?{number}"]
        case {"result": {"stopReason": reason}} | {"params": {"update": {"state": "idle", "stopReason": reason}}}:
            return [f".{reason}"]
        case {"params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": words}}}}:
            return [words]
        case {"params": {"update": {"toolCallId": _, "title": title}}}:
            return [title]
        case {"params": {"update": {"toolCallId": _, "status": status}}}:
            return [status]
        case {"error": error}:
            raise AssertionError(error)
        case _:
            return []


class AgentV1Test(unittest.IsolatedAsyncioTestCase):
    version = 1
    cancelled = "failed"
    """What an edit is when it was cancelled."""

    async def start(self, pause: float = 0, max_messages: int = 64) -> Editor:
        patched = patch("new_project.agent.PAUSE", pause)
        patched.start()
        self.addCleanup(patched.stop)
        ours, theirs = memory_transports(max_messages)
        agent = asyncio.create_task(serve_agent({1: agent_v1, 2: agent_v2}, theirs, options=CHECKED))

        async def stop() -> None:
            await ours.close()
            await asyncio.wait_for(agent, timeout=30)

        self.addAsyncCleanup(stop)
        editor = Editor(ours)
        await editor.open(self.version)
        return editor

    async def test_the_prompt_is_streamed_back(self) -> None:
        editor = await self.start()
        await editor.prompt("Hello, my world")
        self.assertEqual(await editor.events(), ["Hello, ", "my ", "world", ".end_turn"])

    async def test_it_edits_if_that_is_allowed(self) -> None:
        for chosen, statuses in (("allow_once", ["in_progress", "completed"]), ("reject_once", ["failed"])):
            with self.subTest(chosen):
                editor = await self.start()
                await editor.prompt("edit")
                title, question = await editor.events()
                self.assertEqual(title, "Edit notes.txt")
                outcome = {"outcome": "selected", "optionId": chosen}
                await editor.send(id=int(question[1:]), result={"outcome": outcome})
                self.assertEqual(await editor.events(), [*statuses, "edit", ".end_turn"])

    async def test_the_answer_can_be_cancelled(self) -> None:
        editor = await self.start(pause=3600)
        for _ in range(2):  # another prompt may follow
            await editor.prompt("Hello, my world")
            await editor.cancel()
            *_, end = await editor.events()
            self.assertEqual(end, ".cancelled")

    async def test_a_client_that_does_not_read_can_cancel_too(self) -> None:
        editor = await self.start(pause=3600, max_messages=1)
        await editor.prompt("Hello, my world")
        await editor.cancel()
        for _ in range(2):  # there is room for one message: when the second is on its way, the first has been read
            await editor.send(method="session/cancel", params={"sessionId": "none"})
        *_, end = await editor.events()
        self.assertEqual(end, ".cancelled")

    async def test_a_question_can_be_cancelled(self) -> None:
        editor = await self.start()
        await editor.prompt("edit")
        *_, question = await editor.events()
        await editor.cancel()
        await editor.send(id=int(question[1:]), result={"outcome": {"outcome": "cancelled"}})
        self.assertEqual(await editor.events(), [self.cancelled, ".cancelled"])

    async def test_a_prompt_waits_for_the_one_before_it(self) -> None:
        editor = await self.start()
        await editor.prompt("one")
        await editor.prompt("two")
        for word in ("one", "two"):
            self.assertEqual(await editor.events(), [word, ".end_turn"])

    async def test_an_unknown_session_is_refused(self) -> None:
        editor = await self.start()
        refused = await editor.call("session/prompt", sessionId="none", prompt=text("Hi"))
        self.assertEqual(refused["error"], {"code": -32602, "message": "no session 'none'"})

    def test_the_program_answers_in_the_version_that_is_asked_for(self) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(self.version)}
        command = [sys.executable, "-m", "new_project"]
        answer = subprocess.check_output(command, cwd=SOURCE, input=json.dumps(request), text=True, timeout=60)
        self.assertEqual(json.loads(answer)["result"]["protocolVersion"], self.version)


class AgentV2Test(AgentV1Test):
    version = 2
    cancelled = "cancelled"

    async def test_sessions_can_be_listed_resumed_and_closed(self) -> None:
        editor = await self.start(pause=3600)
        await editor.prompt("Hello")
        listed = await editor.call("session/list")
        self.assertEqual([session["cwd"] for session in listed["result"]["sessions"]], ["/"])
        await editor.call("session/resume", sessionId=editor.session_id, cwd="/")
        await editor.call("session/close", sessionId=editor.session_id)
        self.assertEqual((await editor.call("session/list"))["result"]["sessions"], [])


if __name__ == "__main__":
    unittest.main()
