"""The agent of both chats: a script, which wants a login first."""

import sys
from pathlib import Path
from typing import Any

from acp_ours import AuthenticationRequiredError, RequestError
from acp_ours.helpers import ScriptedAgent, ScriptedTurn

LEAVE = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
"""A command that leaves a process behind."""


async def play(turn: ScriptedTurn) -> None:
    match turn.text:
        case "fail":
            raise RequestError("Not today")
        case "wait":
            await turn.say("Waiting.")
            await turn.hang()
        case "wait forever":
            turn.is_deaf = True
            await turn.say("Waiting.")
            await turn.agent.until(lambda: turn.is_cancelled)
            await turn.say("Still waiting.")
            await turn.hang()
        case "edit":
            await edit(turn, str(Path.cwd() / "notes.txt"))
        case "outside":
            await edit(turn, str(Path.cwd().parent / "notes.txt"))
        case "first line":
            found = await turn.request("fs/read_text_file", path=str(Path.cwd() / "lines.txt"), limit=1)
            await turn.say(f"It is {found['content']!a}.")
        case "run":
            await run(turn, "-c", "print('from a command')")
        case "half":
            await run(turn, "-c", "import sys; sys.stdout.buffer.write('ééé'.encode())", outputByteLimit=3)
        case "leave":
            await run(turn, "-c", LEAVE)
        case words:
            await turn.think("Hm.")
            await turn.say("You said ", words, ".")


async def edit(turn: ScriptedTurn, path: str) -> None:
    change = {"type": "diff", "path": "notes.txt", "oldText": "colour", "newText": "color"}
    call = await turn.tool("Edit notes.txt", kind="edit", content=[change])
    status = "failed"
    if await turn.ask("Edit notes.txt") == "allow_once":
        try:
            await turn.request("fs/write_text_file", path=path, content="color")
            status = "completed"
        except RequestError:
            await turn.say("Refused.")
    await turn.tool_update(call, status)


async def run(turn: ScriptedTurn, *args: str, **more: Any) -> None:
    terminal = await turn.request("terminal/create", command=sys.executable, args=args, **more)
    ended = await turn.request("terminal/wait_for_exit", **terminal)
    output = await turn.request("terminal/output", **terminal)
    await turn.request("terminal/release", **terminal)
    await turn.say(f"It wrote {output['output'].strip()!a}, and ended with {ended['exitCode']}.")


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
    Locked(play).run()
