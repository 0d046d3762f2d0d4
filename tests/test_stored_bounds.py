"""What a store and its agent keep and read of a client: counted in bytes, and loadable if it was accepted."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, run, texts
from tests.stored_support import Editor, editor, helpers_of, teller
from tests.support import Packages
from tests.test_session_store import checked, stored
from tests.turns_support import PROTOCOLS

pytestmark = pytest.mark.every_python

MIB = 2**20


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


# --- What is accepted ------------------------------------------------------------------------------------------------


def test_folders_that_are_long_are_refused(acp: Any, file: Path) -> None:
    """By their bytes, together, for each method; the error does not have them."""
    long = "/" + "x" * 40_000
    folders: list[dict[str, Any]] = [
        {"cwd": long},
        {"cwd": "/\U0001f600" + "x" * 9_000},
        {"cwd": "/", "additionalDirectories": [long]},
        {"cwd": "/", "additionalDirectories": [f"/{at}" for at in range(2_000)]},
    ]

    async def main() -> tuple[list[Any], Any]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            session = await client.new()
            refused = [await client.ask("session/new", mcpServers=[], **each) for each in folders]
            more = {"sessionId": session, "mcpServers": []}
            refused += [await client.ask("session/resume", **more, **each) for each in folders]
            usual = {"cwd": "/" + "y" * 4_000, "additionalDirectories": [f"/project/{at}/src" for at in range(100)]}
            return refused, await client.ask("session/new", mcpServers=[], **usual)

    refused, accepted = run(main())
    assert [each.get("code") for each in refused] == [-32602] * 8
    assert max(len(json.dumps(each)) for each in refused) < 500
    assert "sessionId" in accepted


def test_errors_do_not_repeat_what_is_long(acp: Any, file: Path) -> None:
    async def main() -> list[Any]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            long = "x" * 30_000
            return [
                await client.load(long),
                await client.prompt(long, "hello"),
                await client.ask("session/close", sessionId=long),
                await client.ask("session/new", cwd=long[:8_000], mcpServers=[]),
                await client.ask("session/list", cursor=long),
            ]

    found = run(main())
    assert all("code" in each for each in found)
    assert max(len(json.dumps(each)) for each in found) < 500


def test_a_cursor_is_short(acp: Any, file: Path) -> None:
    """It is not parsed otherwise: JSON takes many times its text."""
    cursors = ["[" + "{}," * 3_000_000 + "{}]", '["' + "x" * 10_000 + '",""]']

    async def main() -> list[Any]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            return [await client.ask("session/list", cursor=each) for each in cursors]

    assert [each["code"] for each in run(main())] == [-32602] * 2


# --- What is loaded --------------------------------------------------------------------------------------------------


async def loads(client: Editor, text: str) -> tuple[Any, list[Any]]:
    """The end of a prompt with this text, and the texts of the user when its session is loaded."""
    session = await client.new()
    end = await client.prompt(session, text)
    client.updates.clear()
    assert await client.load(session) == {}
    return end, [each[0] for each in client.said() if isinstance(each, tuple)]


@pytest.mark.parametrize(
    "text",
    ["\u4e2d" * 60_000, "\u0434" * 90_000, "\U0001f600" * 45_000, "\ud83d" * 30_000, '"\\\n' * 30_000, "x" * 190_000],
    ids=["Chinese", "Cyrillic", "emoji", "half an emoji", "escapes", "plain"],
)
def test_a_prompt_that_is_accepted_can_be_loaded(acp: Any, file: Path, text: str) -> None:
    """With a small limit, in place of a prompt of 18 MB."""
    options = acp.ConnectionOptions(max_message_bytes=200_000)

    async def main() -> tuple[Any, list[Any]]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file)), options=options) as client:
            return await loads(client, text)

    end, found = run(main())
    assert (end, found) == ("end_turn", [text])


def test_a_prompt_that_could_not_be_loaded_is_refused(acp: Any, file: Path) -> None:
    """And nothing of it is kept, nor of the other blocks."""
    options = acp.ConnectionOptions(max_message_bytes=200_000)

    async def main() -> tuple[Any, Any, list[Any]]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file)), options=options) as client:
            session = await client.new()
            refused = await client.prompt(session, "x" * 199_500)
            several = await client.prompt(session, "short", "x" * 199_400)
            await client.prompt(session, "hello")
            client.updates.clear()
            await client.load(session)
            return refused, several, [each for each in client.said() if isinstance(each, tuple)]

    refused, several, said = run(main())
    assert (refused["code"], several["code"]) == (-32602, -32602)
    assert "too large to be kept" in refused["message"]
    assert said == [("hello",)]


def test_pieces_that_are_joined_can_be_loaded(acp: Any, file: Path) -> None:
    """They become entries of some size, not one that is too large."""
    options = acp.ConnectionOptions(max_message_bytes=200_000)
    words = [letter * 60_000 for letter in "abcdefgh"]

    async def main() -> str:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file)), options=options) as client:
            session = await client.new()
            for word in words:
                await client.prompt(session, word)
            active = client.peer.handler.session(session)
            for word in words:
                chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": word}}
                await active.record(chunk)
            client.updates.clear()
            assert await client.load(session) == {}
            return "".join(each for each in client.said() if isinstance(each, str) and each[0] == each[-1])

    assert run(main()).endswith("".join(words))


class Counting:
    """A store that counts what it reads at a time."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.largest = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def entries_within(self, session_id: str, start: int, count: int, max_bytes: int) -> Sequence[str]:
        """Read, and count."""
        found: Sequence[str] = await self.inner.entries_within(session_id, start, count, max_bytes)
        self.largest = max(self.largest, sum(map(len, found)))
        return found


def test_entries_are_read_by_their_bytes(acp: Any, file: Path) -> None:
    async def main() -> tuple[int, int]:
        store = Counting(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            await client.ask("session/close", sessionId=session)
            known = await store.get(session)
            text = json.dumps({"sessionUpdate": "plan", "entries": [], "_meta": {"x": "y" * 600_000}})
            await store.save(known, [text] * 20)
            client.updates.clear()
            await client.load(session)
            return sum(each["sessionUpdate"] == "plan" for each in client.updates), store.largest

    count, largest = run(main())
    assert count == 20
    assert largest < 2 * MIB


def test_sessions_with_long_texts_do_not_break_the_list(acp: Any, file: Path) -> None:
    """An older version has kept them: those that are too long are left out, with a warning."""

    async def main() -> tuple[list[str], list[str], int]:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, teller(acp, store)) as client:
            expected = []
            for at, size in enumerate([10, 2 * MIB, 10, 700_000, 700_000, 2 * MIB, 10]):
                session = stored(acp, f"s{at}", protocol=acp.PROTOCOL_VERSION, cwd="/" + "x" * size)
                await store.create(session)
                await store.save(replace(session, updated_at=f"2026-01-31T12:00:0{at}.000000Z"), ["{}"])
                expected += [session.id] if size < MIB else []
            pages = [await client.ask("session/list")]
            while "nextCursor" in pages[-1]:
                pages.append(await client.ask("session/list", cursor=pages[-1]["nextCursor"]))
            largest = max(len(json.dumps(page)) for page in pages)
            return [each["sessionId"] for page in pages for each in page["sessions"]], expected[::-1], largest

    with acp_log() as log:
        found, expected, largest = run(main())
    assert found == expected
    assert largest < 2 * MIB
    assert texts(log).count("is not listed: its texts are too long") == 2


def test_a_title_is_cut(acp: Any, file: Path) -> None:
    """So that a list can have it; the update is sent as it is."""

    async def main() -> tuple[int, int]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            helpers, agent = helpers_of(acp), client.peer.handler
            await agent.client.session_update(helpers.title(session, "x" * 100_000))
            listed = (await client.ask("session/list"))["sessions"][0]["title"]
            return len(agent.session(session).title), len(listed)

    assert run(main())[0] == 1_000


# --- In memory, and on disk ------------------------------------------------------------------------------------------


def test_a_store_in_memory(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does all that is checked, makes no file, and is for one object."""
    acp = packages(V1)
    monkeypatch.chdir(tmp_path)
    store = helpers_of(acp).SqliteStore(":memory:")
    checked(acp, lambda: store)

    async def main() -> None:
        await store.create(stored(acp, "s"))
        assert await store.get("s") is not None
        assert await helpers_of(acp).SqliteStore(":memory:").get("s") is None
        await store.close()
        assert await store.get("s") is None
        await store.close()

    run(main())
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "path", ["", ":temp:", "::", ":memory::", "file::memory:?cache=shared", "file:sessions.db", "FILE:x"]
)
def test_names_that_are_no_paths_are_refused(packages: Packages, path: str) -> None:
    with pytest.raises(ValueError, match=r"is no path of a file: .*SqliteStore\(':memory:'\)"):
        helpers_of(packages(V1)).SqliteStore(path)


def test_a_file_may_have_any_name(packages: Packages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the path that the error says."""
    acp = packages(V1)
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        for path in ("./file:x", "./:memory:", tmp_path / ":a:", "a:b.db"):
            store = helpers_of(acp).SqliteStore(path)
            await store.create(stored(acp, "s"))
            await store.close()

    run(main())
    assert {each.name for each in tmp_path.iterdir()} == {"file:x", ":memory:", ":a:", "a:b.db"}


needs_modes = pytest.mark.needs("posix")


def modes(folder: Path) -> dict[str, int]:
    """The modes of the files of a folder."""
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


@needs_modes
def test_a_file_that_others_could_read_is_closed_to_them(packages: Packages, file: Path) -> None:
    """With those beside it, which hold what was said last."""
    acp = packages(V1)

    async def main() -> None:
        first = helpers_of(acp).SqliteStore(file)
        await first.create(stored(acp, "s"))
        for each in file.parent.iterdir():
            each.chmod(0o644)
        assert len(modes(file.parent)) == 3
        second = helpers_of(acp).SqliteStore(file)  # while the files beside it are there
        assert await second.get("s") is not None
        assert {*modes(file.parent).values()} == {0o600}
        await first.create(stored(acp, "t"))
        assert {*modes(file.parent).values()} == {0o600}
        await first.close()
        await second.close()
        file.chmod(0o644)
        third = helpers_of(acp).SqliteStore(file)
        await third.create(stored(acp, "u"))
        assert modes(file.parent) == dict.fromkeys(["sessions.db", "sessions.db-wal", "sessions.db-shm"], 0o600)
        await third.close()

    run(main())


@needs_modes
def test_a_file_of_somebody_else_is_refused(packages: Packages, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If others can read it."""
    acp = packages(V1)
    file.touch(mode=0o644)

    def chmod(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", chmod)

    async def main() -> None:
        with pytest.raises(PermissionError, match="belongs to another user, and others can read it: keep the sessions"):
            await helpers_of(acp).SqliteStore(file).get("s")

    run(main())


@needs_modes
def test_a_file_that_is_no_store_keeps_its_mode(packages: Packages, file: Path) -> None:
    acp = packages(V1)
    file.write_bytes(b"notes, and no database" * 100)
    file.chmod(0o644)

    async def main() -> None:
        for path in (file, file.parent):
            with pytest.raises(Exception, match="database"):
                await helpers_of(acp).SqliteStore(path).get("s")

    folder = file.parent.stat().st_mode
    run(main())
    assert (stat.S_IMODE(file.stat().st_mode), file.parent.stat().st_mode) == (0o644, folder)


def test_the_client_learns_no_paths(acp: Any, tmp_path: Path) -> None:
    """Of a store that cannot be opened; the log has them."""

    async def main() -> list[Any]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(tmp_path / "missing" / "s.db"))) as client:
            return [
                await client.ask("session/new", cwd="/", mcpServers=[]),
                await client.load("s"),
                await client.ask("session/list"),
                await client.ask("session/delete", sessionId="s"),
            ]

    with acp_log() as log:
        found = run(main())
    assert all(each["code"] == -32603 for each in found)
    assert "missing" not in json.dumps(found)
    assert "s.db" not in json.dumps(found)
    assert "missing/s.db" in texts(log)
