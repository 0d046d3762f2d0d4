"""`StoredAgent.config_options`: what the user chooses for a session is checked, kept, and there after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import acp_log, run, texts
from tests.stored_support import Editor, editor, helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS, is_v1

pytestmark = pytest.mark.every_python

INVALID = -32602
BEFORE = ("small", False, "low")
"""The values of the options at first: the model, whether it searches, and its effort, which is in groups."""


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


@pytest.fixture(name="file")
def store_file(tmp_path: Path) -> Path:
    """Where the sessions are."""
    return tmp_path / "sessions.db"


def chooser(acp: Any, file: Path) -> type[Any]:
    """An agent whose sessions have options. A turn shows the model, waits for `go`, and shows it again."""
    helpers = helpers_of(acp)
    key, ids = ("id", {}) if is_v1(acp) else ("config_id", {"message_id": "m"})
    group = "group" if is_v1(acp) else "group_id"

    def choice(name: str) -> Any:
        return acp.SessionConfigSelectOption(value=name, name=name.title())

    class Chooser(teller(acp, helpers.SqliteStore(file))):  # type: ignore[misc]
        go: asyncio.Event

        async def on_open(self, session: Any, params: Any) -> None:
            session.data = session.data or {"model": "small", "search": False, "effort": "low", "turns": 0}

        def config_options(self, session: Any) -> Any:
            data = session.data
            models = [choice("small"), choice("large")]
            levels = [(each, [choice(each)]) for each in ("low", "high")]
            groups = [acp.SessionConfigSelectGroup(**{group: name}, name=name, options=own) for name, own in levels]
            return (
                acp.SessionConfigOptionSelect(**{key: "model"}, name="M", current_value=data["model"], options=models),
                acp.SessionConfigOptionBoolean(**{key: "search"}, name="S", current_value=data["search"]),
                acp.SessionConfigOptionSelect(
                    **{key: "effort"}, name="E", current_value=data["effort"], options=groups
                ),
            )

        async def work(self, params: Any) -> None:
            data = self.session(params.session_id).data
            await self.client.session_update(helpers.agent_message(params.session_id, data["model"], **ids))
            await self.go.wait()
            data["turns"] += 1
            await self.client.session_update(helpers.agent_message(params.session_id, f"{data['model']} now", **ids))

    return Chooser


async def choose(client: Editor, session: str, option: str, value: Any, **more: Any) -> Any:
    """The error of a choice, or the values of all options after it."""
    more = more or ({"type": "boolean"} if isinstance(value, bool) else {} if is_v1(client.acp) else {"type": "id"})
    params = {"sessionId": session, "configId": option, "value": value, **more}
    return values(await client.ask("session/set_config_option", **params))


def values(result: Any) -> Any:
    """The values of the options in a result; an error is as it is."""
    return result if "code" in result else tuple(each["currentValue"] for each in result["configOptions"])


def test_a_choice_is_in_all_responses_and_outlives_the_agent(acp: Any, file: Path) -> None:
    async def main() -> list[Any]:
        async with editor(acp, chooser(acp, file)) as client:
            opened = await client.ask("session/new", cwd="/project", mcpServers=[])
            session = opened["sessionId"]
            changed = [
                await choose(client, session, "model", "large"),
                await choose(client, session, "search", True),
                await choose(client, session, "effort", "high"),
            ]
        async with editor(acp, chooser(acp, file)) as client:
            loaded = await client.load(session)
            await choose(client, session, "search", False)
            resumed = await client.ask("session/resume", sessionId=session, cwd="/project", mcpServers=[])
            return [values(opened), *changed, values(loaded), values(resumed)]

    after = [("large", False, "low"), ("large", True, "low"), ("large", True, "high")]
    assert run(main()) == [BEFORE, *after, after[-1], ("large", False, "high")]


def test_a_choice_is_saved_before_its_answer(acp: Any, file: Path) -> None:
    """Nothing else saves the session: the agent is asked again beside the first one, which still runs."""

    async def main() -> Any:
        async with editor(acp, chooser(acp, file)) as first, editor(acp, chooser(acp, file)) as second:
            session = await first.new()
            await choose(first, session, "model", "large")
            return values(await second.load(session))

    assert run(main()) == ("large", *BEFORE[1:])


def test_what_is_not_offered_is_refused_and_changes_nothing(acp: Any, file: Path) -> None:
    wrong: list[tuple[str, Any, dict[str, Any]]] = [
        ("model", "huge", {}),
        ("model", True, {}),
        ("model", "low", {}),  # of another option
        ("effort", "", {}),
        ("search", "true", {}),
        ("turns", "small", {}),  # no option, though it is in the data
        ("x" * 1_000_000, "small", {}),
    ]
    if not is_v1(acp):
        wrong += [("model", "large", {"type": "_other"}), ("model", ["large"], {"type": "_other"})]

    async def main() -> tuple[list[Any], Any]:
        async with editor(acp, chooser(acp, file)) as client:
            session = await client.new()
            found = [await choose(client, session, option, value, **more) for option, value, more in wrong]
            return found, values(await client.load(session))

    errors, after = run(main())
    assert [each["code"] for each in errors] == [INVALID] * len(wrong)
    assert after == BEFORE
    assert [each["message"] for each in errors[4:6]] == [
        "Invalid params: the option has no such value",
        "Invalid params: the session has no such option",
    ]
    assert len(str(errors)) < 10_000


def test_a_choice_in_a_turn_is_for_this_turn_and_loses_nothing_of_it(acp: Any, file: Path) -> None:
    async def main() -> tuple[list[Any], Any]:
        async with editor(acp, chooser(acp, file)) as client:
            session = await client.new()
            agent = client.peer.handler
            agent.go = asyncio.Event()
            turn = asyncio.ensure_future(client.prompt(session, "Hello"))
            while not agent.turns.has_turns(session):
                await asyncio.sleep(0)
            params = {"session_id": session, "config_id": "model", "value": "large"}
            kind = acp.SetSessionConfigOptionRequestValueId if is_v1(acp) else acp.SetSessionConfigOptionRequestId
            await agent.session_set_config_option(kind(**params))
            agent.go.set()
            await turn
            return client.said()[1:], agent.session(session).data

    said, data = run(main())
    assert [each for each in said if "now" in str(each)] == ["large now"]
    assert data == {"model": "large", "search": False, "effort": "low", "turns": 1}


def test_an_agent_without_options(acp: Any, file: Path) -> None:
    async def main() -> tuple[Any, Any]:
        async with editor(acp, teller(acp, helpers_of(acp).SqliteStore(file))) as client:
            opened = await client.ask("session/new", cwd="/project", mcpServers=[])
            return opened, await choose(client, opened["sessionId"], "model", "large")

    opened, error = run(main())
    assert {*opened} == {"sessionId"}
    assert error["code"] == INVALID


def test_an_agent_that_keeps_options_elsewhere(acp: Any, file: Path) -> None:
    kept: list[Any] = []

    class Elsewhere(chooser(acp, file)):  # type: ignore[misc]
        async def on_config_option(self, session: Any, config_id: str, value: str | bool) -> None:
            kept.append((session.cwd, config_id, value))

    async def main() -> Any:
        async with editor(acp, Elsewhere) as client:
            return await choose(client, await client.new(), "model", "large")

    assert run(main()) == BEFORE
    assert kept == [("/project", "model", "large")]


def test_data_that_can_keep_no_option(acp: Any, file: Path) -> None:
    """The log says what to do. A dict of ours would be taken for data that the agent has set."""

    class Listed(chooser(acp, file)):  # type: ignore[misc]
        async def on_open(self, session: Any, params: Any) -> None:
            pass

        def config_options(self, session: Any) -> Any:
            return [acp.SessionConfigOptionBoolean(**{name: "search"}, name="S", current_value=False)]

    name = "id" if is_v1(acp) else "config_id"

    async def main() -> Any:
        async with editor(acp, Listed) as client:
            return await choose(client, await client.new(), "search", True)

    with acp_log() as records:
        assert run(main())["code"] == -32603
    assert "session.data is no dict: set it in `on_open`" in texts(records)
