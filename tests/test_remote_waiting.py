"""What waits for a slow client or a busy agent of `asgi_app`: it is bounded in bytes, number and time."""

from __future__ import annotations

import asyncio
import json
import logging
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import (
    INITIALIZE,
    JSON,
    NEW_SESSION,
    Answer,
    Client,
    Server,
    agent_for,
    asgi_of,
    ended,
    request_of,
    settled,
)
from tests.runtime_support import V1, acp_log, at_rest, pass_time, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

FIRST = json.dumps(request_of(0, "initialize", INITIALIZE)).encode()
TOO_MANY = "Internal error: the connection has too many sessions"


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def limits_of(acp: ModuleType, **fields: Any) -> Any:
    """Limits with which slow and idle clients are looked for often."""
    return asgi_of(acp).RemoteLimits(**{"keep_alive_seconds": 0.1, **fields})


# --- Bytes that wait for the client ---------------------------------------------------------------------------------


def test_an_unread_stream_makes_the_agent_wait(acp: ModuleType) -> None:
    agent = agent_for(acp)

    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=10_000)
        async with Server.of(acp, agent, options=options) as server:
            client = Client(server.app)
            await client.initialize()
            await client.call(1, "_flood")
            assert 9 <= await at_rest(lambda: agent.said) <= 11
            async with client.get() as reader:  # it goes on
                for _ in range(50):
                    assert (await reader.receive())["method"] == "_said"
                reader.pause()
                said = await at_rest(lambda: agent.said)
                reader.resume()
                rest = [await reader.receive() for _ in range(said - 50)]
                assert {each["method"] for each in rest} == {"_said"}
                assert len(rest) < 40
            await client.delete()
            await settled(lambda: server.app.connections == 0)

    run(main())


@pytest.mark.parametrize("reader", [True, False], ids=["slow reader", "no reader"])
def test_a_client_that_takes_nothing_is_left(acp: ModuleType, *, reader: bool) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=10_000)
        async with Server.of(acp, agent_for(acp), options=options, limits=limits_of(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            stream = client.open_get()
            if reader:
                assert await stream.start() is None
                stream.pause()
            else:
                stream.task.cancel()
            await client.call(1, "_flood")
            server.hurry(stall_seconds=0.05)
            await settled(lambda: server.app.connections == 0)
            await ended(stream)
            assert (await client.post({})).status == 404

    run(main())


def test_a_reader_of_one_stream_does_not_keep_another_that_is_unread(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                await client.call(1, "session/prompt", {"sessionId": session, "prompt": []}, session)
                server.hurry(stall_seconds=0.05)
                assert await stream.receive() is None
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_a_websocket_that_takes_nothing_is_left(acp: ModuleType) -> None:
    async def main() -> None:
        async with (
            Server.of(acp, agent_for(acp), limits=limits_of(acp)) as server,
            Client(server.app).socket() as socket,
        ):
            await socket.call(1, "_flood")
            await socket.receive()
            socket.pause()
            server.hurry(stall_seconds=0.05)
            await settled(lambda: server.app.connections == 0)

    run(main(), seconds=60)


def test_what_is_lost_with_a_reader_does_not_count_as_unread(acp: ModuleType) -> None:
    """Another client, which takes nothing, is left after that, and this one is not."""

    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp)) as server:
            client, other = Client(server.app), Client(server.app)
            await client.initialize()
            async with client.get() as reader:
                reader.pause(at=b"data: ")  # a comment would leave the answer unread
                await client.call(1, "_echo")
                await settled(lambda: reader.is_blocked)
                reader.feed("http.disconnect")
                await reader.task
            await other.initialize()
            await other.call(1, "_echo")
            server.hurry(stall_seconds=0.05)
            await settled(lambda: server.app.connections < 2)
            server.hurry(stall_seconds=60)
            await client.call(2, "_echo")
            async with client.get() as reader:
                assert (await reader.receive())["id"] == 2

    run(main())


def test_refusals_do_not_fill_an_unread_stream(acp: ModuleType) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=10_000)
        async with Server.of(acp, agent_for(acp), options=options, limits=limits_of(acp, max_sessions=1)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                await client.new_session(stream)
            found = [(await client.post(request_of(each, "session/new", NEW_SESSION))).status for each in range(200)]
            accepted = found.count(202)
            assert found == [202] * accepted + [429] * (200 - accepted)
            assert 10 < accepted < 200
            async with client.get() as stream:
                refusals = [await stream.receive() for _ in range(accepted)]
                assert [each["id"] for each in refusals] == list(range(accepted))
                assert sum(len(json.dumps(each, separators=(",", ":"))) for each in refusals) < 11_000
                assert (await client.post(request_of(1, "session/new", NEW_SESSION))).status == 202

    run(main())


def test_messages_of_several_tasks_keep_their_order_on_a_stream_that_is_full(acp: ModuleType) -> None:
    """A message must not overtake those that wait for room, although the reader has just made some."""
    tasks, each_sends = 5, 60

    class Racing(agent_for(acp)):  # type: ignore[misc]
        async def ext_method(self, method: str, params: Any) -> Any:
            numbers = iter(range(tasks * each_sends))

            async def send_all() -> None:
                for _ in range(each_sends):
                    await asyncio.sleep(0)
                    await self.client.ext_notification("_said", {"number": next(numbers), "text": "x" * 1000})

            await asyncio.gather(*(send_all() for _ in range(tasks)))

    async def main() -> list[int]:
        options = acp.ConnectionOptions(max_write_buffer_bytes=3_000)
        async with Server.of(acp, Racing, options=options) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                await client.call(1, "_race")
                found = [(await stream.receive())["params"]["number"] for _ in range(tasks * each_sends)]
            await client.delete()
            return found

    assert run(main()) == list(range(tasks * each_sends))


def test_a_session_that_ends_unread_beside_a_full_stream_counts_no_longer(acp: ModuleType) -> None:
    """Its messages go to the stream of the connection, which has no room, and end with the connection."""

    class Talking(agent_for(acp)):  # type: ignore[misc]
        async def session_prompt(self, params: Any) -> Any:
            block = acp.ContentBlockText(text="x" * 1000)
            update = acp.SessionUpdateAgentMessageChunk(content=block)
            for _ in range(5):
                await self.client.session_update(acp.SessionNotification(session_id=params.session_id, update=update))

    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=3_000)
        async with Server.of(acp, Talking, options=options) as server:
            await Client(server.app).initialize()  # another connection of the same identity: its budget is kept
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
            messages = ("session/prompt", {"sessionId": session, "prompt": []}), ("_flood", None)
            for number, (method, params) in enumerate((*messages, ("session/close", {"sessionId": session}))):
                await client.call(number, method, params, session if params else None)
                for _ in range(100):
                    await asyncio.sleep(0)
            await client.delete()
            await settled(lambda: server.app.connections == 1)
            assert server.held == 0

    run(main())


@pytest.mark.parametrize("turns", range(8))
def test_a_message_that_is_cancelled_takes_no_other_with_it(acp: ModuleType, turns: int) -> None:
    """Those of a session that ends unread go to the stream of the connection, which has no room for them either."""
    tasks: list[asyncio.Task[None]] = []

    class Talking(agent_for(acp)):  # type: ignore[misc]
        async def session_prompt(self, params: Any) -> Any:
            for text in "abc":
                say = self.client.ext_notification("_said", {"sessionId": params.session_id, "text": text})
                tasks.append(asyncio.create_task(say))
            return acp.PromptResponse(stop_reason="end_turn")

        async def session_close(self, params: Any) -> Any:
            tasks.append(asyncio.create_task(self.cancel()))
            return acp.CloseSessionResponse()

        async def cancel(self) -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            tasks[1].cancel()

    async def main() -> None:
        options = acp.ConnectionOptions(max_write_buffer_bytes=1)
        async with Server.of(acp, Talking, options=options) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
            await client.call("full", "_echo")
            for method in ("session/prompt", "session/close"):
                await client.call(method, method, {"sessionId": session, "prompt": []}, session)
                await at_rest(lambda: server.held)
            async with client.get() as stream:
                found = [await stream.receive()]
                while found[-1].get("id") != "session/close":
                    found.append(await stream.receive())
            await asyncio.wait(tasks)
        said = [each["params"]["text"] for each in found if "method" in each]
        assert said in (["a", "c"], ["a", "b", "c"])
        answers = [each["id"] for each in found if "method" not in each]
        assert answers == ["full", "session/prompt", "session/close"]

    run(main())


# --- Bytes that wait for the agent ----------------------------------------------------------------------------------


async def blocked(client: Client, agent: Any) -> None:
    """Open a connection whose agent reads nothing more."""
    await client.initialize()
    await client.post({"jsonrpc": "2.0", "method": "_block"})
    await settled(lambda: agent.release)


def test_the_number_of_messages_that_wait_for_the_agent(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        async with Server.of(acp, agent, options=acp.ConnectionOptions(max_requests=5)) as server:
            client = Client(server.app)
            await blocked(client, agent)
            server.hurry(stall_seconds=0.05)
            note = {"jsonrpc": "2.0", "method": "_note"}
            found = [(await client.post(note)).status for _ in range(10)]
            assert found.count(202) in {5, 6}  # the read loop may have taken one already
            assert found == sorted(found)
            assert set(found) == {202, 429}
            server.hurry(stall_seconds=60)
            agent.release.set()
            await settled(lambda: agent.seen == 1 + found.count(202))
            assert server.held == 0
            assert (await client.post(note)).status == 202

    run(main())


def test_the_bytes_that_wait_for_the_agent(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        options = acp.ConnectionOptions(max_in_flight_bytes=100_000)
        async with Server.of(acp, agent, options=options) as server:
            client, other = Client(server.app), Client(server.app)
            await blocked(client, agent)
            note = {"jsonrpc": "2.0", "method": "_note", "params": {"text": "x" * 20_000}}
            open_body = client.start("POST", [JSON, *client.ids()])
            open_body.feed("http.request", body=b" " * 50_000, more_body=True)
            await settled(lambda: not open_body.waiting)
            found = [(await client.post(note)).status for _ in range(5)]
            assert found == [202, 202, 429, 429, 429]  # what is still being received counts
            await open_body.leave()
            assert (await client.post(note)).status == 202
            await other.initialize()  # others do not
            agent.release.set()
            await settled(lambda: agent.seen == 1 + 3)
            assert server.held == 0
            assert (await client.post(note)).status == 202

    run(main())


def test_frames_wait_for_the_agent(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        async with (
            Server.of(acp, agent, options=acp.ConnectionOptions(max_requests=5)) as server,
            Client(server.app).socket() as socket,
        ):
            await socket.send({"jsonrpc": "2.0", "method": "_block"})
            for _ in range(20):
                await socket.send({"jsonrpc": "2.0", "method": "_note"})
            # all but the five that may wait, the one that is handled, and those that are being read and received
            assert 13 <= await at_rest(lambda: socket.waiting) <= 15
            agent.release.set()
            assert "result" in await socket.ask(1, "_echo")
            assert agent.seen == 22

    run(main())


def test_a_client_that_leaves_while_frames_wait(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        options = acp.ConnectionOptions(max_requests=5, cleanup_seconds=0.05)
        async with Server.of(acp, agent, options=options) as server:
            socket = Client(server.app).open_socket()
            await socket.connect()
            await socket.call(0, "initialize", INITIALIZE)
            await socket.send({"jsonrpc": "2.0", "method": "_block"})
            for _ in range(20):
                await socket.send({"jsonrpc": "2.0", "method": "_note"})
            await settled(lambda: server.app.connections and agent.release)
            socket.task.cancel()
            await settled(lambda: server.app.connections == 0)
            await ended(socket)

    run(main())


# --- Time -----------------------------------------------------------------------------------------------------------


def test_an_idle_connection_is_closed_once(acp: ModuleType) -> None:
    class Tidy(agent_for(acp)):  # type: ignore[misc]
        async def connection_closed(self, reason: Any) -> None:
            await asyncio.sleep(0.2)  # several looks of the watcher, which must not interrupt it
            tidied.append(server.app.connections)

    tidied: list[int] = []

    async def main() -> None:
        nonlocal server
        async with Server.of(acp, Tidy, limits=limits_of(acp, idle_seconds=0.05)) as server:
            client = Client(server.app)
            await client.initialize()
            await settled(lambda: server.app.connections == 0)
            assert (await client.post({})).status == 404
            assert tidied == [1]

    server: Any = None
    with acp_log() as records:
        run(main())
    assert texts(records, logging.INFO).count("a connection is closed: the client has gone, or reads too slowly") == 1


def test_a_stream_keeps_a_connection_and_its_end_lets_it_go(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                server.hurry(idle_seconds=0.05)
                reading = asyncio.create_task(stream.receive())
                await settled(lambda: stream.comments >= 4)  # one at the start, and each later than idle_seconds
                assert server.app.connections == 1
                await client.call(1, "_echo")
                assert (await reading)["id"] == 1
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_a_body_that_arrives_keeps_a_connection(acp: ModuleType) -> None:
    """It is slower than `idle_seconds`. Another connection, to which nothing comes, is closed in the same time."""

    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(idle_seconds=60, stall_seconds=10_000)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            await Client(server.app).initialize()
            exchange = client.start("POST", [JSON, *client.ids()])
            for _ in range(3):
                exchange.feed("http.request", body=b" ", more_body=True)
                await settled(lambda: not exchange.waiting)
                await at_rest(lambda: server.app.connections)
                pass_time(40)
            await settled(lambda: server.app.connections < 2)
            assert (await client.post({"jsonrpc": "2.0", "method": "_note"})).status == 202
            await exchange.leave()

    run(main(), seconds=300)


def test_a_websocket_without_a_message_is_closed(acp: ModuleType) -> None:
    async def main() -> None:
        async with (
            Server.of(acp, agent_for(acp), limits=limits_of(acp)) as server,
            Client(server.app).socket(initialized=False) as silent,
            Client(server.app).socket() as socket,
        ):
            server.hurry(idle_seconds=0.05)
            silent.feed("websocket.receive", bytes=b"\0")
            assert (await silent.receive())["type"] == "websocket.close"
            assert "result" in await socket.ask(1, "_echo")

    run(main())


def test_comments_keep_only_idle_streams_alive(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, keep_alive_seconds=0.05)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                async with client.get(session) as other:
                    reading = [asyncio.create_task(each.receive()) for each in (stream, other)]
                    await settled(lambda: stream.comments > 2 and other.comments > 2)
                    assert not any(task.done() for task in reading)
                    for task in reading:
                        task.cancel()
            async with client.get(session) as other:
                task = asyncio.create_task(other.receive())
                await settled(lambda: other.comments > 2)
                task.cancel()
            async with client.get() as stream:
                await client.call(1, "_echo")
                assert (await stream.receive())["id"] == 1
                assert stream.comments < 4  # none has waited

    run(main())


def test_the_watcher_ends_with_the_last_connection_and_starts_again(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), limits=limits_of(acp, keep_alive_seconds=0.05)) as server:
            idle = asyncio.all_tasks()
            for _ in range(2):
                client = Client(server.app)
                await client.initialize()
                async with client.get() as stream:
                    reading = asyncio.create_task(stream.receive())
                    await settled(lambda stream=stream: stream.comments > 2)
                    await client.delete()
                    assert await reading is None
                await settled(lambda: asyncio.all_tasks() == idle)

    run(main())


def test_close_waits_for_agents_and_ends_streams(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            stream = client.open_get()
            assert await stream.start() is None
            await client.call(1, "_wait")
            await server.app.close()
            server.check_empty()
            answer = await Client(server.app).post(FIRST)
            assert isinstance(answer, Answer)
            assert answer.status == 503
            assert await client.refused_socket() == 1008
            await ended(stream)

    run(main())
