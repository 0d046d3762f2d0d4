"""Connecting again after a connection was lost: the session goes on, and its history comes in order."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.network.agents import Notes, counting_agent
from tests.network.examples import example, package, part
from tests.network.in_process import served
from tests.network.load import connecting, initialize, open_session, prompt, url_of
from tests.network.package import remote_module, remote_package
from tests.network.processes import serving
from tests.network.relay import Relay, relaying
from tests.runtime_agents import PATIENCE
from tests.runtime_support import run

pytestmark = pytest.mark.full


class Reconnecting:
    """An agent to which another connection is made if the last one is lost; `resume` is called with each new one."""

    def __init__(self, connect: Callable[[], Any], resume: Callable[[Any], Awaitable[None]], closed: type[Any]) -> None:
        self._connect = connect
        self._resume = resume
        self._closed = closed
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._agent: Any = None

    async def call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Call the agent, at most twice: only what may be done twice."""
        agent = await self._current(None)
        try:
            return await work(agent)
        except self._closed:
            return await work(await self._current(agent))

    async def _current(self, lost: Any) -> Any:
        async with self._lock:
            if self._agent is lost:
                await self._stack.aclose()
                agent = await self._stack.enter_async_context(self._connect())
                await self._resume(agent)
                self._agent = agent
            return self._agent

    async def close(self) -> None:
        """Close the connection."""
        await self._stack.aclose()


@asynccontextmanager
async def reconnecting(
    connect: Callable[[], Any], resume: Callable[[Any], Awaitable[None]]
) -> AsyncGenerator[Reconnecting, None]:
    """Connect by `connect`, and again whenever the connection is lost; the end of the block closes the last one."""
    made = Reconnecting(connect, resume, remote_package().ConnectionClosed)
    try:
        yield made
    finally:
        await made.close()


async def take_up(agent: Any, method: str) -> None:
    v1 = remote_package().v1
    if method == "load":
        await agent.session_load(v1.LoadSessionRequest(session_id="/1", cwd="/", mcp_servers=[]))
    else:
        await agent.session_resume(v1.ResumeSessionRequest(session_id="/1", cwd="/"))


@pytest.mark.parametrize("method", ["load", "resume"])
def test_a_session_goes_on(method: str, transport: str, tmp_path: Path) -> None:
    """The history is there when the request to load has returned, and the order of its messages is kept."""
    cookies, connections = CookieJar(), list[Any]()
    texts = [f"count {number}" for number in range(3)]

    async def main() -> None:
        with serving("hypercorn", tmp_path, limits={"idle_seconds": 1.0}) as server:
            before = await server.state()
            async with relaying(server.port) as relay:

                def connect() -> Any:
                    connections.append(connecting(transport, relay.port, cookies=cookies))
                    return connections[-1]

                async def start(agent: Any) -> None:
                    await initialize(agent)
                    if len(connections) == 1:
                        await open_session(agent, "/1")
                    else:
                        await take_up(agent, method)
                        seen.extend(connections[-1].handler.texts["/1"])

                seen: list[str] = []
                async with reconnecting(connect, start) as agent:
                    for text in texts:
                        await agent.call(lambda each, text=text: prompt(each, "/1", text))  # type: ignore[misc]
                    relay.cut()
                    await agent.call(lambda each: prompt(each, "/1", "count 2"))
            state = await server.settled(before)
        assert seen == (texts if method == "load" else [])
        assert connections[1].handler.texts["/1"] == [*seen, "0", "1"]
        assert state["made"] == 2

    run(main())


def test_protocol_2_goes_on(transport: str) -> None:
    """The replay that `session/resume` asks for has come when it returns. The server offers both versions."""
    acp = remote_package()
    v2, helpers = acp.v2, importlib.import_module(f"{acp.__name__}.v2.helpers")
    info, said = v2.Implementation(name="test", version="1"), list[Any]()

    class Served(helpers.TurnAgent):  # type: ignore[misc, name-defined]
        async def initialize(self, params: Any) -> Any:
            able = v2.AgentCapabilities(session=v2.SessionCapabilities())
            return v2.InitializeResponse(protocol_version=2, info=info, capabilities=able)

        async def session_new(self, params: Any) -> Any:
            return v2.NewSessionResponse(session_id="/1")

        async def session_resume(self, params: Any) -> Any:
            for block in said if params.replay_from else ():
                await self.client.session_update(helpers.agent_message(params.session_id, block, message_id="m"))
            return v2.ResumeSessionResponse()

        async def work(self, params: Any) -> None:
            for block in params.prompt:
                said.append(block)
                await self.client.session_update(helpers.agent_message(params.session_id, block, message_id="m"))

    class Seen(v2.Client):  # type: ignore[misc, name-defined]
        def __init__(self, _: Any) -> None:
            self.texts: list[str] = []
            self.idle = asyncio.Event()

        async def session_update(self, params: Any) -> None:
            if params.update.session_update == "agent_message_chunk":
                self.texts.append(params.update.content.text)
            elif getattr(params.update, "state", None) == "idle":
                self.idle.set()

    hello = v2.InitializeRequest(protocol_version=2, info=info)

    async def main() -> None:
        async with served(agent={1: counting_agent(acp, Notes()), 2: Served}) as (_, port):
            connect = getattr(remote_module("remote"), f"connect_{transport}")
            first, second = (connect({2: Seen}, url_of(transport, port), params={2: hello}) for _ in range(2))
            async with first as agent:
                await agent.session_new(v2.NewSessionRequest(cwd="/"))
                for text in ("a", "b"):
                    first.handler.idle.clear()
                    await agent.session_prompt(v2.PromptRequest(session_id="/1", prompt=[helpers.text(text)]))
                    await first.handler.idle.wait()
                assert first.handler.texts == ["a", "b"]
            async with second as agent:
                request = v2.ResumeSessionRequest(session_id="/1", cwd="/", replay_from=v2.ReplayFromStart())
                await agent.session_resume(request)
                assert second.handler.texts == ["a", "b"]

    run(main())


# --- The client of docs/remote.md -----------------------------------------------------------------------------------

PROMPTS = ["again", "again", "done"]


def served_with_cut(place: str, relay: Relay, ran: list[str]) -> type[Any]:
    """The agent of the page; the connection is cut at the second prompt."""
    served_agent = example("served").Served

    class Cut(served_agent):  # type: ignore[misc, valid-type]
        async def work(self, params: Any) -> None:
            ran.append(params.prompt[0].text)
            await super().work(params)
            if place == "not arrived" and len(ran) == 1:
                relay.hold("up")
            elif place == "response lost" and len(ran) == 2:
                relay.hold("down")
            elif place == "running" and len(ran) == 2:
                relay.cut()
                await asyncio.Event().wait()

    return Cut


@pytest.mark.parametrize("place", ["not arrived", "running", "response lost"])
def test_no_prompt_runs_twice(place: str, transport: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever the connection is cut, and though the same words were said before."""
    keeping, ran = example("keeping"), list[str]()

    async def main() -> None:
        async with served() as (app, port), relaying(port) as relay:
            app.app = part("asgi").asgi_app(served_with_cut(place, relay, ran))

            async def cut() -> None:
                await relay.holds.wait()
                relay.cut()

            cutting = asyncio.create_task(cut())
            await asyncio.wait_for(keeping.talk(url_of(transport, relay.port), PROMPTS), PATIENCE)
            cutting.cancel()
            await app.app.close()

    asyncio.run(main())
    assert ran == PROMPTS
    assert capsys.readouterr().out.count("connecting again") == 1


def test_a_permanent_refusal_is_not_tried_again(transport: str) -> None:
    keeping = example("keeping")

    async def main() -> None:
        async with served() as (app, port):
            app.app = part("asgi").asgi_app(example("served").Served, authorize=lambda scope: None)
            with pytest.raises(package().ConnectionClosed) as caught:
                await asyncio.wait_for(keeping.talk(url_of(transport, port), PROMPTS), PATIENCE)
            assert caught.value.is_permanent
            assert len(app.scopes) == 1

    asyncio.run(main())
