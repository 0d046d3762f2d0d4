"""Stores of sessions: what `check_store` checks and finds, and `SqliteStore` under kill -9, full disks and others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_agents import command, environment
from tests.runtime_support import V1, V2, run
from tests.stored_support import editor, helpers_of, teller
from tests.support import Packages

KILLS = 1_000


@pytest.fixture(name="acp")
def package(packages: Packages) -> Any:
    """A package; stores know nothing of versions."""
    return packages(V1)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


def checked(acp: Any, stores: Any) -> None:
    """Check the stores that `stores` makes."""

    async def make() -> Any:
        return stores()

    run(helpers_of(acp).check_store(make))


@pytest.mark.every_python
def test_sqlite_does_all_that_is_checked(acp: Any, file: Path) -> None:
    checked(acp, lambda: helpers_of(acp).SqliteStore(file))


@pytest.mark.every_python
def test_a_session_that_was_never_used_is_not_kept_for_ever(acp: Any, file: Path) -> None:
    """It goes when a later process makes its first one; a session with entries stays, and one that is not as old."""
    helpers = helpers_of(acp)

    async def made(*sessions: tuple[str, str]) -> list[str]:
        store = helpers.SqliteStore(file)
        for key, day in sessions:
            await store.create(helpers.StoredSession(id=key, protocol=1, cwd="/", updated_at=f"{day}T12:00:00.000000Z"))
        found = [key for key in ("used", "old", "young", "new", "odd") if await store.get(key) is not None]
        await store.close()
        return found

    async def main() -> None:
        assert await made(("used", "2026-01-01")) == ["used"]
        store = helpers.SqliteStore(file)
        await store.save(await store.get("used"), ["{}"])
        await store.close()
        assert await made(("old", "2026-01-01"), ("young", "2026-01-03")) == ["used", "old", "young"]
        assert await made() == ["used", "old", "young"]
        assert await made(("odd", "soon")) == ["used", "old", "young", "odd"]
        assert await made(("new", "2026-02-02")) == ["used", "young", "new", "odd"]

    run(main())


class Memory:
    """A store in memory, which breaks one promise, or none."""

    def __init__(self, acp: Any, fault: str, sessions: dict[str, Any], texts: dict[str, list[str]]) -> None:
        self.helpers = helpers_of(acp)
        self.fault = fault
        self.sessions = sessions
        self.texts = texts

    async def create(self, session: Any) -> None:
        if session.id in self.sessions and self.fault != "creates twice":
            raise self.helpers.SessionChangedError
        self.sessions[session.id] = replace(session, title=None) if self.fault == "forgets titles" else session
        self.texts.setdefault(session.id, [])

    async def get(self, session_id: str) -> Any:
        return self.sessions.get(session_id)

    async def save(self, session: Any, entries: Sequence[str]) -> None:
        known = self.sessions.get(session.id)
        if self.fault == "makes sessions" and known is None:
            known = self.sessions[session.id] = session
            self.texts[session.id] = []
        if known is None or (known.entries != session.entries and self.fault != "takes any count"):
            if self.fault == "writes before it refuses" and known is not None:
                self.sessions[session.id] = replace(session, entries=known.entries)
            raise self.helpers.SessionChangedError
        if self.fault == "is cancelled half way":
            self.texts[session.id] += entries
            await asyncio.sleep(0)
            entries = ()
        elif self.fault == "races":
            await asyncio.sleep(0)
        elif self.fault == "cuts entries":
            entries = [entry[: 2**16] for entry in entries]
        self.texts[session.id] += entries
        self.sessions[session.id] = replace(session, entries=len(self.texts[session.id]))

    async def entries(self, session_id: str, start: int, count: int) -> Sequence[str]:
        found = self.texts.get(session_id, [])
        return found[start:] if self.fault == "ignores count" else found[start : start + count]

    async def page(self, protocol: int, *, cwd: str | None, after: Any, count: int) -> Sequence[Any]:
        def place(each: Any) -> Any:
            return each.updated_at if self.fault == "orders by time alone" else (each.updated_at, each.id)

        def is_listed(each: Any) -> bool:
            right = each.protocol == protocol or self.fault == "mixes versions"
            is_in = cwd is None or each.cwd == cwd or (self.fault == "matches prefixes" and each.cwd.startswith(cwd))
            is_after = after is None or place(each) < place(after)
            return bool(right and is_in and is_after and (each.entries or self.fault == "lists empty ones"))

        found = sorted(filter(is_listed, self.sessions.values()), key=place, reverse=True)[:count]
        return found if self.fault == "lists data" else [replace(each, data="") for each in found]

    async def delete(self, session_id: str) -> None:
        if self.fault == "fails for unknown ones":
            del self.sessions[session_id]
        self.sessions.pop(session_id, None)
        if self.fault != "keeps entries":
            self.texts.pop(session_id, None)


def memory(acp: Any, fault: str) -> Any:
    """Makes stores on the same data."""
    sessions, texts = dict[str, Any](), dict[str, list[str]]()
    return lambda: Memory(acp, fault, sessions, texts)


def test_a_store_without_faults_passes(acp: Any) -> None:
    checked(acp, memory(acp, ""))


@pytest.mark.parametrize(
    "fault",
    [
        "creates twice",
        "forgets titles",
        "makes sessions",
        "takes any count",
        "writes before it refuses",
        "is cancelled half way",
        "races",
        "cuts entries",
        "ignores count",
        "orders by time alone",
        "mixes versions",
        "matches prefixes",
        "lists empty ones",
        "lists data",
        "keeps entries",
    ],
)
def test_a_broken_promise_is_found(acp: Any, fault: str) -> None:
    with pytest.raises(AssertionError, match="the store breaks a promise: "):
        checked(acp, memory(acp, fault))


class Comparing(Memory):
    """A store in memory whose `save` compares all but one attribute."""

    async def save(self, session: Any, entries: Sequence[str], *, before: Any = None) -> None:
        known = self.sessions.get(session.id)
        if before is not None and known is not None and replace(before, **self._unseen(known)) != known:
            raise self.helpers.SessionChangedError
        await super().save(session, entries)

    def _unseen(self, known: Any) -> dict[str, Any]:
        return {self.fault: getattr(known, self.fault)} if self.fault else {}


@pytest.mark.parametrize("unseen", ["title", "data", "directories", "updated_at", "cwd", "protocol"])
def test_a_comparison_that_leaves_something_out_is_found(acp: Any, unseen: str) -> None:
    sessions, entries = dict[str, Any](), dict[str, list[str]]()
    with pytest.raises(AssertionError, match=f"if '{unseen}' is not as `before`"):
        checked(acp, lambda: Comparing(acp, unseen, sessions, entries))
    checked(acp, lambda: Comparing(acp, "", sessions, entries))


def test_an_error_of_a_store_is_raised(acp: Any) -> None:
    with pytest.raises(KeyError):
        checked(acp, memory(acp, "fails for unknown ones"))


# --- SQLite ----------------------------------------------------------------------------------------------------------


def stored(acp: Any, key: str, **more: Any) -> Any:
    """A session."""
    known = {"id": key, "protocol": 1, "cwd": "/project", "updated_at": "2026-01-31T12:00:00.000000Z", **more}
    return helpers_of(acp).StoredSession(**known)


def test_only_the_owner_may_read_it(acp: Any, file: Path) -> None:
    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        await store.create(stored(acp, "s"))
        modes = {stat.S_IMODE(each.stat().st_mode) for each in file.parent.iterdir()}
        await store.close()
        assert modes == {0o600}

    was = os.umask(0)
    try:
        run(main())
    finally:
        os.umask(was)


@pytest.mark.parametrize("content", [b"this is no database" * 100, None])
def test_a_file_that_is_none_of_its_own_is_refused(acp: Any, file: Path, content: bytes | None) -> None:
    """It is left as it is."""
    if content is None:
        with sqlite3.connect(file) as db:
            db.execute("PRAGMA user_version = 7")
        db.close()
    else:
        file.write_bytes(content)
    before = file.read_bytes()

    async def main() -> None:
        with pytest.raises(sqlite3.DatabaseError):
            await helpers_of(acp).SqliteStore(file).get("s")

    run(main())
    assert content is None or file.read_bytes() == before


def test_texts_that_are_no_unicode_are_kept(acp: Any, file: Path) -> None:
    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        odd = stored(acp, "\ud800\0", title="\udfff", cwd="/\ud800", data="\ud83d")
        await store.create(odd)
        assert await store.get("\ud800\0") == odd
        await store.close()

    run(main())


def test_a_full_disk_leaves_all_that_was_saved(acp: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails raises, and can be repeated."""
    connect, pages = sqlite3.connect, [1_000_000]

    class Disk(sqlite3.Connection):
        """A connection to a file that can have so many pages."""

        def execute(self, statement: str, *args: Any) -> sqlite3.Cursor:
            if statement.startswith("BEGIN"):
                super().execute(f"PRAGMA max_page_count = {pages[0]}")
            return super().execute(statement, *args)

    monkeypatch.setattr(sqlite3, "connect", partial(connect, factory=Disk))

    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        session = stored(acp, "s")
        await store.create(session)
        await store.save(session, ["kept"])
        pages[0] = file.stat().st_size // 4096 + 100
        saved = 1
        with pytest.raises(sqlite3.OperationalError, match="full"):  # noqa: PT012 - one of them raises
            while True:
                await store.save(replace(session, entries=saved), ["x" * 10_000])
                saved += 1
        assert len(await store.entries("s", 0, 10_000)) == saved
        pages[0] = 1_000_000
        await store.save(replace(session, entries=saved), ["more"])
        assert (await store.entries("s", saved, 5)) == ["more"]
        await store.close()

    run(main())


WRITER = """
import asyncio, importlib, sys
from dataclasses import replace
helpers = importlib.import_module(sys.argv[1] + ".helpers")

async def main():
    store = helpers.SqliteStore(sys.argv[2])
    mine = helpers.StoredSession(id=sys.argv[3], protocol=1, cwd="/", updated_at="2026-01-31T12:00:00.000000Z")
    await store.create(mine)
    for at in range(200):
        await store.save(replace(mine, entries=at), [str(at)])
        while True:
            shared = await store.get("shared")
            try:
                await store.save(shared, [f"{mine.id} {at}"])
                break
            except helpers.SessionChangedError:
                pass

asyncio.run(main())
"""


def test_several_processes_write_at_the_same_time(acp: Any, file: Path) -> None:
    """To sessions of their own, and to one that all have open: nothing is lost, and nothing is there twice."""
    names = ["a", "b", "c"]

    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        await store.create(stored(acp, "shared"))
        running = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", WRITER, acp.__name__, str(file), name, env=environment(acp)
            )
            for name in names
        ]
        assert [await process.wait() for process in running] == [0] * len(names)
        for name in names:
            assert await store.entries(name, 0, 1000) == [str(at) for at in range(200)]
        shared = [each.split() for each in await store.entries("shared", 0, 1000)]
        assert [[at for who, at in shared if who == name] for name in names] == [[str(at) for at in range(200)]] * 3
        assert len(shared) == 600
        await store.close()

    run(main())


def test_ten_thousand_sessions_are_listed_while_others_write(acp: Any, file: Path) -> None:
    """None twice; those that nobody touches all."""

    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)

        assert await store.get("0") is None  # now the file has its tables
        with contextlib.closing(sqlite3.connect(file)) as db, db:
            row = "INSERT INTO sessions VALUES (?, 1, '/project', ?, '[]', 'title', '', 1)"
            db.executemany(row, ((f"{at}", f"2026-01-31T12:00:00.{at % 5000:06}Z") for at in range(10_000)))
        async with editor(acp, teller(acp, store)) as client:
            touched = stored(acp, "5000", entries=1)
            pages = [await client.ask("session/list")]
            while cursor := pages[-1].get("nextCursor"):
                pages.append(await client.ask("session/list", cursor=cursor))
                await store.save(replace(touched, updated_at=f"2027-01-31T12:00:00.{len(pages):06}Z"), ["{}"])
                touched = replace(touched, entries=touched.entries + 1)
        found = [each["sessionId"] for page in pages for each in page["sessions"]]
        assert len(found) == len({*found})
        assert {*found} >= {str(at) for at in range(10_000)} - {"5000"}
        await store.close()

    run(main())


# --- Kills -----------------------------------------------------------------------------------------------------------


class Killed:
    """An agent in a process that is killed at a random moment; it goes on with the session of the one before."""

    def __init__(self, acp: Any, file: Path) -> None:
        self.acp = acp
        self.arguments = [part for part in command("keeper.py", str(file)) if part not in ("-X", "dev")]
        self.environment = {**environment(acp), "PYTHONASYNCIODEBUG": "", "PYTHONDONTWRITEBYTECODE": ""}
        self.session = ""
        self.next = 0  # the number of the next prompt
        self.answered = set[int]()

    def run(self, chance: random.Random) -> None:
        """Open the session, check what is there, and send prompts until the process is killed."""
        process = subprocess.Popen(
            self.arguments, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=-1
        )
        try:
            self._open(process)
            ask = [self._message(at, "session/prompt", prompt=[text(at)]) for at in range(self.next, self.next + 200)]
            process.stdin.write(b"".join(ask))  # type: ignore[union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            time.sleep(chance.random() * 0.1)
        finally:
            process.kill()
        out, _ = process.communicate()
        count = sum(b'"stopReason"' in line for line in out.split(b"\n")[:-1])
        self.answered |= {*range(self.next, self.next + count)}

    def _message(self, number: int, method: str, **params: Any) -> bytes:
        known = {"sessionId": self.session} if self.session else {}
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**known, **params}}
        return json.dumps(message).encode() + b"\n"

    def _open(self, process: Any) -> None:
        where = {"cwd": "/", "mcpServers": []}
        if not self.session:
            process.stdin.write(self._message(-1, "session/new", **where))
        elif self.acp.PROTOCOL_VERSION == 1:
            process.stdin.write(self._message(-1, "session/load", **where))
        else:
            process.stdin.write(self._message(-1, "session/resume", replayFrom={"type": "start"}, **where))
        process.stdin.flush()
        said: list[str] = []
        while "id" not in (message := json.loads(process.stdout.readline())):
            said += _texts(message["params"]["update"])
        if self.session:
            self._check(said)
        self.session = self.session or message["result"]["sessionId"]

    def _check(self, said: list[str]) -> None:
        """Prompts are said as numbers alone; what the agent says of one is the number and a space or a semicolon."""
        spoken: list[list[str]] = []
        for each in said:
            if each.isdigit():
                spoken.append([each])
            else:
                spoken[-1].append(each)
        assert [prompt for prompt, *_ in spoken] == [str(at) for at in range(len(spoken))], "not each prompt once"
        for at, (prompt, *parts) in enumerate(spoken):
            answer, whole = "".join(parts), f"{prompt} {prompt};"
            assert answer == whole if at in self.answered else whole.startswith(answer)
        assert {*range(len(spoken))} >= self.answered, "a prompt that was answered was lost"
        self.next = len(spoken)


def text(at: int) -> dict[str, str]:
    """A block of text."""
    return {"type": "text", "text": str(at)}


def _texts(update: dict[str, Any]) -> list[str]:
    content = update.get("content")
    blocks = content if isinstance(content, list) else [content] if content else []
    return [block["text"] for block in blocks]


@pytest.mark.parametrize("base", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize(
    "kills",
    [10, pytest.param(KILLS, marks=pytest.mark.deep)],
    ids=["few", "all"],
)
def test_kills_lose_nothing_that_was_answered(packages: Packages, file: Path, base: Any, kills: int) -> None:
    """A prompt that was answered is loaded once, in its place; so is what was said for it."""
    chance = random.Random(kills)
    killed = Killed(packages(base), file)
    for at in range(kills):
        if at % 25 == 24:
            killed = Killed(packages(base), file)
        killed.run(chance)
