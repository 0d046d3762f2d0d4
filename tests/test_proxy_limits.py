"""What a proxy keeps of a neighbour that sends without end: at most as much as its options and its inboxes allow."""

from __future__ import annotations

import asyncio
import json
import sys
import tracemalloc
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Options
from acpgen.roles import Role
from tests.runtime_support import V1, run
from tests.support import Packages, runtime_module

MOST_WAITING = 64
"""The messages in an inbox before senders wait."""
HELD = 8
"""More than what a read loop, a write and a transport in memory hold beside it."""


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.PROXY,), options=Options(open=True, keep_unknown=True))


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


async def settle() -> None:
    """Let everything run that does not wait for this side."""
    for _ in range(1000):
        await asyncio.sleep(0)


async def taken(end: Any, message: bytes, *, most: int) -> int:
    """How many copies of a message the other side takes, of which nothing is read here."""
    count = 0

    async def send() -> None:
        nonlocal count
        while count <= most:
            await end.write(message)
            count += 1

    sending = asyncio.ensure_future(send())
    await settle()
    sending.cancel()
    await asyncio.wait({sending})
    return count


def test_requests_that_were_passed_on_are_limited(acp: ModuleType) -> None:
    async def main() -> None:
        (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
        options = acp.ConnectionOptions(max_requests=2)
        proxy = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far, options=options))
        for number in range(3):
            await client.write(line(id=number, method="_ask"))
        first, _ = [json.loads(await agent.read()) for _ in range(2)]
        refused = json.loads(await client.read())
        assert (refused["id"], refused["error"]["code"]) == (2, -32603)
        assert "the limit is 2 (max_requests)" in refused["error"]["message"]
        await agent.write(line(id=first["id"], result={}))
        assert json.loads(await client.read()) == {"jsonrpc": "2.0", "id": 0, "result": {}}
        await client.write(line(id=3, method="_again"))
        assert json.loads(await agent.read())["method"] == "_again"
        await client.close()
        await proxy

    run(main())


def test_long_names_of_methods_are_not_kept(acp: ModuleType) -> None:
    """Of requests that were passed on, and have no answer."""

    async def main() -> int:
        (client, near), (far, agent) = acp.memory_transports(), acp.memory_transports()
        proxy = asyncio.ensure_future(acp.serve_proxy(acp.Proxy, near, far))
        tracemalloc.start()
        try:
            for number in range(40):
                await client.write(line(id=number, method=f"_{number}" + "x" * 100_000))
                assert json.loads(await agent.read())["id"] == number
            await settle()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        for number in range(40):
            await agent.write(line(id=number, result={"n": number}))
            assert json.loads(await client.read())["result"] == {"n": number}
        await client.close()
        await proxy
        return kept

    assert run(main()) < 1_500_000


def test_the_budget_of_a_client_holds_for_what_is_overridden(packages: Packages) -> None:
    """All connections of a client on the network share it: that of the transport, also where a chain is between."""
    acp = packages(V1, roles=(Role.PROXY,), options=Options(open=True, keep_unknown=True), remote=True)
    options = acp.ConnectionOptions(wire=runtime_module(acp, "passing").PassingWire)

    async def from_client(self: Any, call: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    kind = type("Waiting", (acp.Proxy,), {"from_client": from_client})

    async def main() -> None:
        client, near = acp.memory_transports()
        transport = runtime_module(acp, "transport").LineTransport(near, options)
        transport.budget = runtime_module(acp, "shared_memory").SharedMemory(2**15)
        serving = asyncio.ensure_future(acp.serve_conductor([kind], [sys.executable, "-c", "input()"], transport))
        await client.write(line(id=0, method="initialize", params={"protocolVersion": 1}))
        for number in range(1, 10):
            await client.write(line(id=number, method="_wait"))
        error = json.loads(await client.read())["error"]
        assert "max_bytes_per_identity" in error["message"]
        await client.close()
        await serving

    run(main())


def test_a_receiver_that_reads_nothing_holds_the_sender_back(acp: ModuleType) -> None:
    async def main() -> None:
        (client, near), (far, agent) = acp.memory_transports(1), acp.memory_transports(1)
        proxy = asyncio.ensure_future(acp.serve_proxy([acp.Proxy, acp.Proxy], near, far))
        count = await taken(client, line(method="_flood"), most=10 * MOST_WAITING)
        assert MOST_WAITING < count <= MOST_WAITING + HELD
        await agent.close()
        await client.close()
        await proxy

    run(main())


@pytest.mark.parametrize(
    ("size", "limit", "most"),
    [(10, 2**15, MOST_WAITING), (2**18, 2**19, 4), (2**18, 2**22, 16)],
    ids=["by their number", "by their size", "by the largest message"],
)
@pytest.mark.parametrize("is_wrapped", [False, True], ids=["plain", "wrapped"])
def test_a_conductor_that_reads_nothing_is_held_back(
    acp: ModuleType, size: int, limit: int, most: int, *, is_wrapped: bool
) -> None:
    """It may have to write before it reads. So until it reads, as much is taken as its largest message may have."""

    async def main() -> None:
        conductor, near = acp.memory_transports(1)
        options = acp.ConnectionOptions(max_message_bytes=limit)
        proxy = asyncio.ensure_future(acp.serve_conductor([acp.Proxy], None, near, options=options))
        await conductor.write(line(id=0, method="proxy/initialize", params={"protocolVersion": 1}))
        await conductor.read()
        inner = {"method": "_flood", "params": {"text": "x" * size}}
        message = {"method": "proxy/successor", "params": inner} if is_wrapped else inner
        count = await taken(conductor, line(**message), most=10 * MOST_WAITING)
        assert most <= count <= most + HELD
        await conductor.close()
        await proxy

    run(main())
