"""Who a connection of `asgi_app` belongs to: `authorize`, `client_identity`, and ids that cannot be guessed."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from acpgen.ir.model import Role
from tests.remote_support import HOST, INITIALIZE, JSON, Client, Exchange, Server, agent_for, asgi_of, request_of
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(V1, roles=(Role.AGENT,), remote=True)


def user_in(scope: Any) -> str | None:
    """The user that the header `authorization` names."""
    found = dict(scope["headers"]).get(b"authorization")
    return None if found is None else found.decode()


async def user_soon(scope: Any) -> str | None:
    await asyncio.sleep(0)
    return user_in(scope)


class Users:
    """An object as `authorize`."""

    async def __call__(self, scope: Any) -> str | None:
        return await user_soon(scope)


def client_of(app: Any, user: str | None) -> Client:
    return Client(app, headers=[HOST] if user is None else [HOST, (b"authorization", user.encode())])


@pytest.mark.parametrize("authorize", [user_in, user_soon, Users()], ids=["function", "coroutine", "object"])
def test_each_request_has_to_be_of_the_one_who_connected(acp: ModuleType, authorize: Callable[..., Any]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=authorize) as server:
            alice, bob, nobody = (client_of(server.app, name) for name in ("alice", "bob", None))
            await alice.initialize()
            async with alice.get() as stream:
                session = await alice.new_session(stream)
            for client, status in ((bob, 404), (nobody, 401)):
                client.key = alice.key
                posted = await client.post(request_of(1, "_echo"))
                refused = [posted, await client.refused_get(), await client.refused_get(session)]
                refused.append(await client.delete())
                assert [answer.status for answer in refused] == [status] * 4
                assert all(("www-authenticate" in answer.headers) == (status == 401) for answer in refused)
            unknown = await client_of(server.app, "bob").refused_get("x")
            bob.key = secrets.token_hex(16)
            assert (await bob.delete()).body == b"Unknown Acp-Connection-Id" != unknown.body
            async with alice.get() as stream:
                await alice.call(1, "_identity")
                assert (await stream.receive())["result"] == {"identity": "'alice'"}
            assert (await alice.delete()).status == 202

    run(main())


def test_without_a_user_nothing_is_done(acp: ModuleType) -> None:
    made: list[Any] = []

    async def main() -> None:
        async with Server.of(acp, made.append, authorize=user_in) as server:
            client = client_of(server.app, None)
            exchange = client.start("POST", [JSON])  # answered before its body is read
            answer = await exchange.answer()
            assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert await client.refused_socket() == 1008
            assert server.app.connections == len(made) == 0

    run(main())


def test_authorize_gets_the_scope_after_all_other_checks(acp: ModuleType) -> None:
    scopes: list[Any] = []

    async def main() -> None:
        options: dict[str, Any] = {"require_http2": True, "authorize": lambda scope: scopes.append(scope) or 1}
        async with Server.of(acp, agent_for(acp), **options) as server:
            await Client(server.app, headers=[]).post({})
            await Client(server.app, path="/x").post({})
            await Client(server.app, http_version="1.1").post({})
            await Client(server.app).request("PUT")
            assert scopes == []
            await Client(server.app).post({})
            assert [(scope["type"], scope["method"]) for scope in scopes] == [("http", "POST")]

    run(main())


def raising(scope: Any) -> Any:
    raise RuntimeError("the database has the password hunter2")


async def raising_soon(scope: Any) -> Any:
    raise OSError("the database has the password hunter2")


@pytest.mark.parametrize("authorize", [raising, raising_soon, lambda scope: ["alice"], lambda scope: {"user": "alice"}])
def test_authorize_that_fails(acp: ModuleType, authorize: Callable[..., Any]) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=authorize) as server:
            client = Client(server.app)
            client.key = "0" * 32
            answers = [await client.post({}), await client.refused_get(), await client.delete()]
            assert {(each.status, each.body) for each in answers} == {(500, b"Internal Server Error")}
            assert await client.refused_socket() == 1008
            assert server.app.connections == 0

    with acp_log() as records:
        run(main())
    assert texts(records).count("authorize failed") == 4


def test_an_identity_that_is_false_but_not_none(acp: ModuleType) -> None:
    async def main() -> None:
        for identity in (0, "", ()):
            async with Server.of(acp, agent_for(acp), authorize=lambda scope, found=identity: found) as server:
                await Client(server.app).initialize()

    run(main())


async def user_twice(scope: Any) -> Any:
    return user_soon(scope)


async def users_of(scope: Any) -> Any:
    yield user_in(scope)


NO_IDENTITIES: dict[str, Callable[..., Any]] = {
    "bool": lambda scope: user_in(scope) == "alice",
    "coroutine": user_twice,
    "generator": lambda scope: (each for each in ("alice", "bob")),
    "async_generator": users_of,
    "function": lambda scope: user_in,
    "type": lambda scope: str,
    "Users": lambda scope: Users(),
}


@pytest.mark.parametrize("kind", NO_IDENTITIES)
@pytest.mark.parametrize("user", ["alice", "mallory"])
@pytest.mark.filterwarnings("ignore:coroutine 'user_soon' was never awaited")
def test_a_value_that_is_no_identity(acp: ModuleType, kind: str, user: str) -> None:
    """Such as the result of a predicate: it would be the same identity for all that it is true for, or false."""
    made: list[Any] = []

    async def main() -> None:
        async with Server.of(acp, made.append, authorize=NO_IDENTITIES[kind]) as server:
            client = client_of(server.app, user)
            answer = await client.post(request_of(0, "initialize", INITIALIZE))
            assert (answer.status, answer.body) == (500, b"Internal Server Error")
            assert await client.refused_socket() == 1008
            assert server.app.connections == len(made) == 0

    with acp_log(logging.INFO) as records:
        asyncio.run(main())
    text = "authorize must return an identity, such as the name of a user, or None to refuse: it returned a"
    assert [record.getMessage() for record in records] == [f"{text} {kind}"] * 2


class Odd:
    """An identity that cannot be compared, or whose hash is known but once."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.hashed = 0

    def __hash__(self) -> int:
        self.hashed += 1
        if self.fault == "hash" or (self.fault == "second hash" and self.hashed > 1):
            raise RuntimeError("no hash")
        return 1

    def __eq__(self, other: object) -> bool:
        if self.fault == "eq":
            raise RuntimeError("not comparable")
        return self is other


@pytest.mark.parametrize("fault", ["eq", "hash", "second hash"])
def test_an_odd_identity_does_not_fail_outside_of_its_request(acp: ModuleType, fault: str) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=lambda scope: Odd(fault)) as server:
            first, second = Client(server.app), Client(server.app)
            statuses = []
            for client in (first, second):
                answer = await client.post(request_of(0, "initialize", INITIALIZE))
                client.key = answer.headers.get("acp-connection-id", "0" * 32)
                statuses += [answer.status, (await client.delete()).status]
            expected = {"eq": [200, 500, 500, 404], "hash": [500] * 4, "second hash": [200, 404, 200, 404]}
            assert statuses == expected[fault]

    with acp_log(logging.INFO) as records:
        run(main())
    assert len(records) == {"eq": 2, "hash": 4, "second hash": 0}[fault]


# --- The identity within the agent ------------------------------------------------------------------------------------


def test_the_agent_knows_its_client_and_no_other(acp: ModuleType) -> None:
    identity, made = asgi_of(acp).client_identity, []

    class Agent(agent_for(acp)):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            made.append(identity.get())

    async def main() -> None:
        async with Server.of(acp, Agent, authorize=user_in) as server:
            users = ["alice", "bob", "carol"]
            clients = [client_of(server.app, name) for name in users]
            await asyncio.gather(*(client.initialize() for client in clients))
            for name, client in zip(users, clients, strict=False):
                async with client.get() as stream, client.socket() as socket:
                    for number in range(3):
                        await client.call(number, "_identity")
                        assert (await stream.receive())["result"] == {"identity": repr(name)}
                        assert (await socket.ask(number, "_identity"))["result"] == {"identity": repr(name)}
            assert sorted(made) == sorted(users * 2)
            assert identity.get() is None

    run(main())


def test_the_identity_does_not_get_into_the_task_of_the_request(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=user_in) as server:
            body = json.dumps(request_of(0, "initialize", INITIALIZE)).encode()
            sent: list[Any] = []

            async def receive() -> Any:
                return {"type": "http.request", "body": body}

            async def send(event: Any) -> None:
                sent.append(event)

            # some servers handle all requests of a client in one task
            await server.app(client_of(server.app, "alice").scope("http", [JSON], method="POST"), receive, send)
            assert sent[0]["status"] == 200
            assert asgi_of(acp).client_identity.get() is None

    run(main())


def test_without_authorize_there_is_no_identity(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            token = asgi_of(acp).client_identity.set("of the server itself")
            try:
                async with Client(server.app).socket() as socket:
                    assert (await socket.ask(1, "_identity"))["result"] == {"identity": "None"}
            finally:
                asgi_of(acp).client_identity.reset(token)

    run(main())


# --- Ids ------------------------------------------------------------------------------------------------------------


def test_ids_come_from_the_system_and_have_128_bits(acp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def token_hex(size: int) -> str:
        assert size >= 16
        drawn.append(original(size))
        return drawn[-1]

    original = secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", token_hex)

    async def main() -> None:
        async with Server.of(acp, agent_for(acp)) as server:
            for _ in range(20):
                client = Client(server.app)
                await client.initialize()
                assert client.key == drawn[-1]
                assert re.fullmatch(r"[0-9a-f]{32,}", drawn[-1])
            assert len(set(drawn)) == 20

    run(main())


def test_ids_are_in_no_log_and_no_error(acp: ModuleType) -> None:
    """Not even at the level DEBUG, whatever happens to a connection."""
    keys: list[str] = []

    async def main() -> list[bytes]:
        limits = asgi_of(acp).RemoteLimits(keep_alive_seconds=0.1)
        async with Server.of(acp, agent_for(acp), limits=limits) as server:
            refused = []
            for _ in range(3):
                client = Client(server.app)
                await client.initialize()
                keys.append(client.key or "")
                refused.append((await client.post(b"[]")).body)
                refused.append((await client.post(b"hello")).body)
                await client.post({"jsonrpc": "2.0", "id": [], "method": "x"})
                await client.call(1, "_flood")
            await client.delete()
            refused.append((await client.delete()).body)
            socket = Client(server.app).open_socket()
            accepted = await socket.connect()
            keys.append(dict(accepted["headers"])[b"acp-connection-id"].decode())
            await socket.send("hello")
            assert "error" in await socket.receive()
            await socket.leave()
            server.hurry(idle_seconds=0.05, stall_seconds=0.05)
            while server.app.connections:
                await asyncio.sleep(0.001)
            return refused

    with acp_log() as records:
        refused = run(main())
    text = texts(records, logging.DEBUG) + repr(refused)
    assert "the client has gone" in text
    assert len(keys) >= 4
    assert not [key for key in keys if key in text]


def test_an_identity_is_compared_and_not_only_looked_up(acp: ModuleType) -> None:
    async def main() -> None:
        async with Server.of(acp, agent_for(acp), authorize=lambda scope: scope["client"]) as server:
            client = Client(server.app)
            answer = await client.post(request_of(0, "initialize", INITIALIZE))
            scope = client.scope("http", [(b"acp-connection-id", answer.headers["acp-connection-id"].encode())])
            other = Exchange(server.app, {**scope, "method": "DELETE", "client": ("10.0.0.1", 1)})
            assert (await other.answer()).status == 404
            same = Exchange(server.app, {**scope, "method": "DELETE"})
            assert (await same.answer()).status == 202

    run(main())
