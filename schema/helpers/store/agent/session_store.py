"""The protocol of session stores. `SqliteStore` implements it; another class can do so for another database."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Final, Protocol

from .._base import UNSET
from ..types import SessionInfo

__all__ = ["ListPlace", "SessionChangedError", "SessionStore", "StoredSession"]

PAGE_BYTES: Final = 2**20
"""The memory of a page of sessions above which it ends, and that of the entries that are read at a time."""
_MAX_CURSOR: Final = 2**13
"""The longest cursor that is read, in characters: JSON takes much more memory than its text."""


@dataclass(frozen=True, kw_only=True)
class StoredSession:
    """A session as a store has it, without its entries.

    `entries` counts these. `updated_at` is a time in UTC, such as `2026-01-31T12:00:00.000000Z`; its text has always
    the same length, so that it sorts by time. `data` is text that is the agent's alone, such as the history of its
    model.
    """

    id: str
    protocol: int
    cwd: str
    updated_at: str
    directories: tuple[str, ...] = ()
    title: str | None = None
    data: str = ""
    entries: int = 0

    @property
    def place(self) -> ListPlace:
        """The place of the session in the list of sessions."""
        return ListPlace(self.updated_at, self.id)

    def to_info(self) -> SessionInfo:
        """The entry for the list of sessions."""
        return SessionInfo(
            session_id=self.id,
            cwd=self.cwd,
            additional_directories=[*self.directories] if self.directories else UNSET,
            title=UNSET if self.title is None else self.title,
            updated_at=self.updated_at,
        )


@dataclass(frozen=True)
class ListPlace:
    """A place in the list of sessions, which begins with the latest `updated_at`; then the greater id comes first."""

    updated_at: str
    id: str

    def to_cursor(self) -> str:
        """The text of a cursor."""
        return json.dumps([self.updated_at, self.id])

    @classmethod
    def from_cursor(cls, cursor: str) -> ListPlace:
        """The place that a cursor stands for. Raises `ValueError` for any other text."""
        if len(cursor) > _MAX_CURSOR:
            raise ValueError("a cursor is short")
        try:
            found = json.loads(cursor)
        except RecursionError:
            found = None
        if not (isinstance(found, list) and [type(part) for part in found] == [str, str]):  # pyright: ignore
            raise ValueError("a cursor has two strings")
        return cls(*found)  # pyright: ignore


class SessionChangedError(Exception):
    """Another writer has added to the session, or deleted it."""


class SessionStore(Protocol):
    """Keeps sessions: the attributes of each, and its entries, which are texts in an order.

    Each method is one transaction: it has done all or nothing, and when it returns, killing the process loses nothing.
    Several processes may use a store. `check_store` checks all that.

    An entry may have 32 MiB. A store may also have `async def entries_within(self, session_id, start, count,
    max_bytes)`: as `entries`, but it ends with the entry that exceeds so many bytes. Without it, loading a session
    takes the memory of 200 entries, whatever their size.

    Its `save` may also take the keyword `before`, a session as it was read, and then raises `SessionChangedError`
    unless all attributes of the session in the store are as there. Without it, a session is read before each save, and
    what another process changes between the two is lost.
    """

    async def create(self, session: StoredSession) -> None:
        """Add a session without entries. Raises `SessionChangedError` if there is one with this id."""
        ...

    async def get(self, session_id: str) -> StoredSession | None:
        """The session with this id; None if there is none."""
        ...

    async def save(self, session: StoredSession, entries: Sequence[str]) -> None:
        """Write all of `session` but its id, and append entries.

        `session.entries` counts those before. Raises `SessionChangedError` if the store has another number of them, or
        no such session.
        """
        ...

    async def entries(self, session_id: str, start: int, count: int) -> Sequence[str]:
        """Up to `count` entries in their order, from number `start` on, counted from 0; none of an unknown session."""
        ...

    async def page(
        self, protocol: int, *, cwd: str | None, after: ListPlace | None, count: int
    ) -> Sequence[StoredSession]:
        """Up to `count` sessions of a version of the protocol, in the order of `ListPlace`, and their `data` left out.

        Only those with entries; if they are given, only those with exactly this `cwd`, and those after a place. It may
        end with the session that exceeds 1 MiB of memory.
        """
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session and its entries. Nothing happens if there is none."""
        ...


def comparing(store: SessionStore) -> Callable[..., Awaitable[None]] | None:
    """The `save` of a store, if it takes `before`."""
    return store.save if "before" in signature(store.save).parameters else None


async def save_over(store: SessionStore, before: StoredSession, session: StoredSession, entries: Sequence[str]) -> bool:
    """Save a session, if the store has it as it was `before`; returns false, and saves nothing, if it has not."""
    try:
        if (compare_and_save := comparing(store)) is not None:
            await compare_and_save(session, entries, before=before)
            return True
        if await store.get(before.id) != before:
            return False
        await store.save(session, entries)
    except SessionChangedError:
        return False
    return True
