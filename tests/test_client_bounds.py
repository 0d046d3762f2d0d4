"""What a client keeps of its agent: counted in bytes, and what is too much is an error that says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.client_sessions import VERSIONS, stage
from tests.client_support import hand_agent, helpers_of
from tests.runtime_support import V1, V2, acp_log, run, texts
from tests.support import Packages
from tests.test_client_terminals import client_of

pytestmark = pytest.mark.every_python

MIB = 2**20


@pytest.fixture(name="version", params=VERSIONS, ids=[f"v{each}" for each in VERSIONS])
def protocol(request: pytest.FixtureRequest) -> Any:
    """A version of the protocol."""
    return request.param


@pytest.fixture(name="acp")
def package(packages: Packages, version: int) -> Any:
    """A package of that version."""
    return packages({1: V1, 2: V2}[version])


def test_a_session_whose_state_is_full_is_given_up(acp: Any, version: int) -> None:
    """Its turn, and the next one, raise; the agent is told to stop, and nothing more is kept."""

    async def main() -> None:
        async with stage(acp, version, max_state_bytes=MIB) as play:
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                for number in range(50):
                    await play.agent.say("x" * 40_000, message=f"m{number}")
                await play.agent.receive("session/cancel")
                await play.agent.end(request, "cancelled")
                with pytest.raises(play.helpers.SessionFullError, match=r"in the session 's' \(max_state_bytes\)"):
                    async for _ in turn:
                        pass
            assert play.client.sessions == {}
            kept = len(session.state.entries)
            assert 10 < kept < 30
            assert session.state.is_full
            await play.agent.say("more", message="m")
            await play.barrier()
            assert len(session.state.entries) == kept
            with pytest.raises(play.helpers.SessionFullError):
                await session.ask("next")
            again = await play.opened()
            assert not again.state.is_full

    with acp_log() as log:
        run(main())
    assert texts(log).count("a session is given up") == 1


def test_a_full_session_without_a_turn_is_given_up(acp: Any, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version, max_state_bytes=MIB) as play:
            session = await play.opened()
            for number in range(50):
                await play.agent.tool("pending", call=f"{number}" + "x" * 50_000)
            await play.barrier()
            assert play.client.sessions == {}
            with pytest.raises(play.helpers.SessionFullError):
                await session.ask("next")

    with acp_log():
        run(main())


def test_what_is_replaced_does_not_fill_a_state(acp: Any, version: int) -> None:
    """A tool call that is reported again, with much content, a hundred times."""

    async def main() -> None:
        async with stage(acp, version, max_state_bytes=MIB) as play:
            session = await play.opened()
            for number in range(100):
                content = [{"type": "content", "content": {"type": "text", "text": f"{number}" + "x" * 60_000}}]
                await play.agent.update(
                    "tool_call" if version == 1 and not number else "tool_call_update",
                    toolCallId="t",
                    title="Edit",
                    content=content,
                )
            await play.barrier()
            assert not session.state.is_full
            assert session.state.tool_call("t").content[0].content.text.startswith("99")

    run(main())


def test_large_changes_cancel_the_turn(acp: Any, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of them, as by their number they would be let through."""

    async def main() -> None:
        async with stage(acp, version) as play:
            monkeypatch.setattr(play.helpers.Turn, "max_pending_bytes", MIB)
            session = await play.opened()
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                for number in range(50):
                    await play.agent.say("x" * 50_000, message=f"m{number}")
                    await play.agent.tool("pending", call=f"{number}")  # so that they are not joined
                await play.agent.receive("session/cancel")
                await play.agent.end(request, "cancelled")
                with pytest.raises(play.helpers.SlowReaderError, match=r"wait for their reader \(max_pending_bytes\)"):
                    async for _ in turn:
                        pass
            assert play.client.sessions

    run(main())


def test_changes_that_were_read_do_not_count(acp: Any, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            monkeypatch.setattr(play.helpers.Turn, "max_pending_bytes", MIB)
            session = await play.opened()
            count = 0
            async with session.prompt("Hi") as turn:
                request = await play.agent.prompted()
                reading = turn.__aiter__()
                for number in range(60):
                    await play.agent.say("x" * 50_000, message=f"m{number}")
                    while not isinstance(change := await reading.__anext__(), play.helpers.MessageChange):
                        pass
                    count += len(change.text)
                    await play.agent.tool("pending", call=f"{number}")
                await play.agent.end(request)
                async for _ in reading:
                    pass
            assert turn.result.stop_reason == "end_turn"
            assert count >= 59 * 50_000

    run(main())


def test_updates_of_unknown_sessions_are_bounded_in_bytes(acp: Any, version: int) -> None:
    """While a session is being opened; those that come first are kept."""

    async def main() -> None:
        async with stage(acp, version) as play:
            opening = asyncio.ensure_future(play.client.open("/work"))
            request = await play.agent.receive("session/new")
            await play.agent.update("session_info_update", title="early")
            for number in range(12):
                await play.agent.update("session_info_update", f"other {number}", title="x" * MIB)
            await play.agent.update("session_info_update", title="x" * 4 * MIB)
            await play.agent.answer(request, {"sessionId": "s"})
            session = await opening
            assert session.state.title == "early"

    with acp_log() as log:
        run(main())
    assert "there are too many" in texts(log)


def test_a_session_with_a_long_id_is_refused(acp: Any, version: int) -> None:
    async def main() -> None:
        async with stage(acp, version) as play:
            with pytest.raises(acp.InternalError, match="a session whose id has more than 1024 characters"):
                await play.opened("x" * 1025)
            assert play.client.sessions == {}
            assert (await play.opened("x" * 1024)).id == "x" * 1024

    run(main())


def test_a_terminal_with_long_params_is_refused(packages: Packages) -> None:
    """Its session and its command are kept with it, also after it was released."""
    acp: Any = packages(V1)

    async def main() -> None:
        async with hand_agent(acp, client_of(acp)) as agent:
            long = "x" * 300_000
            assert await agent.call("terminal/create", command="true", sessionId=long) == -32602
            assert await agent.call("terminal/create", command="true", args=[long]) == -32602
            assert await agent.call("terminal/create", command="true", env=[{"name": "A", "value": long}]) == -32602
            assert isinstance(await agent.call("terminal/create", command="true", args=["x" * 100_000]), dict)

    run(main())


@pytest.mark.parametrize("limit", [10_000, 100_000])
def test_a_state_of_its_own_is_bounded(acp: Any, version: int, limit: int) -> None:
    """Without a client: it says that it is full."""
    helpers = helpers_of(acp)
    changes: list[Any] = []
    state = helpers.SessionState("s", on_change=changes.append, max_bytes=limit)
    kind = acp.SessionNotification if version == 1 else acp.UpdateSessionNotification
    for number in range(1_000):
        chunk = acp.SessionUpdateAgentMessageChunk(
            content=acp.ContentBlockText(text=f"{number:0100}"), **({} if version == 1 else {"message_id": f"{number}"})
        )
        state.update(kind(session_id="s", update=chunk))
    assert state.is_full
    assert 3 < len(changes) < limit / 100
