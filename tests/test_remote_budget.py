"""The memory that the connections of one identity share: what counts in it, what happens above it, what makes room."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import JSON, Client, Server, agent_for, asgi_of, request_of, settled
from tests.runtime_support import V1, acp_log, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

LIMIT = 400_000
TEXT = {"text": "x" * 118_000}
HEAVY = 3_000 * [{}]
"""9 KB as JSON, and 210 in memory."""
LET_THROUGH = {"text": "x" * 40_000}
"""Up to 64 KiB reach the agent's end of a connection on which nothing waits."""
INTERNAL, TRY_AGAIN_LATER = -32603, 1013


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def by_port(scope: Any) -> int:
    return int(scope["client"][1])


class Other(Client):
    """A client of another identity."""

    def scope(self, kind: str, headers: Any, **more: Any) -> dict[str, Any]:
        return {**super().scope(kind, headers, **more), "client": ("127.0.0.1", 2)}


def serving(acp: ModuleType, agent: Any = None) -> Any:
    limits = asgi_of(acp).RemoteLimits(max_bytes_per_identity=LIMIT)
    return Server.of(acp, agent or agent_for(acp), limits=limits, authorize=by_port)


def test_requests_in_flight_share_the_budget(acp: ModuleType) -> None:
    """Those of other connections count, and those of other identities do not."""

    async def main() -> None:
        async with serving(acp) as server:
            one, two, other = Client(server.app), Client(server.app), Other(server.app)
            for client in (one, two, other):
                await client.initialize()
            async with one.get() as stream, two.get() as second, other.get() as third:
                for number in range(3):
                    await one.call(number, "_wait", TEXT)
                await two.call(1, "_echo", {})
                assert "result" in await second.receive()
                assert (await two.post(request_of(2, "_echo", LET_THROUGH))).status == 202
                refused = await second.receive()
                assert (refused["id"], refused["error"]["code"]) == (2, INTERNAL)
                assert "max_bytes_per_identity" in refused["error"]["message"]
                await other.call(1, "_echo", TEXT)
                assert "result" in await third.receive()
                await one.post({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 0}})
                assert (await stream.receive())["id"] == 0
                await two.call(3, "_echo", TEXT)
                assert "result" in await second.receive()

    with acp_log():
        run(main())


def test_bodies_that_arrive_share_the_budget(acp: ModuleType) -> None:
    async def main() -> None:
        async with serving(acp) as server:
            one, two = Client(server.app), Client(server.app)
            for client in (one, two):
                await client.initialize()
            arriving = one.start("POST", [JSON, *one.ids()])
            arriving.feed("http.request", body=b" " * (LIMIT - 50_000), more_body=True)
            await settled(lambda: not arriving.waiting)
            assert (await two.post(request_of(1, "_echo", TEXT))).status == 429
            async with two.get() as stream:
                await two.call(2, "_echo", {})  # a small message
                assert "result" in await stream.receive()
                await arriving.leave()
                await two.call(3, "_echo", TEXT)
                assert "result" in await stream.receive()

    run(main())


def test_a_body_for_a_connection_that_has_ended_is_not_kept(acp: ModuleType) -> None:
    async def main() -> None:
        async with serving(acp) as server:
            client = Client(server.app)
            await client.initialize()
            arriving = client.start("POST", [JSON, *client.ids()])
            arriving.feed("http.request", body=b" " * 1000, more_body=True)
            await settled(lambda: not arriving.waiting)
            await client.delete()
            arriving.feed("http.request", body=b" " * 1000, more_body=True)
            arriving.feed("http.request")
            assert (await arriving.answer()).status == 404

    run(main())


def test_a_websocket_above_the_budget_is_closed(acp: ModuleType) -> None:
    async def main() -> None:
        async with serving(acp) as server:
            client = Client(server.app)
            async with client.socket() as one, client.socket() as two:
                for number in range(3):
                    await one.call(number, "_wait", TEXT)
                assert "result" in await one.ask("last", "_echo", {})
                assert "result" in await two.ask(1, "_echo", {})
                await two.call(2, "_echo", TEXT)
                assert await two.receive() == {"type": "websocket.close", "code": TRY_AGAIN_LATER}
            async with client.socket() as again:
                await again.call(2, "_echo", TEXT)
                assert "result" in await again.receive()

    run(main())


def test_messages_that_wait_count_with_their_memory(acp: ModuleType) -> None:
    """Not with the bytes that they were sent as."""

    async def main() -> None:
        agent = agent_for(acp)
        async with serving(acp, agent) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                await client.post({"jsonrpc": "2.0", "method": "_block"})
                await settled(lambda: agent.release)
                statuses = [(await client.post(request_of(number, "_echo", HEAVY))).status for number in range(2)]
                assert statuses == [202, 429]
                async with client.socket() as socket:
                    await socket.send({"jsonrpc": "2.0", "method": "_block"})
                    for number in range(2):  # the first one may wait because it is alone
                        await socket.call(number, "_echo", HEAVY)
                    assert await socket.receive() == {"type": "websocket.close", "code": TRY_AGAIN_LATER}
                agent.release.set()
                assert (await stream.receive())["id"] == 0
            assert server.held == 0

    run(main())


def test_unread_streams_share_the_budget(acp: ModuleType) -> None:
    """Above it, a stream holds one message, and is still read to its end."""

    class Flooding(agent_for(acp)):  # type: ignore[misc]
        sent = 0

        async def session_prompt(self, params: Any) -> Any:
            for _ in range(20):
                await self.client.ext_notification("_said", {"sessionId": params.session_id, **TEXT})
                Flooding.sent += 1
            return acp.PromptResponse(stop_reason="end_turn")

    async def main() -> None:
        async with serving(acp, Flooding) as server:
            client = Client(server.app)
            await client.initialize()
            async with client.get() as stream:
                sessions = [await client.new_session(stream) for _ in range(5)]
            for session in sessions:
                params = {"sessionId": session, "prompt": [{"type": "text", "text": ""}]}
                assert (await client.post(request_of(session, "session/prompt", params), session)).status == 202
            for _ in range(1000):
                await asyncio.sleep(0)
            assert 0 < Flooding.sent <= 10
            for session in sessions:
                async with client.get(session) as stream:
                    while (message := await stream.receive()).get("id") != session:
                        assert message["method"] == "_said"

    run(main())


def test_all_is_given_back(acp: ModuleType) -> None:
    """`Server.of` looks for what still counts at the end: after all kinds of ends."""

    async def main() -> None:
        async with serving(acp) as server:
            client = Client(server.app)
            for end in ("delete", "leave"):
                client.key = None
                await client.initialize()
                async with client.get() as stream:
                    session = await client.new_session(stream)
                    own = client.open_get(session)
                    await own.start()
                    own.pause()
                    await client.call(1, "_wait", TEXT)
                    await client.call(2, "_open", {"name": "unread"})
                    note = {"jsonrpc": "2.0", "method": "_block"}
                    assert (await client.post(note)).status == 202
                    for _ in range(3):
                        assert (await client.post({"jsonrpc": "2.0", "method": "_note"})).status == 202
                    if end == "delete":
                        await client.delete()
                    await own.leave()

    run(main())
