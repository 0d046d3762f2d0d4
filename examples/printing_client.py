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

from acp_printing import RequestPermissionRequest, RequestPermissionResponse, spawn_agent
from acp_printing.helpers import (
    AgentMessage,
    MessageChange,
    Session,
    SessionClient,
    ToolCallChange,
    permission_cancelled,
)


class PrintingClient(SessionClient):
    """Allows nothing."""

    async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> RequestPermissionResponse:
        print(f"asked for permission: {request.tool_call.title}")
        return permission_cancelled()


async def send(words: str, command: Sequence[str]) -> None:
    """Start an agent, and let it work on one prompt."""
    async with (spawned := spawn_agent(PrintingClient, command)):
        await spawned.handler.start("printing", "1")
        session = await spawned.handler.open(str(Path.cwd()))
        async with session.prompt(words) as turn:
            async for change in turn:
                match change:
                    case MessageChange(entry=AgentMessage(), text=said):
                        print(f"agent: {said}")
                    case ToolCallChange(call=call):
                        print(f"{call.title}: {call.status}")
                    case _:
                        pass
        print(f"stopped: {turn.result.stop_reason}")


if __name__ == "__main__":
    asyncio.run(send(sys.argv[1], sys.argv[2:]))
