"""Sessions that outlive their connection, where several things happen at once: no session waits for nobody."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.client_sessions import until
from tests.recovery_support import Play, answered, playing, read
from tests.runtime_support import V1, V2, at_rest, pass_time, run
from tests.support import Packages

pytestmark = pytest.mark.every_python
BASES = {1: V1, 2: V2}


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def acp(packages: Packages, version: int) -> ModuleType:
    return packages(BASES[version], roles=(Role.CLIENT,))


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.CLIENT,))


class SlowToClose:
    """A transport that is closed when the test says so."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self.is_closing = asyncio.Event()
        self.may_close = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def close(self) -> None:
        self.is_closing.set()
        try:
            await self.may_close.wait()
        finally:
            await self._transport.close()


def slow_to_close(play: Play, monkeypatch: pytest.MonkeyPatch) -> list[SlowToClose]:
    """The transports of the connections that are made from now on."""
    made: list[SlowToClose] = []
    connect = play.acp.connect

    def connect_slowly(kind: Any, transport: Any) -> Any:
        made.append(SlowToClose(transport))
        return connect(kind, made[-1])

    monkeypatch.setattr(play.acp, "connect", connect_slowly)
    return made


async def lost(play: Play) -> tuple[Any, Any]:
    """A session that the second agent does not know, and that agent."""
    session = await play.opened()
    await answered(play, play.agents[0], session)  # otherwise it would be opened anew
    await play.agents[0].transport.close()
    second = await play.agent(1)
    await second.answer(await play.reopening(second, "resume"), code=-32002, message="Resource not found")
    await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
    await play.settled(second)
    return session, second


def test_a_reconnect_that_is_cancelled_loses_its_sessions(acp: ModuleType, version: int) -> None:
    """Nobody else would open them: their prompts say so, and another call opens them."""

    async def main() -> None:
        async with playing(acp, version) as play:
            session, second = await lost(play)
            trying = asyncio.ensure_future(play.keeper.reconnect())
            await play.reopening(second, "resume")
            waiting = asyncio.ensure_future(session.ask("?"))
            trying.cancel()
            await asyncio.gather(trying, return_exceptions=True)
            assert trying.cancelled()
            with pytest.raises(play.helpers.RecoveryError, match="before the session was opened"):
                await waiting
            again = asyncio.ensure_future(play.keeper.reconnect())
            await second.answer(await play.reopening(second, "resume"))
            await again
            await answered(play, second, session)

    run(main())


def test_a_session_that_was_lost_after_its_opening_can_be_opened_again(acp: ModuleType, version: int) -> None:
    """An option cannot be set again, as the answer is no JSON-RPC result of the protocol."""
    key = "id" if version == 1 else "configId"
    options = {
        value: [{key: "fast", "name": "Fast", "type": "boolean", "currentValue": value}] for value in (False, True)
    }

    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened(configOptions=options[True])
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await second.answer(await play.reopening(second, "resume"), {"configOptions": options[False]})
            await second.answer(await second.receive("session/set_config_option"), 5)
            await until(lambda: "SessionLost" in play.names([change for _, change in play.between]))
            assert play.keeper.client.sessions == {}
            again = asyncio.ensure_future(play.keeper.reconnect())
            await second.answer(await play.reopening(second, "resume"), {"configOptions": options[False]})
            request = await second.receive("session/set_config_option")  # the default of the first attempt is no choice
            await second.answer(request, {"configOptions": options[True]})
            await again
            await answered(play, second, session)

    run(main())


def test_a_session_is_not_kept_after_the_end_of_its_connection(acp: ModuleType, version: int) -> None:
    """The agent has ended right after it has opened it: the one that follows knows nothing of it."""

    async def main() -> None:
        async with playing(acp, version) as play:
            opening = asyncio.ensure_future(play.keeper.client.open("/work"))
            await play.agents[0].answer(await play.agents[0].receive("session/new"), {"sessionId": "s"})
            session = await opening
            await play.agents[0].transport.close()
            second = await play.agent(1)
            with pytest.raises(acp.ConnectionClosed, match="cannot be kept"):
                play.keeper.keep(session)
            await play.settled(second)
            with pytest.raises(acp.ConnectionClosed):
                await session.ask("?")

    run(main())


def test_the_end_of_the_block_ends_an_attempt_that_is_being_cleaned_up(
    one: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has taken too long, and so does the end of its process: it is the last one."""

    async def main() -> None:
        async with playing(one, 1, policy={"attempt_seconds": 500.0}) as play:
            await play.opened()
            made = slow_to_close(play, monkeypatch)
            await play.agents[0].transport.close()
            await until(lambda: len(play.agents) == 2)
            await play.agents[1].receive("initialize")  # and no answer
            pass_time(501)
            await made[0].is_closing.wait()
            await play.keeper.__aexit__(None, None, None)
            made[0].may_close.set()
            await at_rest(lambda: len(asyncio.all_tasks()))
        assert len(play.agents) == 2

    run(main(), seconds=10_000)


def test_turns_end_though_the_end_of_the_block_is_cancelled(
    acp: ModuleType, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with playing(acp, version) as play:
            session = await play.opened()
            reading = asyncio.ensure_future(read(session.prompt("one")))
            await play.agents[0].receive("session/prompt")
            made = slow_to_close(play, monkeypatch)
            await play.agents[0].transport.close()
            second = await play.agent(1)
            await play.reopening(second, "resume")
            closing = asyncio.ensure_future(play.keeper.__aexit__(None, None, None))
            await made[0].is_closing.wait()
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            _, error = await reading
            assert isinstance(error, play.helpers.TurnInterruptedError)
            made[0].may_close.set()

    run(main())


def test_pauses_that_grow_fast_have_an_end(one: ModuleType) -> None:
    async def main() -> None:
        policy = {"attempts": 5, "first_seconds": 1.0, "growth": 1e300, "most_seconds": 0.0}
        async with playing(one, 1, policy=policy) as play:
            session = await play.opened()
            play.failures += [OSError("no program")] * 5
            await play.agents[0].transport.close()
            with pytest.raises(one.ConnectionClosed, match="5 attempts"):
                await session.ask("?")

    run(main())
