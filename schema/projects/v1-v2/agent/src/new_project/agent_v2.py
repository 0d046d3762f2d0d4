"""The agent in version 2 of the protocol: a prompt is answered at once, and updates tell how the work on it goes."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from .acp import ConnectionClosed, advertise, v2
from .agent import Edit, EditEnd, Turn, TurnEnd
from .sessions import Sessions

ALLOW, REJECT = "allow", "reject"


class AgentV2(v2.Agent):
    """Receives the messages of the editor."""

    def __init__(self, client: v2.RemoteClient) -> None:
        super().__init__(client)
        self._sessions = Sessions()

    async def initialize(self, params: v2.InitializeRequest) -> v2.InitializeResponse:
        """Tell who this is, and that it has sessions; other capabilities follow from the methods of this class."""
        message = v2.InitializeResponse(
            protocol_version=v2.PROTOCOL_VERSION,
            info=v2.Implementation(name="new-project", version="0.1.0"),
            capabilities=v2.AgentCapabilities(session=v2.SessionCapabilities()),
        )
        return advertise(self, message)

    async def session_new(self, params: v2.NewSessionRequest) -> v2.NewSessionResponse:
        """Begin a conversation."""
        return v2.NewSessionResponse(session_id=self._sessions.open(params.cwd).id)

    async def session_list(self, params: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
        """List the conversations, those of one folder if the client wants that."""
        wanted = params.cwd if isinstance(params.cwd, str) else None
        found = [each for each in self._sessions.values() if wanted in (None, each.cwd)]
        return v2.ListSessionsResponse(sessions=[v2.SessionInfo(session_id=each.id, cwd=each.cwd) for each in found])

    async def session_resume(self, params: v2.ResumeSessionRequest) -> v2.ResumeSessionResponse:
        """Go on with a conversation; what was said before is not kept."""
        session = self._sessions[params.session_id]
        state = v2.SessionUpdateStateUpdateRunning() if session.is_busy else v2.SessionUpdateStateUpdateIdleNone()
        await self.client.session_update(v2.UpdateSessionNotification(session_id=session.id, update=state))
        return v2.ResumeSessionResponse()

    async def session_close(self, params: v2.CloseSessionRequest) -> v2.CloseSessionResponse:
        """End a conversation, and the work in it."""
        await self._sessions.close(params.session_id)
        return v2.CloseSessionResponse()

    async def session_prompt(self, params: v2.PromptRequest) -> v2.PromptResponse:
        """Take the prompt, and begin to work on it."""
        turn = TurnV2(self.client, params)
        self._sessions[params.session_id].start([_text(block) for block in params.prompt], turn)
        return v2.PromptResponse(message_id=turn.prompt_id)

    async def session_cancel(self, params: v2.CancelSessionNotification) -> None:
        """Stop the work on the prompt."""
        if params.session_id in self._sessions:
            await self._sessions[params.session_id].cancel()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Stop all work: nobody is there to see it."""
        await asyncio.gather(*map(self._sessions.close, list(self._sessions)))


class TurnV2(Turn):
    """The work on a prompt, in messages to the editor."""

    def __init__(self, client: v2.RemoteClient, params: v2.PromptRequest) -> None:
        self.prompt_id = uuid4().hex
        self._answer_id = uuid4().hex
        self._client = client
        self._params = params

    async def begin(self) -> None:
        await self._tell(v2.SessionUpdateUserMessage(message_id=self.prompt_id, content=self._params.prompt))
        await self._tell(v2.SessionUpdateStateUpdateRunning())

    async def end(self, reason: TurnEnd) -> None:
        match reason:
            case "end_turn":
                await self._tell(v2.SessionUpdateStateUpdateIdleEndTurn())
            case "cancelled":
                await self._tell(v2.SessionUpdateStateUpdateIdleCancelled())
            case "error":
                await self._tell(v2.SessionUpdateStateUpdateIdleError())

    async def say(self, text: str) -> None:
        content = v2.ContentBlockText(text=text)
        await self._tell(v2.SessionUpdateAgentMessageChunk(message_id=self._answer_id, content=content))

    async def begin_edit(self, edit: Edit) -> None:
        await self._tell(v2.SessionUpdateToolCallUpdate(tool_call_id=edit.id, title=edit.title, kind="edit"))

    async def end_edit(self, edit: Edit, reason: EditEnd) -> None:
        await self._tell(v2.SessionUpdateToolCallUpdate(tool_call_id=edit.id, status=reason))

    async def allows(self, edit: Edit) -> bool:
        call = v2.ToolCallUpdate(tool_call_id=edit.id, title=edit.title, kind="edit")
        question = v2.RequestPermissionRequest(
            session_id=self._params.session_id,
            title="May I edit notes.txt?",
            subject=v2.RequestPermissionSubjectToolCall(tool_call=call),
            options=[
                v2.PermissionOption(option_id=ALLOW, name="Allow", kind="allow_once"),
                v2.PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
            ],
        )
        await self._tell(v2.SessionUpdateStateUpdateRequiresAction())
        outcome = (await self._client.session_request_permission(question)).outcome
        await self._tell(v2.SessionUpdateStateUpdateRunning())
        return isinstance(outcome, v2.RequestPermissionOutcomeSelected) and outcome.option_id == ALLOW

    async def _tell(self, update: v2.SessionUpdate) -> None:
        message = v2.UpdateSessionNotification(session_id=self._params.session_id, update=update)
        await self._client.session_update(message)


def _text(block: v2.ContentBlock) -> str:
    return block.text if isinstance(block, v2.ContentBlockText) else f"({block.type})"
