"""What a proxy does while others wait: its order, its limits, its tasks, and its end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role
from tests.command_line import run_acpgen
from tests.proxy.between import OPTIONS, End, Stage, between, forwarding, package, prompt, proxy_of, unchanged
from tests.proxy.test_proxy_cases import PERMISSION, chunk, text_of
from tests.runtime_support import acp_log, at_rest, items_in, pass_time, run, texts
from tests.support import Packages, runtime_module

pytestmark = pytest.mark.every_python

# --- Order and holding -----------------------------------------------------------------------------------------------


def test_two_calls_at_once_do_not_wait_for_each_other(acp: ModuleType) -> None:
    """The response to the second one is read while the handler has that to the first one."""

    async def session_prompt(self: Any, params: Any) -> Any:
        await asyncio.gather(*(self.agent.ext_method(f"_{each}", {}) for each in range(3)))
        return await self.agent.session_prompt(params)

    async def main() -> None:
        loop, start = asyncio.get_running_loop(), asyncio.get_running_loop().time()
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            _, first = await stage.asked()
            for request in (first, await stage.agent.receive(), await stage.agent.receive()):
                await stage.agent.answer(request)
            await stage.agent.answer(await stage.agent.receive(), result={"stopReason": "end_turn"})
            assert "result" in await stage.client.receive()
        assert loop.time() - start < 1000

    with acp_log() as records:
        run(main())
    assert "still runs" not in texts(records)


def test_a_handler_that_runs_on_holds_messages_for_seconds_only(acp: ModuleType) -> None:
    """It waits for what it holds back itself: after some time messages go on, and a warning says why."""
    seen = asyncio.Event()

    async def session_new(self: Any, params: Any) -> Any:
        result = await self.agent.session_new(params)
        await seen.wait()
        return result

    async def session_update(self: Any, params: Any) -> None:
        seen.set()
        await self.client.session_update(params)

    async def main() -> None:
        kind = proxy_of(acp, session_new=session_new, session_update=session_update)
        async with between(acp, [kind]) as stage:
            number, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
            await stage.agent.answer(request, result={"sessionId": "s"})
            await stage.agent.notify("session/update", chunk("t"))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not seen.is_set()
            pass_time(6)
            assert await text_of(stage) == "t"
            assert (await stage.client.receive())["id"] == number

    with acp_log() as records:
        run(main())
    assert "the handler of session/new still runs" in texts(records)


def test_a_call_of_the_handler_lets_messages_go_on(acp: ModuleType) -> None:
    async def session_new(self: Any, params: Any) -> Any:
        result = await self.agent.session_new(params)
        await self.client.ext_method("_ask", {})
        return result

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_new=session_new)]) as stage:
            number, request = await stage.asked("session/new", {"cwd": "/", "mcpServers": []})
            await stage.agent.answer(request, result={"sessionId": "s"})
            await stage.agent.notify("session/update", chunk("t"))
            asked = await stage.client.receive()
            assert asked["method"] == "_ask"
            assert await text_of(stage) == "t"
            await stage.client.answer(asked)
            assert (await stage.client.receive())["id"] == number

    run(main())


@pytest.mark.parametrize("asks", ["client", "agent"])
def test_a_notification_whose_handler_asks(acp: ModuleType, asks: str) -> None:
    """Later messages of both sides go on meanwhile, or nobody could answer."""

    async def session_update(self: Any, params: Any) -> None:
        await getattr(self, asks).ext_method("_ask", {})
        await self.client.session_update(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_update=session_update)]) as stage:
            await stage.agent.notify("session/update", chunk("t"))
            end = getattr(stage, asks)
            asked = await end.receive()
            for left, right in ((stage.client, stage.agent), (stage.agent, stage.client)):
                number = await left.request("_other", {})
                request = await right.receive()
                assert request["method"] == "_other"
                await right.answer(request)
                assert (await left.receive())["id"] == number
            await end.answer(asked)
            assert await text_of(stage) == "t"
            await stage.barrier()

    run(main())


def test_requests_keep_their_order(acp: ModuleType) -> None:
    """Those that are overridden, and those that are not."""

    async def session_prompt(self: Any, params: Any) -> Any:
        return await self.agent.session_prompt(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            for each in range(100):
                method = ("session/prompt", "_x", "session/cancel")[each % 3]
                if method == "session/cancel":
                    await stage.client.notify(method, {"sessionId": f"{each}"})
                else:
                    await stage.client.request(method, prompt("t", sessionId=f"{each}"))
            for each in range(100):
                assert (await stage.agent.receive())["params"]["sessionId"] == f"{each}"

    run(main())


# --- Slow readers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", ["client", "agent"])
@pytest.mark.parametrize("kind", ["plain", "typed", pytest.param("three", marks=pytest.mark.full)])
def test_43_a_slow_reader_holds_the_other_side_back(acp: ModuleType, slow: str, kind: str) -> None:
    """And nothing else: the other direction goes on."""
    chain = {"plain": [acp.Proxy], "typed": [unchanged(acp)], "three": [acp.Proxy, forwarding(acp), acp.Proxy]}[kind]

    async def main() -> None:
        async with between(acp, chain, max_messages=4) as stage:
            fast, reader = (stage.agent, stage.client) if slow == "client" else (stage.client, stage.agent)
            sent = 0

            async def write() -> None:
                nonlocal sent
                for _ in range(600):
                    await fast.notify("_note", {"n": sent})
                    sent += 1

            writing = asyncio.ensure_future(write())
            assert await at_rest(lambda: sent) < 300
            await reader.notify("_back", {})
            assert (await fast.receive())["method"] == "_back"
            for each in range(600):
                assert (await reader.receive())["params"] == {"n": each}
            await writing

    run(main())


# --- Limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["plain", "typed"])
def test_too_many_requests(acp: ModuleType, kind: str) -> None:
    async def main() -> None:
        options = acp.ConnectionOptions(max_requests=5)
        chain = [acp.Proxy] if kind == "plain" else [unchanged(acp)]
        async with between(acp, chain, options=options) as stage:
            numbers = [await stage.client.request("session/prompt", prompt("t")) for _ in range(7)]
            refused = [await stage.client.receive() for _ in range(2)]
            assert [each["id"] for each in refused] == numbers[5:]
            assert {each["error"]["code"] for each in refused} == {-32603}
            for number in numbers[:5]:
                await stage.agent.answer(await stage.agent.receive(), result={"stopReason": "end_turn"})
                assert (await stage.client.receive())["id"] == number
            await stage.barrier()

    run(main())


def test_an_id_twice(acp: ModuleType) -> None:
    """While the first one is open, also if one of them is overridden."""

    async def session_prompt(self: Any, params: Any) -> Any:
        return await self.agent.session_prompt(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            for method in ("_x", "session/prompt"):
                await stage.client.request(method, prompt("t"), 5)
                request = await stage.agent.receive()
                for second in ("_x", "session/prompt"):
                    await stage.client.request(second, prompt("t"), 5)
                    assert (await stage.client.receive())["id"] is None
                await stage.agent.answer(request, result={"stopReason": "end_turn"})
                assert (await stage.client.receive())["id"] == 5
            await stage.barrier()

    run(main())


@pytest.mark.parametrize(
    "twice",
    [
        '"method":"session/prompt","method":"_other"',
        '"method":"_other","method":"session/prompt"',
        '"method":"session/prompt","m\\u0065thod":"_other"',
        '"method":"session/prompt","params":{"sessionId":"s","prompt":[]}',
        '"method":"session/prompt","id":6,"id":7',
        '"method":"session/prompt","beside":1,"beside":2',
    ],
)
def test_a_member_twice(acp: ModuleType, twice: str) -> None:
    """The next side may take the first one, and so see another message than the proxy; responses, too."""
    seen: list[Any] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        seen.append(params)
        return await self.agent.session_prompt(params)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            for identity in ('"id":5,', ""):
                params = json.dumps(prompt("t"))
                await stage.client.send(f'{{"jsonrpc":"2.0",{identity}"params":{params},{twice}}}')
                answer = await stage.client.receive()
                assert answer["error"]["code"] == -32600
                assert "is there twice" in answer["error"]["message"]
            await stage.barrier()
            number, request = await stage.asked()
            await stage.agent.send(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{{}},"result":{{}}}}')
            answer = await stage.client.receive()
            assert (answer["id"], answer["error"]["code"]) == (number, -32603)
            await stage.barrier()

    run(main())
    assert len(seen) == 1


def test_a_message_above_the_limit(acp: ModuleType) -> None:
    """It is refused, in both directions; a response that is refused ends its request."""

    async def main() -> None:
        near, client = acp.memory_transports()
        far, agent = acp.memory_transports()
        options = acp.ConnectionOptions(max_in_flight_bytes=100_000)
        task = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far, options=options))
        stage = Stage(End(client), End(agent), task)
        number = await stage.client.request("_x", ["x" * 200_000])
        found = await stage.client.receive()
        assert (found["id"], found["error"]["code"]) == (number, -32600)
        number, request = await stage.asked("_x", {})
        await stage.agent.answer(request, result=["x" * 200_000])
        found = await stage.client.receive()
        assert (found["id"], found["error"]["code"]) == (number, -32603)
        await stage.barrier()
        await client.close()
        await agent.close()
        await task

    run(main())


def test_what_is_passed_on_is_not_kept(acp: ModuleType) -> None:
    """A request that waits for its response holds none of its text."""
    import tracemalloc

    async def main() -> None:
        async with between(acp, [acp.Proxy]) as stage:
            tracemalloc.start()
            try:
                requests = []
                for _ in range(20):
                    _, request = await stage.asked("session/prompt", prompt("x" * 500_000))
                    requests.append({"id": request["id"]})
                    request.clear()
                assert tracemalloc.get_traced_memory()[0] < 5_000_000
            finally:
                tracemalloc.stop()
            for request in requests:
                await stage.agent.answer(request)
                await stage.client.receive()

    run(main())


# --- Ends ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["client", "agent", "cancel"])
def test_connection_closed_is_called_once(acp: ModuleType, first: str) -> None:
    """After all handlers, on each end; one that fails keeps no other from it."""
    closed: list[str] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        closed.append(str(reason))
        raise ValueError("of the user")

    async def session_prompt(self: Any, params: Any) -> Any:
        try:
            return await self.agent.session_prompt(params)
        finally:
            assert not closed

    async def main() -> None:
        kind = proxy_of(acp, connection_closed=connection_closed, session_prompt=session_prompt)
        (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
        task = asyncio.ensure_future(acp.serve_proxy([kind, kind], near, far))
        stage = Stage(End(client), End(agent), task)
        await stage.asked()
        if first == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await getattr(stage, first).close()
            assert isinstance(await task, acp.ConnectionClosed)
        assert len(closed) == 2
        await client.close()
        await agent.close()

    with acp_log() as records:
        run(main())
    assert texts(records).count("connection_closed failed") == 2


def test_client_eof_with_a_pending_request(acp: ModuleType) -> None:
    """What the agent answers at once still arrives at a client that reads on."""

    class Half:
        """A transport whose client has closed its direction, and reads on."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.over = asyncio.Event()

        async def read(self) -> Any:
            reading = asyncio.ensure_future(self.inner.read())
            over = asyncio.ensure_future(self.over.wait())
            await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
            over.cancel()
            if not reading.done():
                reading.cancel()
                return None
            return reading.result()

        async def write(self, message: bytes) -> None:
            await self.inner.write(message)

        async def close(self) -> None:
            await self.inner.close()

    async def main() -> None:
        (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
        half = Half(near)
        task = asyncio.ensure_future(acp.serve_proxy([acp.Proxy, unchanged(acp)], half, far))
        stage = Stage(End(client), End(agent), task)
        number, request = await stage.asked()
        half.over.set()
        await asyncio.sleep(0)
        await stage.agent.notify("_note")
        await stage.agent.answer(request, result={"stopReason": "end_turn"})
        assert (await stage.client.receive())["method"] == "_note"
        assert (await stage.client.receive())["id"] == number
        await task
        await client.close()
        await agent.close()

    run(main())


@pytest.mark.needs("posix")
@pytest.mark.parametrize("later", [[], ["session/cancel", "_more"]])
def test_client_eof_while_the_agent_reads_nothing(acp: ModuleType, later: list[str]) -> None:
    """Nobody waits for such an agent without end."""
    pipes = runtime_module(acp, "pipes")

    async def main() -> None:
        (read, client), (out, write) = os.pipe(), os.pipe()
        near = pipes.PipeTransport(read, write, max_message_bytes=2**20, max_write_buffer_bytes=2**16)
        far, agent = acp.memory_transports(1)
        proxy = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far))
        for method in ["_a", "_b", "_c", *later]:
            os.write(client, json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
            for _ in range(20):
                await asyncio.sleep(0)
        os.close(client)
        for _ in range(3):
            await at_rest(proxy.done)
            pass_time(31)
        assert "closed the connection" in str(await proxy)
        assert json.loads(await agent.read())["method"] == "_a"
        os.close(out)

    run(main())


def test_a_slow_client_gets_the_answers_of_an_agent_that_is_gone(acp: ModuleType) -> None:
    async def main() -> None:
        async with between(acp, [acp.Proxy], max_messages=8) as stage:
            numbers = [(await stage.asked())[0] for _ in range(20)]
            await stage.agent.close()
            answers = []
            while len(answers) < 20:
                await asyncio.sleep(0.001)
                answers.append(await stage.client.receive())
            assert sorted(each["id"] for each in answers) == sorted(numbers)

    run(main())


@pytest.mark.parametrize("kind", [None, unchanged, forwarding])
def test_nothing_is_left_of_conversations(acp: ModuleType, kind: Any) -> None:
    """Of requests that were answered, cancelled, refused, or answered late."""
    relays: list[Any] = []

    async def main() -> None:
        class Kept((kind or (lambda acp: acp.Proxy))(acp)):  # type: ignore[misc]
            def __init__(self, client: Any, agent: Any) -> None:
                super().__init__(client, agent)
                relays.append((client, agent))

        async with between(acp, [Kept]) as stage:

            async def round_trips() -> None:
                for left, right in ((stage.client, stage.agent), (stage.agent, stage.client)):
                    method = "session/prompt" if left is stage.client else "session/request_permission"
                    for params in (prompt("t") if left is stage.client else PERMISSION, {"bad": 1}):
                        number = await left.request(method, params)
                        got = await (left if kind is unchanged and "bad" in params else right).receive()
                        if "error" in got:
                            continue
                        await left.cancel(number)
                        cancel = await right.receive()
                        assert cancel["method"] == "$/cancel_request"
                        await right.answer(got, error={"code": -32800, "message": "m"})
                        assert (await left.receive())["id"] == number
                await stage.barrier()

            await round_trips()
            (stubs,) = relays
            before = await at_rest(lambda: [items_in(each) for each in stubs])
            for _ in range(5):
                await round_trips()
            assert await at_rest(lambda: [items_in(each) for each in stubs]) == before

    run(main())


# --- Names -----------------------------------------------------------------------------------------------------------


async def _takes(self: Any, params: Any) -> Any: ...


def test_a_malformed_response_leaves_nothing(acp: ModuleType) -> None:
    """It ends the call of a handler, and nothing is kept of that."""
    stubs = []

    async def session_prompt(self: Any, params: Any) -> Any:
        stubs.append(self.agent)
        return await self.agent.session_prompt(params)

    async def main() -> None:
        found = []
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            for _ in range(4):
                number, request = await stage.asked()
                await stage.agent.send({"id": request["id"]})
                answer = await stage.client.receive()
                assert (answer["id"], answer["error"]["code"]) == (number, -32603)
                found.append(await at_rest(lambda: items_in(stubs[0])))
        assert found == [found[0]] * 4

    run(main())


def test_a_malformed_response_is_the_fault_of_the_agent(acp: ModuleType) -> None:
    """It answers the request: a second response is one to nothing."""

    async def main() -> None:
        async with between(acp, [acp.Proxy]) as stage:
            number, request = await stage.asked()
            await stage.agent.send({"id": request["id"]})
            answer = await stage.client.receive()
            assert (answer["id"], answer["error"]["code"]) == (number, -32603)
            assert answer["error"]["message"] == "Internal error: the peer sent a malformed response"
            await stage.agent.answer(request, result={"stopReason": "end_turn"})
            await stage.barrier()

    run(main())


def test_a_task_that_takes_calls_from_a_queue(acp: ModuleType) -> None:
    """Another task than that of the handler may pass a message on: text and order stay."""

    async def work(self: Any) -> None:
        while True:
            call, done = await self.calls.get()
            done.set_result(await call.forward())

    async def from_client(self: Any, call: Any) -> Any:
        done = asyncio.get_running_loop().create_future()
        await self.calls.put((call, done))
        return await done

    async def connection_closed(self: Any, reason: Any) -> None:
        self.worker.cancel()

    class Queueing(proxy_of(acp, from_client=from_client, connection_closed=connection_closed)):  # type: ignore[misc]
        def __init__(self, client: Any, agent: Any) -> None:
            super().__init__(client, agent)
            self.calls: Any = asyncio.Queue()
            self.worker = asyncio.ensure_future(work(self))

    text = '{"x":1e400,"x":1.0}'

    async def main() -> None:
        async with between(acp, [Queueing]) as stage:
            for number in range(3):
                await stage.client.send(f'{{"jsonrpc":"2.0","id":"a","method":"_x","params":{text}}}')
                assert await stage.agent.read() == f'{{"jsonrpc":"2.0","id":{number},"method":"_x","params":{text}}}'
                await stage.agent.send(f'{{"jsonrpc":"2.0","id":{number},"result":{text}}}')
                await stage.agent.notify("_later")
                assert await stage.client.read() == f'{{"jsonrpc":"2.0","id":"a","result":{text}}}'
                assert (await stage.client.receive())["method"] == "_later"

    run(main())


NAMES = {
    "from_client": "",
    "from_agent": "",
    "file_open": "",
    "file_did_change": "",
    "connection_closed": "",
    "relay_message_from_agent": "",
    "relay_message_from_client": "",
    "file_opn": "file_open",
    "opened": "",
    "open": "file_open",
    "fileDidChange": "file_did_change",
    "relay_message_from_agnt": "relay_message_from_agent",
    "relay_message": "relay_message_from_agent or relay_message_from_client",
}


@pytest.mark.parametrize("name", NAMES)
def test_misnamed_methods(packages: Packages, name: str) -> None:
    """Each name that handles messages is no mistake; what differs little from one is."""
    schema = Path(__file__).parents[1] / "golden" / "proxy" / "input" / "schema.json"
    acp = packages(SchemaChoice(protocol=1, schema=schema), roles=(Role.PROXY,), options=OPTIONS)

    async def main() -> None:
        async with between(acp, [proxy_of(acp, **{name: _takes})]):
            pass

    with acp_log() as records:
        run(main())
    found = texts(records)
    assert found == "" if not NAMES[name] else f"{name} handles nothing: is it meant to be {NAMES[name]}?" in found


def test_two_versions(packages: Packages) -> None:
    """Each of them is checked when it is made, by its own names."""
    acp = package(packages, 12)
    names = {1: "session_load", 2: "auth_login"}
    kinds = {each: proxy_of(getattr(acp, f"v{each}"), **{name: _takes}) for each, name in names.items()}

    async def main() -> None:
        async with between(acp, [kinds]) as stage:
            for version in (1, 2):
                params = {"protocolVersion": version, "info": {"name": "n", "version": "1"}}
                _, request = await stage.asked("initialize", params)
                await stage.agent.answer(request, result=params)
                assert json.dumps((await stage.client.receive())["result"]) == json.dumps(params)

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


def test_no_proxy_without_the_runtime(tmp_path: Path) -> None:
    ran = run_acpgen("build", "--role", "proxy", "--no-runtime", "--out", "acp", cwd=tmp_path, columns=200)
    assert ran.code == 2
    assert "--role proxy (command line) needs --runtime, which is off (command line)" in ran.stderr
    assert not (tmp_path / "acp").exists()
