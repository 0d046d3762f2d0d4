"""What is told to an agent of its sessions: that they open and close, in pairs, and one after the other."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol
from weakref import WeakValueDictionary

from .active_session import ActiveSession, logger
from .stored_sessions import StoredSessions

__all__: list[str] = []


class Opener(Protocol):
    """What is told of sessions: an agent."""

    async def on_open(self, session: ActiveSession, params: Any) -> None:
        """A session was opened."""
        ...

    async def on_close(self, session_id: str) -> None:
        """A session was closed."""
        ...


class SessionOpenings:
    """Calls `on_open` and `on_close` of an agent.

    Of one session, no two of these calls overlap, and each `on_open` that has succeeded is followed by one `on_close`:
    when the session is opened again, or is not active any more, even if that comes while `on_open` runs.
    """

    def __init__(self, agent: Opener, stored: StoredSessions) -> None:
        self._agent = agent
        self._stored = stored
        self._open: set[str] = set()  # by id
        self._orders = WeakValueDictionary[str, asyncio.Lock]()  # each is gone with the last call that needs it

    async def open(self, session: ActiveSession, params: Any) -> None:
        """Call `on_open`, and forget a session for which it fails. Raises `RequestError` for one that was closed."""
        async with self._order(session.id):
            try:
                await self._close(session.id)
                session = self._stored.get(session.id)
                await self._agent.on_open(session, params)
                session.is_opened()
            except BaseException:
                self._stored.forget_idle(session.id)
                raise
            self._open.add(session.id)
            if session.id not in self._stored.active:
                await self._close(session.id)
            self._stored.get(session.id)

    async def close(self, session_id: str) -> None:
        """Call `on_close` for a session that is open."""
        async with self._order(session_id):
            await self._close(session_id)

    async def close_all(self) -> None:
        """Call `on_close` for all that are open. One that is being opened is closed when `on_open` has ended."""
        await asyncio.gather(*(self.close(each) for each in self._open))

    def _order(self, session_id: str) -> asyncio.Lock:
        return self._orders.setdefault(session_id, asyncio.Lock())

    async def _close(self, session_id: str) -> None:
        if session_id in self._open:
            self._open.discard(session_id)
            try:
                await self._agent.on_close(session_id)
            except Exception:
                logger.exception("`on_close` has failed")
