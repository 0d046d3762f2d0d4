"""An agent with a method of its own, `_acme/add_note`; `acme-notes.json` says what it looks like.

What it imports is built by this command, given in this folder:

    acpgen build --role both --extension ./acme-notes.json --out acp_acme
"""

from __future__ import annotations

from uuid import uuid4

from acp_acme import (
    PROTOCOL_VERSION,
    AddNoteRequest,
    AddNoteResponse,
    Agent,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    NotesChangedNotification,
    RemoteClient,
    advertise,
    run_agent,
)


class NotingAgent(Agent):
    """Keeps notes, and tells the client about them."""

    def __init__(self, client: RemoteClient) -> None:
        super().__init__(client)
        self._notes: list[str] = []

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="notes", version="1")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def acme_add_note(self, params: AddNoteRequest) -> AddNoteResponse:
        self._notes.append(params.text)
        await self.client.acme_notes_changed(
            NotesChangedNotification(session_id=params.session_id, notes=list(self._notes))
        )
        return AddNoteResponse(count=len(self._notes))


if __name__ == "__main__":
    run_agent(NotingAgent)
