"""Which stream a message takes in rare orders of events, and how connections end whose agents do not."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import (
    EVENTS,
    INITIALIZE,
    NEW_SESSION,
    Client,
    EventStream,
    Server,
    agent_for,
    asgi_of,
    request_of,
    settled,
)
from tests.runtime_support import V1, at_rest, items_in, pass_time, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

PROMPT = [{"type": "text", "text": "x"}]
NOTE = {"jsonrpc": "2.0", "method": "_note"}
BLOCK = {"jsonrpc": "2.0", "method": "_block"}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def load(name: str) -> dict[str, Any]:
    """The params of `session/load`."""
    return {"sessionId": name, **NEW_SESSION}


# --- Sessions that end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 2**18])
def test_what_nobody_reads_when_a_session_ends_is_not_lost(acp: ModuleType, limit: int) -> None:
    """With a limit of one byte, responses wait for room on the stream of the session."""

    async def main() -> None:
        async with Server.of(
            acp, agent_for(acp), options=acp.ConnectionOptions(max_write_buffer_bytes=limit)
        ) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                for number in (1, 2, 3):
                    await client.call(number, "session/prompt", {"sessionId": session, "prompt": PROMPT}, session)
                await client.call(4, "session/close", {"sessionId": session}, session)
                assert [(await stream.receive())["id"] for _ in range(4)] == [1, 2, 3, 4]
                assert (await client.refused_get(session)).status == 404

    run(main())


def test_an_ended_session_has_no_stream_until_it_is_loaded(acp: ModuleType) -> None:
    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(max_sessions=2)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                names = [await client.new_session(stream, "a")]
                for _ in range(3):
                    await client.call(1, "session/close", {"sessionId": names[-1]}, names[-1])
                    await stream.receive()
                    names.append(await client.new_session(stream, "a"))
                for name in names[1:3]:
                    assert (await client.refused_get(name)).status == 404
                async with client.get(names[0]):  # the oldest is forgotten: it may be one that another agent knows
                    pass
                await client.call(2, "session/load", load(names[2]), names[2])
                assert "result" in await stream.receive()
                async with client.get(names[2]):
                    pass

    run(main())


# --- Sessions that become known --------------------------------------------------------------------------------------


def loading(acp: ModuleType) -> tuple[type[Any], list[asyncio.Future[Any]]]:
    """An agent whose `session/load` waits for the next of a list of futures."""
    gates: list[asyncio.Future[Any]] = []

    class Loading(agent_for(acp)):  # type: ignore[misc]
        async def session_load(self, params: Any) -> Any:
            gates.append(asyncio.get_running_loop().create_future())
            await gates[-1]
            return acp.LoadSessionResponse()

    return Loading, gates


def test_a_load_that_fails_leaves_a_known_session_alone(acp: ModuleType) -> None:
    agent, gates = loading(acp)

    async def main() -> None:
        async with Server.of(acp, agent) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                await client.call(1, "session/prompt", {"sessionId": session, "prompt": PROMPT}, session)
                await client.call("after", "_echo")
                assert (await stream.receive())["id"] == "after"
                await client.call(2, "session/load", load(session), session)
                await settled(lambda: gates)
                gates[0].set_exception(acp.ResourceNotFoundError("no"))
                assert (await stream.receive())["error"]["code"] == -32002
                async with client.get(session) as own:
                    assert (await own.receive())["id"] == 1

    run(main())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("succeeding", [0, 1, None])
def test_two_loads_of_a_session(acp: ModuleType, order: tuple[int, int], succeeding: int | None) -> None:
    agent, gates = loading(acp)

    async def main() -> None:
        async with Server.of(acp, agent) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                for number in (0, 1):
                    await client.call(number, "session/load", load("x"), "x")
                await settled(lambda: len(gates) == 2)
                for number in order:
                    if number == succeeding:
                        gates[number].set_result(None)
                    else:
                        gates[number].set_exception(acp.ResourceNotFoundError("no"))
                    assert (await stream.receive())["id"] == number
                answer = await client.post(request_of(2, "session/prompt", {"sessionId": "x", "prompt": PROMPT}), "x")
                assert answer.status == (404 if succeeding is None else 202)

    run(main())


class _Lingering(EventStream):
    """A GET request whose server takes until `gone` is set to give up sending; `is_left` is true from then on."""

    gone: asyncio.Event
    is_left = False

    async def _send(self, event: dict[str, Any]) -> None:
        try:
            await super()._send(event)
        except asyncio.CancelledError:
            self.is_left = True
            await self.gone.wait()
            raise


def test_a_get_that_takes_over_a_stream_keeps_the_session(acp: ModuleType) -> None:
    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.05)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            first = _Lingering(server.app, client.scope("http", [EVENTS, *client.ids("x")], method="GET"))
            first.gone = asyncio.Event()
            await first.start()
            first.pause()
            await settled(lambda: first.is_blocked)  # with a comment
            first.feed("http.disconnect")
            await settled(lambda: first.is_left)
            async with client.get("x") as own, client.get() as main_stream:
                first.gone.set()
                await first.task
                await client.call(1, "session/load", load("x"), "x")
                assert "result" in await main_stream.receive()
                await client.call(2, "session/prompt", {"sessionId": "x", "prompt": PROMPT}, "x")
                assert (await own.receive())["id"] == 2

    run(main())


@pytest.mark.parametrize("name", ["ü", "a\nb", "\x7f", " a", "a  "])
def test_a_session_that_no_header_can_name(acp: ModuleType, name: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                await client.call(1, "_open", {"name": name})
                await stream.receive()
                await client.call(2, "session/prompt", {"sessionId": name, "prompt": PROMPT})
                assert "result" in await stream.receive()
                unknown = await client.post(request_of(3, "session/prompt", {"sessionId": name + "ö"}))
                assert unknown.status == 404
                plain = await client.post(request_of(3, "session/prompt", {"sessionId": "plain"}))
                assert plain.status == 400

    run(main())


# --- Requests of the agent -------------------------------------------------------------------------------------------


def test_a_cancellation_follows_its_request(acp: ModuleType) -> None:
    class Asking(agent_for(acp)):  # type: ignore[misc]
        async def session_prompt(self, params: Any) -> Any:
            idle = items_in(server.app)
            asking = asyncio.create_task(self.client.ext_method("_ask", {"sessionId": params.session_id}))
            if params.prompt[0].text == "cancel":
                await settled(lambda: items_in(server.app) != idle)  # the request is sent
                asking.cancel()
            await asyncio.wait({asking})
            return acp.PromptResponse(stop_reason="end_turn")

    async def main() -> None:
        nonlocal server
        async with Server.of(acp, Asking) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                session = await client.new_session(stream)
                async with client.get(session) as own:
                    idle = items_in(server.app)
                    for text in ("cancel", "wait"):
                        prompt = [{"type": "text", "text": text}]
                        await client.call(1, "session/prompt", {"sessionId": session, "prompt": prompt}, session)
                        asked = await own.receive()
                        assert asked["method"] == "_ask"
                        if text == "cancel":
                            received = [await own.receive() for _ in range(2)]
                            (note,) = (each for each in received if "method" in each)
                            assert note["params"] == {"requestId": asked["id"]}
                        else:
                            await client.post({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
                            assert "result" in await own.receive()
                        assert items_in(server.app) == idle

    server: Any = None
    run(main())


# --- An agent that does not keep up ----------------------------------------------------------------------------------


async def blocked(server: Server, agent: Any) -> Client:
    """A connection whose agent handles a notification until `release` is set."""
    client = Client(server.app)
    await client.initialize()
    await client.post(BLOCK)
    await settled(lambda: agent.release is not None)
    return client


def test_close_ends_an_agent_that_reads_nothing(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        options = acp.ConnectionOptions(finish_seconds=0.05, cleanup_seconds=0.05)
        async with Server.of(acp, agent, options=options) as server:
            client = await blocked(server, agent)
            await client.post(NOTE)
            async with client.socket() as socket:
                await socket.send(BLOCK)
                await server.app.close()
                assert server.app.connections == 0

    run(main())


def test_an_ended_connection_whose_agent_reads_nothing(acp: ModuleType) -> None:
    async def main() -> None:
        agent = agent_for(acp)
        options = acp.ConnectionOptions(finish_seconds=0.05, cleanup_seconds=0.05)
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.1)
        async with Server.of(acp, agent, options=options, limits=limits) as server:
            client = await blocked(server, agent)
            assert (await client.delete()).status == 202
            await settled(lambda: server.app.connections == 0)

    run(main())


def test_parallel_messages_wait_for_room_in_their_order(acp: ModuleType) -> None:
    numbers: list[int] = []

    async def main() -> None:
        agent = agent_for(acp)

        class Noting(agent):  # type: ignore[misc, valid-type]
            async def ext_notification(self, method: str, params: Any) -> None:
                await super().ext_notification(method, params)
                if method == "_note":
                    numbers.append(params["number"])

        async with Server.of(acp, Noting, options=acp.ConnectionOptions(max_requests=5)) as server:
            client = await blocked(server, agent)
            posts = [asyncio.create_task(client.post({**NOTE, "params": {"number": each}})) for each in range(30)]
            assert await at_rest(lambda: sum(post.done() for post in posts)) in {5, 6}  # one may have been read
            assert server.held > 24 * 40  # those that wait count
            agent.release.set()
            assert {post.status for post in await asyncio.gather(*posts)} == {202}
            await settled(lambda: len(numbers) == 30)
            assert numbers == sorted(numbers)
            assert server.held == 0

    run(main())


# --- Clocks and limits -----------------------------------------------------------------------------------------------


def test_the_idle_time_starts_after_the_first_response(acp: ModuleType) -> None:
    class Slow(agent_for(acp)):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            pass_time(1_000)
            return await super().initialize(params)

    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(idle_seconds=60, stall_seconds=10_000)
        async with Server.of(acp, Slow, limits=limits) as server:
            client = Client(server.app)
            await client.initialize()
            pass_time(30)
            await at_rest(lambda: server.app.connections)
            assert (await client.post(NOTE)).status == 202
            pass_time(61)
            await settled(lambda: not server.app.connections)

    run(main(), seconds=1_300)


@pytest.mark.parametrize("text", ["x", "{}", '{"jsonrpc": "2.0", "id": 1, "method": "_echo"}'])
def test_a_websocket_without_a_result_is_idle(acp: ModuleType, text: str) -> None:
    async def main() -> None:
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.1)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            client = Client(server.app)
            async with client.socket() as good, client.socket(initialized=False) as bad:
                await bad.send(text)
                assert "error" in await bad.receive()
                server.hurry(idle_seconds=0.05)
                assert (await bad.receive())["type"] == "websocket.close"
                assert "result" in await good.ask(1, "_echo")

    run(main())


def test_an_agent_that_cannot_be_made(acp: ModuleType) -> None:
    def fail(_: Any) -> Any:
        raise RuntimeError("no agent")

    async def main() -> None:
        async with Server.of(acp, fail) as server:
            socket = Client(server.app).open_socket()
            assert (await socket.connect())["type"] == "websocket.accept"
            assert await socket.receive() == {"type": "websocket.close", "code": 1011}
            await socket.leave()
            assert (await Client(server.app).post(request_of(0, "initialize", INITIALIZE))).status == 500

    run(main())


@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_limits_are_above_zero(acp: ModuleType, value: float) -> None:
    for name in ("max_connections", "max_sessions", "idle_seconds", "stall_seconds"):
        with pytest.raises(ValueError, match=name):
            asgi_of(acp).RemoteLimits(**{name: value})
