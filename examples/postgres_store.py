"""A store of sessions in PostgreSQL, for agents of several machines. It needs `asyncpg`.

    acpgen build --role agent --with store --with testing --out acp_sessions

Each replica of an agent uses it on the same database:

    class MyAgent(StoredAgent):
        store = PostgresStore("postgresql://agent@db.example/sessions")
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped]
from acp_sessions.helpers import ListPlace, SessionChangedError, StoredSession

TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, protocol INTEGER NOT NULL, cwd TEXT NOT NULL, updated_at TEXT COLLATE "C" NOT NULL,
    directories TEXT[] NOT NULL, title TEXT, data TEXT NOT NULL, entries INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS listed ON sessions (protocol, updated_at, id COLLATE "C");
CREATE TABLE IF NOT EXISTS entries (
    session_id TEXT REFERENCES sessions ON DELETE CASCADE, number INTEGER, text TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
);
"""
UPDATE = """
UPDATE sessions SET protocol = $3, cwd = $4, updated_at = $5, directories = $6, title = $7, data = $8, entries = $9
WHERE id = $1 AND entries = $2
"""
IS_AS_BEFORE = (
    "AND protocol = $10 AND cwd = $11 AND updated_at = $12 AND directories = $13 AND title IS NOT DISTINCT FROM $14 "
    "AND data = $15"
)
ENTRIES = """
SELECT text FROM (
    SELECT number, text, sum(octet_length(text)) OVER (ORDER BY number) - octet_length(text) AS before
    FROM entries WHERE session_id = $1 AND number >= $2 AND number < $2 + $3
) AS page WHERE before <= $4 ORDER BY number
"""
LISTED = """
SELECT id, protocol, cwd, updated_at, directories, title, '' AS data, entries FROM sessions
WHERE protocol = $1 AND entries > 0 AND ($2::TEXT IS NULL OR cwd = $2)
AND ($3::TEXT IS NULL OR (updated_at, id COLLATE "C") < ($3, $4)) ORDER BY updated_at DESC, id COLLATE "C" DESC LIMIT $5
"""
LOCK = 7_205_759
"""Held while the tables are made, for replicas may start at the same time."""


class PostgresStore:
    """A `SessionStore` in a database; `check_store` is its test."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: asyncio.Task[Any] | None = None

    async def create(self, session: StoredSession) -> None:
        """Add a session without entries."""
        row = [*_row(session), 0]
        async with self._transaction() as db:
            try:
                await db.execute("INSERT INTO sessions VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", session.id, *row)
            except asyncpg.UniqueViolationError:
                raise SessionChangedError(f"there is a session with the id {session.id!r}") from None

    async def get(self, session_id: str) -> StoredSession | None:
        """The session with this id; None if there is none."""
        async with self._transaction() as db:
            row = await db.fetchrow("SELECT * FROM sessions WHERE id = $1", session_id)
        return None if row is None else _session(row)

    async def save(
        self, session: StoredSession, entries: Sequence[str], *, before: StoredSession | None = None
    ) -> None:
        """Write all of `session` but its id, and append entries; with `before`, only if all of it is as there."""
        count = session.entries
        row = [*_row(session), count + len(entries)]
        query, expected = (UPDATE, []) if before is None else (UPDATE + IS_AS_BEFORE, _row(before))
        async with self._transaction() as db:
            changed = await db.execute(query, session.id, count, *row, *expected)
            if changed != "UPDATE 1":
                raise SessionChangedError(f"the session {session.id!r} was changed or deleted by somebody else")
            numbered = [(session.id, number, text) for number, text in enumerate(entries, count)]
            await db.copy_records_to_table("entries", records=numbered)

    async def entries(self, session_id: str, start: int, count: int) -> Sequence[str]:
        """Up to `count` entries in their order, from number `start` on."""
        return await self.entries_within(session_id, start, count, sys.maxsize)

    async def entries_within(self, session_id: str, start: int, count: int, max_bytes: int) -> Sequence[str]:
        """Up to `count` entries in their order, up to the one that exceeds so many bytes: entries may be large."""
        async with self._transaction() as db:
            return [row["text"] for row in await db.fetch(ENTRIES, session_id, start, count, max_bytes)]

    async def page(
        self, protocol: int, *, cwd: str | None, after: ListPlace | None, count: int
    ) -> Sequence[StoredSession]:
        """Up to `count` sessions that have entries, without their `data`."""
        place = (None, None) if after is None else (after.updated_at, after.id)
        async with self._transaction() as db:
            return [_session(row) for row in await db.fetch(LISTED, protocol, cwd, *place, count)]

    async def delete(self, session_id: str) -> None:
        """Delete a session and its entries."""
        async with self._transaction() as db:
            await db.execute("DELETE FROM sessions WHERE id = $1", session_id)

    async def close(self) -> None:
        """Close the connections to the database."""
        if self._pool is not None:
            await (await self._pool).close()
            self._pool = None

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[Any, None]:
        if self._pool is None or (self._pool.done() and self._pool.exception() is not None):
            self._pool = asyncio.ensure_future(_connect(self._url))
        pool = await asyncio.shield(self._pool)
        async with pool.acquire() as db, db.transaction():
            yield db


async def _connect(url: str) -> Any:
    library: Any = asyncpg
    pool = await library.create_pool(url, min_size=1)
    async with pool.acquire() as db, db.transaction():
        await db.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        await db.execute(TABLES)
    return pool


def _row(session: StoredSession) -> list[Any]:
    """The values of a row between its id and the count of entries."""
    known = [session.protocol, session.cwd, session.updated_at, [*session.directories]]
    return [*known, session.title, session.data]


def _session(row: Any) -> StoredSession:
    known: dict[str, Any] = {**row, "directories": tuple(row["directories"])}
    return StoredSession(**known)
