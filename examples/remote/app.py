"""An agent that echoes each prompt, as an ASGI application for Streamable HTTP and WebSocket.

What it imports is built by this command, given in this folder:

    acpgen build --role both --with turns --with sessions --with remote --out acp_remote

Then serve it:

    hypercorn --config hypercorn.toml --bind 127.0.0.1:8000 app:app

Environment variables, with spaces between several values: `ACP_HOSTS` has the names that clients may reach it by,
`ACP_TOKENS` who may connect ("alice=secret bob=other"; without it, everybody), `ACP_REPLICA` the name of this process.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Hashable
from dataclasses import dataclass, field
from uuid import uuid4

from acp_remote import (
    PROTOCOL_VERSION,
    ContentBlock,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    ResourceNotFoundError,
    advertise,
)
from acp_remote.asgi import LOCAL_HOSTS, Scope, asgi_app, client_identity
from acp_remote.helpers import TurnAgent, agent_message, user_message

HOSTS = os.environ.get("ACP_HOSTS", "").split() or LOCAL_HOSTS
TOKENS = dict(pair.split("=", 1) for pair in os.environ.get("ACP_TOKENS", "").split())
REPLICA = os.environ.get("ACP_REPLICA", "echo")


@dataclass
class Session:
    """A session: who opened it, and its prompts."""

    owner: Hashable
    prompts: list[ContentBlock] = field(default_factory=list[ContentBlock])


SESSIONS: dict[str, Session] = {}
"""The sessions of all connections to this process. They end with it: put them where each replica finds them."""


def session_of_client(session_id: str) -> Session:
    """A session of the client of this connection: the id alone does not give access to it."""
    session = SESSIONS.get(session_id)
    if session is None or session.owner != client_identity.get():
        raise ResourceNotFoundError(f"{REPLICA} has no session {session_id!r}")
    return session


class EchoAgent(TurnAgent):
    """Sends back each block of a prompt. There is one for each connection."""

    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="echo", title=REPLICA, version="1")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        session_id = uuid4().hex
        SESSIONS[session_id] = Session(client_identity.get())
        return NewSessionResponse(session_id=session_id)

    async def session_load(self, params: LoadSessionRequest) -> LoadSessionResponse:
        for block in session_of_client(params.session_id).prompts:
            await self.client.session_update(user_message(params.session_id, block))
            await self.client.session_update(agent_message(params.session_id, block))
        return LoadSessionResponse()

    async def work(self, params: PromptRequest) -> None:
        session = session_of_client(params.session_id)
        for block in params.prompt:
            session.prompts.append(block)
            await self.client.session_update(agent_message(params.session_id, block))


def authorize(scope: Scope) -> Hashable | None:
    """Return the name of the client by the token that it sends; None refuses it."""
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    names = [name for name, token in TOKENS.items() if hmac.compare_digest(sent, f"Bearer {token}".encode())]
    return names[0] if names else None


app = asgi_app(EchoAgent, hosts=HOSTS, authorize=authorize if TOKENS else None)
