"""The proxy in version 2 of the protocol, as its editor and its agent meet it: in messages."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import unittest
from asyncio.subprocess import PIPE
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from new_project.acp import ConnectionOptions, StreamTransport, memory_transports, serve_proxy
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
        self._pings = 0

    async def tell(self, path: str, **fields: Any) -> dict[str, Any]:
        """Report a tool call: the editor gets it."""
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit", "unknown": 1.0, **fields}
        update["locations"] = [{"path": path}]
        count = len(self.editor.updates(self.session_id)) + 1
        await self.agent.notify("session/update", sessionId=self.session_id, update=update)
        assert await self.editor.update(self.session_id, count) == update
        return update

    async def begin(self, path: str, **fields: Any) -> None:
        """Report that the work on a file has begun."""
        await self.tell(path, kind="edit", status="in_progress", **fields)

    async def settled(self) -> None:
        """Wait until both ends have got all that the proxy sends them."""
        self._pings += 1
        for sender, receiver in ((self.agent, self.editor), (self.editor, self.agent)):
            await sender.notify("_ping")
            await receiver.call("_ping", self._pings)

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
        self.secrets = os.path.join(self.home, "secrets.txt")

    @asynccontextmanager
    async def opened(self, answer: Callable[[Any], Any] | None = None) -> AsyncGenerator[Ends, None]:
        """Both ends, with a session in the project. The user answers questions so."""
        ours, client = memory_transports()
        server, theirs = memory_transports()
        proxy = asyncio.create_task(serve_proxy(Guard, client, server, options=CHECKED))
        editor = ScriptedClient(answers={"session/request_permission": answer or choose()})
        agent = ScriptedAgent(idle, answers={"tool_call/cancel": {}})
        agent.wait_seconds = 30
        async with agent.connected(theirs), editor.connected(ours):
            yield Ends(editor, agent, await editor.open(self.project))
        await asyncio.wait_for(proxy, timeout=30)

    async def test_work_inside_is_not_asked_about(self) -> None:
        async with self.opened() as ends:
            await ends.begin(os.path.join(self.project, "notes.txt"))
            await ends.settled()
            self.assertEqual(ends.asked, [])

    async def test_reading_is_not_asked_about(self) -> None:
        async with self.opened() as ends:
            await ends.tell(self.secrets, kind="read", status="in_progress")
            await ends.settled()
            self.assertEqual(ends.asked, [])

    async def test_work_outside_goes_on_if_that_is_allowed(self) -> None:
        async with self.opened(choose("allow_once")) as ends:
            await ends.tell(self.secrets, kind="edit", status="pending")
            await ends.begin(self.secrets)
            question = await ends.editor.call("session/request_permission")
            self.assertEqual(
                (question["description"], question["subject"]["toolCall"]), (self.secrets, {"toolCallId": "c"})
            )
            await ends.begin(self.secrets)  # it is asked about once
            await ends.settled()
            self.assertEqual(len(ends.asked), 1)
            self.assertEqual(ends.agent.calls("session/cancel") + ends.agent.calls("tool_call/cancel"), [])

    async def test_a_tool_call_is_cancelled_if_the_agent_can_do_that(self) -> None:
        async with self.opened(choose("reject_once")) as ends:
            await ends.begin(self.secrets, capabilities={"cancel": {}})
            cancel = await ends.agent.call("tool_call/cancel")
            self.assertEqual(cancel, {"sessionId": ends.session_id, "toolCallId": "c"})

    async def test_the_work_in_the_session_is_cancelled_otherwise(self) -> None:
        async with self.opened() as ends:
            await ends.begin(self.secrets)
            self.assertEqual(await ends.agent.call("session/cancel"), {"sessionId": ends.session_id})

    async def test_a_question_of_the_agent_says_what_is_outside(self) -> None:
        async with self.opened(choose("allow_once")) as ends:
            call = {"toolCallId": "c", "kind": "edit", "locations": [{"path": self.secrets}]}
            params = {
                "sessionId": ends.session_id,
                "title": "Edit?",
                "subject": {"type": "tool_call", "toolCall": call},
                "options": [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}],
            }
            answer = await ends.agent.request("session/request_permission", **params)
            self.assertEqual(answer["outcome"]["optionId"], "yes")
            self.assertEqual(ends.asked, [{**params, "description": f"Outside the project: {self.secrets}"}])
            await ends.begin(self.secrets)  # the user has been asked
            await ends.settled()
            self.assertEqual(len(ends.asked), 1)

    async def test_the_user_can_cancel_instead_of_an_answer(self) -> None:
        async def dialog(params: Any) -> Any:
            await asyncio.Event().wait()

        async with self.opened(dialog) as ends:
            await ends.begin(self.secrets)
            await ends.editor.call("session/request_permission")
            await ends.editor.cancel(ends.session_id)
            await ends.agent.call("session/cancel")
            await ends.editor.call("$/cancel_request")
            await ends.settled()
            self.assertEqual(len(ends.agent.calls("session/cancel")), 1)

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
