"""A client for the tests of an agent, for protocol 2."""

from __future__ import annotations

from typing import Any

from ..methods import PROTOCOL_VERSION
from .scripted_prompts import ScriptedPrompts

__all__ = ["ScriptedClient"]


class ScriptedClient(ScriptedPrompts):
    """A client without a user, in raw messages.

        here, there = memory_transports()
        serving = asyncio.create_task(serve_agent(MyAgent, there))
        client = ScriptedClient(answers={"session/request_permission": choose("allow_once")})
        async with client.connected(here) as editor:
            session = await editor.open("/project")
            answer = await editor.prompt(session, "Hello!")
            assert (answer.text, answer.stop_reason) == ("Hello!", "end_turn")
        await serving

    `answers` has the results, errors or functions for what the agent asks; all else gets "method not found".
    `capabilities` are those that it advertises. It waits `wait_seconds` for each message; None sets no limit.
    """

    def hello(self) -> dict[str, Any]:
        """The params of `initialize`."""
        info = {"name": "scripted", "version": "0"}
        return {"protocolVersion": PROTOCOL_VERSION, "info": info, "capabilities": self.capabilities}

    def loading(self) -> tuple[str, dict[str, Any]]:
        """The method that opens a session again and reports its conversation, and its further params."""
        return "session/resume", {"replayFrom": {"type": "start"}}

    async def end_of(self, session_id: str, result: Any) -> str:
        """Wait for the first state `idle` with a reason after the message of the prompt."""
        await self.until(lambda: self._ends(session_id, result["messageId"]))
        return str(self._ends(session_id, result["messageId"])[0]["stopReason"])

    def _ends(self, session_id: str, message_id: str) -> list[Any]:
        updates = self.updates(session_id)
        start = next((at for at, each in enumerate(updates) if each.get("messageId") == message_id), len(updates))
        return [each for each in updates[start:] if each.get("state") == "idle" and "stopReason" in each]
