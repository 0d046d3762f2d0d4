"""`StoredAgent` where something comes while a session is being saved: what was answered is in the store."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import acp_log, run
from tests.stored_support import Editor, editor, helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS, is_v1

pytestmark = pytest.mark.every_python

FULL = "Internal error: the session cannot be saved"


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


class Held:
    """A store on another one, whose writes wait while `gate` is shut, and fail while `is_full`."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()
        self.is_full = False
        self.saved: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def create(self, session: Any) -> None:
        """Create, or fail."""
        await self._wait()
        await self.inner.create(session)

    async def save(self, session: Any, entries: Sequence[str]) -> None:
        """Save, or fail."""
        await self._wait()
        await self.inner.save(session, entries)
        self.saved += entries

    async def _wait(self) -> None:
        if not self.gate.is_set():
            self.waiting.set()
        await self.gate.wait()
        if self.is_full:
            raise OSError(28, "No space left on device")


async def start(client: Editor, session: str, text: str) -> None:
    """Send a prompt, and do not wait."""
    prompt = [{"type": "text", "text": text}]
    await client.peer.request("prompt", "session/prompt", {"sessionId": session, "prompt": prompt})


async def until(client: Editor, condition: Callable[[Any], bool]) -> Any:
    """The first message for which `condition` is true."""
    while not condition(message := await client.peer.receive()):
        assert message is not None, "the connection has ended"
    return message


async def end(client: Editor) -> Any:
    """How the turn ends: the stop reason, or the message of the error."""
    if is_v1(client.acp):
        answer = await until(client, lambda message: message.get("id") == "prompt")
        return answer["result"]["stopReason"] if "result" in answer else answer["error"]["message"]
    update = (await until(client, lambda message: "idle" in str(message)))["params"]["update"]
    return update["error"]["message"] if "error" in update else update["stopReason"]


def has_said(text: str) -> Callable[[Any], bool]:
    """Whether a message is of the agent and has this text."""
    return lambda message: "agent_message_chunk" in str(message) and text in str(message)


def test_a_cancellation_does_not_answer_before_the_turn_is_saved(acp: Any, file: Path) -> None:
    """It comes when all is said, and the last save goes on."""

    async def main() -> None:
        store = Held(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store)) as client:
            session = await client.new()
            store.gate.clear()
            await start(client, session, "hello")
            await store.waiting.wait()
            await client.peer.notify("session/cancel", {"sessionId": session})
            before = await client.peer.ping()
            assert not any("stopReason" in str(message) for message in before)
            store.gate.set()
            await end(client)
            assert any("hello" in entry and "agent" in entry for entry in store.saved)

    run(main())


def test_a_cancelled_turn_that_cannot_be_saved_is_an_error(acp: Any, file: Path) -> None:
    """As any other turn, with the reason."""

    async def main() -> Any:
        store = Held(helpers_of(acp).SqliteStore(file))
        async with editor(acp, teller(acp, store)) as client:
            session = await client.new()
            store.is_full = True
            await start(client, session, "hello wait")
            await until(client, has_said("hello"))
            await client.peer.notify("session/cancel", {"sessionId": session})
            return await end(client)

    with acp_log():
        assert run(main()) == FULL


def test_a_session_that_cannot_be_created_says_why(acp: Any, file: Path) -> None:
    async def main() -> Any:
        store = Held(helpers_of(acp).SqliteStore(file))
        store.is_full = True
        async with editor(acp, teller(acp, store)) as client:
            return await client.ask("session/new", cwd="/", mcpServers=[])

    with acp_log():
        assert run(main())["message"] == FULL


def test_a_prompt_that_comes_while_its_session_closes_is_cancelled(acp: Any, file: Path) -> None:
    """It is not answered as if what it says were kept."""
    helpers = helpers_of(acp)
    ids = {} if is_v1(acp) else {"message_id": "m"}
    go_on = asyncio.Event()

    class Late(helpers.StoredAgent):  # type: ignore[name-defined, misc]
        store = Held(helpers.SqliteStore(file))

        async def work(self, params: Any) -> None:
            await go_on.wait()
            await self.client.session_update(helpers.agent_message(params.session_id, "lost", **ids))

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

    async def main() -> None:
        async with editor(acp, Late) as client:
            session = await client.new()
            client.peer.handler.session(session).title = "to be saved"
            Late.store.gate.clear()
            await client.peer.request("close", "session/close", {"sessionId": session})
            await Late.store.waiting.wait()
            await start(client, session, "late")
            await client.peer.ping()
            Late.store.gate.set()
            assert await end(client) == "cancelled"
            await until(client, lambda message: message.get("id") == "close")
            go_on.set()
            await client.load(session)
            assert "lost" not in client.said()

    run(main())


@pytest.mark.parametrize("is_saved", [False, True], ids=["unsaved", "saved"])
def test_a_session_is_not_loaded_into_a_turn_that_was_overtaken(acp: Any, file: Path, *, is_saved: bool) -> None:
    """Else the turn ends well, and a part of it is lost: its start if that was not saved yet, else its end."""
    helpers = helpers_of(acp)
    ids = {} if is_v1(acp) else {"message_id": "m"}
    go_on = asyncio.Event()
    base: Any = teller(acp, helpers.SqliteStore(file), seconds=0.0 if is_saved else 1000.0)

    class Long(base):  # type: ignore[misc]
        async def work(self, params: Any) -> None:
            await super().work(params)
            if "mine" in params.prompt[0].text:
                await self.client.session_update(helpers.agent_message(params.session_id, "so far", **ids))
                await go_on.wait()
                await self.client.session_update(helpers.agent_message(params.session_id, "tail", **ids))

    async def main() -> None:
        async with editor(acp, Long) as one, editor(acp, teller(acp, helpers.SqliteStore(file))) as other:
            session = await one.new()
            assert await one.prompt(session, "one") == "end_turn"
            await start(one, session, "mine")
            await until(one, has_said("so far"))
            await other.load(session)
            while is_saved and "so far" not in str(other.said()[-1:]):
                other.updates.clear()
                await other.load(session)
            assert await other.prompt(session, "two") == "end_turn"
            assert "changed" in (await one.load(session))["message"]
            go_on.set()
            assert "changed or deleted by somebody else" in await end(one)
            assert await one.load(session) == {}
            assert await one.prompt(session, "three") == "end_turn"
            one.updates.clear()
            await one.load(session)
            mine: list[Any] = [("mine",)] if is_saved else []
            assert [each for each in one.said() if isinstance(each, tuple)] == [("one",), *mine, ("two",), ("three",)]
            assert "tail" not in str(one.said())

    with acp_log():
        run(main())


def test_what_is_refused_is_not_kept(acp: Any, file: Path) -> None:
    """An agent that goes on when updates raise fills no memory, and what the client has not got is not loaded."""
    helpers = helpers_of(acp)
    ids = {} if is_v1(acp) else {"message_id": "m"}
    store = Held(helpers.SqliteStore(file))
    refused: list[int] = []

    class Stubborn(helpers.StoredAgent):  # type: ignore[name-defined, misc]
        save_seconds = 1000.0

        async def work(self, params: Any) -> None:
            store.is_full = True
            for at in range(10):
                try:
                    text = f"<{at}>{at * 10**6:600000}"
                    await self.client.session_update(helpers.agent_message(params.session_id, text, **ids))
                except acp.InternalError:
                    refused.append(at)
            store.is_full = False

    Stubborn.store = store

    async def main() -> tuple[str, str]:
        async with editor(acp, Stubborn) as client:
            session = await client.new()
            assert await client.prompt(session, "hello") == "end_turn"
            sent = "".join(filter(lambda each: isinstance(each, str) and "<" in each, client.said()))
            client.updates.clear()
            await client.load(session)
            return sent, "".join(filter(lambda each: isinstance(each, str) and "<" in each, client.said()))

    with acp_log():
        sent, loaded = run(main())
    assert refused == [*range(2, 10)]
    assert sent == loaded


def test_all_that_save_at_the_same_time_wait_for_what_they_recorded(acp: Any, file: Path) -> None:
    """In any order of their steps, also where another one has taken what they wait for."""
    helpers = helpers_of(acp)

    class Stepping(Held):
        async def save(self, session: Any, entries: Sequence[str]) -> None:
            for _ in range(20):
                await asyncio.sleep(0)
            await super().save(session, entries)

    async def saver(active: Any, store: Held, number: int, steps: int) -> None:
        for _ in range(steps):
            await asyncio.sleep(0)
        await active.record({"n": f"<{number}>"})
        await active.save()
        assert f"<{number}>" in str(store.saved), f"{number} after {steps} steps"

    async def main() -> None:
        store = Stepping(helpers.SqliteStore(file))
        for steps in range(60):
            known = helpers.StoredSession(id=str(steps), protocol=1, cwd="/", updated_at="2026-01-31T12:00:00.000000Z")
            await store.create(known)
            active = helpers.ActiveSession(store, known, save_seconds=1000.0)
            store.saved.clear()
            calls = [saver(active, store, 0, 0), saver(active, store, 1, 5), saver(active, store, 2, steps)]
            await asyncio.gather(*calls)
            assert len(store.saved) == 3
        await store.close()

    run(main())


def test_a_cursor_that_is_nested_deeply_is_refused(acp: Any, file: Path) -> None:
    async def main() -> Any:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            return await client.ask("session/list", cursor="[" * 100_000)

    assert run(main())["code"] == -32602


def test_a_new_file_waits_for_another_process_that_opens_it(acp: Any, file: Path) -> None:
    async def main() -> None:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store = helpers_of(acp).SqliteStore(file)
        getting = asyncio.ensure_future(store.get("s"))
        await asyncio.wait([getting], timeout=0.3)
        assert not getting.done()
        other.execute("COMMIT")
        other.close()
        assert await getting is None
        await store.close()

    run(main())
