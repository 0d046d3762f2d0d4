"""The agent: it sends back what it is told. Put your own work into `_work`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Any
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
    InvalidRequestError,
    NewSessionRequest,
    NewSessionResponse,
    PermissionOption,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    RequestPermissionOutcomeSelected,
    RequestPermissionRequest,
    SessionNotification,
    SessionUpdate,
    SessionUpdateAgentMessageChunk,
    SessionUpdateToolCall,
    SessionUpdateToolCallUpdate,
    ToolCallStatus,
    ToolCallUpdate,
    advertise,
)

ALLOW, REJECT = "allow", "reject"


class EchoAgent(Agent):
    """Streams the prompt back, word by word. Where the word "edit" is in it, it asks first whether it may edit."""

    pause = 0.05
    """Seconds between two words, as if they took some thought."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: set[str] = set()
        self._turns: dict[str, asyncio.Task[Any] | None] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        """Tell who this is; the capabilities follow from the methods of this class."""
        info = Implementation(name="new-project", version="0.1.0")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a conversation."""
        session_id = uuid4().hex
        self._sessions.add(session_id)
        return NewSessionResponse(session_id=session_id)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Do what the prompt asks for; the answer tells that it is done."""
        session_id = params.session_id
        if session_id not in self._sessions:
            raise InvalidParamsError(f"no session {session_id!r}")
        if session_id in self._turns:
            raise InvalidRequestError("one prompt at a time")
        self._turns[session_id] = asyncio.current_task()
        try:
            await self._work(session_id, params.prompt)
        except asyncio.CancelledError:
            if session_id in self._turns:
                raise  # not by `session_cancel`
            return PromptResponse(stop_reason="cancelled")
        finally:
            self._turns.pop(session_id, None)
        return PromptResponse(stop_reason="end_turn")

    async def session_cancel(self, params: CancelNotification) -> None:
        """Stop the work on the prompt, wherever it is."""
        turn = self._turns.pop(params.session_id, None)
        if turn is not None:
            turn.cancel()

    async def _work(self, session_id: str, prompt: Sequence[ContentBlock]) -> None:
        if any(isinstance(block, ContentBlockText) and re.search(r"\bedit\b", block.text) for block in prompt):
            await self._edit(session_id)
        for chunk in _chunks(prompt):
            await self._tell(session_id, SessionUpdateAgentMessageChunk(content=chunk))
            await asyncio.sleep(self.pause)

    async def _edit(self, session_id: str) -> None:
        """Pretend to edit a file, if the user allows it."""
        call = uuid4().hex
        await self._tell(session_id, SessionUpdateToolCall(tool_call_id=call, title="Edit notes.txt", kind="edit"))
        status: ToolCallStatus = "failed"
        try:
            if await self._is_allowed(session_id, ToolCallUpdate(tool_call_id=call)):
                status = "completed"  # here the file would be edited
        finally:
            await self._tell(session_id, SessionUpdateToolCallUpdate(tool_call_id=call, status=status))

    async def _is_allowed(self, session_id: str, call: ToolCallUpdate) -> bool:
        options = [
            PermissionOption(option_id=ALLOW, name="Allow", kind="allow_once"),
            PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
        ]
        question = RequestPermissionRequest(session_id=session_id, tool_call=call, options=options)
        outcome = (await self.client.session_request_permission(question)).outcome
        return isinstance(outcome, RequestPermissionOutcomeSelected) and outcome.option_id == ALLOW

    async def _tell(self, session_id: str, update: SessionUpdate) -> None:
        await self.client.session_update(SessionNotification(session_id=session_id, update=update))


def _chunks(prompt: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """The text of `prompt` word by word, and everything else as it is."""
    for block in prompt:
        if isinstance(block, ContentBlockText):
            for word in re.findall(r"\S+\s*|\s+", block.text):
                yield ContentBlockText(text=word)
        else:
            yield block
