"""The chat: it sends what the user types, and shows what the agent does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from functools import partial

from .acp import (
    AuthMethod,
    PermissionOption,
    PlanUpdateContentItems,
    RemoteAgent,
    RequestError,
    ToolCallContentDiff,
    spawn_agent,
)
from .acp.helpers import (
    AgentMessage,
    LoginClient,
    LoginError,
    MessageChange,
    PermissionChoice,
    PermissionClient,
    PermissionQuestion,
    PlanChange,
    Session,
    SessionClient,
    TerminalChange,
    Thought,
    ToolCall,
    ToolCallChange,
    TurnChange,
)
from .terminal import Keyboard, on_interrupt, shown


class Chat(SessionClient, PermissionClient, LoginClient):
    """The client: it asks the user where the agent asks."""

    cancel_seconds = 1.0
    """How long leaving a turn waits for an agent that does not end it."""

    def __init__(self, agent: RemoteAgent, *, keyboard: Keyboard, command: Sequence[str]) -> None:
        super().__init__(agent)
        self.login_command = command
        self._keyboard = keyboard
        self._is_busy = False
        self._cancelling: asyncio.Task[None] | None = None
        self._talking: asyncio.Task[None] | None = None

    # --- What the agent asks ---

    async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice | PermissionOption:
        """Ask the user; no answer allows nothing."""
        print(f"\nThe agent asks for permission. {shown(question.title)}")
        options = question.request.options
        number = await self._keyboard.choose([option.name for option in options])
        return "cancel" if number is None else options[number]

    async def choose_login(self, methods: Sequence[AuthMethod]) -> AuthMethod | None:
        """Ask the user how to log in."""
        print("\nThe agent wants you to log in.")
        number = await self._keyboard.choose([str(getattr(method, "name", "?")) for method in methods])
        return None if number is None else methods[number]

    # --- What the user does ---

    async def talk(self) -> None:
        """Open a session, and send what the user types, line by line until there are no more."""
        await self.start("new-project", "0.1.0")
        try:
            session = await self.with_login(lambda: self.open(os.getcwd()))
        except LoginError as error:
            raise SystemExit(str(error)) from error
        self._talking = asyncio.current_task()
        with on_interrupt(lambda: self._interrupt(session)):
            while (line := await self._keyboard.ask("> ")) is not None:
                if line.strip():
                    await self._prompt(session, line)

    async def _prompt(self, session: Session, line: str) -> None:
        self._is_busy = True
        try:
            async with session.prompt(line) as turn:
                async for change in turn:
                    _show(change)
            print(f"\n[{turn.result.stop_reason}]")
        except RequestError as error:
            print(f"\n[the agent refuses: {error}]")
        finally:
            self._is_busy = False
            self._cancelling = None

    def _interrupt(self, session: Session) -> None:
        """Ctrl-C: cancel what the agent does; where it does nothing, or does not stop, end the chat."""
        if self._is_busy and self._cancelling is None:
            self._cancelling = asyncio.create_task(session.cancel())
        elif self._is_busy and self._talking is not None:
            self._talking.cancel()
        else:
            self._keyboard.end()


def _show(change: TurnChange) -> None:
    match change:
        case MessageChange(entry=AgentMessage() | Thought(), text=text):
            print(shown(text), end="", flush=True)
        case ToolCallChange(call=call, has_ended=True):
            print(f"\n* {shown(call.title or '')}: {call.status}")
            _show_diffs(call)
        case ToolCallChange(call=call, is_new=True):
            print(f"\n* {shown(call.title or '')}")
        case TerminalChange(output=output):
            print(shown(output.decode(errors="replace")), end="", flush=True)
        case PlanChange(plan=PlanUpdateContentItems(entries=entries)):
            print(*(f"\n- [{entry.status}] {shown(entry.content)}" for entry in entries))
        case _:
            pass


def _show_diffs(call: ToolCall) -> None:
    for each in call.content:
        if isinstance(each, ToolCallContentDiff) and each.patch:
            print(shown(each.patch.text))


async def chat(command: Sequence[str]) -> None:
    """Start the agent with `command`, and chat with it until the end of the input."""
    make = partial(Chat, keyboard=Keyboard(), command=command)
    async with (spawned := spawn_agent(make, command)):
        try:
            await spawned.handler.talk()
        except asyncio.CancelledError:  # Ctrl-C, twice
            raise KeyboardInterrupt from None
