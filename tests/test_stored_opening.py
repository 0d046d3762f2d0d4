"""What opens with a stored session and closes with it."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.runtime_support import V1, acp_log, run
from tests.stored_support import editor, helpers_of, teller
from tests.support import Packages
from tests.turns_support import PROTOCOLS

pytestmark = pytest.mark.every_python


@pytest.fixture(name="acp", params=PROTOCOLS.values(), ids=PROTOCOLS.keys())
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def opening(acp: Any, file: Path, seen: list[str], *, bad: bool = False) -> type[Any]:
    """Agents that note what is opened and closed."""
    told = teller(acp, helpers_of(acp).SqliteStore(file))

    class Opening(told):  # type: ignore[misc, valid-type]
        async def on_open(self, session: Any, params: Any) -> None:
            assert self.session(session.id) is session
            seen.append(f"open {type(params).__name__}")

        async def on_close(self, session_id: str) -> None:
            seen.append("close")
            if bad:
                raise ValueError("it cannot be closed")

    return Opening


def test_a_session_opens_and_closes_what_is_its_own(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with editor(acp, opening(acp, tmp_path / "s.db", seen)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            await client.load(session)  # while it is open
            await client.ask("session/close", sessionId=session)
            await client.ask("session/resume", sessionId=session, cwd="/project", mcpServers=[])
            await client.ask("session/delete", sessionId=session)
            await client.ask("session/delete", sessionId=session)
            seen.append("end")
            await client.new()
            await client.new()

    run(main())
    loaded = "LoadSessionRequest" if acp.PROTOCOL_VERSION == 1 else "ResumeSessionRequest"
    assert seen == [
        *("open NewSessionRequest", "close", f"open {loaded}", "close"),
        *("open ResumeSessionRequest", "close", "end"),
        *("open NewSessionRequest", "open NewSessionRequest", "close", "close"),
    ]


def test_a_session_that_cannot_be_opened_can_be_opened_later(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []
    failing = [False, True, False]

    class Opening(opening(acp, tmp_path / "s.db", seen)):  # type: ignore[misc]
        async def on_open(self, session: Any, params: Any) -> None:
            if failing.pop(0):
                raise acp.InvalidParamsError("no such server")
            await super().on_open(session, params)

    async def main() -> None:
        async with editor(acp, Opening) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            resume = {"sessionId": session, "cwd": "/project", "mcpServers": []}
            refused = await client.ask("session/resume", **resume)
            assert refused["message"].endswith("no such server")
            assert "code" not in await client.ask("session/resume", **resume)
            await client.prompt(session, "again")

    run(main())
    assert seen == ["open NewSessionRequest", "close", "open ResumeSessionRequest", "close"]


def test_what_cannot_be_closed_is_logged(acp: Any, tmp_path: Path) -> None:
    seen: list[str] = []

    async def main() -> Any:
        async with editor(acp, opening(acp, tmp_path / "s.db", seen, bad=True)) as client:
            session = await client.new()
            return await client.ask("session/close", sessionId=session)

    with acp_log() as log:
        assert "code" not in run(main())
    assert seen == ["open NewSessionRequest", "close"]
    assert any("`on_close` has failed" in record.getMessage() for record in log)


# --- Calls that come at the same time --------------------------------------------------------------------------------


class Gates:
    """Where `on_open` and `on_close` of `gated` wait; `seen` has when they begin and end, and `sessions` of which."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.sessions: list[str] = []
        self.opening, self.closing = asyncio.Event(), asyncio.Event()
        self.opening.set()
        self.closing.set()

    async def until(self, *seen: str) -> None:
        """Wait until so much has happened, and nothing else."""
        while len(self.seen) < len(seen):
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert self.seen == [*seen]


def gated(acp: Any, file: Path, gates: Gates) -> type[Any]:
    class Gated(teller(acp, helpers_of(acp).SqliteStore(file))):  # type: ignore[misc]
        async def on_open(self, session: Any, params: Any) -> None:
            gates.seen.append("opens")
            try:
                await gates.opening.wait()
            except asyncio.CancelledError:
                gates.seen.append("opening was cancelled")
                await gates.opening.wait()
            gates.seen.append("open")

        async def on_close(self, session_id: str) -> None:
            gates.seen.append("closes")
            await gates.closing.wait()
            gates.seen.append("closed")

    return Gated


async def begun(client: Any, number: int, method: str, session: str) -> None:
    """Send a request, and wait for nothing."""
    more = {"cwd": "/project", "mcpServers": []} if method == "session/resume" else {}
    await client.peer.request(number, method, {"sessionId": session, **more})


async def answers(client: Any, *numbers: int) -> list[Any]:
    """The codes of the errors to these requests, None for results."""
    found = dict[int, Any]()
    while not {*numbers} <= found.keys():
        message = await client.peer.receive()
        if "id" in message:
            found[message["id"]] = message.get("error", {}).get("code")
    return [found[number] for number in numbers]


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
def test_a_session_that_ends_while_it_opens_is_closed_once(acp: Any, tmp_path: Path, method: str) -> None:
    async def main() -> Any:
        gates = Gates()
        async with editor(acp, gated(acp, tmp_path / "s.db", gates)) as client:
            session = await client.new()
            await client.prompt(session, "hello")
            await client.ask("session/close", sessionId=session)
            gates.seen.clear()
            gates.opening.clear()
            await begun(client, 91, "session/resume", session)
            await gates.until("opens")
            await begun(client, 92, method, session)
            await gates.until("opens")
            gates.opening.set()
            assert await answers(client, 91, 92) == [-32002, None]
            await gates.until("opens", "open", "closes", "closed")
            assert (await client.prompt(session, "again"))["code"] == -32002
        await gates.until("opens", "open", "closes", "closed")

    run(main())


def test_sessions_that_are_opened_twice_at_a_time_are_opened_in_turn(acp: Any, tmp_path: Path) -> None:
    async def main() -> Any:
        gates = Gates()
        async with editor(acp, gated(acp, tmp_path / "s.db", gates)) as client:
            session = await client.new()
            gates.closing.clear()
            await begun(client, 91, "session/resume", session)
            await begun(client, 92, "session/resume", session)
            await gates.until("opens", "open", "closes")
            await client.ask("_other")  # what waits holds up nothing else
            gates.closing.set()
            assert await answers(client, 91, 92) == [None, None]
            once = ("opens", "open", "closes", "closed")
            await gates.until(*once, *once, "opens", "open")
        await gates.until(*once, *once, *once)

    run(main())


def test_a_session_that_opens_when_the_connection_ends_is_closed_once(acp: Any, tmp_path: Path) -> None:
    """Its `on_open` ignores that it is cancelled, and ends when all is over. It holds up no other session."""

    async def main() -> Any:
        gates = Gates()
        options = acp.ConnectionOptions(cleanup_seconds=0.05)
        async with editor(acp, gated(acp, tmp_path / "s.db", gates), options=options) as client:
            await client.new()
            gates.opening.clear()
            await client.peer.request(91, "session/new", {"cwd": "/project", "mcpServers": []})
            await gates.until("opens", "open", "opens")
        over = ("opens", "open", "opens", "opening was cancelled", "closes", "closed")
        await gates.until(*over)
        gates.opening.set()
        await gates.until(*over, "open", "closes", "closed")

    with acp_log():
        run(main())


@pytest.mark.parametrize("seed", range(25))
def test_random_requests_open_and_close_in_pairs(acp: Any, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    last: dict[str, str] = {}

    def note(session: str, *, after: str, now: str) -> None:
        assert last.get(session, "closed") == after
        last[session] = now

    async def steps() -> None:
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)

    class Noting(teller(acp, helpers_of(acp).SqliteStore(tmp_path / "s.db"))):  # type: ignore[misc]
        async def on_open(self, session: Any, params: Any) -> None:
            note(session.id, after="closed", now="opens")
            try:
                await steps()
                if chance.random() < 0.3:
                    raise acp.InvalidParamsError("not now")
            except BaseException:
                note(session.id, after="opens", now="closed")
                raise
            note(session.id, after="opens", now="open")

        async def on_close(self, session_id: str) -> None:
            note(session_id, after="open", now="closes")
            try:
                await steps()
            finally:
                note(session_id, after="closes", now="closed")

    async def main() -> None:
        async with editor(acp, Noting) as client:
            found = [await client.ask("session/new", cwd="/project", mcpServers=[]) for _ in range(4)]
            sessions = [each["sessionId"] for each in found if "sessionId" in each]
            for number in range(100, 130) if sessions else ():
                method = chance.choice(["session/resume", "session/resume", "session/close", "session/delete"])
                await begun(client, number, method, chance.choice(sessions))
                await steps()
                if chance.random() < 0.2:
                    await client.peer.notify("$/cancel_request", {"requestId": number})
            if chance.random() < 0.5:
                await answers(client, *range(100, 130) if sessions else ())

    with acp_log() as log:
        run(main())
    assert set(last.values()) <= {"closed"}
    assert not [record for record in log if record.exc_info]


# --- What is saved ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["end", "fail", "cancel"])
def test_tool_calls_that_the_end_of_a_turn_ends_are_saved_before_the_answer(acp: Any, tmp_path: Path, how: str) -> None:
    helpers = helpers_of(acp)
    store = helpers.SqliteStore(tmp_path / "s.db")

    class Leaving(teller(acp, store)):  # type: ignore[misc]
        async def work(self, params: Any) -> None:
            await helpers.ToolCalls(self.client, params.session_id, self.turns).start("1", "Read")
            if how == "cancel":
                self.turns.cancel(params.session_id)
                await asyncio.Event().wait()
            elif how == "fail":
                raise acp.InvalidParamsError("not this")

    async def main() -> Any:
        async with editor(acp, Leaving) as client:
            session = await client.new()
            ended = await client.prompt(session, "go")
            return ended, [json.loads(each) for each in await store.entries(session, 0, 100)]

    ended, entries = run(main())
    if how == "fail" and acp.PROTOCOL_VERSION == 1:
        ended = "error" if ended["code"] == -32602 else ended
    assert ended == {"end": "end_turn", "fail": "error", "cancel": "cancelled"}[how]
    status = "cancelled" if how == "cancel" and acp.PROTOCOL_VERSION == 2 else "failed"
    assert [each["status"] for each in entries if "toolCallId" in each] == ["in_progress", status]


def test_what_the_end_of_a_cancelled_request_ends_is_saved_before_the_answer(
    packages: Packages, tmp_path: Path
) -> None:
    acp = packages(V1)
    helpers = helpers_of(acp)
    store = helpers.SqliteStore(tmp_path / "s.db")

    class Waiting(teller(acp, store)):  # type: ignore[misc]
        async def work(self, params: Any) -> None:
            await helpers.ToolCalls(self.client, params.session_id, self.turns).start("1", "Read")
            await asyncio.Event().wait()

    async def main() -> Any:
        async with editor(acp, Waiting) as client:
            session = await client.new()
            prompt = [{"type": "text", "text": "go"}]
            await client.peer.request(91, "session/prompt", {"sessionId": session, "prompt": prompt})
            while (await client.peer.receive())["params"]["update"]["sessionUpdate"] != "tool_call":
                pass
            await client.peer.notify("$/cancel_request", {"requestId": 91})
            assert await answers(client, 91) == [-32800]
            return [json.loads(each) for each in await store.entries(session, 0, 100)]

    assert [each["status"] for each in run(main()) if "toolCallId" in each] == ["in_progress", "failed"]
