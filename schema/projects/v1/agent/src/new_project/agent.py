"""The agent: it sends back what it receives. Put your own work into `work`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from uuid import uuid4

from .acp import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    ConnectionClosed,
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
from .acp.helpers import TurnAgent, agent_message, mcp_capabilities, mcp_parameters, text, tool_call
from .tools import SessionTools


class EchoAgent(TurnAgent):
    """Streams the prompt back, word by word.

    If the word "edit" is in it, it first asks whether it may edit; if "tools" is, it shows those of the MCP servers.
    """

    pause = 0.05
    """Seconds between two words, in the place of work."""

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
        session_id = uuid4().hex
        self._sessions[session_id] = SessionTools(mcp_parameters(params.mcp_servers, cwd=params.cwd))
        return NewSessionResponse(session_id=session_id)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        """Run `work`, and answer when it has ended; `session/cancel` cancels it."""
        if params.session_id not in self._sessions:
            raise InvalidParamsError(f"no session {params.session_id!r}")
        return await super().session_prompt(params)

    async def work(self, params: PromptRequest) -> None:
        """Work on a prompt. It may be cancelled at any `await`."""
        if _has("edit", params.prompt):
            await self._edit(params.session_id)
        if _has("tools", params.prompt):
            tools = await self._sessions[params.session_id].describe()
            await self.client.session_update(agent_message(params.session_id, f"{tools}\n"))
        for chunk in _chunks(params.prompt):
            await self.client.session_update(agent_message(params.session_id, chunk))
            await asyncio.sleep(self.pause)

    async def _edit(self, session_id: str) -> None:
        """Pretend to edit a file, if the user allows it."""
        async with tool_call(self.client, session_id, "Edit notes.txt", kind="edit", status="pending") as call:
            if await call.permission():
                pass  # edit the file here

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Disconnect the MCP servers."""
        await asyncio.gather(*(tools.close() for tools in self._sessions.values()))


def _has(word: str, prompt: Sequence[ContentBlock]) -> bool:
    return any(isinstance(block, ContentBlockText) and re.search(rf"\b{word}\b", block.text) for block in prompt)


def _chunks(prompt: Sequence[ContentBlock]) -> Iterator[ContentBlock]:
    """The text of `prompt` word by word, and everything else as it is."""
    for block in prompt:
        if isinstance(block, ContentBlockText):
            yield from map(text, re.findall(r"\S+\s*|\s+", block.text))
        else:
            yield block
