"""An agent that echoes each prompt, for protocol 2, where a prompt is answered before its work begins.

What it imports is built by this command, given in this folder:

    acpgen build --role agent --protocol 2 --out acp_echo_v2
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

from acp_echo_v2 import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    CloseSessionRequest,
    CloseSessionResponse,
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
    run_agent,
)
from acp_echo_v2.helpers import TurnAgent, agent_message, idle, running


class EchoAgent(TurnAgent):
    """Sends back each block of a prompt, and takes its time for it."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: dict[str, SessionInfo] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        message = InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            info=Implementation(name="echo", version="1"),
            capabilities=AgentCapabilities(session=SessionCapabilities()),
        )
        return advertise(self, message)

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        session = SessionInfo(session_id=uuid4().hex, cwd=params.cwd)
        self._sessions[session.session_id] = session
        return NewSessionResponse(session_id=session.session_id)

    async def session_list(self, params: ListSessionsRequest) -> ListSessionsResponse:
        wanted = params.cwd if isinstance(params.cwd, str) else None
        found = [session for session in self._sessions.values() if wanted in (None, session.cwd)]
        return ListSessionsResponse(sessions=found)

    async def session_resume(self, params: ResumeSessionRequest) -> ResumeSessionResponse:
        session_id = self._known(params.session_id)
        is_busy = self.turns.has_turns(session_id)
        await self.client.session_update(running(session_id) if is_busy else idle(session_id))
        return ResumeSessionResponse()

    async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
        del self._sessions[self._known(params.session_id)]
        await self.turns.close(params.session_id)
        return CloseSessionResponse()

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        self._known(params.session_id)
        return await super().session_prompt(params)

    def _known(self, session_id: str) -> str:
        if session_id not in self._sessions:
            raise InvalidParamsError(f"no session {session_id!r}")
        return session_id

    async def work(self, params: PromptRequest) -> None:
        message_id = uuid4().hex
        for block in params.prompt:
            await self.client.session_update(agent_message(params.session_id, block, message_id=message_id))
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    run_agent(EchoAgent)
