"""The check of a store of sessions, for its tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from .session_store import ListPlace, SessionChangedError, SessionStore, StoredSession, comparing

__all__ = ["check_store"]

_TIME: Final = "2026-01-31T12:00:{:02}.000000Z"
_ODD: Final = ["", " ", "'\"\\%_;--", "grün/日本/🙂", "a" * 2000, "line\nline\ttab"]


async def check_store(make: Callable[[], Awaitable[SessionStore]]) -> None:
    """Check a store of your own, in a test of yours; `make` opens another one on the same data each time.

    It adds sessions of its own to what is there, and deletes most of them. Raises `AssertionError` with the promise of
    `SessionStore` that does not hold.
    """
    for check in (_unknown, _created, _saved, _changed, _compared, _raced, _paged, _deleted, _cancelled, _large):
        await check(await make(), await make())


def _session(at: int = 0, *, cwd: str = "/project", protocol: int = 1) -> StoredSession:
    return StoredSession(id=uuid4().hex, protocol=protocol, cwd=cwd, updated_at=_TIME.format(at))


def _hold(promise: str, *, holds: bool) -> None:
    if not holds:
        raise AssertionError(f"the store breaks a promise: {promise}")


async def _refuses(call: Awaitable[None], promise: str) -> None:
    try:
        await call
    except SessionChangedError:
        return
    raise AssertionError(f"the store breaks a promise: {promise}")


async def _all(store: SessionStore, session: StoredSession) -> list[str]:
    return [*await store.entries(session.id, 0, 10_000)]


async def _unknown(store: SessionStore, _: SessionStore) -> None:
    missing = _session()
    _hold("get returns None for an unknown session", holds=await store.get(missing.id) is None)
    _hold("an unknown session has no entries", holds=not await _all(store, missing))
    await store.delete(missing.id)
    await _refuses(store.save(missing, ["{}"]), "save raises SessionChangedError for an unknown session")
    _hold("save makes no session", holds=await store.get(missing.id) is None)


async def _created(store: SessionStore, other: SessionStore) -> None:
    for odd in _ODD:
        known = replace(_session(), id=uuid4().hex + odd, cwd=f"/{odd}", title=odd, data=odd, directories=(odd, "/b"))
        await store.create(known)
        _hold("what was created is there as it was, also for others", holds=await other.get(known.id) == known)
        await _refuses(other.create(known), "create raises SessionChangedError for an id that is taken")
        await store.delete(known.id)


async def _saved(store: SessionStore, other: SessionStore) -> None:
    first = _session()
    await store.create(first)
    await store.save(first, ["0", "1", "2"])
    second = replace(first, title="title", data="data", updated_at=_TIME.format(1), directories=("/c",), entries=3)
    await other.save(second, ["3"])
    await store.save(replace(second, entries=4), [])
    _hold("save writes all of a session", holds=await store.get(first.id) == replace(second, entries=4))
    _hold("entries keep their order", holds=await _all(other, first) == ["0", "1", "2", "3"])
    part = await store.entries(first.id, 1, 2)
    _hold("entries returns those from `start` on, `count` at most", holds=[*part] == ["1", "2"])
    _hold("there are none after the last", holds=not await store.entries(first.id, 4, 5))
    await store.delete(first.id)


async def _changed(store: SessionStore, other: SessionStore) -> None:
    session = _session()
    await store.create(session)
    await other.save(session, ["theirs"])
    for count in (0, 2):
        stale = replace(session, title="stale", entries=count)
        await _refuses(store.save(stale, ["mine"]), "save raises SessionChangedError if the count of entries is wrong")
    _hold("a save that is refused changes nothing", holds=await store.get(session.id) == replace(session, entries=1))
    _hold("a save that is refused appends nothing", holds=await _all(store, session) == ["theirs"])
    await store.delete(session.id)


async def _compared(store: SessionStore, other: SessionStore) -> None:
    if (save := comparing(store)) is None:  # stores need not compare
        return
    session = replace(_session(), title=None, data="data", directories=("/a",))
    await store.create(session)
    changes: list[dict[str, Any]] = [{"title": ""}, {"title": "b"}, {"data": ""}, {"directories": ()}]
    changes += [{"updated_at": _TIME.format(1)}, {"cwd": "/other"}, {"protocol": 2}]
    for change in changes:
        promise = f"save raises SessionChangedError if {next(iter(change))!r} is not as `before`"
        await _refuses(save(session, ["{}"], before=replace(session, **change)), promise)
    _hold("a save that is refused changes nothing", holds=await other.get(session.id) == session)
    after = replace(session, title="", data="", directories=())
    await save(after, ["{}"], before=session)
    _hold("save with `before` writes all", holds=await other.get(session.id) == replace(after, entries=1))
    await save(replace(session, entries=1), [], before=replace(after, entries=1))
    _hold("save with `before` writes all, twice", holds=await other.get(session.id) == replace(session, entries=1))
    await store.delete(session.id)


async def _raced(store: SessionStore, other: SessionStore) -> None:
    session = _session()
    await store.create(session)
    for count in range(20):
        expected = replace(session, entries=count)
        calls = [each.save(expected, [name]) for each, name in ((store, "a"), (other, "b"))]
        ends = await asyncio.gather(*calls, return_exceptions=True)
        lost = [end for end in ends if isinstance(end, SessionChangedError)]
        _hold("of two that save at the same time, one succeeds", holds=len(lost) == 1 and None in ends)
    _hold("each success is one entry", holds=len(await _all(store, session)) == 20)
    await store.delete(session.id)


async def _paged(store: SessionStore, other: SessionStore) -> None:
    cwd = f"/{uuid4().hex}"
    listed = [_session(at // 3, cwd=cwd) for at in range(12)]
    hidden = [_session(cwd=cwd), _session(cwd=cwd, protocol=2), _session(cwd=f"{cwd}/inner")]
    for session in (*listed, *hidden):
        await store.create(session)
    for session in (*listed, *hidden[1:]):
        await store.save(replace(session, data="data"), ["{}"])
    expected = sorted(listed, key=lambda each: (each.updated_at, each.id), reverse=True)
    found: list[StoredSession] = []
    after: ListPlace | None = None
    while page := await other.page(1, cwd=cwd, after=after, count=5):
        _hold("a page has `count` sessions at most", holds=len(page) <= 5)
        found += page
        after = page[-1].place
    promise = (
        "page lists those with entries, by version and folder, the latest first, then the greater id, in any pages"
    )
    _hold(promise, holds=found == [replace(each, entries=1) for each in expected])
    everywhere, after = list[StoredSession](), None
    while page := await other.page(1, cwd=None, after=after, count=10_000):
        everywhere += page
        after = page[-1].place
    _hold("without a folder, page lists those of all", holds={*found} <= {*everywhere})
    for session in (*listed, *hidden):
        await store.delete(session.id)


async def _deleted(store: SessionStore, other: SessionStore) -> None:
    session = _session()
    await store.create(session)
    await store.save(session, ["0"])
    await other.delete(session.id)
    _hold("delete deletes a session", holds=await store.get(session.id) is None)
    await store.create(session)
    _hold("delete deletes the entries, too", holds=not await _all(store, session))
    await store.delete(session.id)


async def _cancelled(store: SessionStore, other: SessionStore) -> None:
    session = _session()
    await store.create(session)
    for turns in range(10):
        before = await other.get(session.id)
        saving = asyncio.ensure_future(store.save(before or session, ["0", "1"]))
        for _ in range(turns):
            await asyncio.sleep(0)
        saving.cancel()
        await asyncio.gather(saving, return_exceptions=True)
        await store.get(session.id)  # waits for the save that may still run
        after, count = await other.get(session.id), len(await _all(other, session))
        _hold("a save that is cancelled does all or nothing", holds=after is not None and after.entries == count)
    await store.delete(session.id)


async def _large(store: SessionStore, other: SessionStore) -> None:
    session = _session()
    await store.create(session)
    entries = [*("x" * 2**20 for _ in range(3)), *map(str, range(2000))]
    await store.save(session, entries)
    _hold("entries may be large, and many", holds=await _all(other, session) == entries)
    within: Callable[..., Awaitable[Sequence[str]]] | None = getattr(other, "entries_within", None)
    if within is not None:
        found = [*await within(session.id, 0, 2, 2**18), *await within(session.id, 2, 10_000, 2**18)]
        _hold("entries_within ends with the entry that exceeds its bytes", holds=found == [entries[0], entries[2]])
        _hold("entries_within has `count` at most", holds=[*await within(session.id, 3, 2, 2**30)] == ["0", "1"])
    await store.delete(session.id)
