"""The agent in version 1 of the protocol: the response to a prompt ends the turn. What it does is in `work`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    ConnectionClosed,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    advertise,
)
from .acp.helpers import (
    RunningToolCall,
    SessionTools,
    TurnAgent,
    agent_message,
    check_cwd,
    mcp_capabilities,
    mcp_parameters,
    session_not_found,
    tool_call,
)
from .work import work


class EchoAgent(TurnAgent):
    """Receives the messages of the editor, and lets `work` do what they ask for."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: dict[str, SessionTools] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        """Describe this agent and the MCP servers it takes; other capabilities follow from the methods of this class."""
        message = InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="new-project", version="0.1.0"),
            agent_capabilities=AgentCapabilities(mcp_capabilities=mcp_capabilities("stdio", "http")),
        )
        return advertise(self, message)

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        """Begin a conversation, and connect its MCP servers."""
        check_cwd(params.cwd)
        session_id = uuid4().hex
        self._sessions[session_id] = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
        return NewSessionResponse(session_id=session_id)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Run `work`, and answer when it has ended; `session/cancel` cancels it."""
        if params.session_id not in self._sessions:
            raise session_not_found(params.session_id)
        return await super().session_prompt(params)

    async def work(self, params: PromptRequest) -> None:
        """Work on a prompt. It may be cancelled at any `await`."""
        prompt = [block.text if isinstance(block, ContentBlockText) else block for block in params.prompt]
        await work(prompt, self._sessions[params.session_id], MessageOutput(self.client, params.session_id))

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Disconnect the MCP servers."""
        await asyncio.gather(*(tools.close() for tools in self._sessions.values()))


class MessageOutput:
    """What the user sees of the work on a prompt, as messages to the editor."""

    def __init__(self, client: RemoteClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def say(self, content: Any) -> None:
        await self._client.session_update(agent_message(self._session_id, content))

    def edit(self, title: str) -> RunningToolCall:
        return tool_call(self._client, self._session_id, title, kind="edit", status="pending")
