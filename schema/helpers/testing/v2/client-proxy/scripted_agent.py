"""An agent for the tests of a client, for protocol 2: it does what a script says, also what no agent should."""

from __future__ import annotations

from typing import Any

from ..errors import InternalError, RequestError
from ..methods import PROTOCOL_VERSION
from .scripted_peer import logger
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

    `run()` serves stdin and stdout, for a script that the client starts. `capabilities` are those that it advertises
    besides `session`. `answers` has the results, errors or functions for further methods; all others get "method not
    found".
    """

    def hello(self) -> dict[str, Any]:
        """The result of `initialize`."""
        info = {"name": "scripted", "version": "0"}
        return {"protocolVersion": PROTOCOL_VERSION, "info": info, "capabilities": {"session": {}, **self.capabilities}}

    def piece(self, kind: str, text: str) -> dict[str, Any]:
        """The update with a piece of a message."""
        message = f"{kind}-{len(self.calls('session/prompt'))}"
        return {"sessionUpdate": kind, "messageId": message, "content": {"type": "text", "text": text}}

    def question(self, title: str) -> dict[str, Any]:
        """The params of `session/request_permission` that say what it is about."""
        return {"title": title, "subject": {"type": "tool_call", "toolCall": {"toolCallId": "asked", "title": title}}}

    async def prompt(self, turn: ScriptedTurn) -> dict[str, Any]:
        """Answer a prompt at once, and run its script in the background."""
        message = f"prompt-{len(self.calls('session/prompt'))}"
        await turn.update({"sessionUpdate": "user_message", "messageId": message, "content": turn.params["prompt"]})
        self.start(self._work(turn))
        return {"messageId": message}

    async def _work(self, turn: ScriptedTurn) -> None:
        await turn.update({"sessionUpdate": "state_update", "state": "running"})
        end: dict[str, Any]
        try:
            end = {"stopReason": await self.finish(turn)}
        except RequestError as error:
            end = {"stopReason": "error", "error": error.to_json()}
        except ConnectionError:
            raise
        except Exception as error:
            logger.exception("a script has failed")
            failed = InternalError(f"the script has failed: {error!r}")
            end = {"stopReason": "error", "error": failed.to_json()}
        await turn.update({"sessionUpdate": "state_update", "state": "idle", **end})
