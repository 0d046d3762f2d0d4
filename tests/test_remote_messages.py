"""Each message is parsed once, and written once: what hooks see of the messages of remote connections."""

from __future__ import annotations

import importlib
import json
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import RoleChoice
from tests.needs import need
from tests.remote_support import INITIALIZE, NEW_SESSION, Client, Server, agent_for, asgi_of, request_of
from tests.runtime_support import V1, run
from tests.support import Packages


class Seen:
    """Options that record what each hook gets or returns."""

    def __init__(self, acp: ModuleType) -> None:
        self.loaded: list[bytes] = []
        self.dumped: list[bytes] = []
        self.wire: list[tuple[str, bytes]] = []
        hooks = {"loads": self._loads, "dumps": self._dumps, "on_message": lambda *each: self.wire.append(each)}
        self.options = acp.ConnectionOptions(**hooks)

    def _loads(self, text: bytes) -> Any:
        self.loaded.append(text)
        return json.loads(text)

    def _dumps(self, message: Any) -> bytes:
        self.dumped.append(json.dumps(message, separators=(",", ":")).encode())
        return self.dumped[-1]

    def on_the_wire(self, direction: str) -> list[Any]:
        return [json.loads(line) for which, line in self.wire if which == direction]


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=RoleChoice.BOTH.roles, remote=True)


SENT = [
    request_of(0, "initialize", INITIALIZE),
    request_of(1, "session/new", NEW_SESSION),
    request_of(2, "session/new", NEW_SESSION),  # is refused before it reaches the agent
    {"id": 3, "method": "_echo"},  # no message
    request_of(4, "_echo", {"text": "\u00e9"}),
]


async def over_http(client: Client) -> list[Any]:
    received = [await client.initialize()]
    async with client.get() as stream:
        for message in SENT[1:]:
            assert (await client.post(message)).status == 202
            received.append(await stream.receive())
    return received


async def over_websocket(client: Client) -> list[Any]:
    async with client.socket(initialized=False) as socket:
        received = []
        for message in SENT:
            await socket.send(message)
            received.append(await socket.receive())
    return received


@pytest.mark.every_python
@pytest.mark.parametrize("talk", [over_http, over_websocket])
def test_a_server(acp: ModuleType, talk: Any) -> None:
    async def main() -> None:
        seen = Seen(acp)
        limits = asgi_of(acp).RemoteLimits(max_sessions=1)
        async with Server.of(acp, agent_for(acp), options=seen.options, limits=limits) as server:
            received = await talk(Client(server.app))
        assert [each.get("id") for each in received] == [0, 1, 2, 3, 4]
        introductions = 1  # how the client has introduced itself is kept as text
        assert (len(seen.loaded), len(seen.dumped)) == (len(SENT), len(received) + introductions)
        assert seen.on_the_wire("in") == SENT
        assert seen.on_the_wire("out") == received

    run(main())


def test_a_client_that_tries_http_before_websocket(acp: ModuleType) -> None:
    need("websockets")
    need("httpx2")
    import websockets

    received: list[Any] = []

    async def serve(socket: Any) -> None:
        async for text in socket:
            received.append(json.loads(text))
            answer = {"protocolVersion": 1, "agentCapabilities": {}}
            await socket.send(json.dumps({"jsonrpc": "2.0", "id": received[-1]["id"], "result": answer}))

    async def main() -> Seen:
        seen = Seen(acp)
        connect = importlib.import_module(f"{acp.__name__}.remote").connect_url
        async with websockets.serve(serve, "127.0.0.1", 0, compression=None, close_timeout=1) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with connect(acp.Client, f"http://127.0.0.1:{port}/acp", options=seen.options) as agent:
                await agent.initialize(acp.InitializeRequest(protocol_version=1))
        return seen

    seen = run(main())
    assert seen.on_the_wire("out") == received
    assert (len(seen.loaded), len(seen.dumped), len(received)) == (
        1,
        2,
        1,
    )  # how the agent introduces itself is kept as text
