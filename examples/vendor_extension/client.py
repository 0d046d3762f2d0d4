"""A client of agents that have the method `_acme/add_note`; it leaves the notes on its command line with one.

What it imports is built by this command, given in this folder:

    acpgen build --role both --extension ./acme-notes.json --out acp_acme

Then run it:

    python client.py "Buy milk" "Water the plants"
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from acp_acme import (
    PROTOCOL_VERSION,
    AddNoteRequest,
    CapabilityError,
    Client,
    InitializeRequest,
    NewSessionRequest,
    NotesChangedNotification,
    spawn_agent,
)

AGENT = [sys.executable, str(Path(__file__).with_name("agent.py"))]


class NotingClient(Client):
    """Prints the notes whenever they change."""

    async def acme_notes_changed(self, params: NotesChangedNotification) -> None:
        print(f"notes: {', '.join(params.notes)}")


async def leave(notes: Sequence[str], command: Sequence[str]) -> None:
    """Start an agent, and leave notes with it."""
    async with spawn_agent(NotingClient, command) as agent:
        await agent.initialize(InitializeRequest(protocol_version=PROTOCOL_VERSION))
        session = await agent.session_new(NewSessionRequest(cwd=str(Path.cwd()), mcp_servers=[]))
        try:
            for note in notes:
                response = await agent.acme_add_note(AddNoteRequest(session_id=session.session_id, text=note))
                print(f"the agent has {response.count} of them")
        except CapabilityError as error:
            print(f"this agent keeps no notes: {error}")


if __name__ == "__main__":
    asyncio.run(leave(sys.argv[1:], AGENT))
