"""A session that is open on a connection: it records updates, and saves them to the store."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

from ..errors import InternalError
from ..message import MessageTooLarge
from .session_data import SessionData
from .session_store import PAGE_BYTES, SessionChangedError, SessionStore, StoredSession, save_over

__all__ = ["ActiveSession"]

_MAX_UNSAVED: Final = 2**20
"""The most characters of entries that wait in memory; more are recorded only after a save."""
_MAX_TITLE: Final = 1_000
_TITLE: Final = 80
"""The characters of a title that is taken from a prompt."""
_MAX_PIECE: Final = 2**16
"""The most characters of pieces that become one: what is joined must not be too large to be sent."""
_PAGE: Final = 200
"""The entries that are read from the store at a time."""
_MAX_TRIES: Final = 100
"""How often another writer may be faster, before a save fails."""

logger: Final = logging.getLogger("acp")


class ActiveSession:
    """A session that is open. What it records is saved after `save_seconds`, and when `save` is called.

    The attributes `title` and `data` may be set, also between turns. `data` is JSON that is the agent's alone, such as
    the history of its model. It is one object as long as the session is open: change it as you like, and what it is at
    a save is kept. Objects that JSON has not, and keys that are no str, raise `TypeError` where they are set; where
    they come in later, a save fails, and says what it is.
    """

    def __init__(
        self,
        store: SessionStore,
        stored: StoredSession,
        *,
        save_seconds: float,
        max_bytes: int = 2**25,
        is_prompted: bool = True,
        on_news: Callable[[ActiveSession], None] | None = None,
    ) -> None:
        self._store = store
        self._stored = stored  # as it was in the store when it was last read or saved
        self._title = stored.title
        self._directories = stored.directories
        self._has_moved = False  # since the last save
        self.is_prompted = is_prompted
        """Until the first prompt, updates wait in memory, up to 1 MiB, so that the session is not listed."""
        self._save_seconds = save_seconds
        self._data = SessionData(stored.data)
        self._on_news = on_news
        self._unsaved = _Entries(max_bytes)
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None
        self._is_asked = False  # since the last save has begun

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._stored.id

    @property
    def cwd(self) -> str:
        """The folder of the session."""
        return self._stored.cwd

    @property
    def directories(self) -> tuple[str, ...]:
        """The roots besides `cwd`."""
        return self._directories

    @property
    def title(self) -> str | None:
        """The title that lists of sessions show, up to 1,000 characters of it."""
        return self._title

    @title.setter
    def title(self, title: str | None) -> None:
        self._title = None if title is None else _cut(title, _MAX_TITLE)
        self._save_soon()

    @property
    def data(self) -> Any:
        """The data that the agent has set; None at first. What you change in it is saved, too."""
        self._save_later()
        return self._data.value

    @data.setter
    def data(self, data: Any) -> None:
        self._data.value = data
        self._save_later()

    def _save_later(self) -> None:
        with suppress(RuntimeError):  # a thread has no event loop: the end of the turn saves what it changes
            self._save_soon()

    def move_to(self, directories: tuple[str, ...]) -> None:
        """Change the roots besides `cwd`: those that this client has named. The store has the last ones of any."""
        if directories != self.directories:
            self._directories, self._has_moved = directories, True
            self._save_soon()

    def name_after(self, prompt: str) -> bool:
        """Take the first line of a prompt for the title, if there is none; returns true if it has changed."""
        line = next(iter(prompt.strip().splitlines()), "").strip()
        if self.title is not None or not line:
            return False
        self.title = _cut(line, _TITLE)
        return True

    def is_behind(self, stored: StoredSession) -> bool:
        """True if another process has added entries, and nothing is being saved here."""
        return not self._is_saving and self._stored.entries != stored.entries

    def has_other_data(self, stored: StoredSession) -> bool:
        """True if another process has changed the data alone, and nothing is being saved here."""
        return not self._is_saving and self._stored.data != stored.data

    @property
    def has_unsaved(self) -> bool:
        """True if updates wait to be saved."""
        return self._has_entries

    @property
    def _is_saving(self) -> bool:
        return self._has_entries or self._saving is not None

    @property
    def _has_entries(self) -> bool:
        """True if updates are to be saved now."""
        return bool(self._unsaved.size) and (self.is_prompted or self._unsaved.size > _MAX_UNSAVED)

    # --- Recording -----------------------------------------------------------------------------------------------

    async def record(self, *updates: dict[str, Any]) -> None:
        """Keep updates, all or none, to be saved soon, but not before the first prompt.

        If too many are kept, save them first, as `save` does.
        Raises `MessageTooLarge` for an update that could not be sent when the session is loaded.
        """
        if self._unsaved.size > _MAX_UNSAVED:
            await self.save()
        self._unsaved.add(updates)
        self.is_prompted = self.is_prompted or any(map(_is_prompt, updates))
        self._save_soon()

    async def save(self) -> None:
        """Save all that was recorded before. Raises `InternalError` if that fails; it is kept, to be saved later."""
        if self._saving is not None:  # it has only a part, and may fail
            with suppress(Exception):
                await asyncio.shield(self._saving)
        try:
            if self._is_saving or self._is_changed or self._data.is_open:  # another task may save the rest
                await asyncio.shield(self._start_saving())  # the store goes on even if this task is cancelled
        except Exception as error:
            raise not_saved(error) from error

    async def refresh(self) -> None:
        """Merge what another process has changed since this was last saved or read, such as a mode.

        Raises `InternalError` if that has gone on with the session, or deleted it.
        """
        try:
            while True:
                if self._saving is not None:
                    with suppress(Exception):
                        await asyncio.shield(self._saving)
                before, theirs = self._stored, await self._store.get(self.id)
                if self._stored is before and self._saving is None:  # else it may be older than what was saved
                    break
            if theirs is None or theirs.entries != before.entries:
                raise SessionChangedError(f"the session {self.id!r} was changed or deleted by somebody else")
        except Exception as error:
            raise not_saved(error) from error
        if theirs != before:
            self._take(theirs)

    def is_opened(self) -> None:
        """Count the data as it is now for what this agent fills in: another writer's choice replaces it."""
        with suppress(Exception):  # a save says what is no JSON
            self._data.text()
        self._data.is_opened()

    def discard(self) -> None:
        """Drop everything that is not saved."""
        self._unsaved.take()
        self._title, self._directories, self._has_moved = self._stored.title, self._stored.directories, False
        self._data = SessionData(self._stored.data)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _save_soon(self) -> None:
        self._is_asked = True
        if self._timer is None and self._saving is None:
            self._timer = asyncio.get_running_loop().call_later(self._save_seconds, self._start_saving)

    def _start_saving(self) -> asyncio.Task[None]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._saving is None:
            self._saving = asyncio.Task(self._save())
            self._saving.add_done_callback(self._saved)
        return self._saving

    async def _save(self) -> None:
        """Save what is new. Data that is no JSON stays as it was in the store, and raises after the rest was saved."""
        failure: Exception | None = None
        self._is_asked = False
        try:
            self._data.text()
        except Exception as error:  # objects of the agent may raise any, as while a thread changes them
            failure = error
        try:
            if self._has_entries or self._is_changed:
                await self._write()
        finally:
            self._saving = None  # not by a callback: until that runs, more may be recorded
        if self._has_entries or self._is_changed or self._is_asked:
            self._save_soon()
        if failure is not None:
            raise failure

    @property
    def _is_changed(self) -> bool:
        return self._to_save() != self._stored

    def _to_save(self) -> StoredSession:
        folders = self._directories if self._has_moved else self._stored.directories
        return replace(self._stored, title=self._title, directories=folders, data=self._data.valid_text)

    async def _write(self) -> None:
        """Save what is new. What another writer has changed meanwhile, without adding entries, is merged first."""
        entries = self._unsaved.take() if self._has_entries else []
        try:
            for _ in range(_MAX_TRIES):
                if await self._has_written(entries):
                    return
                self._take(await self._read_again())
            raise SessionChangedError(f"the session {self.id!r} is changed all the time")
        except BaseException:
            self._unsaved.put_back(entries)
            raise

    async def _has_written(self, entries: list[str]) -> bool:
        """Save a session. Returns false if the store has another one than was read."""
        before, session = self._stored, self._to_save()
        if entries:
            session = replace(session, updated_at=_now())
        if not await save_over(self._store, before, session, entries):
            return False
        self._stored = replace(session, entries=before.entries + len(entries))
        self._has_moved = self._has_moved and self._directories != session.directories
        self._data.is_saved(session.data)
        return True

    async def _read_again(self) -> StoredSession:
        """The session as another writer has left it. Raises `SessionChangedError` if that has gone on with it."""
        theirs = await self._store.get(self.id)
        if theirs is None or theirs.entries != self._stored.entries:
            raise SessionChangedError(f"the session {self.id!r} was changed or deleted by somebody else")
        return theirs

    def _take(self, theirs: StoredSession) -> None:
        """Merge what another writer has saved: what nobody has changed here is as it is there."""
        if theirs == self._stored:  # it was another one meanwhile
            return
        has_title = theirs.title != self._stored.title and self._title == self._stored.title
        if has_title:
            self._title = theirs.title
        has_data = theirs.data != self._stored.data and self._data.take(theirs.data)
        self._stored = theirs
        if (has_title or has_data) and self._on_news is not None:
            self._on_news(self)

    def _saved(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the session %r cannot be saved: %s", self.id, error, exc_info=error)

    # --- Reading -------------------------------------------------------------------------------------------------

    async def updates(self) -> AsyncGenerator[dict[str, Any], None]:
        """All updates so far in their order, as they were written to the wire. Raises what the store raises."""
        await self.save()
        start, end = 0, self._stored.entries
        waiting = [] if self.is_prompted else self._unsaved.texts()
        while start < end and (page := await self._page(start, min(_PAGE, end - start))):
            for text in page:
                if (update := self._parsed(text)) is not None:
                    yield update
            start += len(page)
        for update in filter(None, map(self._parsed, waiting)):
            yield update

    async def _page(self, start: int, count: int) -> Sequence[str]:
        within: Callable[..., Awaitable[Sequence[str]]] | None = getattr(self._store, "entries_within", None)
        if within is None:  # stores need not have it
            return await self._store.entries(self.id, start, count)
        return await within(self.id, start, count, PAGE_BYTES)

    def _parsed(self, text: str) -> dict[str, Any] | None:
        found: Any = None
        with suppress(ValueError):
            found = json.loads(text)
        if found.__class__ is dict:  # `isinstance` would tell type checkers less
            update: dict[str, Any] = found
            return update
        logger.warning("an entry of the session %r is no update, and is left out: %.80r", self.id, text)
        return None


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_session(session_id: str, *, protocol: int, cwd: str, directories: tuple[str, ...]) -> StoredSession:
    """A session that begins now."""
    return StoredSession(id=session_id, protocol=protocol, cwd=cwd, updated_at=_now(), directories=directories)


def not_saved(error: Exception) -> InternalError:
    """The error for the client. The log has the text of `error`, which may name files of this machine."""
    is_changed = isinstance(error, SessionChangedError)
    why = ": it was changed or deleted by somebody else" if is_changed else ""
    return InternalError(f"the session cannot be saved{why}")


def _cut(title: str, most: int) -> str:
    return title if len(title) <= most else f"{title[: most - 1]}…"


class _Entries:
    """Updates as texts of JSON, in their order. Pieces of text that follow one another in a message become one."""

    def __init__(self, max_bytes: int) -> None:
        self.size = 0
        """The number of characters, or a few more."""
        self._max_bytes = max_bytes
        self._texts: list[str] = []
        self._shape: dict[str, Any] | None = None  # of the last update, if it is a piece: without its text
        self._pieces: list[str] = []  # the texts of all that have this shape
        self._piece_size = 0

    def add(self, updates: Iterable[dict[str, Any]]) -> None:
        """Append updates. Raises `TypeError` and `ValueError` for one that is no JSON, and `MessageTooLarge`."""
        for shape, text in [self._read(update) for update in updates]:
            if shape is None:
                self._end_piece()
                self._texts.append(text)
            else:
                self._add_piece(shape, text)
            self.size += len(text)

    def take(self) -> list[str]:
        """All texts; none are left."""
        self._end_piece()
        texts, self._texts, self.size = self._texts, [], 0
        return texts

    def texts(self) -> list[str]:
        """All texts, which stay."""
        self._end_piece()
        return [*self._texts]

    def put_back(self, texts: list[str]) -> None:
        """Insert texts that were taken at the start."""
        self._texts[:0] = texts
        self.size += sum(map(len, texts))

    def _read(self, update: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
        """The shape and the text of a piece; for all other updates None, and the text of the entry."""
        shape, text = _split(update)
        if shape is not None:
            return shape, text
        text = _entry(update)
        if 4 * len(text) > self._max_bytes and (size := len(text.encode())) > self._max_bytes:
            raise MessageTooLarge(f"an update of {size} bytes; the limit of this session is {self._max_bytes}")
        return None, text

    def _add_piece(self, shape: dict[str, Any], text: str) -> None:
        if shape != self._shape or self._piece_size > _MAX_PIECE:
            self._end_piece()
            self._shape = shape
            self.size += len(_entry(shape))
        self._pieces.append(text)
        self._piece_size += len(text)

    def _end_piece(self) -> None:
        if (shape := self._shape) is not None:
            whole = {**shape, "content": {**shape["content"], "text": "".join(self._pieces)}}
            self._texts.append(_entry(whole))
            self._shape, self._pieces, self._piece_size = None, [], 0


def _is_prompt(update: dict[str, Any]) -> bool:
    return str(update.get("sessionUpdate")).startswith("user_")


def _entry(update: dict[str, Any]) -> str:
    """The text of an update: no larger than what came, so without escapes, but where half a surrogate needs them."""
    text = json.dumps(update, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(update, separators=(",", ":"), allow_nan=False)
    return text


def _split(update: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """A short piece of a message of the agent without its text, and the text; None for all others."""
    content: Any = update.get("content")
    text: Any = content.get("text") if content.__class__ is dict else None
    kind = str(update.get("sessionUpdate"))
    is_piece = isinstance(text, str) and kind.startswith("agent_") and kind.endswith("_chunk")
    if not is_piece or len(text) > _MAX_PIECE or "_meta" in update or "_meta" in content:
        return None, ""
    return {**update, "content": {**content, "text": ""}}, text
