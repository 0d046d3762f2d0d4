"""A client for the tests of an agent, for protocol 1."""

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
        return {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": self.capabilities}

    def loading(self) -> tuple[str, dict[str, Any]]:
        """The method that opens a session again and reports its conversation, and its further params."""
        return "session/load", {}

    async def end_of(self, session_id: str, result: Any) -> str:
        """The stop reason, which the result has."""
        return str(result["stopReason"])
