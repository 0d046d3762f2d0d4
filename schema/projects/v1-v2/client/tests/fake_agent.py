"""A small agent for the tests: it says "Hello", asks for permission, and says what it got.

The prompt "fail" it refuses, "run" it does at once. Its arguments are the version of the protocol that it speaks, by
default 2, and `login`, with which it wants a login first.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from new_project.acp import AuthenticationRequiredError, RequestError
from new_project.acp.v1.helpers import ScriptedAgent as AgentV1
from new_project.acp.v1.helpers import ScriptedTurn as TurnV1
from new_project.acp.v2.helpers import ScriptedAgent as AgentV2
from new_project.acp.v2.helpers import ScriptedTurn as TurnV2


async def play(turn: TurnV1 | TurnV2) -> None:
    match turn.text:
        case "fail":
            raise RequestError("Not today")
        case "run":
            command = {"command": sys.executable, "args": ["-c", "print('from a command')"]}
            terminal = await turn.request("terminal/create", **command)
            await turn.request("terminal/wait_for_exit", **terminal)
            await turn.request("terminal/release", **terminal)
        case _:
            await hello(turn)


async def hello(turn: TurnV1 | TurnV2) -> None:
    try:
        await turn.say("Hello. ")
        await turn.say(f"Got {await turn.ask('Edit notes.txt')}.")
    except asyncio.CancelledError:
        await turn.say("Stopped. ")
        if turn.text == "hang":
            await turn.hang()


class Locked(AgentV1):
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
    if "login" in sys.argv:
        Locked(play).run()
    elif "1" in sys.argv:
        AgentV1(play).run()
    else:
        AgentV2(play).run()
