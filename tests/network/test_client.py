"""What a client over Streamable HTTP does with sessions that end, servers that are slow, and callers that give up."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tests.network.agents import Notes, counting_agent, counting_client
from tests.network.in_process import connection, served
from tests.network.package import remote_module, remote_package
from tests.runtime_agents import PATIENCE

acp: Any = remote_package()
v1: Any = acp.v1


async def opened(agent: Any, *names: str) -> None:
    """Start the connection, and open sessions with these ids."""
    await agent.initialize(v1.InitializeRequest(protocol_version=1))
    for name in names:
        await agent.session_new(v1.NewSessionRequest(cwd=name, mcp_servers=[]))


async def prompt(agent: Any, session: str, text: str) -> Any:
    """Send a command to the agent of these tests."""
    blocks = [v1.ContentBlockText(text=text)]
    return await agent.session_prompt(v1.PromptRequest(session_id=session, prompt=blocks))


def posts(app: Any) -> int:
    """The number of messages that a server has received."""
    return sum(scope.get("method") == "POST" for scope in app.scopes)


def play(coroutine: Any) -> None:
    """Run a test; no task may be left at the end."""

    async def run() -> None:
        await asyncio.wait_for(coroutine, PATIENCE)
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while len(asyncio.all_tasks()) > 1:
            assert asyncio.get_running_loop().time() < deadline, asyncio.all_tasks()
            await asyncio.sleep(0.01)

    asyncio.run(run())


def test_closing_a_session_leaves_the_others(transport: str) -> None:
    """The server ends the stream of the session, which may be read before the response to the request."""

    async def run() -> None:
        async with served() as (_, port), connection(transport, port) as agent:
            await opened(agent, *map(str, range(10)), "kept")
            for each in range(10):
                await prompt(agent, str(each), "count 50")
                await agent.session_close(v1.CloseSessionRequest(session_id=str(each)))
            await prompt(agent, "kept", "count 1")

    play(run())


def test_what_comes_late_for_a_closed_session_opens_no_stream() -> None:
    class LateAgent(counting_agent(acp, Notes())):  # type: ignore[misc]
        async def session_close(self, params: Any) -> Any:
            self.late = asyncio.ensure_future(self.send_late(params.session_id))
            return v1.CloseSessionResponse()

        async def send_late(self, session: str) -> None:
            await asyncio.sleep(0.05)
            await self.update(session, "late")

    async def run() -> None:
        limits = remote_module("asgi").RemoteLimits(max_sessions=3)
        async with served(agent=LateAgent, limits=limits) as (app, port):
            block = connection("http", port)
            async with block as agent:
                await opened(agent)
                for each in range(6):  # twice as many as there may be at a time
                    name = str(each)
                    await agent.session_new(v1.NewSessionRequest(cwd=name, mcp_servers=[]))
                    await agent.session_close(v1.CloseSessionRequest(session_id=name))
                    while not block.handler.texts[name]:
                        await asyncio.sleep(0.01)
                    await agent.session_cancel(v1.CancelNotification(session_id=name))
            gets = [scope for scope in app.scopes if scope.get("method") == "GET"]
            assert len(gets) == 7  # of the connection, and one for each session

    play(run())


@pytest.mark.parametrize("name", ["séance", "a\nb", "\U0001f600", " a", "a "])
def test_a_session_id_that_no_header_can_hold_works(name: str, transport: str) -> None:
    async def run() -> None:
        async with served() as (_, port):
            block = connection(transport, port)
            async with block as agent:
                await opened(agent, name)
                await prompt(agent, name, "count 3")
                assert block.handler.texts[name] == ["0", "1", "2"]
                await agent.session_cancel(v1.CancelNotification(session_id=name))
                await prompt(agent, name, "count 1")

    play(run())


def test_events_that_are_no_messages_are_ignored() -> None:
    """Source: the specification of server-sent events, "Interpreting an event stream"."""
    other = b"retry: 3000\n\nid: 7\n\nevent: ping\ndata: {}\n\n: comment\n\n"

    async def run() -> None:
        async with served() as (app, port):
            real = app.app

            async def add_events(scope: Any, receive: Any, send: Any) -> None:
                async def send_more(event: Any) -> None:
                    if event.get("more_body"):
                        event = {**event, "body": other + event["body"] + other}
                    await send(event)

                await real(scope, receive, send_more)

            app.app = add_events
            async with connection("http", port) as agent:
                await opened(agent, "one")
                await prompt(agent, "one", "count 5")

    play(run())


def test_a_server_without_room_makes_the_client_wait(transport: str) -> None:
    """As a full pipe does: nothing is lost, and nothing fails."""
    seen = []

    class BusyAgent(counting_agent(acp, Notes())):  # type: ignore[misc]
        async def ext_notification(self, method: str, params: Any) -> None:
            await asyncio.sleep(0.005)
            seen.append(params)

    async def run() -> None:
        options = acp.ConnectionOptions(max_requests=5)
        async with served(agent=BusyAgent, options=options) as (_, port), connection(transport, port) as agent:
            await opened(agent, "one")
            for number in range(60):
                await agent.ext_notification("_note", number)
            await prompt(agent, "one", "count 1")

    play(run())
    assert seen == [*range(60)]


def test_a_message_whose_caller_gives_up_before_its_turn_is_not_sent() -> None:
    async def run() -> None:
        async with served() as (app, port), connection("http", port) as agent:
            await opened(agent, "one")
            real, may_go_on = app.app, asyncio.Event()

            async def hold(scope: Any, receive: Any, send: Any) -> None:
                if scope.get("method") == "POST":
                    await may_go_on.wait()
                await real(scope, receive, send)

            app.app = hold
            before = posts(app)
            first = asyncio.ensure_future(agent.ext_notification("_first", {}))
            while posts(app) == before:
                await asyncio.sleep(0)
            later = [asyncio.ensure_future(agent.ext_notification("_later", {})) for _ in range(50)]
            await asyncio.sleep(0)
            for each in later:
                each.cancel()
            await asyncio.gather(*later, return_exceptions=True)
            may_go_on.set()
            await first
            await prompt(agent, "one", "count 1")
            assert posts(app) == before + 2

    play(run())


@pytest.mark.parametrize("way", ["http", "url"])
def test_a_client_that_is_cancelled_while_it_connects_leaves_nothing(way: str) -> None:
    class SlowAgent(counting_agent(acp, Notes())):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            await asyncio.sleep(3600)

    async def run() -> None:
        async with served(agent=SlowAgent) as (app, port):
            with contextlib.suppress(asyncio.TimeoutError):
                async with connection(way, port) as agent:
                    await asyncio.wait_for(opened(agent), 0.5)
            while app.app.connections:
                await asyncio.sleep(0.01)

    play(run())


@pytest.mark.full
def test_the_first_request_may_take_longer_than_the_library_would_wait() -> None:
    class SlowAgent(counting_agent(acp, Notes())):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            await asyncio.sleep(6)
            return await super().initialize(params)

    async def run() -> None:
        async with served(agent=SlowAgent) as (_, port), connection("http", port) as agent:
            await opened(agent, "one")

    play(run())


def test_clients_are_not_shared_with_the_caller() -> None:
    block = remote_module("remote").connect_http(counting_client(acp), "http://x/acp", settings={"transport": object()})

    async def run() -> None:
        async with block:
            pass

    with pytest.raises(ValueError, match="transport"):
        asyncio.run(run())
