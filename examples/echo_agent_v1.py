"""An agent that echoes each prompt, for protocol 1.

What it imports is built by this command, given in this folder:

    acpgen build --role agent --out acp_echo_v1

It can be started by any client: `python printing_client.py Hello python echo_agent_v1.py` is one.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

from acp_echo_v1 import (
    PROTOCOL_VERSION,
    Agent,
    CancelNotification,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    RemoteClient,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    advertise,
    run_agent,
)


class EchoAgent(Agent):
    """Sends back each block of a prompt, and takes its time for it."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._turns: dict[str, asyncio.Task[Any] | None] = {}

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="echo", version="1")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        session_id = params.session_id
        self._turns[session_id] = asyncio.current_task()
        try:
            for block in params.prompt:
                update = SessionUpdateAgentMessageChunk(content=block)
                await self.client.session_update(SessionNotification(session_id=session_id, update=update))
                await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            if session_id in self._turns:
                raise  # the request was cancelled, or the connection has ended
            return PromptResponse(stop_reason="cancelled")
        finally:
            self._turns.pop(session_id, None)
        return PromptResponse(stop_reason="end_turn")

    async def session_cancel(self, params: CancelNotification) -> None:
        turn = self._turns.pop(params.session_id, None)
        if turn is not None:
            turn.cancel()


if __name__ == "__main__":
    run_agent(EchoAgent)
