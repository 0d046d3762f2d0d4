"""Sessions in a file of SQLite, which several processes may use."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from ..decision import explains
from .memory import memory_of
from .session_store import PAGE_BYTES, ListPlace, SessionChangedError, StoredSession

__all__ = ["SqliteStore"]

T = TypeVar("T")

_BUSY_SECONDS: Final = 30.0
"""How long a transaction waits for those of other processes."""
_LAYOUT: Final = 1
"""The version of the tables, which the file keeps as `user_version`."""
_TABLES: Final = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, protocol INTEGER NOT NULL, cwd TEXT NOT NULL, updated_at TEXT NOT NULL,
    directories TEXT NOT NULL, title TEXT, data TEXT NOT NULL, entries INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX listed ON sessions (protocol, updated_at, id);
CREATE TABLE entries (
    session_id TEXT NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (session_id, number)
) WITHOUT ROWID;
"""
_MEMORY: Final = ":memory:"
"""The path of a store without a file."""
_READ: Final = "BEGIN"
"""Begins a transaction that waits for no writer."""
_INSERT: Final = "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, 0)"
_DROP_UNUSED: Final = "DELETE FROM sessions WHERE entries = 0 AND updated_at < ?"
_UNUSED_DAYS: Final = 30
"""How long a session without entries is kept: nobody can see it but a client that has it open."""
_GET: Final = "SELECT * FROM sessions WHERE id = ?"
_UPDATE: Final = (
    "UPDATE sessions SET protocol = ?, cwd = ?, updated_at = ?, directories = ?, title = ?, data = ?, entries = ? "
    "WHERE id = ? AND entries = ?"
)
_IS_AS_BEFORE: Final = (
    " AND protocol = ? AND cwd = ? AND updated_at = ? AND directories = ? AND title IS ? AND data = ?"
)
_ENTRIES: Final = "SELECT text FROM entries WHERE session_id = ? AND number >= ? ORDER BY number LIMIT ?"
_LISTED: Final = (
    "SELECT id, protocol, cwd, updated_at, directories, title, '', entries FROM sessions "
    "WHERE protocol = ? AND entries > 0"
)


class SqliteStore:
    """A `SessionStore` in one file, which only its owner may read.

    The file is opened in a thread of its own when it is first used. What a method has written survives the end of the
    process, at any time; after a loss of power, the last transactions may be missing, and the file is intact. It must
    lie on a local disk: file systems of networks do not lock reliably.

    A session that has no entries after 30 days is deleted when the first one of a later process is made.

    `SqliteStore(":memory:")` has no file, for tests: its sessions are gone with the object, and after `close`. Raises
    `ValueError` for other names that SQLite does not take for those of files.
    """

    @explains
    def __init__(self, path: str | os.PathLike[str]) -> None:
        _check_path(os.fspath(path))
        self._path = None if os.fspath(path) == _MEMORY else Path(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sessions")
        self._opened: list[sqlite3.Connection] = []  # one, or none yet
        self._is_tidy = False
        weakref.finalize(self, _end, self._opened, self._thread)

    async def create(self, session: StoredSession) -> None:
        """Add a session without entries. Raises `SessionChangedError` if there is one with this id."""

        def create(db: sqlite3.Connection) -> None:
            if not self._is_tidy:
                self._is_tidy = True
                db.execute(_DROP_UNUSED, (_days_before(session.updated_at),))
            try:
                db.execute(_INSERT, _row(session)[:-1])
            except sqlite3.IntegrityError:
                raise SessionChangedError(f"there is a session with the id {session.id!r}") from None

        await self._run(create)

    async def get(self, session_id: str) -> StoredSession | None:
        """The session with this id; None if there is none."""

        def get(db: sqlite3.Connection) -> StoredSession | None:
            row = db.execute(_GET, (_text(session_id),)).fetchone()
            return None if row is None else _session(row)

        return await self._run(get, _READ)

    async def save(
        self, session: StoredSession, entries: Sequence[str], *, before: StoredSession | None = None
    ) -> None:
        """Write all of `session` but its id, and append entries.

        Raises `SessionChangedError` if another writer has added entries; with `before`, also if any attribute of the
        session is another one than there.
        """
        count = session.entries
        key, *row, _ = _row(session)
        query, expected = (_UPDATE, []) if before is None else (_UPDATE + _IS_AS_BEFORE, [*_row(before)[1:-1]])

        def save(db: sqlite3.Connection) -> None:
            changed = db.execute(query, (*row, count + len(entries), key, count, *expected))
            if changed.rowcount != 1:
                raise SessionChangedError(f"the session {session.id!r} was changed or deleted by somebody else")
            numbered = [(key, count + at, _text(entry)) for at, entry in enumerate(entries)]
            db.executemany("INSERT INTO entries VALUES (?, ?, ?)", numbered)

        await self._run(save)

    async def entries(self, session_id: str, start: int, count: int) -> Sequence[str]:
        """Up to `count` entries in their order, from number `start` on; none of an unknown session."""
        return await self.entries_within(session_id, start, count, sys.maxsize)

    async def entries_within(self, session_id: str, start: int, count: int, max_bytes: int) -> Sequence[str]:
        """Up to `count` entries in their order, up to the one that exceeds so many bytes of memory."""

        def entries(db: sqlite3.Connection) -> list[str]:
            rows = db.execute(_ENTRIES, (_text(session_id), start, count))
            return _page((_value(text) for (text,) in rows), max_bytes)

        return await self._run(entries, _READ)

    async def page(
        self, protocol: int, *, cwd: str | None, after: ListPlace | None, count: int
    ) -> Sequence[StoredSession]:
        """Up to `count` sessions that have entries, without their `data`, of 1 MiB and the last one, in their order."""
        query, values = _LISTED, list[Any]([protocol])
        if cwd is not None:
            query, values = f"{query} AND cwd = ?", [*values, _text(cwd)]
        if after is not None:
            query, values = f"{query} AND (updated_at, id) < (?, ?)", [
                *values,
                _text(after.updated_at),
                _text(after.id),
            ]
        query += " ORDER BY updated_at DESC, id DESC LIMIT ?"

        def page(db: sqlite3.Connection) -> list[StoredSession]:
            return _page(_session(row) for row in db.execute(query, (*values, count)))

        return await self._run(page, _READ)

    async def delete(self, session_id: str) -> None:
        """Delete a session and its entries. Nothing happens if there is none."""

        def delete(db: sqlite3.Connection) -> None:
            db.execute("DELETE FROM sessions WHERE id = ?", (_text(session_id),))
            db.execute("DELETE FROM entries WHERE session_id = ?", (_text(session_id),))

        await self._run(delete)

    async def close(self) -> None:
        """Close the file. Using the store again opens it."""
        await asyncio.get_running_loop().run_in_executor(self._thread, _close, self._opened)

    async def _run(self, work: Callable[[sqlite3.Connection], T], begin: str = "BEGIN IMMEDIATE") -> T:
        """Run a transaction in the thread. It comes to its end even if the task that waits is cancelled."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, work, begin)
        return await asyncio.shield(running)  # or it would be dropped while it waits for the thread

    def _transaction(self, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
        if not self._opened:
            self._opened.append(_open(self._path))
        (db,) = self._opened
        db.execute(begin)
        try:
            result = work(db)
            db.execute("COMMIT")
            return result
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


def _days_before(updated_at: str) -> str:
    """The time from which on a session without entries is kept; if the text is no time, all are."""
    try:
        return (date.fromisoformat(updated_at[:10]) - timedelta(days=_UNUSED_DAYS)).isoformat()
    except (ValueError, OverflowError):
        return ""


def _page(found: Iterable[T], max_bytes: int = PAGE_BYTES) -> list[T]:
    """What is found, up to the first that exceeds so much memory."""
    page, size = list[T](), 0
    for each in found:
        page.append(each)
        size += memory_of(each)
        if size > max_bytes:
            break
    return page


def _check_path(path: str) -> None:
    """Raise `ValueError` for what is a name of SQLite, and no path."""
    is_name = not path or path.lower().startswith("file:") or (path.startswith(":") and path.endswith(":"))
    if is_name and path != _MEMORY:
        raise ValueError(
            f"{path!r} is no path of a file: for a store without one, use SqliteStore({_MEMORY!r}), and for a file of "
            f"this name {os.path.join(os.curdir, path)!r}"
        )


def _open(path: Path | None) -> sqlite3.Connection:
    """Open the file, and make it if it is missing. Raises `OSError` and `sqlite3.Error`."""
    name = _MEMORY if path is None else os.path.abspath(path)  # so that no name of a file has a meaning for SQLite
    if path is not None:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # those beside it get the same mode
    db = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _use_wal(db)
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("BEGIN IMMEDIATE")
        (layout,) = db.execute("PRAGMA user_version").fetchone()
        if layout not in {0, _LAYOUT}:
            raise sqlite3.DatabaseError(f"{path}: a later version of this store has written the file")
        if path is not None and sys.platform != "win32":
            _keep_others_out(os.path.realpath(path))
        if not layout:
            for statement in _TABLES.split(";")[:-1]:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {_LAYOUT}")
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _keep_others_out(path: str) -> None:
    """Let the owner alone read a file that was there, and those beside it.

    Raises `PermissionError` for one of somebody else. No file is opened: to close it would drop locks of this process.
    """
    for each in (path, f"{path}-wal", f"{path}-shm"):
        with suppress(FileNotFoundError):
            if os.stat(each).st_mode & 0o077:
                _restrict(each)


def _restrict(path: str) -> None:
    try:
        os.chmod(path, 0o600)
    except PermissionError as error:
        raise PermissionError(
            f"{path} belongs to another user, and others can read it: keep the sessions in a file of your own"
        ) from error


def _use_wal(db: sqlite3.Connection) -> None:
    """Let readers and a writer work at the same time. SQLite does not wait where several processes begin with that."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _close(opened: list[sqlite3.Connection]) -> None:
    while opened:
        opened.pop().close()


def _end(opened: list[sqlite3.Connection], thread: ThreadPoolExecutor) -> None:
    """Close the file of a store that is not there any more, also at the end of the process."""
    thread.shutdown(wait=False)
    _close(opened)


def _row(session: StoredSession) -> tuple[Any, ...]:
    """The values of a row of the table."""
    title = None if session.title is None else _text(session.title)
    directories = json.dumps(session.directories)
    known = _text(session.id), session.protocol, _text(session.cwd), _text(session.updated_at)
    return (*known, directories, title, _text(session.data), session.entries)


def _session(row: tuple[Any, ...]) -> StoredSession:
    key, protocol, cwd, updated_at, directories, title, data, entries = row
    return StoredSession(
        id=_value(key),
        protocol=protocol,
        cwd=_value(cwd),
        updated_at=_value(updated_at),
        directories=tuple(json.loads(directories)),
        title=None if title is None else _value(title),
        data=_value(data),
        entries=entries,
    )


def _text(text: str) -> str | bytes:
    """What SQLite takes for a text: bytes if it has lone surrogates, which are no UTF-8."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")


def _value(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode(errors="surrogatepass")
