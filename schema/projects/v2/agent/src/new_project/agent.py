"""The agent in version 2 of the protocol: a prompt is answered at once, and updates tell how the work on it goes.

What it does is in `work`.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    CloseSessionRequest,
    CloseSessionResponse,
    ConnectionClosed,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionInfo,
    advertise,
)
from .acp.helpers import (
    RunningToolCall,
    SessionTools,
    TurnAgent,
    agent_message,
    check_cwd,
    idle,
    mcp_capabilities,
    mcp_parameters,
    running,
    session_not_found,
    tool_call,
)
from .work import work


class EchoAgent(TurnAgent):
    """Receives the messages of the editor, and lets `work` do what they ask for."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: dict[str, SessionInfo] = {}
        self._tools: dict[str, SessionTools] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        """Describe this agent, which has sessions; the other capabilities follow from the methods of this class."""
        message = InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            info=Implementation(name="new-project", version="0.1.0"),
            capabilities=AgentCapabilities(session=SessionCapabilities(mcp=mcp_capabilities("stdio", "http"))),
        )
        return advertise(self, message)

    # --- Sessions: they last as long as the process ---

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a conversation, and connect its MCP servers."""
        check_cwd(params.cwd)
        session = SessionInfo(session_id=uuid4().hex, cwd=params.cwd)
        tools = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
        self._sessions[session.session_id], self._tools[session.session_id] = session, tools
        return NewSessionResponse(session_id=session.session_id)

    async def session_list(self, params: ListSessionsRequest) -> ListSessionsResponse:
        """List the conversations: all, or those of one folder."""
        wanted = params.cwd if isinstance(params.cwd, str) else None
        found = [session for session in self._sessions.values() if wanted in (None, session.cwd)]
        return ListSessionsResponse(sessions=found)

    async def session_resume(self, params: ResumeSessionRequest) -> ResumeSessionResponse:
        """Go on with a conversation, with these MCP servers; earlier messages are not kept."""
        check_cwd(params.cwd)
        session_id = self._known(params.session_id)
        earlier = self._tools[session_id]
        self._tools[session_id] = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
        await earlier.close()
        is_busy = self.turns.has_turns(session_id)
        await self.client.session_update(running(session_id) if is_busy else idle(session_id))
        return ResumeSessionResponse()

    async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
        """End a conversation, and the work in it."""
        del self._sessions[self._known(params.session_id)]
        tools = self._tools.pop(params.session_id)
        await self.turns.close(params.session_id)
        await tools.close()
        return CloseSessionResponse()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Disconnect the MCP servers."""
        await asyncio.gather(*(tools.close() for tools in self._tools.values()))

    def _known(self, session_id: str) -> str:
        if session_id not in self._sessions:
            raise session_not_found(session_id)
        return session_id

    # --- Prompts: they are answered at once, and updates tell how the work goes ---

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Accept the prompt, and start `work`; `session/cancel` cancels it."""
        self._known(params.session_id)
        return await super().session_prompt(params)

    async def work(self, params: PromptRequest) -> None:
        """Work on a prompt. It may be cancelled at any `await`."""
        prompt = [block.text if isinstance(block, ContentBlockText) else block for block in params.prompt]
        await work(prompt, self._tools[params.session_id], MessageOutput(self.client, params.session_id))


class MessageOutput:
    """What the user sees of the work on a prompt, as messages to the editor."""

    def __init__(self, client: RemoteClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._message_id = uuid4().hex

    async def say(self, content: Any) -> None:
        await self._client.session_update(agent_message(self._session_id, content, message_id=self._message_id))

    def edit(self, title: str) -> RunningToolCall:
        return tool_call(self._client, self._session_id, title, kind="edit", status="pending")
