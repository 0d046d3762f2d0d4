"""The data of a stored session: what is changed in place is saved, and what cannot be saved is an error."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import acp_log, run, texts
from tests.stored_support import editor, helpers_of
from tests.support import Packages
from tests.test_stored_agent import Failing
from tests.test_stored_agent_races import Held
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


def changing(acp: Any, kept: Any, change: Callable[[Any, str], object], *, seconds: float = 1000.0) -> type[Any]:
    """Agents that call `change` with the session and the text of each prompt."""

    class Changing(helpers_of(acp).StoredAgent):  # type: ignore[name-defined, misc]
        store = kept
        save_seconds = seconds

        async def work(self, params: Any) -> None:
            change(self.session(params.session_id), params.prompt[0].text)

    return Changing


def append(session: Any, text: str) -> None:
    """As an author would write it."""
    if session.data is None:
        session.data = {"said": []}
    session.data["said"].append(text)


def test_what_is_changed_in_place_is_kept(acp: Any, file: Path) -> None:
    """Within a turn, from turn to turn, and by another process."""

    async def main() -> tuple[Any, Any]:
        helpers = helpers_of(acp)
        async with editor(acp, changing(acp, helpers.SqliteStore(file), append)) as client:
            session = await client.new()
            assert [await client.prompt(session, text) for text in ("one", "two")] == ["end_turn"] * 2
            live = client.peer.handler.session(session).data
        async with editor(acp, changing(acp, helpers.SqliteStore(file), append)) as client:
            await client.load(session)
            await client.prompt(session, "three")
            return live, client.peer.handler.session(session).data

    assert run(main()) == ({"said": ["one", "two"]}, {"said": ["one", "two", "three"]})


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda data: data["list"].extend([2, 3]), {"list": [1, 2, 3], "inner": {"a": {}}}),
        (lambda data: data["inner"]["a"].update(b=None), {"list": [1], "inner": {"a": {"b": None}}}),
        (lambda data: data.pop("list"), {"inner": {"a": {}}}),
        (lambda data: data.clear(), {}),
    ],
)
def test_a_change_between_turns_is_saved_soon(acp: Any, file: Path, change: Any, expected: Any) -> None:
    """Without a prompt, as it is after `save_seconds`."""

    async def main() -> None:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, changing(acp, store, lambda *_: None, seconds=0.0)) as client:
            key = await client.new()
            session = client.peer.handler.session(key)
            session.data = {"list": [1], "inner": {"a": {}}}
            while not (await store.get(key)).data:
                await asyncio.sleep(0)
            change(session.data)
            while json.loads((await store.get(key)).data) != expected:
                await asyncio.sleep(0.001)

    run(main(), seconds=20)


def test_what_is_set_is_the_object_itself(acp: Any, file: Path) -> None:
    """A history that is set once may be appended to later."""
    history: list[str] = []

    def keep(session: Any, text: str) -> None:
        session.data = history
        history.append(text)
        assert session.data is history

    async def main() -> Any:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, changing(acp, store, keep)) as client:
            session = await client.new()
            await client.prompt(session, "later")
            return (await store.get(session)).data

    assert run(main()) == '["later"]'


def test_data_that_is_only_read_is_not_written(acp: Any, file: Path) -> None:
    async def main() -> None:
        store = Failing(helpers_of(acp).SqliteStore(file))
        async with editor(acp, changing(acp, store, append)) as client:
            session = await client.new()
            await client.prompt(session, "one")
            store.is_full = True  # so that any write fails
            active = client.peer.handler.session(session)
            assert active.data == {"said": ["one"]}
            await active.save()
            store.is_full = False

    run(main())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({1, 2}, "session.data is of the type set"),
        ({"a": [0, {"b": object()}]}, "session.data['a'][1]['b'] is of the type object"),
        ({"a": b"x"}, "session.data['a'] is of the type bytes"),
        ({"a": {1: "x"}}, "session.data['a'] has a key that is no str: 1, of the type int"),
        ([{None: 1}], "session.data[0] has a key that is no str: None"),
    ],
)
def test_what_is_no_json_is_refused_where_it_is_set(acp: Any, file: Path, value: Any, text: str) -> None:
    """Keys that are numbers would be texts when the session is opened again."""

    async def main() -> None:
        async with editor(acp, changing(acp, helpers_of(acp).SqliteStore(file), append)) as client:
            session = client.peer.handler.session(await client.new())
            session.data = {"good": 1}
            with pytest.raises(TypeError) as caught:
                session.data = value
            assert text in str(caught.value)
            assert session.data == {"good": 1}

    run(main())


def test_data_that_contains_itself_is_refused(acp: Any, file: Path) -> None:
    async def main() -> None:
        async with editor(acp, changing(acp, helpers_of(acp).SqliteStore(file), append)) as client:
            session = client.peer.handler.session(await client.new())
            circle: list[Any] = []
            circle.append(circle)
            deep = [json.loads("[" * 900 + "]" * 900)] if sys.version_info < (3, 13) else []  # later, `json` writes it
            for value in (circle, *deep):
                nested = value
                for _ in range(2000):
                    nested = [nested]
                with pytest.raises(ValueError, match=r"session\.data is no JSON"):
                    session.data = nested

    run(main())


def test_data_that_becomes_no_json_is_an_error_of_the_turn(acp: Any, file: Path) -> None:
    """It names the session and the place; what was said is saved, and the data as soon as it is JSON again."""

    def spoil(session: Any, text: str) -> None:
        if session.data is None:
            session.data = {"n": []}
        session.data["n"].append({"when": {text}} if text == "bad" else text)
        if text == "repair":
            session.data["n"] = [each for each in session.data["n"] if isinstance(each, str)]

    async def main() -> tuple[str, list[Any], list[Any]]:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, changing(acp, store, spoil)) as client:
            session = await client.new()
            ends, kept = [], []
            for text in ("good", "bad", "repair"):
                ends.append(await client.prompt(session, text))
                found = await store.get(session)
                kept.append((json.loads(found.data), found.entries))
            return session, ends, kept

    with acp_log() as log:
        session, ends, kept = run(main())
    failed = ends[1]["message"] if is_v1(acp) else ends[1]
    assert (ends[0], failed, ends[2]) == (
        "end_turn",
        "Internal error: the session cannot be saved" if is_v1(acp) else "error",
        "end_turn",
    )
    first, title = 1, 1
    assert kept == [
        ({"n": ["good"]}, first + title),
        ({"n": ["good"]}, first + title + 1),
        ({"n": ["good", "repair"]}, first + title + 2),
    ]
    assert f"the session {session!r} cannot be saved: session.data['n'][1]['when'] is of the type set" in texts(log)


def test_data_that_was_not_saved_is_saved_later(acp: Any, file: Path) -> None:
    async def main() -> Any:
        store = Failing(helpers_of(acp).SqliteStore(file))
        async with editor(acp, changing(acp, store, append)) as client:
            session = await client.new()
            store.is_full = True
            await client.prompt(session, "one")
            store.is_full = False
            active = client.peer.handler.session(session)
            await active.save()
            return (await store.get(session)).data

    with acp_log():
        assert run(main()) == '{"said": ["one"]}'


def test_data_that_another_process_has_changed_is_seen(acp: Any, file: Path) -> None:
    """When the session is opened again, also where nothing was said meanwhile."""

    async def main() -> Any:
        helpers = helpers_of(acp)
        agent = changing(acp, helpers.SqliteStore(file), append)
        async with editor(acp, agent) as one, editor(acp, agent) as other:
            session = await one.new()
            await one.prompt(session, "one")
            await other.load(session)
            active = other.peer.handler.session(session)
            active.data["said"].append("between turns")
            await active.save()
            assert one.peer.handler.session(session).data == {"said": ["one"]}
            await one.load(session)
            return one.peer.handler.session(session).data

    assert run(main()) == {"said": ["one", "between turns"]}


def test_data_may_be_changed_in_a_thread(acp: Any, file: Path) -> None:
    """As by a library that blocks."""

    class Threaded(helpers_of(acp).StoredAgent):  # type: ignore[name-defined, misc]
        store = helpers_of(acp).SqliteStore(file)

        async def work(self, params: Any) -> None:
            await asyncio.to_thread(append, self.session(params.session_id), params.prompt[0].text)

    async def main() -> Any:
        async with editor(acp, Threaded) as client:
            session = await client.new()
            await client.prompt(session, "one")
            return (await Threaded.store.get(session)).data

    assert run(main()) == '{"said": ["one"]}'


class Unsteady(dict[str, int]):
    """As when a thread adds a key while it is read."""

    is_changing = True

    def items(self) -> Any:
        """Fail once."""
        if self.is_changing:
            self.is_changing = False
            raise RuntimeError("dictionary changed size during iteration")
        return super().items()


def test_data_that_cannot_be_read_once_does_not_stop_later_saves(acp: Any, file: Path) -> None:
    def change(session: Any, text: str) -> None:
        session.data = session.data or {}
        session.data[text] = Unsteady(n=1) if text == "one" else 2

    async def main() -> tuple[list[Any], Any]:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, changing(acp, store, change)) as client:
            session = await client.new()
            ends = [await client.prompt(session, text) for text in ("one", "two")]
            return ends, json.loads((await store.get(session)).data)

    with acp_log():
        ends, data = run(main())
    assert (ends[0] != "end_turn", ends[1], data) == (True, "end_turn", {"one": {"n": 1}, "two": 2})


def test_data_that_is_changed_during_a_save_is_saved_soon(acp: Any, file: Path) -> None:
    async def main() -> Any:
        store = Held(helpers_of(acp).SqliteStore(file))
        async with editor(acp, changing(acp, store, append, seconds=0.01)) as client:
            session = await client.new()
            await client.prompt(session, "one")
            active = client.peer.handler.session(session)
            active.data["said"].append("before")
            store.gate.clear()
            saving = asyncio.ensure_future(active.save())
            await store.waiting.wait()
            active.data["said"].append("meanwhile")
            store.gate.set()
            await saving
            while "meanwhile" not in (found := (await store.get(session)).data):
                await asyncio.sleep(0.01)
            return json.loads(found)

    assert run(main()) == {"said": ["one", "before", "meanwhile"]}


def test_a_cancelled_task_does_not_drop_a_transaction_that_waits(acp: Any, file: Path) -> None:
    """For the thread, in which another one runs."""

    async def main() -> Any:
        store = helpers_of(acp).SqliteStore(file)
        async with editor(acp, changing(acp, store, append)) as client:
            session = await client.new()
            await client.prompt(session, "one")
            with closing(sqlite3.connect(file)) as other:
                other.execute("BEGIN IMMEDIATE")
                running = asyncio.ensure_future(store.delete("unknown"))  # waits for the other writer
                deleting = asyncio.ensure_future(store.delete(session))
                await asyncio.sleep(0)
                deleting.cancel()
                with suppress(asyncio.CancelledError):
                    await deleting
            await running
            return await store.get(session)

    assert run(main()) is None
