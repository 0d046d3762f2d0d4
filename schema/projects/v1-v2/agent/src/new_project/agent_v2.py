"""The agent in version 2 of the protocol: a prompt is answered at once, and updates tell how the work on it goes."""

from __future__ import annotations

from uuid import uuid4

from .acp import ConnectionClosed, advertise, v2
from .acp.v2.helpers import (
    RunningToolCall,
    TurnAgent,
    agent_message,
    idle,
    mcp_capabilities,
    mcp_parameters,
    running,
    tool_call,
)
from .agent import work
from .sessions import Sessions


class AgentV2(TurnAgent):
    """Receives the messages of the editor."""

    def __init__(self, client: v2.RemoteClient) -> None:
        super().__init__(client)
        self._sessions = Sessions()

    async def initialize(self, params: v2.InitializeRequest) -> v2.InitializeResponse:
        """Describe this agent, which has sessions; the other capabilities follow from the methods of this class."""
        message = v2.InitializeResponse(
            protocol_version=v2.PROTOCOL_VERSION,
            info=v2.Implementation(name="new-project", version="0.1.0"),
            capabilities=v2.AgentCapabilities(session=v2.SessionCapabilities(mcp=mcp_capabilities("stdio", "http"))),
        )
        return advertise(self, message)

    async def session_new(self, params: v2.NewSessionRequest) -> v2.NewSessionResponse:
        """Begin a conversation, and connect its MCP servers."""
        servers = mcp_parameters(params.mcp_servers, cwd=params.cwd)
        return v2.NewSessionResponse(session_id=self._sessions.open(params.cwd, servers))

    async def session_list(self, params: v2.ListSessionsRequest) -> v2.ListSessionsResponse:
        """List the conversations: all, or those of one folder."""
        found = self._sessions.list(params.cwd)
        return v2.ListSessionsResponse(sessions=[v2.SessionInfo(session_id=each, cwd=found[each]) for each in found])

    async def session_resume(self, params: v2.ResumeSessionRequest) -> v2.ResumeSessionResponse:
        """Go on with a conversation, with these MCP servers; earlier messages are not kept."""
        session_id = self._sessions.known(params.session_id)
        await self._sessions.resume(session_id, mcp_parameters(params.mcp_servers, cwd=params.cwd))
        is_busy = self.turns.has_turns(session_id)
        await self.client.session_update(running(session_id) if is_busy else idle(session_id))
        return v2.ResumeSessionResponse()

    async def session_close(self, params: v2.CloseSessionRequest) -> v2.CloseSessionResponse:
        """End a conversation, and the work in it."""
        tools = self._sessions.forget(params.session_id)
        await self.turns.close(params.session_id)
        await tools.close()
        return v2.CloseSessionResponse()

    async def session_prompt(self, params: v2.PromptRequest) -> v2.PromptResponse:
        """Accept the prompt, and start `work`; `session/cancel` cancels it."""
        self._sessions.known(params.session_id)
        return await super().session_prompt(params)

    async def work(self, params: v2.PromptRequest) -> None:
        """Work on a prompt."""
        tools, output = self._sessions.tools(params.session_id), OutputV2(self.client, params.session_id)
        await work([_text(block) for block in params.prompt], tools, output)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Disconnect the MCP servers."""
        await self._sessions.close()


class OutputV2:
    """What the user sees of the work on a prompt, as messages to the editor."""

    def __init__(self, client: v2.RemoteClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id
        self._message_id = uuid4().hex

    async def say(self, text: str) -> None:
        await self._client.session_update(agent_message(self._session_id, text, message_id=self._message_id))

    def edit(self, title: str) -> RunningToolCall:
        return tool_call(self._client, self._session_id, title, kind="edit", status="pending")


def _text(block: v2.ContentBlock) -> str:
    return block.text if isinstance(block, v2.ContentBlockText) else f"({block.type})"
