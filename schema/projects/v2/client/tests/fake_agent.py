"""A small agent for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses; "edit" and "run" it does at once, for "remove" and "form" it asks. With `login` on its command line, it wants a login first.
"""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from typing import Any

from new_project.acp import AuthenticationRequiredError, RequestError
from new_project.acp.helpers import ScriptedAgent, ScriptedTurn

REMOVE: dict[str, Any] = {
    "title": "Tidy up",
    "subject": {"type": "command", "command": "rm -r /notes", "cwd": "/"},
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
            patch = {"format": "git_patch", "text": "--- /notes.txt\n+++ /notes.txt\n@@ -1 +1 @@\n-colour\n+color"}
            change = {"type": "diff", "changes": [{"operation": "modify", "path": "/notes.txt"}], "patch": patch}
            await turn.tool_update(await turn.tool("Edit", kind="edit"), content=[change])
        case "run":
            output = b64encode(b"from a command\n").decode()
            terminal = {"sessionUpdate": "terminal_output_chunk", "terminalId": "1", "data": output}
            await turn.update(terminal)
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
        return {**super().hello(), "authMethods": [{"type": "agent", "methodId": "key", "name": "The keyring"}]}

    async def handle(self, method: str, params: Any) -> Any:
        if method == "auth/login":
            self.is_open = True
            return {}
        if method == "session/new" and not self.is_open:
            raise AuthenticationRequiredError
        return await super().handle(method, params)


if __name__ == "__main__":
    (Locked if "login" in sys.argv else ScriptedAgent)(play).run()
