"""An agent for the tests of a client, for protocol 1: it does what a script says, also what no agent should."""

from __future__ import annotations

from typing import Any

from ..methods import PROTOCOL_VERSION
from .scripted_turns import ScriptedTurn, ScriptedTurns

__all__ = ["ScriptedAgent"]


class ScriptedAgent(ScriptedTurns):
    """An agent without a model. `play` is called for each prompt, and returns the stop reason, or None for `end_turn`.

        async def play(turn: ScriptedTurn) -> None:
            if turn.text == "fail":
                raise RequestError("Not today")
            await turn.say("Hello. ")
            if await turn.ask("Edit notes.txt") == "allow_once":
                await turn.tool_update(await turn.tool("Edit notes.txt", kind="edit"))

        here, there = memory_transports()
        async with ScriptedAgent(play).connected(there) as agent, connect(Chat, here) as stub:
            ...

    `run()` serves stdin and stdout, for a script that the client starts. `capabilities` are those that it advertises.
    `answers` has the results, errors or functions for further methods; all others get "method not found".
    """

    FIRST_OF_CALL = "tool_call"

    def hello(self) -> dict[str, Any]:
        """The result of `initialize`."""
        return {"protocolVersion": PROTOCOL_VERSION, "agentCapabilities": self.capabilities}

    def piece(self, kind: str, text: str) -> dict[str, Any]:
        """The update with a piece of a message."""
        return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}

    def question(self, title: str) -> dict[str, Any]:
        """The params of `session/request_permission` that say what it is about."""
        return {"toolCall": {"toolCallId": "asked", "title": title}}

    async def prompt(self, turn: ScriptedTurn) -> dict[str, Any]:
        """Answer a prompt when its script has ended."""
        return {"stopReason": await self.finish(turn)}
