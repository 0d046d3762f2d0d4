"""What the peer of a connection is follows from its transport, and what it may ask for follows from that."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests.remote_support import Client, Server
from tests.runtime_support import V1, V2, run
from tests.support import Packages, import_folder, package_folder
from tests.test_helpers import helpers_of

pytestmark = pytest.mark.every_python

PROGRAM = {"name": "one", "command": "/bin/s", "args": [], "env": []}
PUBLIC = {"type": "http", "name": "two", "url": "https://mcp.example.com/mcp", "headers": []}
INTERNAL = [
    "http://localhost/mcp",
    "http://LOCALHOST.:8080/",
    "http://a.localhost/",
    "http://127.0.0.1:9000/mcp",
    "http://user:pw@127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00::1]/",
    "http://10.1.2.3/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://100.64.0.1/",
    "http://224.0.0.1/",
    "http://metadata/",
    "http://metadata.google.internal/",
    "http://printer.local/",
    "http://router.home.arpa/",
    "http://１２７.０.０.１/",
    "http://127。0。0。1/",
    "http://127.0.0.1\\@mcp.example.com/",
    "http://mcp.example.com\\@127.0.0.1/",
    "http://a@b@mcp.example.com/",
    "http://mcp.example.com@127.0.0.1/",
    "http://127.0.0.1%00.example.com/",
    "http://%6c%6f%63alhost/",
    "http:///mcp",
    "http://mcp.example.com:x/",
    "http://[::1/",
    "http:127.0.0.1/",
    "//127.0.0.1/",
    "file:///etc/passwd",
    "unix:/run/docker.sock",
    "http://mcp.example.com /",
    "",
]
EXTERNAL = [
    PUBLIC["url"],
    "https://MCP.example.com:8443/a?b=c#d",
    "http://8.8.8.8/",
    "https://[2606:4700::1111]/",
    "https://me:s3cret@mcp.example.com/",
    "https://xn--bcher-kva.example/",
    "https://my_server.example.com./",
]


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages(V1 if request.param == 1 else V2, roles=(Role.AGENT,), remote=True)


def agent_of(acp: ModuleType, seen: list[Any], **options: Any) -> type[Any]:
    """An agent that takes the servers of a session, as those of `acpgen init` do."""
    helpers = helpers_of(acp)

    class Taking(acp.Agent):  # type: ignore[name-defined,misc]
        async def initialize(self, params: Any) -> Any:
            seen.append(self.client.peer_kind)
            able = helpers.mcp_capabilities("stdio", "http", *([] if acp.PROTOCOL_VERSION == 2 else ["sse"]))
            seen.append(acp.encode(able))
            return acp.decode(acp.InitializeResponse, greeting(acp))

        async def session_new(self, params: Any) -> Any:
            found = await asyncio.create_task(self._taken(params))
            seen.append([each.kind for each in found])
            return acp.NewSessionResponse(session_id="s")

        async def _taken(self, params: Any) -> Any:
            return helpers.mcp_parameters(params.mcp_servers, cwd=params.cwd, **options)

    return Taking


def greeting(acp: ModuleType) -> dict[str, Any]:
    if acp.PROTOCOL_VERSION == 1:
        return {"protocolVersion": 1}
    return {"protocolVersion": 2, "info": {"name": "a", "version": "1"}, "capabilities": {}}


def opening(acp: ModuleType) -> dict[str, Any]:
    return {"protocolVersion": acp.PROTOCOL_VERSION, "info": {"name": "c", "version": "1"}}


def new_session(acp: ModuleType, *servers: dict[str, Any]) -> dict[str, Any]:
    tagged = [{"type": "stdio", **each} if acp.PROTOCOL_VERSION == 2 else each for each in servers]
    return {"cwd": "/work", "mcpServers": tagged}


class OwnTransport:
    """Bytes of a user's own."""

    def __init__(self, inner: Any) -> None:
        self.read, self.write, self.close = inner.read, inner.write, inner.close


async def over_network(acp: ModuleType, agent: Any, *calls: tuple[str, Any]) -> list[Any]:
    """The answers to calls over HTTP."""
    async with Server.of(acp, agent) as server:
        client = Client(server.app)
        await client.initialize(opening(acp))
        async with client.get() as stream:
            found = []
            for number, (method, params) in enumerate(calls):
                await client.call(number, method, params)
                found.append(await stream.receive())
        await client.delete()
        return found


async def over(acp: ModuleType, agent: Any, *calls: tuple[str, Any], own: bool = False) -> list[Any]:
    """The answers to calls in memory, or over a transport that does not say what the peer is."""
    ours, theirs = acp.memory_transports()
    task = asyncio.ensure_future(acp.serve_agent(agent, OwnTransport(theirs) if own else theirs))
    found = []
    for number, (method, params) in enumerate([("initialize", opening(acp)), *calls]):
        await ours.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
        found.append(json.loads(await ours.read()))
    await ours.close()
    await task
    return found[1:]


def test_a_program_is_for_local_clients(acp: ModuleType) -> None:
    """Over the network, no `session/new` starts one, nor is it advertised; a server at a public URL is taken."""
    seen: list[Any] = []
    calls = [("session/new", new_session(acp, each)) for each in (PROGRAM, PUBLIC)]
    refused, taken = run(over_network(acp, agent_of(acp, seen), *calls))
    assert (refused["error"]["code"], refused["error"]["data"]["index"]) == (-32602, 0)
    assert refused["error"]["message"].startswith("Invalid params: mcpServers[0] is a program")
    assert "result" in taken
    able = {"http": True, "sse": True} if acp.PROTOCOL_VERSION == 1 else {"http": {}}
    assert seen == ["network", able, ["http"]]


class Threads(ThreadPoolExecutor):
    """Threads that take the context of their tasks along, or not."""

    def __init__(self, *, with_context: bool) -> None:
        super().__init__(1)
        self._with_context = with_context

    def submit(self, call: Any, /, *args: Any, **named: Any) -> Any:
        """Run a call."""
        first = (copy_context().run,) if self._with_context else ()
        return super().submit(*first, call, *args, **named)


def in_threads(acp: ModuleType, seen: list[Any], **options: Any) -> type[Any]:
    """An agent that reads the servers in a thread of an executor."""

    async def _taken(self: Any, params: Any) -> Any:
        read = partial(helpers_of(acp).mcp_parameters, params.mcp_servers, cwd=params.cwd)
        with Threads(**options) as threads:
            return await asyncio.get_running_loop().run_in_executor(threads, read)

    return type("InThreads", (agent_of(acp, seen),), {"_taken": _taken})


def test_a_thread_that_does_not_know_the_peer_trusts_none(tmp_path: Path) -> None:
    """It is as with any connection of its process: one without a connection over the network takes programs there."""
    (tmp_path / "acp_in_threads").symlink_to(package_folder(V1, roles=(Role.AGENT,), remote=True))
    acp = import_folder(tmp_path / "acp_in_threads")
    call = ("session/new", new_session(acp, PROGRAM))
    (answer,) = run(over(acp, in_threads(acp, [], with_context=False), call))
    assert "result" in answer
    (answer,) = run(over_network(acp, in_threads(acp, [], with_context=False), call))
    assert answer["error"]["message"].startswith("Invalid params: mcpServers[0] is a program")
    (answer,) = run(over(acp, in_threads(acp, [], with_context=False), call))
    assert "error" in answer  # the thread cannot tell whose message it is
    for with_context in (True, False):
        (answer,) = run(over(acp, in_threads(acp, [], with_context=with_context), call))
        assert ("result" in answer) == with_context


@pytest.mark.parametrize("own", [False, True])
def test_a_transport_says_what_the_peer_is(acp: ModuleType, own: bool) -> None:
    """Without a word, it is anyone."""
    seen: list[Any] = []
    (answer,) = run(over(acp, agent_of(acp, seen), ("session/new", new_session(acp, PROGRAM)), own=own))
    assert ("error" in answer, seen[0]) == (own, "network" if own else "process")


@pytest.mark.parametrize(("allow", "is_taken"), [(True, True), (False, False), (None, False)])
def test_an_agent_may_allow_it(acp: ModuleType, allow: bool | None, is_taken: bool) -> None:
    agent = agent_of(acp, [], allow_local=allow)
    local = new_session(acp, PROGRAM, {**PUBLIC, "url": "http://localhost/"})
    (answer,) = run(over_network(acp, agent, ("session/new", local)))
    assert ("result" in answer) == is_taken
    (answer,) = run(over(acp, agent, ("session/new", local)))
    assert ("result" in answer) == (allow is not False)


@pytest.fixture
def v1(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


@pytest.mark.parametrize("is_internal", [True, False])
def test_internal_urls(v1: ModuleType, is_internal: bool) -> None:
    """They are told by their text, however it is written; no name is looked up."""
    urls = INTERNAL if is_internal else EXTERNAL
    calls = [("session/new", new_session(v1, {**PUBLIC, "url": url})) for url in urls]
    answers = run(over_network(v1, agent_of(v1, []), *calls))
    assert [url for url, each in zip(urls, answers, strict=True) if ("error" in each) != is_internal] == []
    assert not [url for url, each in zip(urls, answers, strict=True) if url and url in json.dumps(each)]


def test_streams(v1: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes and Unix sockets lead to a process; what comes over TCP may be anyone."""

    monkeypatch.chdir(tmp_path)

    async def main() -> list[str]:
        found = []
        for start, connect in (
            (asyncio.start_server, asyncio.open_connection),
            (asyncio.start_unix_server, asyncio.open_unix_connection),
        ):
            at: Any = {"host": "127.0.0.1", "port": 0} if start is asyncio.start_server else {"path": "at"}
            server = await start(lambda _, writer: writer.close(), **at)
            if "port" in at:
                at["port"] = server.sockets[0].getsockname()[1]
            transport = v1.StreamTransport(*await connect(**at))
            found.append(transport.peer_kind)
            await transport.close()
            server.close()
            await server.wait_closed()
        return found

    assert run(main()) == ["network", "process"]
