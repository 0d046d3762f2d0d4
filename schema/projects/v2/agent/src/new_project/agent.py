"""The agent: it sends back what it is told. Put your own work into `_work`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    Agent,
    AgentCapabilities,
    CancelSessionNotification,
    CloseSessionRequest,
    CloseSessionResponse,
    ConnectionClosed,
    ContentBlock,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    InvalidParamsError,
    InvalidRequestError,
    ListSessionsRequest,
    ListSessionsResponse,
    NewSessionRequest,
    NewSessionResponse,
    PermissionOption,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    RequestPermissionOutcomeSelected,
    RequestPermissionRequest,
    RequestPermissionSubjectToolCall,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionInfo,
    SessionUpdate,
    SessionUpdateAgentMessageChunk,
    SessionUpdateStateUpdateIdleCancelled,
    SessionUpdateStateUpdateIdleEndTurn,
    SessionUpdateStateUpdateIdleError,
    SessionUpdateStateUpdateIdleNone,
    SessionUpdateStateUpdateRequiresAction,
    SessionUpdateStateUpdateRunning,
    SessionUpdateToolCallUpdate,
    SessionUpdateUserMessage,
    ToolCallStatus,
    ToolCallUpdate,
    UpdateSessionNotification,
    advertise,
)

ALLOW, REJECT = "allow", "reject"


class EchoAgent(Agent):
    """Streams the prompt back, word by word. Where the word "edit" is in it, it asks first whether it may edit."""

    pause = 0.05
    """Seconds between two words, as if they took some thought."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: dict[str, SessionInfo] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        """Tell who this is, and that it has sessions; other capabilities follow from the methods of this class."""
        message = InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            info=Implementation(name="new-project", version="0.1.0"),
            capabilities=AgentCapabilities(session=SessionCapabilities()),
        )
        return advertise(self, message)

    # --- Sessions: they last as long as the process ---

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a conversation."""
        session = SessionInfo(session_id=uuid4().hex, cwd=params.cwd)
        self._sessions[session.session_id] = session
        return NewSessionResponse(session_id=session.session_id)

    async def session_list(self, params: ListSessionsRequest) -> ListSessionsResponse:
        """List the conversations, those of one folder if the client wants that."""
        wanted = params.cwd if isinstance(params.cwd, str) else None
        found = [session for session in self._sessions.values() if wanted in (None, session.cwd)]
        return ListSessionsResponse(sessions=found)

    async def session_resume(self, params: ResumeSessionRequest) -> ResumeSessionResponse:
        """Go on with a conversation; what was said before is not kept."""
        session_id = self._known(params.session_id)
        busy = session_id in self._turns
        await self._tell(session_id, SessionUpdateStateUpdateRunning() if busy else SessionUpdateStateUpdateIdleNone())
        return ResumeSessionResponse()

    async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
        """End a conversation, and the work in it."""
        session_id = self._known(params.session_id)
        turn = await self._stop(session_id)
        if turn is not None:
            await asyncio.wait([turn])
        self._sessions.pop(session_id, None)
        return CloseSessionResponse()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Stop all work: nobody is there to see it."""
        turns = list(self._turns.values())
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)

    def _known(self, session_id: str) -> str:
        if session_id not in self._sessions:
            raise InvalidParamsError(f"no session {session_id!r}")
        return session_id

    # --- Prompts: they are answered at once, and the updates tell how the work goes ---

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Take the prompt, and begin to work on it."""
        session_id = self._known(params.session_id)
        if session_id in self._turns:
            raise InvalidRequestError("one prompt at a time")
        message_id = uuid4().hex
        self._turns[session_id] = asyncio.create_task(self._turn(session_id, message_id, params.prompt))
        return PromptResponse(message_id=message_id)

    async def session_cancel(self, params: CancelSessionNotification) -> None:
        """Stop the work on the prompt, wherever it is."""
        await self._stop(params.session_id)

    async def _stop(self, session_id: str) -> asyncio.Task[None] | None:
        turn = self._turns.get(session_id)
        if turn is not None:
            await asyncio.sleep(0)  # it has begun then, and will tell how it ended
            turn.cancel()
        return turn

    async def _turn(self, session_id: str, message_id: str, prompt: list[ContentBlock]) -> None:
        with contextlib.suppress(ConnectionClosed):  # then nobody is there to tell
            try:
                end = await self._outcome(session_id, message_id, prompt)
            finally:
                del self._turns[session_id]
            await self._tell(session_id, end)

    async def _outcome(self, session_id: str, message_id: str, prompt: list[ContentBlock]) -> SessionUpdate:
        """How the work ended, once it has; it may be cancelled at any line."""
        try:
            await self._tell(session_id, SessionUpdateUserMessage(message_id=message_id, content=prompt))
            await self._tell(session_id, SessionUpdateStateUpdateRunning())
            await self._work(session_id, prompt)
        except asyncio.CancelledError:
            return SessionUpdateStateUpdateIdleCancelled()
        except ConnectionClosed:
            raise
        except Exception:
            logging.exception("the work on a prompt failed")
            return SessionUpdateStateUpdateIdleError()
        return SessionUpdateStateUpdateIdleEndTurn()

    async def _work(self, session_id: str, prompt: Sequence[ContentBlock]) -> None:
        if any(isinstance(block, ContentBlockText) and re.search(r"\bedit\b", block.text) for block in prompt):
            await self._edit(session_id)
        answer_id = uuid4().hex
        for chunk in _chunks(prompt):
            await self._tell(session_id, SessionUpdateAgentMessageChunk(message_id=answer_id, content=chunk))
            await asyncio.sleep(self.pause)

    async def _edit(self, session_id: str) -> None:
        """Pretend to edit a file, if the user allows it."""
        call = ToolCallUpdate(tool_call_id=uuid4().hex, title="Edit notes.txt", kind="edit")
        await self._tell(
            session_id,
            SessionUpdateToolCallUpdate(tool_call_id=call.tool_call_id, title=call.title, kind=call.kind),
        )
        status: ToolCallStatus = "cancelled"
        try:
            # here the file would be edited
            status = "completed" if await self._is_allowed(session_id, call) else "failed"
        finally:
            await self._tell(session_id, SessionUpdateToolCallUpdate(tool_call_id=call.tool_call_id, status=status))

    async def _is_allowed(self, session_id: str, call: ToolCallUpdate) -> bool:
        question = RequestPermissionRequest(
            session_id=session_id,
            title="May I edit notes.txt?",
            subject=RequestPermissionSubjectToolCall(tool_call=call),
            options=[
                PermissionOption(option_id=ALLOW, name="Allow", kind="allow_once"),
                PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
            ],
        )
        await self._tell(session_id, SessionUpdateStateUpdateRequiresAction())
        outcome = (await self.client.session_request_permission(question)).outcome
        await self._tell(session_id, SessionUpdateStateUpdateRunning())
        return isinstance(outcome, RequestPermissionOutcomeSelected) and outcome.option_id == ALLOW

    async def _tell(self, session_id: str, update: SessionUpdate) -> None:
        await self.client.session_update(UpdateSessionNotification(session_id=session_id, update=update))


def _chunks(prompt: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """The text of `prompt` word by word, and everything else as it is."""
    for block in prompt:
        if isinstance(block, ContentBlockText):
            for word in re.findall(r"\S+\s*|\s+", block.text):
                yield ContentBlockText(text=word)
        else:
            yield block
