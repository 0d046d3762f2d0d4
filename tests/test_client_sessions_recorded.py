"""What agents on the official SDKs say, through a session of a client: its state and its changes are what was said."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.options import Options
from acpgen.roles import Role
from tests.client_sessions import Stage, stage
from tests.runtime_support import V1, V2, run
from tests.session_model import SESSION, Event, expected
from tests.session_traffic import recorded, seen, text
from tests.support import Packages
from tests.test_helpers_state_changes import Reader, in_short

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,), options=Options(open=True, keep_unknown=True))


async def say(play: Stage, events: list[Event]) -> None:
    """Send what an agent has said, and wait until the client has handled it."""
    for number, event in enumerate(events):
        more = {} if event.method == "session/update" else {"id": f"q{number}"}
        await play.agent.send(method=event.method, params=event.params, **more)
    await play.barrier()


def of_agent(version: int) -> list[Event]:
    """All that an agent sends; ends of turns are left out, as the test has its own."""
    found = [each for each in recorded(version) if each.result is None]
    return [each for each in found if (each.params.get("update") or {}).get("state") != "idle"]


def opened(version: int) -> Any:
    """The fullest answer to `session/new`."""
    answers = [each.result for each in recorded(version) if each.method == "session/new"]
    return max(answers, key=lambda each: len(str(each)))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["before a turn", "half in a turn", "in a turn"])
def test_what_agents_have_sent(acp: ModuleType, version: int, share: float) -> None:
    """The same, whether it comes in a turn or not: each change is read once, and those of a turn by its reader."""
    said = of_agent(version)
    assert len(said) >= 20
    cut = round(len(said) * (1 - share))
    reader = Reader(acp)

    def session_changed(self: Any, session: Any, change: Any) -> None:
        reader(change)

    async def answer_permission(self: Any, session: Any, request: Any) -> Any:
        return play.helpers.permission_cancelled()

    async def read(turn: Any) -> None:
        async for change in turn:
            reader(change)

    async def main() -> Any:
        nonlocal play
        attributes = {"session_changed": session_changed, "answer_permission": answer_permission}
        async with stage(acp, version, **attributes) as play:
            answer = opened(version)
            session = await play.opened(SESSION, **{key: each for key, each in answer.items() if key != "sessionId"})
            events = [Event("session/new", None, answer), *said[:cut]]
            await say(play, said[:cut])
            turn = session.prompt("?")
            reading = asyncio.ensure_future(read(turn))
            request = await play.agent.prompted(SESSION)
            if version == 1:
                events.append(Event("session/prompt", request["params"]))
            else:
                message = {"sessionUpdate": "user_message", "messageId": f"u{request['id']}", "content": [text("?")]}
                events.append(Event("session/update", {"sessionId": SESSION, "update": message}))
            await say(play, said[cut:])
            await play.agent.end(request, session=SESSION)
            await reading
            if version == 2:
                idle = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
                events.append(Event("session/update", {"sessionId": SESSION, "update": idle}))
            return session, [*events, *said[cut:]] if version == 1 else [*events[:-1], *said[cut:], events[-1]]

    play: Any = None
    session, events = run(main())
    model = expected(events, version)
    assert seen(acp, session.state) == model
    assert [*reader.entries.values()] == [in_short(each) for each in model["entries"]]
    if version == 1:
        assert reader.plans.get("") == model["plan"]
    else:
        assert reader.plans == model["plans"]
        assert {key: each.hex() for key, each in reader.terminals.items()} == {
            key: each["output"] for key, each in model["terminals"].items()
        }
