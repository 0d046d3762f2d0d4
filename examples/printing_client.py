"""A client that starts an agent, sends it one prompt, and prints what the agent does.

What it imports is built by this command, given in this folder:

    acpgen build --role client --out acp_printing

Then run it:

    python printing_client.py Hello python echo_agent_v1.py
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from acp_printing import (
    PROTOCOL_VERSION,
    Client,
    ContentBlockText,
    InitializeRequest,
    NewSessionRequest,
    PromptRequest,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    encode,
    spawn_agent,
)
from acp_printing.helpers import permission_cancelled, text


class PrintingClient(Client):
    """Prints every update, and allows nothing."""

    async def session_update(self, params: SessionNotification) -> None:
        match params.update:
            case SessionUpdateAgentMessageChunk(content=ContentBlockText(text=said)):
                print(f"agent: {said}")
            case other:
                print(f"{other.session_update}: {encode(other)}")

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        print(f"asked for permission: {params.tool_call.title}")
        return permission_cancelled()


async def send(words: str, command: Sequence[str]) -> None:
    """Start an agent, and let it work on one prompt."""
    async with spawn_agent(PrintingClient, command) as agent:
        await agent.initialize(InitializeRequest(protocol_version=PROTOCOL_VERSION))
        session = await agent.session_new(NewSessionRequest(cwd=str(Path.cwd()), mcp_servers=[]))
        response = await agent.session_prompt(PromptRequest(session_id=session.session_id, prompt=[text(words)]))
        print(f"stopped: {response.stop_reason}")


if __name__ == "__main__":
    asyncio.run(send(sys.argv[1], sys.argv[2:]))
