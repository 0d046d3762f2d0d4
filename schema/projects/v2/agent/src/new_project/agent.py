"""The agent: it sends back what it receives. Put your own work into `work`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    CloseSessionRequest,
    CloseSessionResponse,
    ConnectionClosed,
    ContentBlock,
    ContentBlockText,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    InvalidParamsError,
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
    TurnAgent,
    agent_message,
    idle,
    mcp_capabilities,
    mcp_parameters,
    running,
    text,
    tool_call,
)
from .tools import SessionTools


class EchoAgent(TurnAgent):
    """Streams the prompt back, word by word.

    If the word "edit" is in it, it first asks whether it may edit; if "tools" is, it shows those of the MCP servers.
    """

    pause = 0.05
    """Seconds between two words, in the place of work."""

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
            raise InvalidParamsError(f"no session {session_id!r}")
        return session_id

    # --- Prompts: they are answered at once, and updates tell how the work goes ---

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Accept the prompt, and start `work`; `session/cancel` cancels it."""
        self._known(params.session_id)
        return await super().session_prompt(params)

    async def work(self, params: PromptRequest) -> None:
        """Work on a prompt. It may be cancelled at any `await`."""
        if _has("edit", params.prompt):
            await self._edit(params.session_id)
        message_id = uuid4().hex
        if _has("tools", params.prompt):
            tools = await self._tools[params.session_id].describe()
            await self.client.session_update(agent_message(params.session_id, f"{tools}\n", message_id=message_id))
        for chunk in _chunks(params.prompt):
            await self.client.session_update(agent_message(params.session_id, chunk, message_id=message_id))
            await asyncio.sleep(self.pause)

    async def _edit(self, session_id: str) -> None:
        """Pretend to edit a file, if the user allows it."""
        async with tool_call(self.client, session_id, "Edit notes.txt", kind="edit", status="pending") as call:
            if await call.permission():
                pass  # edit the file here


def _has(word: str, prompt: Sequence[ContentBlock]) -> bool:
    return any(isinstance(block, ContentBlockText) and re.search(rf"\b{word}\b", block.text) for block in prompt)


def _chunks(prompt: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """The text of `prompt` word by word, and everything else as it is."""
    for block in prompt:
        if isinstance(block, ContentBlockText):
            yield from map(text, re.findall(r"\S+\s*|\s+", block.text))
        else:
            yield block
