"""examples/remote: its files fit together, and its topology works, which here runs without containers."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from http.cookiejar import CookieJar
from importlib.metadata import version
from types import ModuleType
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.needs import need
from tests.remote_topology import EXAMPLE, SERVICES, TOKENS, Topology, instructions, topology
from tests.runtime_support import run
from tests.support import import_folder
from tests.test_examples import build_command

PACKAGE = "acp_remote"
SCHEMES = pytest.mark.parametrize("scheme", ["http", "ws"])

# --- The files --------------------------------------------------------------------------------------------------------


def test_the_image_gets_what_the_agent_needs_and_nothing_else() -> None:
    copied = {name for text in instructions("COPY") for name in shlex.split(text)[:-1]}
    assert copied == {PACKAGE, "app.py", "hypercorn.toml"}
    assert {path.name for path in EXAMPLE.iterdir()} >= copied - {PACKAGE}
    ignored = (EXAMPLE / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[1] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_the_image_has_a_python_of_one_version_the_server_of_the_tests_and_no_root() -> None:
    assert re.fullmatch(r"python:3\.\d+-slim", *instructions("FROM"))
    assert instructions("USER") == ["agent"]
    (install,) = instructions("RUN")
    lower, upper = re.findall(r'"hypercorn>=([\d.]+),<([\d.]+)"', install)[0]
    need("hypercorn")
    here = tuple(map(int, version("hypercorn").split(".")))
    assert tuple(map(int, lower.split("."))) <= here < tuple(map(int, upper.split(".")))


def test_compose_names_files_and_ports_that_there_are() -> None:
    (port,) = instructions("EXPOSE")
    assert f':{port}"' in (EXAMPLE / "hypercorn.toml").read_text(encoding="utf-8")
    proxy = SERVICES["proxy"]
    replicas = SERVICES.keys() - {"proxy"}
    assert proxy["depends_on"].keys() == replicas
    assert {proxy["environment"][f"REPLICA_{number}"] for number in (1, 2)} == {f"{name}:{port}" for name in replicas}
    ((source, target, mode),) = (volume.split(":") for volume in proxy["volumes"])
    assert (EXAMPLE / source).is_file()
    assert (target, mode) == ("/usr/local/etc/haproxy/haproxy.cfg", "ro")
    assert proxy["ports"] == [f"127.0.0.1:8080{proxy['environment']['BIND']}"]
    for name in replicas:
        assert SERVICES[name]["environment"]["ACP_REPLICA"] == name
        assert (EXAMPLE / SERVICES[name]["build"] / "Dockerfile").is_file()


def test_both_programs_import_one_package() -> None:
    assert build_command("remote/app.py") == build_command("remote/client.py")


# --- The topology -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topology]:
    """Two replicas behind the load balancer."""
    for name in ("hypercorn", "httpx2", "websockets"):
        need(name)
    folder = tmp_path_factory.mktemp("deployment") / "remote"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("acp_*", "__pycache__"))
    ran = run_acpgen(*build_command("remote/app.py"), cwd=folder)
    assert ran.code == 0, ran.stderr
    with topology(folder) as found:
        yield found


@pytest.fixture(scope="module")
def acp(running: Topology) -> ModuleType:
    """The package of the example, under a name that no other test imports."""
    copy = running.folder / "deployed_acp"
    shutil.copytree(running.folder / PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return import_folder(copy)


class Visitor:
    """A client that connects through the load balancer, and the texts that it gets."""

    def __init__(self, acp: ModuleType, running: Topology, scheme: str, token: str = TOKENS["alice"]) -> None:
        from deployed_acp.remote import connect_url  # type: ignore[import-not-found]

        self.acp = acp
        self.cookies = CookieJar()
        self.texts: list[str] = []
        self._connect = connect_url
        self._url = f"{scheme}://{running.proxy}/acp"
        self._headers = {"Authorization": f"Bearer {token}"}

    async def enter(self, stack: AsyncExitStack, *, with_cookies: bool = True) -> tuple[Any, str]:
        """Connect until the stack ends; returns the stub of the agent, and the name of the replica."""
        acp, texts = self.acp, self.texts

        class Recorder(acp.Client):  # type: ignore[misc, name-defined]
            async def session_update(self, params: Any) -> None:
                texts.append(params.update.content.text)

        cookies = self.cookies if with_cookies else None
        connecting = self._connect(Recorder, self._url, cookies=cookies, headers=self._headers)
        agent = await stack.enter_async_context(connecting)
        hello = await agent.initialize(acp.InitializeRequest(protocol_version=1))
        return agent, hello.agent_info.title

    async def open(self, agent: Any) -> str:
        """Open a session."""
        answer = await agent.session_new(self.acp.NewSessionRequest(cwd="/", mcp_servers=[]))
        return str(answer.session_id)

    async def say(self, agent: Any, session_id: str, text: str) -> None:
        """Send a prompt, which is echoed."""
        block = self.acp.ContentBlockText(text=text)
        await agent.session_prompt(self.acp.PromptRequest(session_id=session_id, prompt=[block]))

    async def load(self, agent: Any, session_id: str) -> None:
        """Load a session."""
        await agent.session_load(self.acp.LoadSessionRequest(session_id=session_id, cwd="/", mcp_servers=[]))


@pytest.mark.full
@SCHEMES
def test_the_client_of_the_example_gets_its_session_back(running: Topology, scheme: str) -> None:
    command = [sys.executable, "-W", "error", "client.py", f"{scheme}://{running.proxy}/acp", "Grüße!"]
    environment = {**os.environ, "ACP_TOKEN": TOKENS["bob"], "PYTHONUTF8": "1"}
    ran = subprocess.run(
        command, cwd=running.folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    first, *lines = ran.stdout.splitlines()
    expected = ["agent: Grüße!", f"{first} again", "user: Grüße!", "agent: Grüße!", "agent: Grüße! Once more!"]
    assert lines == expected
    assert first.removeprefix("connected to ") in running.addresses


@pytest.mark.full
@SCHEMES
def test_all_requests_of_a_connection_reach_one_replica(running: Topology, acp: ModuleType, scheme: str) -> None:
    """The other replica does not know the connection, and would answer 404."""

    async def visit(number: int) -> str:
        visitor = Visitor(acp, running, scheme)
        async with AsyncExitStack() as stack:
            agent, replica = await visitor.enter(stack)
            sessions = [await visitor.open(agent) for _ in range(3)]
            said = [f"{number} {turn}" for turn in range(10)]
            for text in said:
                await asyncio.gather(*(visitor.say(agent, session, text) for session in sessions))
            assert sorted(visitor.texts) == sorted(3 * said)
            return replica

    async def main() -> list[str]:
        return list(await asyncio.gather(*map(visit, range(6))))

    assert set(run(main())) == running.addresses.keys()


@pytest.mark.full
def test_requests_are_http_2_on_both_sides(running: Topology, acp: ModuleType) -> None:
    async def main() -> str:
        visitor = Visitor(acp, running, "http")
        async with AsyncExitStack() as stack:
            agent, replica = await visitor.enter(stack)
            await visitor.open(agent)
            return replica

    replica = run(main())
    versions = set(re.findall(r"\b20\d POST /acp (\S+)$", running.log(replica), flags=re.MULTILINE))
    assert versions == {"2"}  # and the client speaks nothing else where there is no TLS


@pytest.mark.full
@SCHEMES
def test_cookies_lead_back_to_the_replica(running: Topology, acp: ModuleType, scheme: str) -> None:
    async def main() -> None:
        visitor = Visitor(acp, running, scheme)
        async with AsyncExitStack() as stack:
            agent, replica = await visitor.enter(stack)
            session = await visitor.open(agent)
            await visitor.say(agent, session, "one")
        for _ in range(3):
            async with AsyncExitStack() as stack:
                agent, again = await visitor.enter(stack)
                assert again == replica
                visitor.texts.clear()
                await visitor.load(agent, session)
                await visitor.say(agent, session, "end")
                assert visitor.texts[:2] == ["one", "one"]
                assert visitor.texts[-1] == "end"

    run(main())


@pytest.mark.full
@SCHEMES
def test_without_cookies_a_client_reaches_either_replica(running: Topology, acp: ModuleType, scheme: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            await reach_both(stack, Visitor(acp, running, scheme))

    run(main())


@pytest.mark.full
@SCHEMES
def test_a_session_is_its_owners(running: Topology, acp: ModuleType, scheme: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            alice, bob = (Visitor(acp, running, scheme, token) for token in TOKENS.values())
            agent, replica = await alice.enter(stack)
            session = await alice.open(agent)
            bob.cookies = alice.cookies
            agent, same = await bob.enter(stack)
            assert same == replica
            with pytest.raises(acp.ResourceNotFoundError):
                await bob.load(agent, session)
            with pytest.raises(acp.ConnectionClosed, match="401"):
                await Visitor(acp, running, scheme, "no token").enter(stack)

    run(main())


async def reach_both(stack: AsyncExitStack, visitor: Visitor) -> dict[str, Any]:
    """Connect without cookies until there is a connection to each replica; returns them by name."""
    found: dict[str, Any] = {}
    for _ in range(60):
        agent, replica = await visitor.enter(stack, with_cookies=False)
        found[replica] = agent
        if len(found) == 2:
            return found
        await asyncio.sleep(0.1)  # the load balancer may not have noticed yet that a replica runs
    raise AssertionError(f"only {list(found)} can be reached")


@pytest.mark.full
@SCHEMES
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=lambda how: str(how.name))
def test_where_a_replica_has_stopped_the_other_one_goes_on(
    running: Topology, acp: ModuleType, scheme: str, how: signal.Signals
) -> None:
    async def main() -> str:
        visitor = Visitor(acp, running, scheme)
        async with AsyncExitStack() as stack:
            await reach_both(stack, visitor)
        async with AsyncExitStack() as stack:
            agent, replica = await visitor.enter(stack)
            session = await visitor.open(agent)
            await asyncio.to_thread(running.stop, replica, how)
            with pytest.raises(acp.ConnectionClosed):
                await visitor.say(agent, session, "Are you there?")
        async with AsyncExitStack() as stack:
            agent, other = await visitor.enter(stack)
            assert other != replica
            with pytest.raises(acp.ResourceNotFoundError):
                await visitor.load(agent, session)
            await visitor.say(agent, await visitor.open(agent), "Hello!")
            assert visitor.texts == ["Hello!"]
        return replica

    running.start_replica(run(main()))


@pytest.mark.full
def test_more_messages_than_requests_that_hypercorn_takes_by_default(running: Topology) -> None:
    """Without hypercorn.toml, a client that stays on one connection loses it after 1,000."""
    import httpx2

    headers = {"authorization": f"Bearer {TOKENS['alice']}", "content-type": "application/json"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    nothing = {"jsonrpc": "2.0", "method": "_tests/nothing", "params": {}}

    async def main() -> None:
        url = f"http://{running.addresses['replica-1']}/acp"
        async with httpx2.AsyncClient(http1=False, http2=True, headers=headers) as client:
            key = (await client.post(url, json=hello)).headers["acp-connection-id"]
            for _ in range(1100):
                answer = await client.post(url, json=nothing, headers={"acp-connection-id": key})
                assert answer.status_code == 202
            assert (await client.delete(url, headers={"acp-connection-id": key})).status_code == 202

    run(main())
