"""The same agent on the official Python SDK."""

import asyncio

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    text_block,
    update_agent_message,
)


class Talker(Agent):
    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        return NewSessionResponse(session_id="session-1")

    async def prompt(self, session_id, prompt, **kwargs):
        (block,) = prompt
        label, count, *turns = block.text.split()
        for at in range(int(count)):
            if turns:
                await asyncio.sleep(0)
            text = f"{label}: piece {at} of what the agent has to say about it. "
            await self.client.session_update(session_id, update_agent_message(text_block(text)))
        return PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(run_agent(Talker()))
