"""The sessions of a connection that are kept in a store, and the stub that records what is sent in them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from os.path import normpath
from typing import Any, Final
from uuid import uuid4

from ..agent import RemoteClient
from ..errors import InternalError, InvalidParamsError, InvalidRequestError
from ..message import MessageTooLarge
from ..methods import PROTOCOL_VERSION
from ..options import ConnectionOptions
from .active_session import ActiveSession, logger, new_session, not_saved
from .memory import MAX_ID, memory_of, shortened
from .session_checks import check_cwd, session_not_found
from .session_store import PAGE_BYTES, ListPlace, SessionChangedError, SessionStore, StoredSession

__all__: list[str] = []

_PAGE: Final = 50
"""The sessions of a page of the list."""
_MAX_FOLDERS: Final = 2**15
"""The most memory of the folders of a session, which are kept while it is open, and are in each list of sessions."""
_ENVELOPE: Final = 2**10
"""The most bytes of a message around an update."""
_ENDS: Final = frozenset({"completed", "failed", "cancelled"})
"""The statuses with which a tool call ends."""
_IS_KNOWN: Final = ContextVar("is_known", default=False)
"""True in a task that tells the client what the store has already: updates are not recorded."""


class StoredSessions:
    """The sessions of a store, and those of them that are open on a connection."""

    def __init__(
        self,
        store: SessionStore,
        client: RecordingClient,
        *,
        save_seconds: float,
        max_sessions: int,
        has_turns: Callable[[str], bool],
        on_news: Callable[[ActiveSession], Awaitable[None]],
    ) -> None:
        self.store = store
        self.active: dict[str, ActiveSession] = {}
        self._max_bytes = client.max_message_bytes - _ENVELOPE
        self._save_seconds = save_seconds
        self._max_sessions = max_sessions
        self._has_turns = has_turns
        self._on_news = on_news
        self._telling = set[asyncio.Task[None]]()

    async def new(self, cwd: str, directories: Any) -> ActiveSession:
        """Begin a session. Raises `RequestError` if too many are open, or the folder is relative or too long."""
        self._check_room()
        _check_folders(cwd, directories)
        check_cwd(cwd)
        stored = new_session(uuid4().hex, protocol=PROTOCOL_VERSION, cwd=cwd, directories=tuple(directories or ()))
        try:
            await self.store.create(stored)
        except Exception as error:
            logger.error("the session %r cannot be saved: %s", stored.id, error, exc_info=error)
            raise not_saved(error) from error
        return self._activate(stored)

    async def open(self, session_id: str, cwd: str, directories: Any) -> ActiveSession:
        """Open a session again.

        Raises `RequestError` if it is unknown, belongs to another folder, too many are open, or somebody else has
        changed it while a turn runs here: the turn would continue a conversation that it has not seen.
        """
        _check_folders(cwd, directories)
        check_cwd(cwd)
        if (active := self.active.get(session_id)) is not None:
            await self._save_unless_changed(active)
        else:
            self._check_room()
        stored = await self.store.get(session_id)
        if stored is None or stored.protocol != PROTOCOL_VERSION:
            raise session_not_found(session_id)
        if normpath(stored.cwd) != normpath(cwd):
            folder = shortened(stored.cwd)
            raise InvalidParamsError("the session belongs to another folder", data={"cwd": folder})
        active = self.active.get(session_id)
        if active is None or active.is_behind(stored):
            if active is not None and self._has_turns(session_id):
                raise InternalError("the session was changed by somebody else: load it again after the turn")
            active = self._activate(stored)
        else:
            await active.refresh()
        active.move_to(tuple(directories or ()))
        return active

    def get(self, session_id: str) -> ActiveSession:
        """A session that is open. Raises `RequestError` for any other."""
        if (active := self.active.get(session_id)) is None:
            raise session_not_found(session_id)
        return active

    async def page(self, cwd: Any, cursor: Any) -> tuple[list[StoredSession], str | None]:
        """A page of the list, and the cursor of the next one. Raises `RequestError` for an invalid cursor."""
        try:
            after = ListPlace.from_cursor(cursor) if isinstance(cursor, str) else None
        except ValueError:
            raise InvalidParamsError("the cursor is not one of this agent") from None
        folder = cwd if isinstance(cwd, str) else None
        found = await self.store.page(PROTOCOL_VERSION, cwd=folder, after=after, count=_PAGE + 1)
        page, size = list[StoredSession](), 0
        while len(page) < min(len(found), _PAGE) and size <= PAGE_BYTES:
            page.append(found[len(page)])
            size += memory_of(page[-1])
        has_more = len(page) < len(found) or size > PAGE_BYTES  # a store may have returned less than there is
        return [*filter(_can_list, page)], page[-1].place.to_cursor() if has_more else None

    async def save(self, session_id: str) -> None:
        """Save a session, if it is open. Raises `RequestError` if that fails; then it is tried again later."""
        if (active := self.active.get(session_id)) is not None:
            await active.save()

    async def close(self, session_id: str) -> None:
        """Save a session, if it is open, or delete it, if nobody has ever prompted it. Raises `RequestError`."""
        if (active := self.active.get(session_id)) is not None:
            await active.save()
            if not (active.is_prompted or self._has_turns(session_id)):
                stored = await self.store.get(session_id)
                if stored is not None and not stored.entries:  # nobody else has prompted it
                    await self.delete(session_id)

    def forget(self, session_id: str) -> None:
        """Forget that a session is open."""
        self.active.pop(session_id, None)

    def forget_idle(self, session_id: str) -> None:
        """Forget that a session is open, unless a turn runs in it."""
        if not self._has_turns(session_id):
            self.forget(session_id)

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
        active = self.active[stored.id] = ActiveSession(
            self.store,
            stored,
            save_seconds=self._save_seconds,
            max_bytes=self._max_bytes,
            is_prompted=stored.entries > 0,
            on_news=self._tell,
        )
        return active

    def _tell(self, active: ActiveSession) -> None:
        """Tell the client, in a task of its own, what another process has changed; the session may be being saved."""
        if self.active.get(active.id) is active:
            task = asyncio.get_running_loop().create_task(self._told(active))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _told(self, active: ActiveSession) -> None:
        _IS_KNOWN.set(True)
        try:
            await self._on_news(active)
        except Exception:
            logger.exception("the client was not told what has changed in the session %r", active.id)

    async def _save_unless_changed(self, active: ActiveSession) -> None:
        """Save a session. If another writer has changed it and no turn runs, drop what cannot be added."""
        try:
            await active.save()
        except InternalError as error:
            if not isinstance(error.__cause__, SessionChangedError) or self._has_turns(active.id):
                raise
            active.discard()


def too_large(error: MessageTooLarge) -> InvalidParamsError:
    """The error for a prompt that could not be sent when its session is loaded."""
    return InvalidParamsError(f"the prompt is too large to be kept: {error}")


def _can_list(session: StoredSession) -> bool:
    can = len(session.id) <= MAX_ID and memory_of(session) <= PAGE_BYTES
    if not can:
        logger.warning("the session %.80r is not listed: its texts are too long", session.id)
    return can


def _check_folders(cwd: str, directories: Any) -> None:
    size = memory_of([cwd, *(directories or ())])
    if size > _MAX_FOLDERS:
        limit = f"{_MAX_FOLDERS} bytes of memory, and these take {size}"
        raise InvalidParamsError(f"cwd and additionalDirectories may take {limit}")


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
    except (TypeError, MessageTooLarge) as error:
        logger.warning("an entry of the session %r cannot be sent, and is left out: %s", active.id, error)


class RecordingClient(RemoteClient):
    """A stub that calls `record` with the params of each `session/update` before it sends them."""

    def __init__(self, client: RemoteClient, record: Callable[[Any], Awaitable[None]]) -> None:
        vars(self).update(vars(client))
        self._record = record

    @property
    def max_message_bytes(self) -> int:
        """The largest message that can be sent."""
        options = getattr(self._peer, "options", None) or ConnectionOptions()
        limit: int = options.max_message_bytes
        return limit

    async def session_update(self, params: Any) -> None:
        """Record an update, and send it."""
        if (check := getattr(self._peer, "check_loop", None)) is not None:
            check()  # what is refused in another event loop must not be recorded
        if not _IS_KNOWN.get():
            await self._record(params)
        await super().session_update(params)
