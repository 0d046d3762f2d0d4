"""The cases that proxies of other implementations are tested by, each with its number, for a chain in this process.

`test_proxy_forms` has those of the wire between a conductor and a proxy, `test_proxy_programs` those of processes, and
`test_proxy_mcp` those of a proxy that serves tools: 18 and 34 to 36. Here messages of MCP pass as all others do.
"""

from __future__ import annotations

import asyncio
import json
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import Stage, between, forwarding, package, prompt, proxy_of, unchanged
from tests.runtime_support import acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

INITIALIZE = {"protocolVersion": 1}


def cancels_of(messages: list[Any]) -> list[Any]:
    """The ids that are cancelled in messages."""
    return [each["params"]["requestId"] for each in messages if each.get("method") == "$/cancel_request"]


async def cancelled(stage: Stage, method: str = "session/prompt", params: Any = None) -> None:
    """A request of the client is cancelled: once at the agent, with the agent's id."""
    number, request = await stage.asked(method, params)
    await stage.client.cancel(number)
    await stage.client.cancel(number)
    cancel = await stage.agent.receive()
    assert cancels_of([cancel]) == [request["id"]]
    await stage.agent.answer(request, error={"code": -32800, "message": "cancelled"})
    found = await stage.client.receive()
    assert (found["id"], found["error"]["code"]) == (number, -32800)
    await stage.barrier()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_01_02_03_04_init(acp: ModuleType, count: int) -> None:
    """In one process no component is opened but the agent, once."""

    async def main() -> None:
        async with between(acp, [acp.Proxy] * count) as stage:
            number = await stage.client.request("initialize", INITIALIZE)
            request = await stage.agent.receive()
            assert (request["method"], request["params"]) == ("initialize", INITIALIZE)
            await stage.agent.answer(request, result={"protocolVersion": 1, "unknown": [1]})
            assert await stage.client.receive() == {
                "jsonrpc": "2.0",
                "id": number,
                "result": {"protocolVersion": 1, "unknown": [1]},
            }
            await stage.barrier()

    run(main())


def prefixing(acp: ModuleType) -> type[Any]:
    async def session_update(self: Any, params: Any) -> None:
        params.update.content.text = f">{params.update.content.text}"
        await self.client.session_update(params)

    return proxy_of(acp, session_update=session_update)


def chunk(text: str) -> dict[str, Any]:
    return {
        "sessionId": "s",
        "update": {
            "sessionUpdate": "agent_message_chunk",
            "messageId": "m",
            "content": {"type": "text", "text": text},
        },
    }


async def text_of(stage: Stage) -> str:
    message = await stage.client.receive()
    return str(message["params"]["update"]["content"]["text"])


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_07_transform(acp: ModuleType, count: int) -> None:
    async def main() -> None:
        async with between(acp, [prefixing(acp)] * count) as stage:
            _, request = await stage.asked()
            await stage.agent.notify("session/update", chunk("Hello"))
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            assert await text_of(stage) == ">" * count + "Hello"
            assert (await stage.client.receive())["result"] == {"stopReason": "end_turn"}

    run(main())


@pytest.mark.parametrize("kind", [unchanged, forwarding])
def test_12_meta(acp: ModuleType, kind: Any) -> None:
    meta = {"traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01", "baggage": "a=b", "own": {"x": 1}}

    async def main() -> None:
        async with between(acp, [acp.Proxy, kind(acp)]) as stage:
            _, request = await stage.asked("session/prompt", prompt("t", _meta=meta))
            assert request["params"]["_meta"] == meta

    run(main())


@pytest.mark.parametrize("method", ["session/prompt", "session/new", "initialize", "_own"])
@pytest.mark.parametrize("kind", ["plain", "unchanged", "forwarding", "three"])
def test_13_16_19_cancel_right(acp: ModuleType, kind: str, method: str) -> None:
    """The next request of the same method works."""
    chain = {"plain": [acp.Proxy], "three": [acp.Proxy, unchanged(acp), forwarding(acp)]}.get(kind)
    chain = chain or [{"unchanged": unchanged, "forwarding": forwarding}[kind](acp)]
    params = {"initialize": INITIALIZE, "session/new": {"cwd": "/", "mcpServers": []}}.get(method)
    result = {"initialize": INITIALIZE, "session/new": {"sessionId": "s"}}.get(method, {"stopReason": "end_turn"})

    async def main() -> None:
        async with between(acp, chain) as stage:
            await cancelled(stage, method, params)
            number, request = await stage.asked(method, params)
            await stage.agent.answer(request, result=result)
            assert await stage.client.receive() == {"jsonrpc": "2.0", "id": number, "result": result}

    run(main())


@pytest.mark.parametrize("kind", [unchanged, forwarding, prefixing])
def test_14_cancel_left(acp: ModuleType, kind: Any) -> None:
    async def main() -> None:
        async with between(acp, [kind(acp)]) as stage:
            await stage.agent.request("session/request_permission", {"sessionId": "s", "toolCall": {}, "options": []})
            stage.agent, stage.client = stage.client, stage.agent
            request = await stage.agent.receive() if kind is prefixing else None
            if request is None:  # the params do not fit
                request = await stage.agent.receive() if kind is forwarding else None
            stage.agent, stage.client = stage.client, stage.agent
            if request is None:
                assert (await stage.agent.receive())["error"]["code"] == -32602
                return
            await stage.agent.cancel("session/request_permission 1")
            assert cancels_of([await stage.client.receive()]) == [request["id"]]
            await stage.client.answer(request, error={"code": -32800, "message": "cancelled"})
            assert (await stage.agent.receive())["error"]["code"] == -32800
            await stage.barrier()

    run(main())


PERMISSION = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}


@pytest.mark.parametrize("kind", [prefixing, unchanged, forwarding])
def test_15_cascade(acp: ModuleType, kind: Any) -> None:
    async def main() -> None:
        async with between(acp, [kind(acp), prefixing(acp)]) as stage:
            number, request = await stage.asked()
            asked = await stage.agent.request("session/request_permission", PERMISSION)
            permission = await stage.client.receive()
            await stage.client.cancel(number)
            assert cancels_of([await stage.agent.receive()]) == [request["id"]]
            await stage.agent.cancel(asked)
            await stage.agent.answer(request, error={"code": -32800, "message": "cancelled"})
            got = [await stage.client.receive()]
            while len(got) < 2:
                got.append(await stage.client.receive())
            assert cancels_of(got) == [permission["id"]]
            assert [each["error"]["code"] for each in got if "error" in each] == [-32800]
            await stage.client.answer(permission, error={"code": -32800, "message": "cancelled"})
            assert (await stage.agent.receive())["error"]["code"] == -32800
            _, request = await stage.asked()
            await stage.agent.notify("session/update", chunk("Hello"))
            assert (await text_of(stage)).startswith(">")
            await stage.agent.answer(request)
            await stage.client.receive()
            await stage.barrier()

    run(main())


def test_17_override_cancel(acp: ModuleType) -> None:
    """The handler sees the cancellation, and may clean up; its next call works."""
    cleaned: list[str] = []

    async def session_new(self: Any, params: Any) -> Any:
        params.cwd = "/other"
        try:
            return await self.agent.session_new(params)
        finally:
            await asyncio.sleep(0)
            cleaned.append(params.cwd)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_new=session_new)]) as stage:
            params = {"cwd": "/", "mcpServers": []}
            await cancelled(stage, "session/new", params)
            assert cleaned == ["/other"]
            number, request = await stage.asked("session/new", params)
            await stage.agent.answer(request, result={"sessionId": "s"})
            assert (await stage.client.receive())["id"] == number

    run(main())


def test_21_no_tunnel(acp: ModuleType) -> None:
    """A cancellation is no message to pass on: of an unknown or strange id, nothing arrives."""
    seen: list[str] = []

    async def look(self: Any, call: Any) -> Any:
        seen.append(call.method)
        return await call.forward()

    async def main() -> None:
        async with between(acp, [proxy_of(acp, from_client=look, from_agent=look)]) as stage:
            _, request = await stage.asked("_x", {})
            for strange in (999, "x", None, 1.5, [], {}, request["id"]):
                await stage.client.cancel(strange)
                await stage.agent.cancel(strange)
            await stage.client.notify("$/cancel_request")
            await stage.client.notify("$/cancel_request", [1])
            await stage.barrier()
            assert seen == ["_x", "_barrier"]

    run(main())


def test_22_absorb(acp: ModuleType) -> None:
    """A handler that keeps its call lets no cancellation through."""

    async def session_prompt(self: Any, params: Any) -> Any:
        call = asyncio.ensure_future(self.agent.session_prompt(params))
        while True:
            try:
                return await asyncio.shield(call)
            except asyncio.CancelledError:
                if call.cancelled():
                    raise

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            number, request = await stage.asked()
            await stage.client.cancel(number)
            await stage.barrier()
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            assert (await stage.client.receive())["result"] == {"stopReason": "end_turn"}

    run(main())


def test_23_late_answer(acp: ModuleType) -> None:
    """The response to a call that was dropped, and those to calls that never were."""

    async def session_prompt(self: Any, params: Any) -> Any:
        call = asyncio.ensure_future(self.agent.session_prompt(params))
        await asyncio.sleep(0)
        call.cancel()
        return self.agent.CODEC.decode(acp.PromptResponse, {"stopReason": "cancelled"})

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            _, request = await stage.asked()
            assert (await stage.client.receive())["result"] == {"stopReason": "cancelled"}
            assert cancels_of([await stage.agent.receive()]) == [request["id"]]
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            await stage.agent.answer({"id": 77}, result={})
            await stage.agent.answer({"id": "0"}, result={})
            await stage.barrier()

    run(main())


def test_25_unknown_result_field(acp: ModuleType) -> None:
    async def initialize(self: Any, params: Any) -> Any:
        result = await self.agent.initialize(params)
        result.auth_methods = []
        return result

    async def main() -> None:
        async with between(acp, [proxy_of(acp, initialize=initialize)]) as stage:
            _, request = await stage.asked("initialize", INITIALIZE)
            await stage.agent.answer(request, result={**INITIALIZE, "new": {"a": 1}, "agentCapabilities": {"x": 1}})
            result = (await stage.client.receive())["result"]
            assert (result["new"], result["agentCapabilities"]["x"]) == ({"a": 1}, 1)

    run(main())


def test_26_27_28_versions_pass(acp: ModuleType) -> None:
    """A proxy chooses no version: what it does not know passes, in both directions."""

    async def main() -> None:
        async with between(acp, [acp.Proxy, forwarding(acp)]) as stage:
            for params in ({}, {"protocolVersion": "2"}, {"protocolVersion": 0}, {"protocolVersion": 99}):
                for result in ({}, {"protocolVersion": 3}):
                    number, request = await stage.asked("initialize", params)
                    assert request["params"] == params
                    await stage.agent.answer(request, result=result)
                    assert await stage.client.receive() == {"jsonrpc": "2.0", "id": number, "result": result}

    run(main())


@pytest.mark.parametrize("kind", [None, unchanged, forwarding])
def test_30_result_update(acp: ModuleType, kind: Any) -> None:
    """What follows the result of session/new comes after it, even if its handler takes its time."""

    async def session_new(self: Any, params: Any) -> Any:
        result = await self.agent.session_new(params)
        for _ in range(20):
            await asyncio.sleep(0)
        return result

    first = proxy_of(acp, session_new=session_new)
    chain = [first, kind(acp), first] if kind is not None else [first]

    async def main() -> None:
        async with between(acp, chain) as stage:
            number, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
            await stage.agent.notify("session/update", {"sessionId": "s", "update": {"sessionUpdate": "a"}})
            await stage.agent.answer(request, result={"sessionId": "s"})
            for each in range(5):
                await stage.agent.notify("session/update", {"sessionId": "s", "update": {"sessionUpdate": f"{each}"}})
            got = [await stage.client.receive() for _ in range(7)]
            assert [each.get("id") for each in got] == [None, number, None, None, None, None, None]
            assert [each["params"]["update"]["sessionUpdate"] for each in got[2:]] == ["0", "1", "2", "3", "4"]

    run(main())


def test_31_replay(acp: ModuleType) -> None:
    async def session_resume(self: Any, params: Any) -> Any:
        params.cwd = "/x"
        result = await self.agent.session_resume(params)
        await asyncio.sleep(0.01)
        return result

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_resume=session_resume)]) as stage:
            number, request = await stage.asked("session/resume", {"sessionId": "s", "cwd": "/", "mcpServers": []})
            await stage.agent.notify("session/update", chunk("first"))
            await stage.agent.answer(request, result={})
            await stage.agent.notify("session/update", chunk("second"))
            assert await text_of(stage) == "first"
            assert (await stage.client.receive())["id"] == number
            assert await text_of(stage) == "second"

    run(main())


@pytest.mark.parametrize("kind", ["raw", "typed"])
def test_32_invalid_success(acp: ModuleType, kind: str) -> None:
    """Raw, a result that does not fit passes. Typed, its request fails, and the next one works."""

    async def session_new(self: Any, params: Any) -> Any:
        return await self.agent.session_new(params)

    chain = [acp.Proxy] if kind == "raw" else [proxy_of(acp, session_new=session_new)]

    async def main() -> None:
        async with between(acp, chain) as stage:
            for result in ({"id": 1}, {"sessionId": "s"}):
                number, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
                await stage.agent.answer(request, result=result)
                found = await stage.client.receive()
                assert found["id"] == number
                if kind == "raw" or "sessionId" in result:
                    assert found["result"] == result
                else:
                    assert found["error"]["code"] == -32603

    run(main())


def test_messages_of_mcp_pass(acp: ModuleType) -> None:
    """Without support for MCP, its messages pass in both directions, also inside of capabilities and servers."""
    server = {"type": "acp", "name": "n", "serverId": "i"}

    async def main() -> None:
        async with between(acp, [acp.Proxy, forwarding(acp)]) as stage:
            _, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": [server]})
            assert request["params"]["mcpServers"] == [server]
            asked = await stage.agent.request("mcp/message", {"serverId": "i", "method": "tools/list"})
            request = await stage.client.receive()
            await stage.client.answer(request, result={"tools": []})
            assert await stage.agent.receive() == {"jsonrpc": "2.0", "id": asked, "result": {"tools": []}}
            await stage.client.notify("mcp/message", {"serverId": "i", "requestId": "x"})
            assert (await stage.agent.receive())["params"] == {"serverId": "i", "requestId": "x"}

    run(main())


@pytest.mark.parametrize("kind", [None, forwarding, unchanged])
def test_38_eof(acp: ModuleType, kind: Any) -> None:
    """What came before the end is passed on, then every pending request is answered."""
    chain = [acp.Proxy, acp.Proxy] if kind is None else [kind(acp), kind(acp)]

    async def main() -> None:
        async with between(acp, chain) as stage:
            numbers = [(await stage.asked())[0] for _ in range(3)]
            for each in range(10):
                await stage.agent.notify("session/update", chunk(f"{each}"))
            await stage.agent.close()
            assert [await text_of(stage) for _ in range(10)] == [f"{each}" for each in range(10)]
            answers = [await stage.client.receive() for _ in range(3)]
            assert sorted(each["id"] for each in answers) == sorted(numbers)
            assert {each["error"]["code"] for each in answers} == {-32603}
            (message,) = {each["error"]["message"] for each in answers}
            assert message == "Internal error: the agent has closed the connection"
            assert await stage.client.receive() is None

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


def test_39_unhandled(acp: ModuleType) -> None:
    """Both ends decide what they do not know."""

    async def main() -> None:
        async with between(acp, [acp.Proxy, unchanged(acp)]) as stage:
            for left, right in ((stage.client, stage.agent), (stage.agent, stage.client)):
                number = await left.request("not/known", [1])
                request = await right.receive()
                error = {"code": -32601, "message": "no", "own": 1, "data": [None]}
                await right.answer(request, error=error)
                assert await left.receive() == {"jsonrpc": "2.0", "id": number, "error": error}
                await left.notify("not/known")
                assert await right.receive() == {"jsonrpc": "2.0", "method": "not/known"}

    run(main())


def test_41_own_calls_between_forwarded_ones(acp: ModuleType) -> None:
    async def session_prompt(self: Any, params: Any) -> Any:
        first = await self.agent.ext_method("_first", {"n": 1})
        await self.client.ext_notification("_seen", first)
        await self.client.ext_method("_second", first)
        return await self.agent.session_prompt(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            waiting = await stage.client.request("_raw", {})
            raw = await stage.agent.receive()
            number, first = await stage.asked()
            assert first["method"] == "_first"
            await stage.agent.answer(first, result={"r": 1})
            assert await stage.client.receive() == {"jsonrpc": "2.0", "method": "_seen", "params": {"r": 1}}
            second = await stage.client.receive()
            await stage.client.answer(second)
            request = await stage.agent.receive()
            assert len({raw["id"], first["id"], request["id"]}) == 3
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            await stage.agent.answer(raw)
            assert [(await stage.client.receive())["id"] for _ in range(2)] == [number, waiting]

    run(main())


@pytest.mark.parametrize("kind", [pytest.param(None, marks=pytest.mark.full), unchanged])
def test_44_twenty_megabytes(acp: ModuleType, kind: Any) -> None:
    async def main() -> None:
        async with between(acp, [acp.Proxy if kind is None else kind(acp)]) as stage:
            params = prompt("x" * 20 * 2**20)
            number, request = await stage.asked("session/prompt", params)
            assert request["params"] == params
            await stage.agent.answer(request, result={"stopReason": "end_turn", "_meta": params})
            assert (await stage.client.receive())["id"] == number

    run(main())


# --- Versions --------------------------------------------------------------------------------------------------------


def guards(acp: ModuleType, seen: list[str]) -> dict[int, type[Any]]:
    """A proxy for each version that hides a capability of the agent, in its own types."""

    def guard(version: int, protocol: ModuleType) -> type[Any]:
        async def initialize(self: Any, params: Any) -> Any:
            seen.append(f"v{version}")
            result = await self.agent.initialize(params)
            result.auth_methods = []
            return result

        async def session_update(self: Any, params: Any) -> None:
            seen.append(f"update v{version}")
            await self.client.session_update(params)

        return type(f"Guard{version}", (protocol.Proxy,), {"initialize": initialize, "session_update": session_update})

    return {1: guard(1, acp.v1), 2: guard(2, acp.v2)}


ANSWERS = {
    1: {"protocolVersion": 1, "authMethods": [{"id": "a", "name": "A"}], "x": 1},
    2: {"protocolVersion": 2, "authMethods": [{"type": "agent", "methodId": "a", "name": "A"}], "x": 1},
}


@pytest.mark.parametrize("overriding", ["both", "v1", "v2", "neither"])
@pytest.mark.parametrize(("asked", "answered"), [(1, 1), (2, 2), (3, 2), (2, 1), (3, 1)])
def test_33_router(packages: Packages, asked: int, answered: int, overriding: str) -> None:
    """The class for the version of the answer changes it, whatever was asked, and whichever class overrides."""
    acp = package(packages, 12)
    seen: list[str] = []
    classes = guards(acp, seen)
    for version, protocol in ((1, acp.v1), (2, acp.v2)):
        if overriding not in ("both", f"v{version}"):
            classes[version] = proxy_of(protocol)
    info = {"info": {"name": "n", "version": "1"}, "capabilities": {}}
    params = {"protocolVersion": asked, "clientCapabilities": {}, "own": 1.0, **info}
    result = {**ANSWERS[answered], **info}

    async def main() -> None:
        async with between(acp, [classes]) as stage:
            _, request = await stage.asked("initialize", params)
            assert request["params"] == params
            await stage.agent.answer(request, result=result)
            await stage.agent.notify("session/update", chunk("t"))
            found = (await stage.client.receive())["result"]
            is_guarded = overriding in ("both", f"v{answered}")
            assert found["authMethods"] == ([] if is_guarded else result["authMethods"])
            assert found["x"] == 1
            await stage.client.receive()
            await stage.barrier()
            assert (f"v{answered}" in seen) is is_guarded
            assert (f"update v{answered}" in seen) is is_guarded
            assert f"update v{3 - answered}" not in seen

    run(main())


def test_33_a_refused_second_initialize_changes_nothing(packages: Packages) -> None:
    """The class for the version that was agreed on stays: a client cannot get around what it does."""
    acp = package(packages, 12)
    seen: list[str] = []

    async def from_agent(self: Any, call: Any) -> Any:
        seen.append(call.method)
        return await call.forward()

    async def main() -> None:
        async with between(acp, [{1: proxy_of(acp.v1), 2: proxy_of(acp.v2, from_agent=from_agent)}]) as stage:
            for version, outcome in ((2, {"result": ANSWERS[2]}), (1, {"error": {"code": -32600, "message": "again"}})):
                _, request = await stage.asked("initialize", {"protocolVersion": version})
                await stage.agent.answer(request, **outcome)
                await stage.client.receive()
                await stage.agent.notify(f"_after_{version}")
                await stage.client.receive()

    run(main())
    assert seen == ["_after_2", "_after_1"]


def test_33_first_frame_is_whole(packages: Packages) -> None:
    acp = package(packages, 12)
    text = '{"jsonrpc": "2.0","id":1, "method":"initialize","params":{"protocolVersion":2,"a":1.0,"a":1e400}}'

    async def main() -> None:
        async with between(acp, [{1: proxy_of(acp.v1), 2: proxy_of(acp.v2)}]) as stage:
            await stage.client.send(text)
            assert await stage.agent.read() == text.replace('"id":1', '"id":0')
            await stage.agent.send('{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"b":1e400}}')
            assert await stage.client.read() == '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"b":1e400}}'

    run(main())


def test_37_on_message_sees_each_line_once(acp: ModuleType) -> None:
    """What is between proxies of one process is on no wire."""
    seen: list[tuple[str, bytes]] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        params.session_id = "other"
        return await self.agent.session_prompt(params)

    async def main() -> None:
        options = acp.ConnectionOptions(on_message=lambda way, line: seen.append((way, line)))
        changing = proxy_of(acp, session_prompt=session_prompt)
        async with between(acp, [changing, changing], options=options) as stage:
            _, request = await stage.asked()
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            await stage.client.receive()

    run(main())
    assert [way for way, _ in seen] == ["in", "out", "in", "out"]
    assert json.loads(seen[1][1])["params"]["sessionId"] == "other"
