"""Order, cancelling, limits and hooks over both transports, as on stdio."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.network.load import connecting, initialize, open_session, prompt
from tests.network.package import remote_package
from tests.network.processes import ServerProcess, serving

pytestmark = pytest.mark.full

SECONDS = 60.0


@asynccontextmanager
async def session(
    transport: str, folder: Path, *, server_options: dict[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[Any, Any, ServerProcess], None]:
    """An agent with a session "/1", its client, and the server."""
    acp = remote_package()
    with serving("hypercorn", folder, options=server_options or {}) as server:
        before = await server.state()
        connection = connecting(transport, server.port, options=acp.ConnectionOptions(**options))
        async with connection as agent:
            await initialize(agent)
            await open_session(agent, "/1")
            yield agent, connection.handler, server
        await server.settled(before)


async def ends(server: ServerProcess, name: str) -> None:
    """Wait until the agent has noted this end."""
    async with asyncio.timeout(SECONDS):
        while not (await server.state())["ends"].get(name):
            await asyncio.sleep(0.02)


def test_updates_come_before_the_response(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with session(transport, tmp_path) as (agent, client, _):
            for count in (1, 7, 100):
                await prompt(agent, "/1", f"count {count}")
                assert client.texts.pop("/1") == [str(number) for number in range(count)]

    asyncio.run(main())


@pytest.mark.parametrize("ends", [pytest.param(False, id="then a prompt"), pytest.param(True, id="then the end")])
def test_a_pause_in_which_the_server_closes_what_is_idle(transport: str, tmp_path: Path, *, ends: bool) -> None:
    """hypercorn ends connections over HTTP/2 that had no request for `keep_alive_timeout`, here a second."""

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits={"idle_seconds": 3600.0}) as server:
            before = await server.state()
            async with connecting(transport, server.port) as agent:
                await initialize(agent)
                await open_session(agent, "/1")
                await asyncio.sleep(1.5)
                if not ends:
                    await prompt(agent, "/1", "count 1")
            await server.settled(before)

    asyncio.run(main())


def test_cancelling_the_task_of_a_call(transport: str, tmp_path: Path) -> None:
    """The agent's handler is cancelled; other calls go on."""

    async def main() -> None:
        async with session(transport, tmp_path) as (agent, client, server):
            call = asyncio.create_task(prompt(agent, "/1", "ask"))
            await asyncio.wait_for(client.asked.wait(), SECONDS)
            call.cancel()
            await ends(server, "ask: CancelledError")
            assert (await prompt(agent, "/1", "count 1")).stop_reason == "end_turn"
            assert call.cancelled()

    asyncio.run(main())


def test_cancelling_calls_while_they_are_sent(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with session(transport, tmp_path) as (agent, _, _server):
            for turns in range(12):
                calls = [asyncio.create_task(prompt(agent, "/1", "wait")) for _ in range(3)]
                for _ in range(turns):
                    await asyncio.sleep(0)
                for call in calls:
                    call.cancel()
            assert (await prompt(agent, "/1", "count 1")).stop_reason == "end_turn"

    asyncio.run(main())


def test_a_notification_is_sent_while_a_prompt_waits(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with session(transport, tmp_path) as (agent, _, server):
            call = asyncio.create_task(prompt(agent, "/1", "wait"))
            await asyncio.sleep(0)
            await agent.session_cancel(remote_package().v1.CancelNotification(session_id="/1"))
            await ends(server, "session/cancel")
            call.cancel()

    asyncio.run(main())


def test_too_many_requests(transport: str, tmp_path: Path) -> None:
    """Each is answered, some with an error; afterwards others are taken."""

    async def main() -> None:
        options = {"max_requests": 4}
        async with session(transport, tmp_path, server_options=options) as (agent, client, _):
            calls = [asyncio.create_task(prompt(agent, "/1", "ask")) for _ in range(12)]
            done = await asyncio.wait_for(asyncio.gather(*calls[4:], return_exceptions=True), SECONDS)
            assert {type(each).__name__ for each in done} == {"InternalError"}
            client.may_answer.set()
            assert [each.stop_reason for each in await asyncio.gather(*calls[:4])] == ["end_turn"] * 4

    asyncio.run(main())


def test_a_request_that_is_too_large(transport: str, tmp_path: Path) -> None:
    async def main() -> None:
        options = {"max_message_bytes": 10_000}
        async with session(transport, tmp_path, server_options=options) as (agent, _, _server):
            with pytest.raises(remote_package().RequestError):
                await prompt(agent, "/1", "count 0" + " " * 20_000)
            assert (await prompt(agent, "/1", "count 1")).stop_reason == "end_turn"

    asyncio.run(main())


def test_a_message_of_the_agent_that_is_too_large(transport: str, tmp_path: Path) -> None:
    """It ends the connection: neither library can skip it."""

    async def main() -> None:
        async with session(transport, tmp_path, max_message_bytes=10_000) as (agent, _, _server):
            with pytest.raises(remote_package().ConnectionClosed):
                await asyncio.wait_for(prompt(agent, "/1", "pad 20000"), SECONDS)

    asyncio.run(main())


def test_the_hook_on_message(transport: str, tmp_path: Path) -> None:
    """It sees each message, both ways, as it is on the wire."""
    seen: list[tuple[str, bytes]] = []

    async def main() -> None:
        async with session(transport, tmp_path, on_message=lambda *each: seen.append(each)) as (agent, _, _server):
            await prompt(agent, "/1", "count 2")

    asyncio.run(main())
    found = [(direction, json.loads(line).get("method")) for direction, line in seen]
    assert Counter(found) == {
        ("out", "initialize"): 1,
        ("out", "session/new"): 1,
        ("out", "session/prompt"): 1,
        ("in", None): 3,
        ("in", "session/update"): 2,
    }


def test_more_sessions_than_a_connection_of_http_2_can_have(tmp_path: Path) -> None:
    """Those that are too many get an error, and the others go on."""

    async def main() -> None:
        acp = remote_package()
        with serving("hypercorn", tmp_path, limits={"max_sessions": 200}) as server:
            await server.state()
            async with connecting("http", server.port) as agent:
                await initialize(agent)
                for number in range(95):
                    await open_session(agent, f"/{number}")
                calls = (prompt(agent, f"/{number}", "count 1") for number in range(95))
                done = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), SECONDS)
        assert [isinstance(each, acp.RequestError) for each in done] == [number >= 89 for number in range(95)]

    asyncio.run(main())
