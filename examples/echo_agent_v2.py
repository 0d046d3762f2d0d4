"""An agent that echoes each prompt, for protocol 2, where a prompt is answered before its work begins.

What it imports is built by this command, given in this folder:

    acpgen build --role agent --protocol 2 --out acp_echo_v2
"""

from __future__ import annotations

import asyncio
import contextlib
from uuid import uuid4

from acp_echo_v2 import (
    PROTOCOL_VERSION,
    Agent,
    AgentCapabilities,
    CancelSessionNotification,
    CloseSessionRequest,
    CloseSessionResponse,
    ConnectionClosed,
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
    SessionUpdate,
    SessionUpdateAgentMessageChunk,
    SessionUpdateStateUpdateIdleCancelled,
    SessionUpdateStateUpdateIdleEndTurn,
    SessionUpdateStateUpdateIdleNone,
    SessionUpdateStateUpdateRunning,
    SessionUpdateUserMessage,
    UpdateSessionNotification,
    advertise,
    run_agent,
)


class EchoAgent(Agent):
    """Sends back each block of a prompt, and takes its time for it."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._sessions: dict[str, SessionInfo] = {}
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._messages = 0

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
        busy = params.session_id in self._turns
        await self._tell(
            params.session_id, SessionUpdateStateUpdateRunning() if busy else SessionUpdateStateUpdateIdleNone()
        )
        return ResumeSessionResponse()

    async def session_close(self, params: CloseSessionRequest) -> CloseSessionResponse:
        await self._stop(params.session_id)
        return CloseSessionResponse()

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        self._messages += 1
        message_id = f"message-{self._messages}"
        self._turns[params.session_id] = asyncio.create_task(self._turn(params, message_id))
        return PromptResponse(message_id=message_id)

    async def session_cancel(self, params: CancelSessionNotification) -> None:
        await self._stop(params.session_id)

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        turns = list(self._turns.values())
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)

    async def _stop(self, session_id: str) -> None:
        turn = self._turns.get(session_id)
        if turn is not None:
            await asyncio.sleep(0)  # it has begun then, and will tell how it ended
            turn.cancel()

    async def _turn(self, params: PromptRequest, message_id: str) -> None:
        session_id = params.session_id
        with contextlib.suppress(ConnectionClosed):  # then nobody is there to tell
            end: SessionUpdate = SessionUpdateStateUpdateIdleEndTurn()
            try:
                await self._tell(session_id, SessionUpdateUserMessage(message_id=message_id, content=params.prompt))
                await self._tell(session_id, SessionUpdateStateUpdateRunning())
                for block in params.prompt:
                    chunk = SessionUpdateAgentMessageChunk(message_id=f"answer-to-{message_id}", content=block)
                    await self._tell(session_id, chunk)
                    await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                end = SessionUpdateStateUpdateIdleCancelled()
            finally:
                del self._turns[session_id]
            await self._tell(session_id, end)

    async def _tell(self, session_id: str, update: SessionUpdate) -> None:
        await self.client.session_update(UpdateSessionNotification(session_id=session_id, update=update))


if __name__ == "__main__":
    run_agent(EchoAgent)
