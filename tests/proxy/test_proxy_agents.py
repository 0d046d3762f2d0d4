"""A proxy with several agents: it opens another one, and chooses where a message goes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import End, Programs, between, is_running, prompt, proxy_of
from tests.proxy.test_proxy_cases import chunk
from tests.runtime_support import acp_log, run, texts

pytestmark = pytest.mark.every_python
HELLO = {"protocolVersion": 1}


@dataclass
class Elsewhere:
    """Leads to an agent by hand, `end`."""

    acp: ModuleType
    end: End | None = None
    closed: list[bool] = field(default_factory=list)

    @asynccontextmanager
    async def open(self, options: Any) -> AsyncGenerator[Any, None]:
        near, far = self.acp.memory_transports(256)
        self.end = End(far)
        try:
            yield near
        finally:
            await near.close()
            self.closed.append(True)


def choosing(acp: ModuleType, source: Any, **methods: Any) -> type[Any]:
    """A proxy with another agent, to which the sessions "t…" belong."""

    async def initialize(self: Any, params: Any) -> Any:
        result = await self.agent.initialize(params)
        self.there = await self.open_agent(source)
        await self.there.initialize(params)
        return result

    async def from_client(self: Any, call: Any) -> Any:
        session = (call.params or {}).get("sessionId", "")
        return await call.forward(to=self.there if session.startswith("t") else self.agent)

    return proxy_of(acp, **{"initialize": initialize, "from_client": from_client, **methods})


async def begin(stage: Any, source: Elsewhere) -> End:
    """Let both agents answer `initialize`; returns the other one."""
    number = await stage.client.request("initialize", HELLO)
    await stage.agent.answer(await stage.agent.receive(), result=HELLO)
    while source.end is None:
        await asyncio.sleep(0)
    request = await source.end.receive()
    assert request["method"] == "initialize"
    await source.end.answer(request, result=HELLO)
    assert (await stage.client.receive())["id"] == number
    return source.end


def test_messages_go_where_the_proxy_says_as_they_came(acp: ModuleType) -> None:
    """Requests, notifications, results and errors are the text that came, to and from each agent."""
    source = Elsewhere(acp)
    params = '{"sessionId":"%s","n":1.0,"n":2e400,"s":"\\ud800"}'

    async def main() -> None:
        async with between(acp, [choosing(acp, source)]) as stage:
            other = await begin(stage, source)
            for end, session in ((other, "t1"), (stage.agent, "s1")):
                text = params % session
                await stage.client.send(f'{{"jsonrpc":"2.0","id":"a","method":"_x","params":{text}}}')
                line = await end.read() or ""
                assert line.endswith(f'"method":"_x","params":{text}}}'), line
                number = json.loads(line)["id"]
                await end.send(f'{{"jsonrpc":"2.0","id":{number},"result":{text}}}')
                assert await stage.client.read() == f'{{"jsonrpc":"2.0","id":"a","result":{text}}}'
                notice = f'{{"jsonrpc":"2.0","method":"session/cancel","params":{text}}}'
                await stage.client.send(notice)
                assert await end.read() == notice
            number = await stage.client.request("session/prompt", {"sessionId": "t1", "prompt": []})
            error = {"code": -7, "message": "no", "data": None}
            await other.answer(await other.receive(), error=error)
            assert await stage.client.receive() == {"jsonrpc": "2.0", "id": number, "error": error}

    run(main())
    assert source.closed == [True]


def test_what_another_agent_sends_is_handled_and_answered(acp: ModuleType) -> None:
    """Its updates pass the methods of the class, and each question is answered where it came from, under its id."""
    source = Elsewhere(acp)
    seen = list[str]()

    async def session_update(self: Any, params: Any) -> None:
        seen.append(params.session_id)
        await self.client.session_update(params)

    async def main() -> None:
        async with between(acp, [choosing(acp, source, session_update=session_update)]) as stage:
            other = await begin(stage, source)
            await other.notify("session/update", {**chunk("x"), "sessionId": "t1"})
            assert (await stage.client.receive())["params"]["sessionId"] == "t1"
            for end, name in ((other, "theirs"), (stage.agent, "ours")):
                await end.send({"id": "same", "method": "_ask", "params": {"who": name}})
            asked = [await stage.client.receive() for _ in range(2)]
            assert {each["params"]["who"] for each in asked} == {"theirs", "ours"}
            for each in reversed(asked):
                await stage.client.answer(each, result=each["params"])
            assert [(await end.receive())["result"]["who"] for end in (other, stage.agent)] == ["theirs", "ours"]

    run(main())
    assert seen == ["t1"]


def test_a_cancellation_reaches_the_agent_that_has_the_request(acp: ModuleType) -> None:
    source = Elsewhere(acp)

    async def main() -> None:
        async with between(acp, [choosing(acp, source)]) as stage:
            other = await begin(stage, source)
            number = await stage.client.request("session/prompt", {"sessionId": "t1", "prompt": []})
            request = await other.receive()
            await stage.client.cancel(number)
            cancelled = await other.receive()
            assert (cancelled["method"], cancelled["params"]) == ("$/cancel_request", {"requestId": request["id"]})
            await other.answer(request, error={"code": -32800, "message": "cancelled"})
            assert (await stage.client.receive())["error"]["code"] == -32800
            await stage.barrier()

    run(main())


def test_the_end_of_another_agent_ends_its_requests_alone(acp: ModuleType) -> None:
    source = Elsewhere(acp)

    async def main() -> None:
        async with between(acp, [choosing(acp, source)]) as stage:
            other = await begin(stage, source)
            number = await stage.client.request("session/prompt", {"sessionId": "t1", "prompt": []})
            await other.receive()
            await other.send({"id": "q", "method": "_ask", "params": {}})
            question = await stage.client.receive()
            await other.close()
            answer = await stage.client.receive()
            assert (answer["id"], answer["error"]["code"]) == (number, -32603)
            assert "the agent has closed the connection" in answer["error"]["message"]
            await stage.client.answer(question)
            await stage.barrier()
            await stage.client.notify("session/cancel", {"sessionId": "t1"})
            await stage.barrier()

    with acp_log() as records:
        run(main())
    assert "Traceback" not in texts(records)


def test_a_program_that_was_started_ends_with_the_connection(acp: ModuleType, programs: Programs) -> None:
    pids = list[int]()

    async def main() -> None:
        async with between(acp, [choosing(acp, programs.agent)]) as stage:
            number = await stage.client.request("initialize", HELLO)
            await stage.agent.answer(await stage.agent.receive(), result=HELLO)
            assert (await stage.client.receive())["id"] == number
            await stage.client.request("_pid", {"sessionId": "t"})
            pids.append((await stage.client.receive())["result"])
            await stage.client.request("session/prompt", prompt("ask") | {"sessionId": "t"})
            question = await stage.client.receive()
            assert question["method"] == "session/request_permission"
            await stage.client.answer(question, result={"outcome": {"outcome": "cancelled"}})
            assert (await stage.client.receive())["result"]["_meta"]["answer"]["outcome"] == {"outcome": "cancelled"}
            assert is_running(pids[0])

    run(main())
    assert not is_running(pids[0])


@pytest.mark.parametrize(("command", "error"), [(["/nowhere/agent"], OSError), ("agent --flag", TypeError)])
def test_an_agent_that_cannot_be_opened(acp: ModuleType, command: Any, error: type[Exception]) -> None:
    failed = list[BaseException]()

    async def session_new(self: Any, params: Any) -> Any:
        try:
            await self.open_agent(command)
        except error as found:
            failed.append(found)
        return await self.agent.session_new(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_new=session_new)]) as stage:
            _, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
            await stage.agent.answer(request, result={"sessionId": "s"})
            assert (await stage.client.receive())["result"] == {"sessionId": "s"}

    run(main())
    assert len(failed) == 1
