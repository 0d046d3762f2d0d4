"""The agent: it sends back what it receives. Put your own work into `_work`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    Agent,
    CancelNotification,
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
from .acp.helpers import Turns, agent_message, text, tool_call


class EchoAgent(Agent):
    """Streams the prompt back, word by word. If the word "edit" is in it, it first asks whether it may edit."""

    pause = 0.05
    """Seconds between two words, in the place of work."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: set[str] = set()
        self._turns = Turns()

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
        """Work on a prompt; the response ends the turn."""
        if params.session_id not in self._sessions:
            raise InvalidParamsError(f"no session {params.session_id!r}")
        return await self._turns.run(params, self._work(params.session_id, params.prompt))

    async def session_cancel(self, params: CancelNotification) -> None:
        """Cancel the work on the prompt, at whichever `await` it is."""
        self._turns.cancel(params.session_id)

    async def _work(self, session_id: str, prompt: Sequence[ContentBlock]) -> None:
        if any(isinstance(block, ContentBlockText) and re.search(r"\bedit\b", block.text) for block in prompt):
            await self._edit(session_id)
        for chunk in _chunks(prompt):
            await self.client.session_update(agent_message(session_id, chunk))
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
