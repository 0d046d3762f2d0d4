"""A session that is open on a connection: it records updates, and saves them to the store."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Final

from ..errors import InternalError
from .session_store import SessionStore, StoredSession

__all__ = ["ActiveSession"]

_MAX_UNSAVED: Final = 2**20
"""The most characters of entries that wait in memory; more are recorded only after a save."""
_MAX_TITLE: Final = 80
_PAGE: Final = 200
"""The entries that are read from the store at a time."""

logger: Final = logging.getLogger("acp")


class ActiveSession:
    """A session that is open. What it records is saved after `save_seconds`, and when `save` is called.

    The attributes `title` and `data` may be set, also between turns. `data` is JSON that is the agent's alone, such as
    the history of its model: it is copied when it is set.
    """

    def __init__(self, store: SessionStore, stored: StoredSession, *, save_seconds: float) -> None:
        self._store = store
        self._stored = stored  # as it is in the store, but for what `_is_changed` says
        self._is_changed = False
        self._save_seconds = save_seconds
        self._unsaved = _Entries()
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None

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
        return self._stored.directories

    @property
    def title(self) -> str | None:
        """The title that lists of sessions show."""
        return self._stored.title

    @title.setter
    def title(self, title: str | None) -> None:
        self._change(replace(self._stored, title=title))

    @property
    def data(self) -> Any:
        """The data that the agent has set; None at first."""
        return json.loads(self._stored.data) if self._stored.data else None

    @data.setter
    def data(self, data: Any) -> None:
        self._change(replace(self._stored, data=json.dumps(data)))

    def move_to(self, directories: tuple[str, ...]) -> None:
        """Change the roots besides `cwd`."""
        if directories != self.directories:
            self._change(replace(self._stored, directories=directories))

    def name_after(self, prompt: str) -> bool:
        """Take the first line of a prompt for the title, if there is none; returns true if it has changed."""
        line = next(iter(prompt.strip().splitlines()), "").strip()
        if self.title is not None or not line:
            return False
        self.title = line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1]}…"
        return True

    def is_behind(self, stored: StoredSession) -> bool:
        """True if another process has added entries, and nothing is being saved here."""
        is_saving = self._unsaved.size or self._saving is not None
        return not is_saving and self._stored.entries != stored.entries

    # --- Recording -----------------------------------------------------------------------------------------------

    async def record(self, update: dict[str, Any]) -> None:
        """Keep an update, to be saved soon. If too many are kept, save them first, as `save` does, or refuse it."""
        if self._unsaved.size > _MAX_UNSAVED:
            await self.save()
        self._unsaved.add(update)
        self._save_soon()

    async def save(self) -> None:
        """Save all that was recorded before. Raises `InternalError` if that fails; it is kept, to be saved later."""
        if self._saving is not None:  # it has only a part, and may fail
            with suppress(Exception):
                await asyncio.shield(self._saving)
        try:
            if self._saving is not None or self._unsaved.size or self._is_changed:  # another task may save the rest
                await asyncio.shield(self._start_saving())  # the store goes on even if this task is cancelled
        except Exception as error:
            raise InternalError(f"the session cannot be saved: {error}") from error

    def discard(self) -> None:
        """Drop everything that is not saved."""
        self._unsaved.take()
        self._is_changed = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _save_soon(self) -> None:
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
        entries, stored = self._unsaved.take(), self._stored
        if entries:
            stored = replace(stored, updated_at=_now())
        self._is_changed = False
        try:
            await self._store.save(stored, entries)
        except BaseException:
            self._unsaved.put_back(entries)
            self._is_changed = True
            raise
        finally:
            self._saving = None  # not by a callback: until that runs, more may be recorded
        count = stored.entries + len(entries)
        self._stored = replace(self._stored, updated_at=stored.updated_at, entries=count)
        if self._unsaved.size or self._is_changed:
            self._save_soon()

    def _saved(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("the session %r cannot be saved: %s", self.id, error)

    def _change(self, stored: StoredSession) -> None:
        self._stored = stored
        self._is_changed = True
        self._save_soon()

    # --- Reading -------------------------------------------------------------------------------------------------

    async def updates(self) -> AsyncGenerator[dict[str, Any], None]:
        """All updates so far in their order, as they were written to the wire. Raises what the store raises."""
        await self.save()
        start, end = 0, self._stored.entries
        while start < end and (page := await self._store.entries(self.id, start, min(_PAGE, end - start))):
            for text in page:
                if (update := self._parsed(text)) is not None:
                    yield update
            start += len(page)

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


class _Entries:
    """Updates as texts of JSON, in their order. Pieces of text that follow one another in a message become one."""

    def __init__(self) -> None:
        self.size = 0
        """The number of characters, or a few more."""
        self._texts: list[str] = []
        self._shape: dict[str, Any] | None = None  # of the last update, if it is a piece: without its text
        self._pieces: list[str] = []  # the texts of all that have this shape

    def add(self, update: dict[str, Any]) -> None:
        """Append an update. Raises `TypeError` and `ValueError` for one that is no JSON."""
        shape, text = _split(update)
        if shape is None or shape != self._shape:
            entry = "" if shape else json.dumps(update, separators=(",", ":"), allow_nan=False)
            self._end_piece()
            if shape is None:
                self._texts.append(entry)
                self.size += len(entry)
                return
            self._shape = shape
            self.size += len(json.dumps(shape))
        self._pieces.append(text)
        self.size += len(text)

    def take(self) -> list[str]:
        """All texts; none are left."""
        self._end_piece()
        texts, self._texts, self.size = self._texts, [], 0
        return texts

    def put_back(self, texts: list[str]) -> None:
        """Insert texts that were taken at the start."""
        self._texts[:0] = texts
        self.size += sum(map(len, texts))

    def _end_piece(self) -> None:
        if (shape := self._shape) is not None:
            whole = {**shape, "content": {**shape["content"], "text": "".join(self._pieces)}}
            self._texts.append(json.dumps(whole, separators=(",", ":")))
            self._shape, self._pieces = None, []


def _split(update: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """A piece of a message of the agent without its text, and the text; None for others, and for one with `_meta`."""
    content: Any = update.get("content")
    text: Any = content.get("text") if content.__class__ is dict else None
    kind = str(update.get("sessionUpdate"))
    is_piece = isinstance(text, str) and kind.startswith("agent_") and kind.endswith("_chunk")
    if not is_piece or "_meta" in update or "_meta" in content:
        return None, ""
    return {**update, "content": {**content, "text": ""}}, text
