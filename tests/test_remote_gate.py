"""Which requests `asgi_app` lets pass: methods, versions of HTTP, paths, hosts and origins."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import EVENTS, HOST, JSON, Client, Server, agent_for, asgi_of, request_of
from tests.runtime_support import V1, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

Pair = tuple[bytes, bytes]
PROMPT = {"sessionId": "s1", "prompt": []}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def limits_of(acp: ModuleType, **fields: Any) -> Any:
    return asgi_of(acp).RemoteLimits(**fields)


# --- Methods, versions, paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "post", ""])
def test_other_methods(acp: ModuleType, method: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            answer = await Client(server.app).request(method, [JSON, EVENTS])
            assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")
            assert answer.body == (b"" if method == "HEAD" else b"Method Not Allowed")

    run(main())


@pytest.mark.parametrize("version", ["0.9", "1.0", "1.1"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_the_version_of_http(acp: ModuleType, method: str, version: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app, http_version=version)
            assert (await client.request(method, [JSON, EVENTS], body=b"{}")).status == 400
        async with Server.of(acp, agent_for(acp), require_http2=True) as server:
            client.app = server.app
            refused = await client.request(method, [JSON, EVENTS], body=b"{}")
            assert (refused.status, refused.body) == (505, b"HTTP/2 is required")

    run(main())


def test_newer_versions_of_http(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), require_http2=True) as server:
            for version in ("2", "2.0", "3"):
                client = Client(server.app, http_version=version)
                await client.initialize()
                await client.delete()

    run(main())


@pytest.mark.parametrize("path", ["", "/", "/acp/", "/ACP", "//acp", "/acp/x", "/x/acp", "/acp/../acp", "/acp?"])
def test_the_path(acp: ModuleType, path: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app, path=path)
            assert (await client.post({})).status == 404
            assert await client.refused_socket() == 1008
        async with Server.of(acp, agent_for(acp), path=None) as server:
            client.app = server.app
            await client.initialize()

    run(main())


# --- Hosts and origins ----------------------------------------------------------------------------------------------

HOSTS = {
    200: [
        *(b"localhost", b"localhost:1", b"LocalHost:65535", b"127.0.0.1", b"127.0.0.1:80", b"[::1]", b"[::1]:80"),
        b" \tlocalhost\t ",
        b"agent.example.com",
        b"AGENT.example.com:443",
    ],
    403: [
        *(b"", b":80", b"evil.example", b"localhost.evil.example", b"evil.localhost", b"xlocalhost", b"localhost."),
        *(b"localhost.:80", b"::1", b"[::1", b"[::1]x", b"[::1].", b"[::2]", b"[::ffff:127.0.0.1]", b"0.0.0.0", b"*"),
        *(
            b"user@localhost",
            b"localhost@evil.example",
            b"localhost:80@evil.example",
            b"localhost:x",
            b"localhost:80:80",
        ),
        *(b"evil.example:@localhost", b"localhost:80,evil.example", b"localhost,localhost", b"localhost evil.example"),
        *(b"localhost/", b"localhost\\", b"http://localhost", b"localhost#", b"localhost?", b"\xff", b"[localhost]"),
        *(b"agent.example.com.", b"x.agent.example.com", b"127.1", b"2130706433", b"localhost:", b"localhost:123456"),
        *(b"localhost\xa0", b"\x85localhost", b"\x1flocalhost", b"localhost\x0b", b"localhost:80\xa0"),
    ],
}


@pytest.mark.parametrize("status", HOSTS)
def test_hosts(acp: ModuleType, status: int) -> None:
    async def main() -> None:
        hosts = [*asgi_of(acp).LOCAL_HOSTS, "Agent.example.com"]
        async with Server.of(acp, agent_for(acp), hosts=hosts) as server:
            for host in HOSTS[status]:
                client = Client(server.app, headers=[(b"host", host)])
                answer = await client.post(request_of(1, "initialize", {"protocolVersion": 1}))
                assert answer.status == status, host
                assert (await client.refused_socket() == 1008) if status == 403 else True
            answer = await Client(server.app, headers=[]).post({})
            assert (answer.status, answer.body) == (403, b"This host is not allowed")

    run(main())


def test_any_host(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), hosts=["*"]) as server:
            for headers in ([], [(b"host", b"evil.example")], [(b"host", b"*")]):
                await Client(server.app, headers=headers).initialize()

    run(main())


@pytest.mark.parametrize(
    ("status", "origins"),
    [
        (403, ["null", "*", "", "http://localhost:8000", "https://editor.example.com.", "https://EDITOR.example.com"]),
        (403, ["http://editor.example.com", "https://editor.example.com:444", "https://editor.example.com/"]),
        (403, ["https://editor.example.com.evil.example", "https://x.editor.example.com", "editor.example.com"]),
        (200, ["https://editor.example.com"]),
    ],
)
def test_origins(acp: ModuleType, status: int, origins: Sequence[str]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), origins=["https://editor.example.com"]) as server:
            for origin in origins:
                client = Client(server.app, headers=[HOST, (b"origin", origin.encode())])
                answer = await client.post(request_of(1, "initialize", {"protocolVersion": 1}))
                assert answer.status == status, origin
                if status == 403:
                    assert answer.body == b"This origin is not allowed"
                    assert await client.refused_socket() == 1008
        async with Server.of(acp, agent_for(acp)) as server:
            client = Client(server.app, headers=[HOST, (b"origin", origins[0].encode())])
            assert (await client.post({})).status == 403
        async with Server.of(acp, agent_for(acp), origins=["*"]) as server:
            client.app = server.app
            await client.initialize()

    run(main())
