"""Envelopes: what a conductor and its proxies say to each other is taken from no other neighbour, in any form.

Each neighbour of a chain sends each name of each form as each kind of message. Nothing of it arrives anywhere, requests
are refused, and the conversation goes on.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import End, Programs, between, conducted, proxy_of
from tests.proxy.test_proxy_forms import EVERY_FORM, FORMS, Form, under_conductor
from tests.runtime_support import run

pytestmark = pytest.mark.every_python

NAMES = sorted(
    {name for form in FORMS.values() for name in (form.opening, form.request, form.notification)} - {"initialize"}
)
INNER = {"method": "_evil", "params": {"of": "an envelope"}}
MARKED = {"protocolVersion": 1, "_meta": {"proxy": True}}
CASES = [(name, INNER) for name in NAMES] + [("initialize", MARKED)]
"""Each name, and the request that a conductor marks."""


async def is_refused(sender: End, name: str, params: Any, wrapped: Form | None = None) -> None:
    """`sender` sends the message in each kind, wrapped or not; its request is refused, and so is a batch."""
    call = {"method": name, "params": params}
    notification, request = call, {"id": "evil", **call}
    if wrapped is not None:
        notification = {"method": wrapped.notification, "params": call}
        request = {"id": "evil", "method": wrapped.request, "params": call}
    if name in NAMES:
        await sender.send(notification)
    await sender.send(request)
    answer = await sender.receive()
    assert (answer["id"], answer["error"]["code"]) == ("evil", -32600), answer
    for number, text in (("batch", json.dumps([request])), ("both", json.dumps({**request, "result": INNER}))):
        await sender.send(text)
        answer = await sender.receive()
        assert answer["error"]["code"] == -32600, (number, answer)


async def goes_on(client: End, agent: End) -> None:
    """A round trip in each direction: nothing else was on its way."""
    for sender, receiver in ((client, agent), (agent, client)):
        number = await sender.request("_barrier", {})
        request = await receiver.receive()
        assert request["method"] == "_barrier", request
        await receiver.answer(request)
        assert await sender.receive() == {"jsonrpc": "2.0", "id": number, "result": {}}


@pytest.mark.parametrize("neighbour", ["client", "agent"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_between_two_transports(acp: ModuleType, neighbour: str, count: int) -> None:
    seen: list[str] = []

    async def note(self: Any, call: Any) -> Any:
        seen.append(call.method)
        return await call.forward()

    async def main() -> None:
        async with between(acp, [proxy_of(acp, from_client=note, from_agent=note)] * count) as stage:
            for name, params in CASES:
                await is_refused(getattr(stage, neighbour), name, params)
            await goes_on(stage.client, stage.agent)

    run(main())
    assert set(seen) <= {"_barrier"}


@EVERY_FORM
def test_under_a_conductor(acp: ModuleType, form: Form) -> None:
    """It speaks in one form, and in no other. The successor has no envelopes: it is an agent, or the conductor is."""

    async def main() -> None:
        async with under_conductor(acp, form, [acp.Proxy]) as conductor:
            await conductor.opened()
            for name in {*NAMES} - {form.opening, form.request, form.notification}:
                await is_refused(conductor.end, name, INNER)
            for name, params in CASES:
                await is_refused(conductor.end, name, params, form)
            await conductor.barrier()

    run(main())


SPY = """
import json, sys

name, log = sys.argv[1], open(sys.argv[2], "a")


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    print(line.strip(), file=log, flush=True)
    method, params, number = message.get("method"), message.get("params"), message.get("id")
    if method == "_say" and params["who"] == name:
        for each in params["lines"]:
            send(**each)
        send(id=number, result={})
    elif method is None:
        if "result" in message and isinstance(number, str) and number.startswith("passed "):
            send(id=json.loads(number[7:]), result=message["result"])
    elif name == "agent":
        send(id=number, result={"protocolVersion": 1})
    elif number is not None:
        inner = {"method": method.removeprefix("proxy/"), "params": params}
        send(id="passed " + json.dumps(number), method="proxy/successor", params=inner)
"""
"""A component that keeps what it gets, says what it is told to, and passes on the requests of the client."""


def evil_lines(*, is_proxy: bool) -> list[dict[str, Any]]:
    """All that a component must not say to its conductor, as requests and as notifications."""
    own = FORMS["A"].request if is_proxy else ""
    calls = [{"method": name, "params": params} for name, params in CASES if name != own]
    if is_proxy:
        calls += [{"method": own, "params": {"method": name, "params": params}} for name, params in CASES]
    requests = [{**each, "id": f"evil {at}"} for at, each in enumerate(calls)]
    return [*requests, *(each for each in calls if each["method"] != "initialize")]


def heard(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@asynccontextmanager
async def chain_of_spies(acp: ModuleType, programs: Programs, folder: Path) -> AsyncGenerator[End, None]:
    """The client of two programs and an agent; `folder` has what each of them gets."""
    one, two, agent = ([*programs.command(SPY), name, str(folder / name)] for name in ("one", "two", "agent"))
    async with conducted(acp, [one, two], agent) as client:
        await client.request("initialize", {"protocolVersion": 1})
        assert "result" in await client.receive()
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (found := tmp_path / "heard").mkdir()
    return found


def test_a_client_of_programs(acp: ModuleType, programs: Programs, folder: Path) -> None:
    """What the client sends reaches no program."""

    async def main() -> None:
        async with chain_of_spies(acp, programs, folder) as client:
            for name, params in CASES:
                await is_refused(client, name, params)

    run(main())
    assert [each.get("method") for each in heard(folder / "one")] == ["proxy/initialize", None]
    assert [each.get("method") for each in heard(folder / "two")] == ["proxy/initialize", None]
    assert [each["method"] for each in heard(folder / "agent")] == ["initialize"]


@pytest.mark.parametrize("who", ["one", "two", "agent"])
def test_what_a_program_says(acp: ModuleType, programs: Programs, folder: Path, who: str) -> None:
    """A program cannot speak for the conductor, nor for another program."""
    lines = evil_lines(is_proxy=who != "agent")

    async def main() -> None:
        async with chain_of_spies(acp, programs, folder) as client:
            number = await client.request("_say", {"who": who, "lines": lines})
            assert await client.receive() == {"jsonrpc": "2.0", "id": number, "result": {}}
            await client.request("_say", {"who": who, "lines": []})  # its refusals have come before
            await client.receive()

    run(main())
    refused = {each["id"]: each["error"]["code"] for each in heard(folder / who) if "error" in each}
    assert refused == {each["id"]: -32600 for each in lines if "id" in each}
    for other in {"one", "two", "agent"} - {who}:
        calls = [each for each in heard(folder / other) if "method" in each]
        assert {each["method"] for each in calls} <= {"proxy/initialize", "initialize", "_say"}, calls
