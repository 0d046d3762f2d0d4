"""A proxy under a conductor that is written by hand, in each of the three forms of the wire: case 45.

Cases of `test_proxy_cases` that depend on the wire are here again, with their numbers.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import End, forwarding, prompt, proxy_of, unchanged
from tests.proxy.test_proxy_cases import PERMISSION, chunk, prefixing
from tests.runtime_support import acp_log, run, texts

pytestmark = pytest.mark.every_python


@dataclass(frozen=True)
class Form:
    """How a conductor writes."""

    opening: str
    request: str
    notification: str
    mark: Any = None


FORMS = {
    "A": Form("proxy/initialize", "proxy/successor", "proxy/successor"),
    "B": Form("_proxy/initialize", "_proxy/successor", "_proxy/successor"),
    "C": Form("initialize", "_proxy/successor/request", "_proxy/successor/notification", {"proxy": True}),
}
EVERY_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
CANCELLING = pytest.mark.parametrize("form", [FORMS["A"], FORMS["B"]], ids=["A", "B"])


@dataclass
class Conductor:
    """The conductor of one proxy: `end` is the transport that both neighbours share."""

    end: End
    form: Form

    async def receive(self) -> Any:
        """The next message: of the client's side as it is, of the agent's side unwrapped, with `wrapped`."""
        message = await self.end.receive()
        if message is None or message.get("method") not in (self.form.request, self.form.notification):
            return message
        assert message["method"] == (self.form.request if "id" in message else self.form.notification)
        assert set(message["params"]) <= {"method", "params"}
        return {**message, "wrapped": True, "params": None, **message["params"]}

    async def from_agent(self, method: str, params: Any = None, number: Any = None, **more: Any) -> None:
        """A message of the successor."""
        inner = {"method": method, **({} if params is None else {"params": params}), **more}
        if number is None:
            await self.end.notify(self.form.notification, inner)
        else:
            await self.end.request(self.form.request, inner, number)

    async def opened(self, number: Any = "open", **more: Any) -> Any:
        """Open the proxy; returns what its successor got, and answers that."""
        params = {"protocolVersion": 1, **({"_meta": self.form.mark} if self.form.mark else {}), **more}
        await self.end.request(self.form.opening, params, number)
        request = await self.receive()
        assert (request["method"], request["wrapped"]) == ("initialize", True)
        assert request["params"] == params
        await self.end.answer(request, result={"protocolVersion": 1, "new": 1})
        response = await self.receive()
        mark = {"_meta": self.form.mark} if self.form.mark else {}
        assert (response["id"], response["result"]) == (number, {"protocolVersion": 1, "new": 1, **mark})
        return request

    async def barrier(self) -> None:
        """Nothing else has been sent: a round trip in each direction."""
        await self.end.request("_ping", {}, "ping")
        request = await self.receive()
        assert (request["method"], request["wrapped"]) == ("_ping", True)
        await self.end.answer(request)
        assert (await self.receive())["id"] == "ping"
        await self.from_agent("_pong", {}, "pong")
        request = await self.receive()
        assert (request["method"], "wrapped" in request) == ("_pong", False)
        await self.end.answer(request)
        assert (await self.receive())["id"] == "pong"


@asynccontextmanager
async def under_conductor(
    acp: ModuleType, form: Form, proxies: list[Any], *, options: Any = None, max_messages: int = 256
) -> AsyncGenerator[Conductor, None]:
    near, far = acp.memory_transports(max_messages)
    task = asyncio.ensure_future(acp.serve_conductor(proxies, None, near, options=options))
    try:
        yield Conductor(End(far), form)
    finally:
        await far.close()
        await task


CHAINS = pytest.mark.parametrize("chain", ["plain", "typed", "forwarding", "three", "none"])


def chain_of(acp: ModuleType, chain: str) -> list[Any]:
    return {
        "plain": [acp.Proxy],
        "typed": [unchanged(acp)],
        "forwarding": [forwarding(acp)],
        "three": [unchanged(acp), acp.Proxy, forwarding(acp)],
        "none": [],
    }[chain]


@EVERY_FORM
@CHAINS
def test_02_10_11_a_prompt_down_and_a_call_up(acp: ModuleType, form: Form, chain: str) -> None:
    async def main() -> None:
        async with under_conductor(acp, form, chain_of(acp, chain)) as conductor:
            await conductor.opened(7)
            end = conductor.end
            await end.request("session/prompt", prompt("t", own=[None]), "p")
            down = await conductor.receive()
            assert (down["method"], down["wrapped"], down["params"]) == (
                "session/prompt",
                True,
                prompt("t", own=[None]),
            )
            await conductor.from_agent("session/request_permission", PERMISSION, 8)
            up = await conductor.receive()
            assert (up["method"], up["params"], "wrapped" in up) == ("session/request_permission", PERMISSION, False)
            await conductor.from_agent("session/update", chunk("t"), _meta={"of": "the wrapper"})
            update = await conductor.receive()
            assert (update["method"], update["params"]) == ("session/update", chunk("t"))
            outcome = {"outcome": {"outcome": "cancelled"}}
            await end.answer(up, result=outcome)
            assert (await conductor.receive()) == {"jsonrpc": "2.0", "id": 8, "result": outcome}
            error = {"code": -32000, "message": "m", "own": 1, "data": None}
            await end.answer(down, error=error)
            assert (await conductor.receive()) == {"jsonrpc": "2.0", "id": "p", "error": error}
            await end.notify("session/cancel", {"sessionId": "s"})
            cancel = await conductor.receive()
            assert (cancel["method"], cancel["wrapped"], cancel["params"]) == (
                "session/cancel",
                True,
                {"sessionId": "s"},
            )
            await conductor.barrier()

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


@EVERY_FORM
def test_the_text_stays(acp: ModuleType, form: Form) -> None:
    """Also of the request that opens the proxy; the mark is put beside what is there."""
    odd = r'{"a":1.0,"b":1e400,"c":12345678901234567890123,"a":null,"d":"\ud800", "e" : [ ]}'
    mark = '{"proxy":true,"o":1e400}'
    params = f'{{"protocolVersion": 1,"_meta":{mark},"x":{odd}}}'

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            end = conductor.end
            await end.send(f'{{"jsonrpc":"2.0","method":"{form.opening}","params":{params},"id":"\\u0037"}}')
            line = await end.read()
            assert line is not None
            assert f'"params":{{"method":"initialize","params":{params}}}}}' in line
            number = json.loads(line)["id"]
            await end.send(f'{{"jsonrpc":"2.0","id":{number},"result":{{"_meta":{{"o":1e400}},"x":{odd}}}}}')
            kept = '{"o":1e400,"proxy":true}' if form.mark else '{"o":1e400}'
            assert await end.read() == f'{{"jsonrpc":"2.0","id":"\\u0037","result":{{"_meta":{kept},"x":{odd}}}}}'
            for method in ("session/update", "_x"):
                inner = f'{{"method":"{method}","params":{odd}}}'
                await end.send(f'{{"jsonrpc":"2.0","method":"{form.notification}","params":{inner}}}')
                assert await end.read() == f'{{"jsonrpc":"2.0","method":"{method}","params":{odd}}}'
                await end.send(f'{{"jsonrpc":"2.0","method":"{method}","params":{odd}}}')
                wrapped = f'{{"jsonrpc":"2.0","method":"{form.notification}","params":{inner}}}'
                assert await end.read() == wrapped

    run(main())


@EVERY_FORM
def test_members_beside_the_params_stay(acp: ModuleType, form: Form) -> None:
    """Also where a message is wrapped; `_meta` beside the params of that is the wrapper's."""
    beside = r'"message":1e400,"a\"\u0001":[null]'

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.opened()
            end = conductor.end
            await end.send(f'{{"jsonrpc":"2.0","method":"_x","params":{{}},{beside}}}')
            inner = f'{{"method":"_x","params":{{}},{beside}}}'
            wrapped = f'{{"jsonrpc":"2.0","method":"{form.notification}","params":{inner}}}'
            assert await end.read() == wrapped
            await end.send(wrapped.replace('"_x"', '"_x","_meta":{"of":"the wrapper"}'))
            assert await end.read() == f'{{"jsonrpc":"2.0","method":"_x","params":{{}},{beside}}}'
            await end.send('{"jsonrpc":"2.0","id":"i","method":"_x","message":1}')
            line = await end.read() or ""
            assert line.endswith(f'"method":"{form.request}","params":{{"method":"_x","message":1}}}}'), line
            await end.answer(json.loads(line))
            assert (await end.receive())["id"] == "i"

    run(main())


@EVERY_FORM
@pytest.mark.parametrize("result", ["{}", "null", "[]", '{"_meta":null}', '{"_meta":{"proxy":false}}'])
def test_the_mark_in_any_result(acp: ModuleType, form: Form, result: str) -> None:
    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.end.request(form.opening, {"_meta": {"proxy": True}}, 1)
            request = await conductor.receive()
            await conductor.end.send(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{result}}}')
            found = (await conductor.receive())["result"]
            assert found == ({"_meta": {"proxy": True}} if form.mark else json.loads(result))

    run(main())


async def both_of(conductor: Conductor, request: Any) -> tuple[Any, Any]:
    """The cancellation of a request, and its response. A handler that is cancelled does not wait for its own call."""
    got = [await conductor.receive()]
    await conductor.end.answer(request, error={"code": -32800, "message": "m"})
    got.append(await conductor.receive())
    first, second = sorted(got, key=lambda each: "method" not in each)
    return first, second


@CANCELLING
@pytest.mark.parametrize("kind", [None, unchanged, forwarding])
def test_13_14_cancel(acp: ModuleType, form: Form, kind: Any) -> None:
    """Once a hop, with the id of the next one. In form B, a proxy wraps what it cancels at its successor."""

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy if kind is None else kind(acp)]) as conductor:
            await conductor.opened()
            end = conductor.end
            await end.request("session/prompt", prompt("t"), 5)
            request = await conductor.receive()
            await end.cancel(5)
            await end.cancel(5)
            cancel, found = await both_of(conductor, request)
            assert (cancel["method"], cancel["params"]) == ("$/cancel_request", {"requestId": request["id"]})
            assert ("wrapped" in cancel) is (form.opening == "_proxy/initialize")
            assert (found["id"], found["error"]["code"]) == (5, -32800)
            await conductor.from_agent("session/request_permission", PERMISSION, 6)
            request = await conductor.receive()
            await end.cancel(6)
            cancel, found = await both_of(conductor, request)
            assert (cancel["params"], "wrapped" in cancel) == ({"requestId": request["id"]}, False)
            assert (found["id"], found["error"]["code"]) == (6, -32800)
            await conductor.barrier()

    run(main())


@EVERY_FORM
@pytest.mark.parametrize("is_wrapped", [True, False])
def test_20_wrapped_and_plain_cancel(acp: ModuleType, form: Form, is_wrapped: bool) -> None:
    """Both are understood in each form. In form C nothing is passed on: its conductors pass raw ids."""

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.opened()
            await conductor.from_agent("session/request_permission", PERMISSION, 6)
            request = await conductor.receive()
            if is_wrapped:
                await conductor.from_agent("$/cancel_request", {"requestId": 6})
            else:
                await conductor.end.cancel(6)
            if not form.mark:
                assert (await conductor.receive())["params"] == {"requestId": request["id"]}
            await conductor.end.answer(request)
            await conductor.receive()
            await conductor.barrier()

    run(main())


@EVERY_FORM
def test_24_bad_wrapper(acp: ModuleType, form: Form) -> None:
    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.opened()
            bad = (None, {}, {"params": {}}, {"method": 1}, [], "x")
            for params in bad:
                await conductor.end.request(form.request, params, 9)
                found = await conductor.receive()
                assert (found["id"], found["error"]["code"]) == (9, -32600)
                await conductor.end.notify(form.notification, params)
                assert (await conductor.receive())["error"]["code"] == -32600
            await conductor.barrier()

    run(main())


@EVERY_FORM
def test_15_40_ids_of_both_neighbours(acp: ModuleType, form: Form) -> None:
    """Those of a conductor are its own: the same number and text at once, in both directions."""

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.opened()
            end = conductor.end
            sent = [7, "7", 8, "8"]
            for number in sent[:2]:
                await end.request("session/prompt", prompt("t"), number)
            for number in sent[2:]:
                await conductor.from_agent("fs/read_text_file", {"sessionId": "s", "path": "/"}, number)
            requests = [await conductor.receive() for _ in sent]
            assert len({each["id"] for each in requests}) == 4
            for number, request in zip(reversed(sent), reversed(requests), strict=True):
                await end.answer(request, result={"n": number})
            assert [(await conductor.receive())["result"]["n"] for _ in sent] == sent[::-1]

    run(main())


@pytest.mark.parametrize(
    "first", ["session/prompt", "_proxy/successor", "proxy/successor", "mcp/message", "initialize", "_x"]
)
def test_another_first_message(acp: ModuleType, first: str) -> None:
    """It is refused, and the next one may open the proxy. Alone, a proxy has no agent: the error says so."""

    async def main() -> None:
        async with under_conductor(acp, FORMS["A"], [acp.Proxy]) as conductor:
            await conductor.end.notify("_hello")
            await conductor.end.request(first, {"protocolVersion": 1}, 1)
            error = (await conductor.receive())["error"]
            assert error["code"] == -32600
            assert ("no agent" if first == "initialize" else "initialize must come first") in error["message"]
            await conductor.end.send("{")
            assert (await conductor.receive())["error"]["code"] == -32700
            await conductor.opened()
            await conductor.barrier()

    run(main())


def test_19_cancelled_init(acp: ModuleType) -> None:
    async def main() -> None:
        async with under_conductor(acp, FORMS["B"], [acp.Proxy]) as conductor:
            end = conductor.end
            await end.request("_proxy/initialize", {"protocolVersion": 1}, 1)
            request = await conductor.receive()
            await end.cancel(1)
            await conductor.receive()
            await end.answer(request, error={"code": -32800, "message": "m"})
            assert (await conductor.receive())["error"]["code"] == -32800
            await conductor.opened(2)
            await conductor.barrier()

    run(main())


@EVERY_FORM
def test_30_order(acp: ModuleType, form: Form) -> None:
    """A result whose handler takes its time is not overtaken by what follows it."""

    async def session_new(self: Any, params: Any) -> Any:
        result = await self.agent.session_new(params)
        for _ in range(20):
            await asyncio.sleep(0)
        result.session_id = "mine"
        return result

    async def main() -> None:
        chain = [prefixing(acp), proxy_of(acp, session_new=session_new)]
        async with under_conductor(acp, form, chain) as conductor:
            await conductor.opened()
            await conductor.end.request("session/new", {"cwd": "/", "mcpServers": []}, "n")
            request = await conductor.receive()
            await conductor.end.answer(request, result={"sessionId": "s"})
            for each in range(100):
                await conductor.from_agent("session/update", chunk(f"{each}"))
            assert (await conductor.receive())["result"] == {"sessionId": "mine"}
            for each in range(100):
                found = await conductor.receive()
                assert found["params"]["update"]["content"]["text"] == f">{each}"

    run(main())


@EVERY_FORM
def test_38_eof(acp: ModuleType, form: Form) -> None:
    """At the end of the conductor both neighbours are gone; handlers have a moment."""
    closed: list[Any] = []

    async def connection_closed(self: Any, reason: Any) -> None:
        closed.append(reason)

    async def main() -> None:
        chain = [proxy_of(acp, connection_closed=connection_closed) for _ in range(2)]
        async with under_conductor(acp, form, chain) as conductor:
            await conductor.opened()
            await conductor.end.request("session/prompt", prompt("t"), 5)
            await conductor.receive()
        assert len(closed) == 2

    run(main())


def test_a_refused_message_ends_nothing(acp: ModuleType) -> None:
    """More than so many requests at once, and an id twice."""

    async def main() -> None:
        options = acp.ConnectionOptions(max_requests=3)
        async with under_conductor(acp, FORMS["A"], [acp.Proxy], options=options) as conductor:
            await conductor.opened()
            requests = []
            for number in (1, 2, 3):
                await conductor.end.request("session/prompt", prompt("t"), number)
                requests.append(await conductor.receive())
            await conductor.end.request("session/prompt", prompt("t"), 4)
            found = await conductor.receive()
            assert (found["id"], found["error"]["code"]) == (4, -32603)
            assert "max_requests" in found["error"]["message"]
            await conductor.end.request("session/prompt", prompt("t"), 3)
            assert (await conductor.receive())["id"] is None
            for request in requests:
                await conductor.end.answer(request)
                await conductor.receive()
            await conductor.barrier()

    run(main())
