"""The agent in version 1 of the protocol: the answer to a prompt tells why the work on it has ended."""

from __future__ import annotations

from .acp import InternalError, advertise, v1
from .agent import Edit, EditEnd, Turn
from .sessions import Sessions

ALLOW, REJECT = "allow", "reject"


class AgentV1(v1.Agent):
    """Receives the messages of the editor."""

    def __init__(self, client: v1.RemoteClient) -> None:
        super().__init__(client)
        self._sessions = Sessions()

    async def initialize(self, params: v1.InitializeRequest) -> v1.InitializeResponse:
        """Tell who this is; the capabilities follow from the methods of this class."""
        info = v1.Implementation(name="new-project", version="0.1.0")
        return advertise(self, v1.InitializeResponse(protocol_version=v1.PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        """Begin a conversation."""
        return v1.NewSessionResponse(session_id=self._sessions.open(params.cwd).id)

    async def session_prompt(self, params: v1.PromptRequest) -> v1.PromptResponse:
        """Do what the prompt asks for."""
        turn = TurnV1(self.client, params.session_id)
        end = await self._sessions[params.session_id].start([_text(block) for block in params.prompt], turn)
        if end == "error":
            raise InternalError
        return v1.PromptResponse(stop_reason=end)

    async def session_cancel(self, params: v1.CancelNotification) -> None:
        """Stop the work on the prompt."""
        if params.session_id in self._sessions:
            await self._sessions[params.session_id].cancel()


class TurnV1(Turn):
    """The work on a prompt, in messages to the editor."""

    def __init__(self, client: v1.RemoteClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def say(self, text: str) -> None:
        await self._tell(v1.SessionUpdateAgentMessageChunk(content=v1.ContentBlockText(text=text)))

    async def begin_edit(self, edit: Edit) -> None:
        await self._tell(v1.SessionUpdateToolCall(tool_call_id=edit.id, title=edit.title, kind="edit"))

    async def end_edit(self, edit: Edit, reason: EditEnd) -> None:
        status: v1.ToolCallStatus = "completed" if reason == "completed" else "failed"
        await self._tell(v1.SessionUpdateToolCallUpdate(tool_call_id=edit.id, status=status))

    async def allows(self, edit: Edit) -> bool:
        question = v1.RequestPermissionRequest(
            session_id=self._session_id,
            tool_call=v1.ToolCallUpdate(tool_call_id=edit.id, title=edit.title),
            options=[
                v1.PermissionOption(option_id=ALLOW, name="Allow", kind="allow_once"),
                v1.PermissionOption(option_id=REJECT, name="Reject", kind="reject_once"),
            ],
        )
        outcome = (await self._client.session_request_permission(question)).outcome
        return isinstance(outcome, v1.RequestPermissionOutcomeSelected) and outcome.option_id == ALLOW

    async def _tell(self, update: v1.SessionUpdate) -> None:
        await self._client.session_update(v1.SessionNotification(session_id=self._session_id, update=update))


def _text(block: v1.ContentBlock) -> str:
    return block.text if isinstance(block, v1.ContentBlockText) else f"({block.type})"
