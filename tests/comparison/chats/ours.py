"""A chat in the terminal, with the package that acpgen builds."""

import asyncio
import sys
from pathlib import Path

from acp_ours import PermissionOption, RemoteAgent, RequestError, ToolCallContentDiff, spawn_agent
from acp_ours.helpers import (
    AgentMessage,
    FileClient,
    Files,
    LoginClient,
    MessageChange,
    PermissionChoice,
    PermissionClient,
    PermissionQuestion,
    SessionClient,
    TerminalClient,
    Terminals,
    ToolCall,
    ToolCallChange,
    TurnChange,
)
from keyboard import ask, choose, diff, on_interrupt


class Chat(SessionClient, PermissionClient, FileClient, TerminalClient, LoginClient):
    cancel_seconds = 1.0

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.files = Files(Path.cwd())
        self.terminals = Terminals(on_output=lambda terminal, text: print(text, end="", flush=True))

    async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice | PermissionOption:
        options = question.request.options
        number = await choose(question.title, [option.name for option in options])
        return "cancel" if number is None else options[number]


def show(change: TurnChange) -> None:
    match change:
        case MessageChange(entry=AgentMessage(), text=text):
            print(text, end="", flush=True)
        case ToolCallChange(call=ToolCall(title=title, status=status, content=content), has_ended=True):
            print(f"\n* {title}: {status}")
            for each in content:
                if isinstance(each, ToolCallContentDiff):
                    print(diff(each.path, each.old_text or "", each.new_text))
        case _:
            pass


async def main(*command: str) -> None:
    async with (spawned := spawn_agent(Chat, command)):
        client = spawned.handler
        await client.start("chat", "1.0.0")
        session = await client.with_login(lambda: client.open(str(Path.cwd())))
        while line := await ask("> "):
            try:
                with on_interrupt(session.cancel):
                    async with session.prompt(line) as turn:
                        async for change in turn:
                            show(change)
                print(f"\n[{turn.result.stop_reason}]")
            except RequestError as error:
                print(f"\n[{error.message}]")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
