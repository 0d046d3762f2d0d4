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
    CancelNotification,
    Client,
    ContentBlock,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    NewSessionRequest,
    PermissionOption,
    PromptRequest,
    RemoteAgent,
    RequestError,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThoughtChunk,
    SessionUpdatePlan,
    SessionUpdateToolCall,
    SessionUpdateToolCallUpdate,
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
        self._is_busy = False

    # --- What the agent calls ---

    async def session_update(self, params: SessionNotification) -> None:
        """Print what happens."""
        match params.update:
            case SessionUpdateAgentMessageChunk(content=content) | SessionUpdateAgentThoughtChunk(content=content):
                print(_text(content), end="", flush=True)
            case SessionUpdateToolCall(title=title):
                print(f"\n* {title}")
            case SessionUpdateToolCallUpdate(status=str(status)):
                print(f"\n* {status}")
            case SessionUpdatePlan(entries=entries):
                print(*(f"\n- [{entry.status}] {entry.content}" for entry in entries))
            case other:
                print(f"\n({other.session_update})")

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Ask the user; no answer allows nothing."""
        title = params.tool_call.title
        question = asyncio.current_task()
        self._questions.add(question)
        try:
            return await self._choose(title if isinstance(title, str) else "", params.options)
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
            protocol_version=PROTOCOL_VERSION, client_info=Implementation(name="new-project", version="0.1.0")
        )
        agreed = await self.agent.initialize(hello)
        if agreed.protocol_version != PROTOCOL_VERSION:
            sys.exit(f"the agent speaks version {agreed.protocol_version} of the protocol")
        session = await self.agent.session_new(NewSessionRequest(cwd=os.getcwd(), mcp_servers=[]))
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
        self._is_busy = True
        try:
            response = await self.agent.session_prompt(PromptRequest(session_id=self._session_id, prompt=[text(line)]))
        finally:
            self._is_busy = False
        print(f"\n[{response.stop_reason}]")

    def interrupt(self) -> None:
        """Ctrl-C: cancel what the agent does; end the chat where it does nothing."""
        if not self._is_busy:
            self._keyboard.end()
            return
        self._cancelling = asyncio.create_task(self._cancel())

    async def _cancel(self) -> None:
        await self.agent.session_cancel(CancelNotification(session_id=self._session_id))
        for question in self._questions:
            if question is not None:
                question.cancel()


def _text(content: ContentBlock) -> str:
    return content.text if isinstance(content, ContentBlockText) else f"({content.type})"


async def chat(command: Sequence[str]) -> None:
    """Start the agent with `command`, and chat with it until the end of the input."""
    async with (spawned := spawn_agent(partial(Chat, keyboard=Keyboard()), command)):
        client = spawned.handler
        await client.open()
        with on_interrupt(client.interrupt):
            await client.talk()
