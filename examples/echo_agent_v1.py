"""An agent that echoes each prompt, for protocol 1.

What it imports is built by this command, given in this folder:

    acpgen build --role agent --out acp_echo_v1

It can be started by any client: `python printing_client.py Hello python echo_agent_v1.py` is one.
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

from acp_echo_v1 import (
    PROTOCOL_VERSION,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    advertise,
    run_agent,
)
from acp_echo_v1.helpers import TurnAgent, agent_message


class EchoAgent(TurnAgent):
    """Sends back each block of a prompt, and takes its time for it."""

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="echo", version="1")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def work(self, params: PromptRequest) -> None:
        for block in params.prompt:
            await self.client.session_update(agent_message(params.session_id, block))
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    run_agent(EchoAgent)
