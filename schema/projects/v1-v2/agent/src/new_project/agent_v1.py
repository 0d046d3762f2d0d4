"""The agent in version 1 of the protocol: the response to a prompt ends the turn."""

from __future__ import annotations

from .acp import ConnectionClosed, advertise, v1
from .acp.v1.helpers import (
    RunningToolCall,
    TurnAgent,
    agent_message,
    mcp_capabilities,
    mcp_parameters,
    tool_call,
)
from .agent import work
from .sessions import Sessions


class AgentV1(TurnAgent):
    """Receives the messages of the editor."""

    def __init__(self, client: v1.RemoteClient) -> None:
        super().__init__(client)
        self._sessions = Sessions()

    async def initialize(self, params: v1.InitializeRequest) -> v1.InitializeResponse:
        """Describe this agent and the MCP servers it takes; other capabilities follow from the methods of this class."""
        message = v1.InitializeResponse(
            protocol_version=v1.PROTOCOL_VERSION,
            agent_info=v1.Implementation(name="new-project", version="0.1.0"),
            agent_capabilities=v1.AgentCapabilities(mcp_capabilities=mcp_capabilities("stdio", "http")),
        )
        return advertise(self, message)

    async def session_new(self, params: v1.NewSessionRequest) -> v1.NewSessionResponse:
        """Begin a conversation, and connect its MCP servers."""
        servers = mcp_parameters(params.mcp_servers, cwd=params.cwd)
        return v1.NewSessionResponse(session_id=self._sessions.open(params.cwd, servers))

    async def session_prompt(self, params: v1.PromptRequest) -> v1.PromptResponse:
        """Run `work`, and answer when it has ended; `session/cancel` cancels it."""
        self._sessions.known(params.session_id)
        return await super().session_prompt(params)

    async def work(self, params: v1.PromptRequest) -> None:
        """Work on a prompt."""
        tools, output = self._sessions.tools(params.session_id), OutputV1(self.client, params.session_id)
        await work([_text(block) for block in params.prompt], tools, output)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Disconnect the MCP servers."""
        await self._sessions.close()


class OutputV1:
    """What the user sees of the work on a prompt, as messages to the editor."""

    def __init__(self, client: v1.RemoteClient, session_id: str) -> None:
        self._client = client
        self._session_id = session_id

    async def say(self, text: str) -> None:
        await self._client.session_update(agent_message(self._session_id, text))

    def edit(self, title: str) -> RunningToolCall:
        return tool_call(self._client, self._session_id, title, kind="edit", status="pending")


def _text(block: v1.ContentBlock) -> str:
    return block.text if isinstance(block, v1.ContentBlockText) else f"({block.type})"
