"""The agent on a generated package: python agent_acpgen.py FOLDER-OF-THE-PACKAGES

The package is called `demo`, as in the README.
"""

import asyncio
import sys

sys.path.insert(0, sys.argv[1])

from demo import (
    Agent,
    ContentBlockText,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    PromptResponse,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    run_agent,
)


class Talker(Agent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        return InitializeResponse(protocol_version=params.protocol_version)

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id="session-1")

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        (block,) = params.prompt
        assert isinstance(block, ContentBlockText)
        label, count, *turns = block.text.split()
        for at in range(int(count)):
            if turns:
                await asyncio.sleep(0)
            content = ContentBlockText(text=f"{label}: piece {at} of what the agent has to say about it. ")
            update = SessionUpdateAgentMessageChunk(content=content)
            await self.client.session_update(SessionNotification(session_id=params.session_id, update=update))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    run_agent(Talker)
