"""Sessions of `StoredAgent` that nobody has prompted: they are not listed, and do not stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import run
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


def announcing(acp: Any, file: Path, *, seconds: float = 0.0) -> type[Any]:
    """Agents that tell their commands after the response that opens a session, as most agents do."""
    helpers = helpers_of(acp)

    class Announcing(teller(acp, helpers.SqliteStore(file), seconds=seconds)):  # type: ignore[misc]
        async def session_new(self, params: Any) -> Any:
            response = await super().session_new(params)
            known = [helpers.command("test", "Runs the tests")]
            helpers.after_response(self.client.session_update(helpers.commands(response.session_id, known)))
            return response

    return Announcing


COMMANDS = "available_commands_update"


async def opened(client: Any) -> str:
    """A new session whose commands have come, and what can be saved of it is saved."""
    session = await client.new()
    while not client.updates:
        client.updates.append((await client.peer.receive())["params"]["update"])
    await client.peer.handler.session(session).save()
    return str(session)


def rows(file: Path) -> int:
    """How many sessions are in a file."""
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("SELECT count(*) FROM sessions").fetchone()[0])


def test_a_session_is_listed_from_its_first_prompt_on(acp: Any, file: Path) -> None:
    """Not because something was sent in it; what was sent is loaded before the prompt."""

    async def main() -> tuple[Any, Any, list[Any], list[Any]]:
        async with editor(acp, announcing(acp, file)) as client:
            session = await opened(client)
            before = await client.ask("session/list")
            client.updates.clear()
            await client.load(session)
            loaded = client.said()
            await client.prompt(session, "Hello")
            after = await client.ask("session/list")
        async with editor(acp, announcing(acp, file)) as client:
            await client.load(session)
            return before, after, loaded, client.said()

    before, after, loaded, said = run(main())
    assert before == {"sessions": []}
    assert [each["title"] for each in after["sessions"]] == ["Hello"]
    assert loaded == [COMMANDS]
    assert said == [COMMANDS, ("Hello",), "session_info_update Hello", "Hello"]


def test_what_is_not_known_of_a_session_is_left_out(acp: Any, file: Path) -> None:
    """Editors that cannot read null show no list at all."""

    async def main() -> Any:
        async with editor(acp, announcing(acp, file)) as client:
            session = await opened(client)
            link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
            await client.ask("session/prompt", sessionId=session, prompt=[link])
            while not (found := await client.ask("session/list"))["sessions"]:
                pass
            return found["sessions"][0]

    assert {*run(main())} == {"sessionId", "cwd", "updatedAt"}


def test_a_prompt_without_blocks_is_a_prompt_where_it_is_allowed(acp: Any, file: Path) -> None:
    class Silent(announcing(acp, file)):  # type: ignore[misc]
        async def work(self, params: Any) -> None:
            pass

    async def main() -> tuple[Any, int]:
        async with editor(acp, Silent) as client:
            session = await opened(client)
            end = await client.prompt(session)
            return end, len((await client.ask("session/list"))["sessions"])

    end, count = run(main())
    assert (end == "end_turn", count) == ((True, 1) if is_v1(acp) else (False, 0))


@pytest.mark.parametrize("is_prompted", [False, True], ids=["unprompted", "prompted"])
def test_a_session_without_a_prompt_is_gone_when_it_is_closed(acp: Any, file: Path, *, is_prompted: bool) -> None:
    async def main() -> tuple[Any, Any]:
        async with editor(acp, announcing(acp, file)) as client:
            session = await opened(client)
            if is_prompted:
                await client.prompt(session, "Hello")
            closed = await client.ask("session/close", sessionId=session)
            return closed, (await client.load(session)).get("code")

    assert run(main()) == ({}, None if is_prompted else -32002)
    assert rows(file) == int(is_prompted)


def test_a_session_that_another_one_has_prompted_is_not_dropped(acp: Any, file: Path) -> None:
    async def main() -> Any:
        async with editor(acp, announcing(acp, file)) as first, editor(acp, announcing(acp, file)) as second:
            session = await opened(first)
            await second.load(session)
            await second.prompt(session, "Hello")
            await first.ask("session/close", sessionId=session)
            return await second.prompt(session, "Again")

    assert run(main()) == "end_turn"


def test_a_session_without_a_prompt_can_be_resumed_when_the_connection_was_lost(acp: Any, file: Path) -> None:
    """The client has its id; if nobody comes, `SqliteStore` deletes it after 30 days."""

    async def main() -> Any:
        async with editor(acp, announcing(acp, file)) as client:
            session = await opened(client)
        async with editor(acp, announcing(acp, file)) as client:
            await client.load(session)
            assert await client.ask("session/list") == {"sessions": []}
            return await client.prompt(session, "Hello")

    assert run(main()) == "end_turn"


def test_much_that_is_sent_before_a_prompt_is_not_kept_in_memory(acp: Any, file: Path) -> None:
    async def main() -> Any:
        async with editor(acp, announcing(acp, file, seconds=1000.0)) as client:
            session = await opened(client)
            ids = {} if is_v1(acp) else {"message_id": "m"}
            agent = client.peer.handler
            for at in range(20):
                await agent.client.session_update(helpers_of(acp).agent_message(session, f"{at:200000}", **ids))
            stored = await agent.store.get(session)
            return stored.entries

    assert run(main()) > 0
