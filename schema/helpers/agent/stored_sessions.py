"""The sessions of a connection that are kept in a store, and the stub that records what is sent in them."""

from __future__ import annotations

import asyncio
import ntpath
import posixpath
from collections.abc import Awaitable, Callable
from os.path import normpath
from typing import Any, Final
from uuid import uuid4

from ..agent import RemoteClient
from ..errors import InternalError, InvalidParamsError, InvalidRequestError, ResourceNotFoundError
from ..methods import PROTOCOL_VERSION
from .active_session import ActiveSession, logger, new_session
from .session_store import ListPlace, SessionChangedError, SessionStore, StoredSession

__all__: list[str] = []

_PAGE: Final = 50
"""The sessions of a page of the list."""
_ENDS: Final = frozenset({"completed", "failed", "cancelled"})
"""The statuses with which a tool call ends."""


class StoredSessions:
    """The sessions of a store, and those of them that are open on a connection."""

    def __init__(
        self, store: SessionStore, *, save_seconds: float, max_sessions: int, has_turns: Callable[[str], bool]
    ) -> None:
        self.store = store
        self.active: dict[str, ActiveSession] = {}
        self._save_seconds = save_seconds
        self._max_sessions = max_sessions
        self._has_turns = has_turns

    async def new(self, cwd: str, directories: Any) -> ActiveSession:
        """Begin a session. Raises `RequestError` if too many are open, or the folder is relative."""
        self._check_room()
        if not (posixpath.isabs(cwd) or ntpath.isabs(cwd)):  # the client may have another system
            raise InvalidParamsError("Invalid params: cwd must be absolute", data={"cwd": cwd})
        stored = new_session(uuid4().hex, protocol=PROTOCOL_VERSION, cwd=cwd, directories=tuple(directories or ()))
        try:
            await self.store.create(stored)
        except Exception as error:
            raise InternalError(f"The session cannot be saved: {error}") from error
        return self._activate(stored)

    async def open(self, session_id: str, cwd: str, directories: Any) -> ActiveSession:
        """Open a session again.

        Raises `RequestError` if it is unknown, belongs to another folder, too many are open, or somebody else has
        changed it while a turn runs here: the turn would continue a conversation that it has not seen.
        """
        if (active := self.active.get(session_id)) is not None:
            await self._save_unless_changed(active)
        else:
            self._check_room()
        stored = await self.store.get(session_id)
        if stored is None or stored.protocol != PROTOCOL_VERSION:
            raise unknown(session_id)
        if normpath(stored.cwd) != normpath(cwd):
            raise InvalidParamsError("Invalid params: the session belongs to another folder", data={"cwd": stored.cwd})
        active = self.active.get(session_id)
        if active is None or active.is_behind(stored):
            if active is not None and self._has_turns(session_id):
                raise InternalError("The session was changed by somebody else: load it again after the turn")
            active = self._activate(stored)
        active.move_to(tuple(directories or ()))
        return active

    def get(self, session_id: str) -> ActiveSession:
        """A session that is open. Raises `RequestError` for any other."""
        if (active := self.active.get(session_id)) is None:
            raise unknown(session_id)
        return active

    async def page(self, cwd: Any, cursor: Any) -> tuple[list[StoredSession], str | None]:
        """A page of the list, and the cursor of the next one. Raises `RequestError` for an invalid cursor."""
        try:
            after = ListPlace.from_cursor(cursor) if isinstance(cursor, str) else None
        except ValueError:
            raise InvalidParamsError("Invalid params: the cursor is not one of this agent") from None
        folder = cwd if isinstance(cwd, str) else None
        found = await self.store.page(PROTOCOL_VERSION, cwd=folder, after=after, count=_PAGE + 1)
        page = [*found[:_PAGE]]
        return page, page[-1].place.to_cursor() if len(found) > _PAGE else None

    async def save(self, session_id: str) -> None:
        """Save a session, if it is open. Raises `RequestError` if that fails; then it is tried again later."""
        if (active := self.active.get(session_id)) is not None:
            await active.save()

    def forget(self, session_id: str) -> None:
        """Forget that a session is open."""
        self.active.pop(session_id, None)

    async def delete(self, session_id: str) -> None:
        """Delete a session; what was not saved is lost with it."""
        if (active := self.active.pop(session_id, None)) is not None:
            active.discard()
        await self.store.delete(session_id)

    async def save_all(self) -> None:
        """Save all that are open. Failures are logged."""
        await asyncio.gather(*(active.save() for active in self.active.values()), return_exceptions=True)

    def _check_room(self) -> None:
        if len(self.active) >= self._max_sessions:
            raise InvalidRequestError(f"{self._max_sessions} sessions are open: close some of them")

    def _activate(self, stored: StoredSession) -> ActiveSession:
        active = self.active[stored.id] = ActiveSession(self.store, stored, save_seconds=self._save_seconds)
        return active

    async def _save_unless_changed(self, active: ActiveSession) -> None:
        """Save a session. If another writer has changed it and no turn runs, drop what cannot be added."""
        try:
            await active.save()
        except InternalError as error:
            if not isinstance(error.__cause__, SessionChangedError) or self._has_turns(active.id):
                raise
            active.discard()


def unknown(session_id: str) -> ResourceNotFoundError:
    """The error for a session that is not there, or not open."""
    return ResourceNotFoundError("Session not found", data={"sessionId": session_id})


async def replay(client: RemoteClient, active: ActiveSession, *, end: str | None) -> None:
    """Send all updates of a session again, as they were; then, with `end`, this status for unfinished tool calls."""
    unfinished: dict[str, None] = {}
    async for update in active.updates():
        await _send(client, active, update)
        if isinstance(call := update.get("toolCallId"), str) and isinstance(update.get("status", "pending"), str):
            if update.get("status", "pending") in _ENDS:
                unfinished.pop(call, None)
            elif "status" in update or update.get("sessionUpdate") == "tool_call":
                unfinished[call] = None
    for call in unfinished if end else ():
        await _send(client, active, {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": end})


async def _send(client: RemoteClient, active: ActiveSession, update: dict[str, Any]) -> None:
    try:  # as it was written, not decoded: the schema may have been another one
        await client.ext_notification("session/update", {"sessionId": active.id, "update": update})
    except TypeError as error:
        logger.warning("an entry of the session %r cannot be sent, and is left out: %s", active.id, error)


class RecordingClient(RemoteClient):
    """A stub that calls `record` with the params of each `session/update` before it sends them."""

    def __init__(self, client: RemoteClient, record: Callable[[Any], Awaitable[None]]) -> None:
        vars(self).update(vars(client))
        self._record = record

    async def session_update(self, params: Any) -> None:
        """Record an update, and send it."""
        if (check := getattr(self._peer, "check_loop", None)) is not None:
            check()  # what is refused in another event loop must not be recorded
        await self._record(params)
        await super().session_update(params)
