"""The client whose sessions `SessionKeeper` keeps: there is one for each connection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from .._base import UNSET
from ..client import RemoteAgent
from ..dispatch import ConnectionClosed
from ..types import McpServer, NewSessionRequest
from .kept_session import KeptSession, Way, now
from .session_client import Session, SessionClient

__all__ = ["KeptClient"]


class KeptClient(SessionClient):
    """The base of a client whose sessions a `SessionKeeper` keeps: there is one for each connection.

        class Chat(KeptClient):
            async def answer_permission(self, session: Session, request: RequestPermissionRequest) -> ...:
                return select_permission(request, "allow_once")

    What one connection has to leave to the next, such as rules or files, is for all of them: make it outside. An
    override of `connection_closed` calls it with `super()`.
    """

    ending_seconds: float = 1.0
    """How long a turn that the agent has cancelled by itself waits for the end of the connection: then it is an
    interruption. Agents that are told to exit take up to 0.3 seconds in between."""

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self._reopened: dict[str, KeptSession] = {}
        self._one_by_one = asyncio.Lock()
        self.end: ConnectionClosed | None = None
        """How the connection has ended; None while it goes on."""
        self._has_ended = asyncio.Event()

    def new_session(self, session_id: str, cwd: str) -> KeptSession:
        """A session without a state yet; one that is opened again has the state that it is to go on with."""
        return self._reopened.get(session_id) or KeptSession(self, session_id, cwd)

    async def open(
        self, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a new session; `directories` are roots besides `cwd`."""
        session = await super().open(cwd, mcp_servers=mcp_servers, directories=directories)
        return _whole(session)

    async def load(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again; the agent reports the conversation so far, which `state` has at the end."""
        session = await super().load(session_id, cwd, mcp_servers=mcp_servers, directories=directories)
        return session if session is self._reopened.get(session_id) else _whole(session)

    async def reopen(self, session: KeptSession, by: Way) -> None:
        """Open a session of an earlier connection again: for a `SessionKeeper`."""
        if by == "new":
            await self._reopen_anew(session)
            return
        key = session.id
        self._reopened[key] = session
        call: Any = self.resume if by == "resume" else self.load
        try:
            await call(key, session.cwd, mcp_servers=session.mcp_servers, directories=session.directories)
        finally:
            del self._reopened[key]

    async def _reopen_anew(self, session: KeptSession) -> None:
        directories = [*session.directories] if session.directories else UNSET
        request = NewSessionRequest(
            cwd=session.cwd, mcp_servers=[*session.mcp_servers], additional_directories=directories
        )

        async def call() -> Any:
            result = await self._send_opening(request, self.agent.session_new)
            session.renew(result.session_id)
            self._reopened[session.id] = session
            return result

        try:
            await self.open_with(call(), session.cwd)
        finally:
            self._reopened.pop(session.id, None)
        session.opened_at = now()

    async def _send_opening(self, request: Any, send: Any) -> Any:
        """Send a request that opens a session again, one after the other; what is replayed later may overlap."""
        async with self._one_by_one:
            return await send(request)

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until the connection ends; raises its reason then."""
        try:
            await asyncio.wait_for(self._has_ended.wait(), seconds)
        except asyncio.TimeoutError:
            return
        raise self.end or ConnectionClosed("the connection was left")

    def leave(self) -> None:
        """Tell the keeper to end the connection."""
        self._has_ended.set()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """End all questions, and the turns of sessions that are not kept."""
        await super().connection_closed(reason)
        self.end = reason
        self._has_ended.set()

    async def ended(self) -> ConnectionClosed | None:
        """Wait for the end of the connection; returns its reason, or None if `leave` was called."""
        await self._has_ended.wait()
        return self.end


def _whole(session: Session) -> Session:
    if isinstance(session, KeptSession):
        session.is_whole = True
    return session
