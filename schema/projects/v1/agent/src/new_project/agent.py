"""The agent: it sends back what it receives. Put your own work into `work`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    ContentBlock,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    InvalidParamsError,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    advertise,
)
from .acp.helpers import TurnAgent, agent_message, text, tool_call


class EchoAgent(TurnAgent):
    """Streams the prompt back, word by word. If the word "edit" is in it, it first asks whether it may edit."""

    pause = 0.05
    """Seconds between two words, in the place of work."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: set[str] = set()

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        """Describe this agent; the capabilities follow from the methods of this class."""
        info = Implementation(name="new-project", version="0.1.0")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a conversation."""
        session_id = uuid4().hex
        self._sessions.add(session_id)
        return NewSessionResponse(session_id=session_id)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Run `work`, and answer when it has ended; `session/cancel` cancels it."""
        if params.session_id not in self._sessions:
            raise InvalidParamsError(f"no session {params.session_id!r}")
        return await super().session_prompt(params)

    async def work(self, params: PromptRequest) -> None:
        """Work on a prompt. It may be cancelled at any `await`."""
        if any(isinstance(block, ContentBlockText) and re.search(r"\bedit\b", block.text) for block in params.prompt):
            await self._edit(params.session_id)
        for chunk in _chunks(params.prompt):
            await self.client.session_update(agent_message(params.session_id, chunk))
            await asyncio.sleep(self.pause)

    async def _edit(self, session_id: str) -> None:
        """Pretend to edit a file, if the user allows it."""
        async with tool_call(self.client, session_id, "Edit notes.txt", kind="edit", status="pending") as call:
            if await call.permission():
                pass  # edit the file here


def _chunks(prompt: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """The text of `prompt` word by word, and everything else as it is."""
    for block in prompt:
        if isinstance(block, ContentBlockText):
            yield from map(text, re.findall(r"\S+\s*|\s+", block.text))
        else:
            yield block
