"""The chat: it sends what the user types, and prints what the agent does."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from .acp import (
    PROTOCOL_VERSION,
    CancelSessionNotification,
    Client,
    ConnectionClosed,
    ContentBlock,
    ContentBlockText,
    Error,
    Implementation,
    InitializeRequest,
    NewSessionRequest,
    PermissionOption,
    PromptRequest,
    RemoteAgent,
    RequestError,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionUpdateAgentMessage,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThoughtChunk,
    SessionUpdateStateUpdateIdle,
    SessionUpdateStateUpdateIdleError,
    SessionUpdateStateUpdateIdleNone,
    SessionUpdateStateUpdateRequiresAction,
    SessionUpdateStateUpdateRunning,
    SessionUpdateToolCallUpdate,
    SessionUpdateUserMessage,
    UpdateSessionNotification,
    spawn_agent,
)
from .acp.helpers import permission_cancelled, select_permission_option, text
from .terminal import Keyboard, on_interrupt


class Chat(Client):
    """The client: the agent tells it what happens, and asks it for permission."""

    def __init__(self, agent: RemoteAgent, *, keyboard: Keyboard) -> None:
        super().__init__(agent)
        self._keyboard = keyboard
        self._session_id = ""
        self._questions: set[asyncio.Task[Any] | None] = set()
        self._cancelling: asyncio.Task[None] | None = None
        self._work: asyncio.Future[str] | None = None

    # --- What the agent calls ---

    async def session_update(self, params: UpdateSessionNotification) -> None:
        """Print what happens; that the session is idle ends the wait for the work on a prompt."""
        match params.update:
            case SessionUpdateAgentMessageChunk(content=content) | SessionUpdateAgentThoughtChunk(content=content):
                print(_text(content), end="", flush=True)
            case SessionUpdateAgentMessage(content=list(blocks)):
                print(*map(_text, blocks), sep="", end="", flush=True)
            case SessionUpdateToolCallUpdate(title=title, status=status):
                print("\n*", *(word for word in (title, status) if isinstance(word, str)))
            case SessionUpdateUserMessage() | SessionUpdateStateUpdateRunning():
                pass  # that is no news
            case SessionUpdateStateUpdateRequiresAction():
                pass  # the question comes by itself
            case other if isinstance(other, SessionUpdateStateUpdateIdle):
                if self._work is not None and not self._work.done():
                    self._work.set_result(_reason(other))
            case other:
                print(f"\n({other.session_update})")

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Wait no longer: nothing more comes."""
        if self._work is not None and not self._work.done():
            self._work.set_exception(reason)

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Ask the user; no answer allows nothing."""
        question = asyncio.current_task()
        self._questions.add(question)
        try:
            return await self._choose(params.title, params.options)
        except asyncio.CancelledError:
            return permission_cancelled()  # the user has cancelled the prompt, or the agent its question
        finally:
            self._questions.discard(question)

    async def _choose(self, title: str, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        print(f"\nThe agent asks for permission. {title}")
        for number, option in enumerate(options, 1):
            print(f"  {number}  {option.name}")
        while (line := await self._keyboard.ask("number> ")) is not None:
            if line.isdecimal() and 1 <= int(line) <= len(options):
                return select_permission_option(options[int(line) - 1].option_id)
        return permission_cancelled()

    # --- What the user does ---

    async def open(self) -> None:
        """Agree with the agent on the protocol, and open a session."""
        hello = InitializeRequest(
            protocol_version=PROTOCOL_VERSION, info=Implementation(name="new-project", version="0.1.0")
        )
        agreed = await self.agent.initialize(hello)
        if agreed.protocol_version != PROTOCOL_VERSION:
            sys.exit(f"the agent speaks version {agreed.protocol_version} of the protocol")
        session = await self.agent.session_new(NewSessionRequest(cwd=os.getcwd()))
        self._session_id = session.session_id

    async def talk(self) -> None:
        """Send what the user types, line by line until there are no more."""
        while (line := await self._keyboard.ask("> ")) is not None:
            if line.strip():
                try:
                    await self._prompt(line)
                except RequestError as error:
                    print(f"\n[the agent refuses: {error}]")

    async def _prompt(self, line: str) -> None:
        self._work = asyncio.get_running_loop().create_future()
        try:
            await self.agent.session_prompt(PromptRequest(session_id=self._session_id, prompt=[text(line)]))
            # the prompt is taken; how the work on it goes is told by updates
            print(f"\n[{await self._work}]")
        finally:
            self._work.cancel()
            self._work = None

    def interrupt(self) -> None:
        """Ctrl-C: cancel what the agent does; end the chat where it does nothing."""
        if self._work is None:
            self._keyboard.end()
            return
        self._cancelling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        await self.agent.session_cancel(CancelSessionNotification(session_id=self._session_id))
        for question in self._questions:
            if question is not None:
                question.cancel()


def _reason(idle: SessionUpdateStateUpdateIdle) -> str:
    """Why the work has ended."""
    match idle:
        case SessionUpdateStateUpdateIdleNone():
            return "done"
        case SessionUpdateStateUpdateIdleError(error=Error(message=message)):
            return f"error: {message}"
        case _:
            return idle.stop_reason


def _text(content: ContentBlock) -> str:
    return content.text if isinstance(content, ContentBlockText) else f"({content.type})"


async def chat(command: Sequence[str]) -> None:
    """Start the agent with `command`, and chat with it until the end of the input."""
    async with (spawned := spawn_agent(partial(Chat, keyboard=Keyboard()), command)):
        client = spawned.handler
        await client.open()
        with on_interrupt(client.interrupt):
            await client.talk()
