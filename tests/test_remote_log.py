"""The log of an application with many short connections: its limits are those of the process."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import Client, Server, agent_for, request_of
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python

CONNECTIONS = 60
JUNK = ["hello", "[]", '{"jsonrpc": "2.0", "method": 1}', '{"jsonrpc": "2.0", "id": 7, "result": 1}'] * 12


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def test_many_short_websockets(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            for _ in range(CONNECTIONS):
                async with Client(server.app).socket() as socket:
                    for text in JUNK:
                        await socket.send(text)
                    await socket.call("last", "_echo")
                    while (await socket.receive())["id"] != "last":
                        pass

    with acp_log(logging.INFO) as records:
        run(main())
    assert 10 <= len(records) <= 40
    assert len(texts(records).splitlines()) == len(records)


def test_many_connections_over_http(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            for _ in range(CONNECTIONS):
                client = Client(server.app)
                await client.initialize()
                await client.post({"jsonrpc": "2.0", "id": 1, "method": 1})
                await client.post({"jsonrpc": "1.0", "method": "_x"})
                await client.delete()

    with acp_log(logging.INFO) as records:
        run(main())
    assert 10 <= len(records) <= 20


def test_many_requests_for_which_authorize_fails(acp: ModuleType) -> None:
    """The first have a traceback each, with the line that failed; text of the client in it is escaped."""

    def authorize(scope: Any) -> Any:
        sent = dict(scope["headers"])[b"authorization"].decode()
        raise LookupError(f"unknown token: {sent}")

    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=authorize) as server:
            client = Client(server.app)
            client.headers = [*client.headers, (b"authorization", "x\x1b[2J\x85y".encode())]
            for _ in range(CONNECTIONS):
                assert (await client.post(request_of(0, "initialize"))).status == 500
                assert await client.refused_socket() == 1008

    with acp_log(logging.INFO) as records:
        run(main())
    assert len(records) == 10
    text = texts(records)
    assert text.count("authorize failed") == 10
    assert text.count('raise LookupError(f"unknown token: {sent}")') == 10
    assert text.count("LookupError: unknown token: x\\x1b[2J\\x85y") == 10


def test_many_agents_that_cannot_be_made(acp: ModuleType) -> None:
    def factory(client: Any) -> Any:
        raise RuntimeError("no licence")

    async def main() -> None:
        async with Server.of(acp, factory) as server:
            for _ in range(CONNECTIONS):
                answer = await Client(server.app).post(request_of(0, "initialize", {"protocolVersion": 1}))
                assert answer.status == 500

    with acp_log(logging.INFO) as records:
        run(main())
    assert len(records) == 10
