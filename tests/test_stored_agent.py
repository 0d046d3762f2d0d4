"""`StoredAgent`: sessions that are listed, loaded, resumed and deleted, also by another process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import acp_log, run, texts
from tests.stored_support import editor, helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS, is_v1

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


BAD_CURSORS = ["", "x", "[1, 2]", '{"a": 1}', "[" * 100_000]


def later(acp: Any, file: Path, **more: Any) -> Any:
    """A client of another agent on the same file, as after a new start."""
    return editor(acp, teller(acp, helpers_of(acp).SqliteStore(file), **more))


def test_a_session_is_loaded_as_it_was(acp: Any, file: Path) -> None:
    """Prompts, messages and titles, in their order; pieces of one message come as one."""

    async def main() -> tuple[list[Any], list[Any], Any]:
        async with later(acp, file) as client:
            session = await client.new()
            assert await client.prompt(session, "Hello there\nfriend", "second") == "end_turn"
            assert await client.prompt(session, "name it") == "end_turn"
        async with later(acp, file) as client:
            await client.load(session)
            before = client.said()
            assert await client.prompt(session, "again") == "end_turn"
            data = client.peer.handler.session(session).data
            client.updates.clear()
            await client.load(session)
            return before, client.said(), data

    first = ["session_info_update Hello there", "Hellotherefriend"]
    second = ["session_info_update A name", "it"]
    users: list[Any] = [("Hello there\nfriend", "second"), ("name it",), ("again",)]
    if is_v1(acp):
        expected = [("Hello there\nfriend",), ("second",), *first, users[1], *second]
    else:
        expected = [users[0], *first, users[1], *second]
    assert run(main()) == (expected, [*expected, users[2], "again"], ["Hello there\nfriend", "name it", "again"])


def test_what_is_refused_in_another_loop_is_not_recorded(acp: Any, file: Path) -> None:
    async def main() -> list[Any]:
        async with later(acp, file) as client:
            session = await client.new()
            agent, ids = client.peer.handler, {} if is_v1(acp) else {"message_id": "m"}
            await client.prompt(session, "Hello")
            update = helpers_of(acp).agent_message(session, "lost", **ids)
            with pytest.raises(RuntimeError, match=r"blocking\(stub\)"):
                await asyncio.to_thread(lambda: asyncio.run(agent.client.session_update(update)))
            await asyncio.to_thread(acp.blocking(agent.client).session_update, update)
            await client.prompt(session, "Bye")
            client.updates.clear()
            await client.load(session)
            return client.said()

    assert str(run(main())).count("lost") == 1


def test_resuming_reports_nothing_of_it(acp: Any, file: Path) -> None:
    """Only its state, in protocol 2."""

    async def main() -> tuple[Any, list[Any], Any]:
        async with later(acp, file) as client:
            session = await client.new()
            await client.prompt(session, "hello")
        async with later(acp, file) as client:
            found = await client.ask("session/resume", sessionId=session, cwd="/project", mcpServers=[])
            before = [*client.updates]
            return found, before, await client.prompt(session, "more")

    states = [] if is_v1(acp) else [{"sessionUpdate": "state_update", "state": "idle"}]
    assert run(main()) == ({}, states, "end_turn")


def test_an_unknown_session_is_an_error(acp: Any, file: Path) -> None:
    """For each method that names one, but for deleting it."""

    async def main() -> list[Any]:
        async with later(acp, file) as client:
            mine = await client.new()
        async with later(acp, file) as client:
            return [
                await client.load("nobody"),
                await client.ask("session/resume", sessionId="nobody", cwd="/project"),
                await client.prompt(mine, "hello"),  # it is not open here
                await client.ask("session/close", sessionId=mine),
                await client.ask("session/delete", sessionId="nobody"),
                await client.load(mine, cwd="/elsewhere"),
                await client.load(mine, cwd="/project/"),
            ]

    *unknown, deleted, elsewhere, found = run(main())
    assert [error["code"] for error in unknown] == [-32002] * 4
    assert deleted == {}
    assert (elsewhere["code"], found) == (-32602, {})


def test_sessions_are_listed_in_pages(acp: Any, file: Path) -> None:
    """Those that had a prompt, the latest first, each with its title; a folder filters exactly."""

    async def main() -> tuple[list[Any], list[Any], list[Any], Any, Any]:
        async with later(acp, file) as client:
            empty = await client.ask("session/list")
            sessions = [await client.new(f"/{at % 2}") for at in range(120)]
            for at, session in enumerate(sessions[:-1]):
                await client.prompt(session, f"prompt {at}")
            await client.prompt(sessions[0], "once more")
            pages = [await client.ask("session/list")]
            while "nextCursor" in pages[-1]:
                pages.append(await client.ask("session/list", cursor=pages[-1]["nextCursor"]))
            ones = await client.ask("session/list", cwd="/1")
            bad = [await client.ask("session/list", cursor=cursor) for cursor in BAD_CURSORS]
            return sessions, pages, ones["sessions"], empty, bad

    sessions, pages, ones, empty, bad = run(main())
    assert empty == {"sessions": []}
    found = [each for page in pages for each in page["sessions"]]
    order = [0, *range(118, 0, -1)]
    assert [each["sessionId"] for each in found] == [sessions[at] for at in order]
    assert [each["title"] for each in found] == [f"prompt {at}" for at in order]
    assert [len(page["sessions"]) for page in pages] == [50, 50, 19]
    assert [each["sessionId"] for each in ones] == [sessions[at] for at in range(117, 16, -2)][:50]
    assert {error["code"] for error in bad} == {-32602}


def test_closing_and_deleting_end_the_turn_first(acp: Any, file: Path) -> None:
    """What it said is kept, or gone."""

    async def main() -> list[Any]:
        async with later(acp, file) as client:
            found: list[Any] = []
            for method in ("session/close", "session/delete"):
                session = await client.new()
                await client.prompt(session, "hello")
                turn = asyncio.ensure_future(client.peer.handler.session_prompt(prompt_of(acp, session, "last wait")))
                while "last" not in client.said():
                    client.updates.append((await client.peer.receive())["params"]["update"])
                answer = await client.ask(method, sessionId=session)
                await asyncio.gather(turn, return_exceptions=True)
                found += [answer, await client.prompt(session, "x")]
                client.updates.clear()
                found += [await client.load(session), client.said()[-1:]]
            return found

    closed, after, loaded, said, deleted, gone, missing, nothing = run(main())
    assert (closed, after["code"], loaded, said) == ({}, -32002, {}, ["last"])
    assert (deleted, gone["code"], missing["code"], nothing) == ({}, -32002, -32002, [])


def prompt_of(acp: Any, session: str, text: str) -> Any:
    """The params of a prompt."""
    return acp.PromptRequest(session_id=session, prompt=[acp.ContentBlockText(text=text)])


def test_interrupted_tool_calls_have_ended_when_they_are_loaded(acp: Any, file: Path) -> None:
    """Not while the turn goes on."""

    async def main() -> tuple[list[Any], list[Any]]:
        async with later(acp, file) as client:
            session = await client.new()
            handler = client.peer.handler
            turn = asyncio.ensure_future(handler.session_prompt(prompt_of(acp, session, "tool last wait")))
            while "last" not in client.said():
                client.updates.append((await client.peer.receive())["params"]["update"])
            client.updates.clear()
            await client.load(session)
            during = client.said()
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
        async with later(acp, file) as client:
            await client.load(session)
            return during, client.said()

    during, afterwards = run(main())
    assert during[-1] == "last"
    assert not any("failed" in str(each) or "cancelled" in str(each) for each in during)
    assert afterwards[-1] == ("tool_call_update failed" if is_v1(acp) else "tool_call_update cancelled")


class Failing:
    """A store on another one that fails to save while `is_full`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.is_full = False
        self.saved: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def save(self, session: Any, entries: Sequence[str]) -> None:
        """Save, or fail."""
        if self.is_full:
            raise OSError(28, "No space left on device")
        await self.inner.save(session, entries)
        self.saved += entries


def test_a_turn_that_cannot_be_saved_is_an_error(acp: Any, file: Path) -> None:
    """It is kept, and saved with the next one; memory is bounded meanwhile."""

    async def main() -> tuple[Any, Any, Any, list[Any]]:
        store = Failing(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store)) as client:
            session = await client.new()
            store.is_full = True
            first = await client.prompt(session, "one")
            flood = await client.prompt(session, "flood")
            assert len(client.said()) < 1500
            store.is_full = False
            last = await client.prompt(session, "two")
            client.updates.clear()
            await client.load(session)
            return first, flood, last, client.said()

    with acp_log() as log:
        first, flood, last, said = run(main())
    assert "cannot be saved: [Errno 28] No space left on device" in texts(log)
    assert last == "end_turn"
    assert said[0] == ("one",)
    assert said[-2:] == [("two",), "two"]
    if is_v1(acp):
        assert (first["code"], flood["code"]) == (-32603, -32603)
        assert first == {"code": -32603, "message": "Internal error: the session cannot be saved"}
    else:
        assert (first, flood) == ("error", "error")


def test_two_processes_do_not_mix_what_they_write(acp: Any, file: Path) -> None:
    """The one that was overtaken gets an error, and goes on when it has loaded the session again."""

    async def main() -> tuple[list[Any], list[Any]]:
        async with later(acp, file) as one, later(acp, file) as other:
            session = await one.new()
            ends = [await one.prompt(session, "one")]
            await other.load(session)
            ends += [await other.prompt(session, "two"), await one.prompt(session, "three")]
            await one.load(session)
            ends += [await one.prompt(session, "four")]
            one.updates.clear()
            await one.load(session)
            return ends, one.said()

    with acp_log():
        ends, said = run(main())
    assert [ends[0], ends[1], ends[3]] == ["end_turn"] * 3
    assert (ends[2]["code"] if is_v1(acp) else ends[2]) == (-32603 if is_v1(acp) else "error")
    assert [each for each in said if isinstance(each, tuple)] == [("one",), ("two",), ("four",)]


def test_updates_are_saved_while_the_turn_goes_on(acp: Any, file: Path) -> None:
    """After `save_seconds`, so that little is lost if the process is killed."""

    async def main() -> list[Any]:
        async with later(acp, file, seconds=0.0) as client:
            session = await client.new()
            handler = client.peer.handler
            turn = asyncio.ensure_future(handler.session_prompt(prompt_of(acp, session, "so far wait")))
            async with later(acp, file) as other:
                while "sofar" not in "".join(filter(lambda each: isinstance(each, str), other.said())):
                    other.updates.clear()
                    await other.load(session)
                turn.cancel()
                await asyncio.gather(turn, return_exceptions=True)
                return other.said()

    assert run(main())[0] == ("so far wait",)


def test_what_another_schema_has_written_is_passed_on(acp: Any, file: Path) -> None:
    """The client gets it as it was, and decides."""

    async def main() -> list[dict[str, Any]]:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, teller(acp, store)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            await client.ask("session/close", sessionId=session)
            stored = await store.get(session)
            odd = ['{"sessionUpdate":"of_tomorrow","b":null}', "3", "{", '{"a":1e400}', '{"sessionUpdate":"plan"}']
            await store.save(stored, odd)
            client.updates.clear()
            assert await client.load(session) == {}
            return [each for each in client.updates if each["sessionUpdate"] != "state_update"]

    with acp_log() as log:
        found = run(main())
    assert found[-2:] == [{"sessionUpdate": "of_tomorrow", "b": None}, {"sessionUpdate": "plan"}]
    assert texts(log).count("left out") == 3


def test_an_agent_without_a_store_is_told_so(acp: Any) -> None:
    """With the line to write."""

    class Empty(helpers_of(acp).StoredAgent):  # type: ignore[name-defined, misc]
        pass

    with pytest.raises(TypeError, match=r'Empty has no store: .*store = SqliteStore\("sessions.db"\)'):
        Empty(acp.RemoteClient(None))


def test_what_is_advertised_follows_from_the_class(packages: Packages, file: Path) -> None:
    """In protocol 1; protocol 2 has these for every agent."""
    acp: Any = packages(PROTOCOLS["v1"])
    response = acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)
    agent = teller(acp, helpers_of(acp).SqliteStore(file))(acp.RemoteClient(None))
    able = acp.advertise(agent, response).agent_capabilities
    assert able.load_session is True
    found = able.session_capabilities
    assert None not in (found.list, found.delete, found.resume, found.close)
    assert all(each is not acp.UNSET for each in (found.list, found.delete, found.resume, found.close))


class Slow(Failing):
    """A store whose transactions take some turns of the event loop."""

    async def save(self, session: Any, entries: Sequence[str]) -> None:
        """Save, in a while."""
        for _ in range(len(self.saved) % 7):
            await asyncio.sleep(0)
        await super().save(session, entries)


def said_in(store: Slow) -> str:
    """What the agent has said, as far as it is saved."""
    updates = [json.loads(entry) for entry in store.saved]
    return "".join(each["content"]["text"] for each in updates if each["sessionUpdate"] == "agent_message_chunk")


def test_an_answer_comes_after_all_of_its_turn_is_saved(acp: Any, file: Path) -> None:
    """Also where the next turn has begun, and saves at the same time."""

    async def main() -> None:
        store = Slow(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store, seconds=0.0)) as client:
            session = await client.new()
            for at in range(300):
                prompt = [{"type": "text", "text": f"<{at}> some words"}]
                await client.peer.request(f"p{at}", "session/prompt", {"sessionId": session, "prompt": prompt})
            ended = 0
            while ended < 300:
                message = await client.peer.receive()
                if "stopReason" in str(message):
                    assert f"<{ended}>somewords" in said_in(store), f"prompt {ended} was answered, and is not saved"
                    ended += 1

    run(main())


def test_what_is_recorded_during_a_save_is_saved_soon(acp: Any, file: Path) -> None:
    """Without a further update that would start it."""

    async def main() -> None:
        store = Slow(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store, seconds=0.0)) as client:
            session = await client.new()
            turn = asyncio.ensure_future(
                client.peer.handler.session_prompt(prompt_of(acp, session, "some pause words pause at the end wait"))
            )
            while "somewordsattheend" not in said_in(store):
                await asyncio.sleep(0.001)
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)

    run(main(), seconds=20)


def test_data_that_is_set_between_turns_is_saved_soon(acp: Any, file: Path) -> None:
    """It does not move the session up in the list."""

    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, teller(acp, store, seconds=0.0)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            before = await store.get(session)
            client.peer.handler.session(session).data = {"a": [1]}
            while (after := await store.get(session)).data != '{"a": [1]}':
                await asyncio.sleep(0.001)
            assert after.updated_at == before.updated_at

    run(main(), seconds=20)


def test_the_number_of_open_sessions_is_bounded(acp: Any, file: Path) -> None:
    """Until one is closed or deleted."""

    async def main() -> list[Any]:
        kind = teller(acp, helpers_of(acp).SqliteStore(file))
        kind.max_sessions = 2
        async with editor(acp, kind) as client:
            first, second = await client.new(), await client.new()
            refused = [await client.ask("session/new", cwd="/", mcpServers=[])]
            await client.prompt(first, "hello")
            await client.ask("session/close", sessionId=first)
            await client.new()
            refused.append(await client.load(first))
            assert await client.load(second) == {}
            return refused

    assert [error["code"] for error in run(main())] == [-32600, -32600]


def test_a_folder_that_is_relative_is_refused(acp: Any, file: Path) -> None:
    """Those of any system are absolute: the client may have another one."""

    async def main() -> list[Any]:
        async with later(acp, file) as client:
            folders = ["project", "", "./project", "C:project", "/project", "C:\\project"]
            return [await client.ask("session/new", cwd=each, mcpServers=[]) for each in folders]

    *refused, posix, windows = run(main())
    assert [each.get("code") for each in refused] == [-32602] * 4
    assert "sessionId" in posix
    assert "sessionId" in windows


def test_folders_are_those_of_the_last_opening(acp: Any, file: Path) -> None:
    """A client sends all of them each time: without any, there are none."""

    async def main() -> list[Any]:
        found = []
        async with later(acp, file) as client:
            more = {"cwd": "/project", "mcpServers": []}
            session = (await client.ask("session/new", additionalDirectories=["/a"], **more))["sessionId"]
            await client.prompt(session, "hello")
            for folders in ({}, {"additionalDirectories": ["/b", "/c"]}, {"additionalDirectories": ["/b"]}, {}):
                found.append((await client.ask("session/list"))["sessions"][0].get("additionalDirectories"))
                await client.ask("session/resume", sessionId=session, **more, **folders)
                await client.prompt(session, "hello")
            found.append((await client.ask("session/list"))["sessions"][0].get("additionalDirectories"))
        return [each or [] for each in found]

    assert run(main()) == [["/a"], [], ["/b", "/c"], ["/b"], []]


def test_secrets_of_servers_are_not_kept(acp: Any, file: Path) -> None:
    """A client sends the servers again when it opens the session."""
    kind = {} if is_v1(acp) else {"type": "stdio"}
    variable = {"name": "TOKEN", "value": "hunter2"}
    server = {"name": "files", "command": "/bin/files", "args": [], "env": [variable], **kind}

    async def main() -> None:
        async with later(acp, file) as client:
            session = (await client.ask("session/new", cwd="/project", mcpServers=[server]))["sessionId"]
            await client.prompt(session, "hello")

    run(main())
    kept = b""
    for each in sorted(file.parent.iterdir(), reverse=True):  # the journal first: its pages move to the database
        with suppress(FileNotFoundError):
            kept += each.read_bytes()
    assert b"hello" in kept
    assert b"hunter2" not in kept


def test_a_replay_from_anywhere_else_is_refused(packages: Packages, file: Path) -> None:
    """Of protocol 2."""
    acp = packages(PROTOCOLS["v2"])

    async def main() -> Any:
        async with later(acp, file) as client:
            session = await client.new()
            where = {"type": "_cursor", "cursor": "x"}
            return await client.ask("session/resume", sessionId=session, cwd="/project", replayFrom=where)

    assert run(main())["code"] == -32602
