"""A small agent for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses; "edit" and "run" it does at once, for "remove" and "form" it asks. With `login` on its command line, it wants a login first.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from new_project.acp import AuthenticationRequiredError, RequestError
from new_project.acp.helpers import ScriptedAgent, ScriptedTurn

REMOVE: dict[str, Any] = {
    "toolCall": {
        "toolCallId": "remove",
        "title": "Tidy up",
        "kind": "execute",
        "rawInput": {"command": "rm", "args": ["-r", "/notes"]},
    },
    "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}],
}

FORM: dict[str, Any] = {
    "mode": "form",
    "message": "Where\nto?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "port": {"type": "integer", "title": "Port", "maximum": 9},
            "place": {"type": "string", "enum": ["here", "there"], "default": "here"},
        },
        "required": ["port"],
    },
}


async def play(turn: ScriptedTurn) -> None:
    match turn.text:
        case "fail":
            raise RequestError("Not today")
        case "edit":
            change = {"type": "diff", "path": "/notes.txt", "oldText": "colour", "newText": "color"}
            await turn.tool_update(await turn.tool("Edit", kind="edit"), content=[change])
        case "run":
            command = {"command": sys.executable, "args": ["-c", "print('from a command')"]}
            terminal = await turn.request("terminal/create", **command)
            await turn.request("terminal/wait_for_exit", **terminal)
            await turn.request("terminal/release", **terminal)
        case "remove":
            await turn.request("session/request_permission", **REMOVE)
        case "form":
            await turn.say(f"Got {await turn.request('elicitation/create', **FORM)}.")
        case _:
            await hello(turn)


async def hello(turn: ScriptedTurn) -> None:
    try:
        await turn.say("Hello. ")
        await turn.say(f"Got {await turn.ask('Edit notes.txt')}.")
    except asyncio.CancelledError:
        await turn.say("Stopped. ")
        if turn.text == "hang":
            await turn.hang()


class Locked(ScriptedAgent):
    """An agent that wants a login."""

    is_open = False

    def hello(self) -> dict[str, Any]:
        return {**super().hello(), "authMethods": [{"id": "key", "name": "The keyring"}]}

    async def handle(self, method: str, params: Any) -> Any:
        if method == "authenticate":
            self.is_open = True
            return {}
        if method == "session/new" and not self.is_open:
            raise AuthenticationRequiredError
        return await super().handle(method, params)


if __name__ == "__main__":
    (Locked if "login" in sys.argv else ScriptedAgent)(play).run()
