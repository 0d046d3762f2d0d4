"""Logging in from a client: when the agent asks for it, by which method, and how often."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.client_support import helpers_of
from tests.runtime_support import V1, V2, pair, run
from tests.support import Packages, package_folder

pytestmark = pytest.mark.every_python

ENV_VAR = SchemaChoice(protocol=1, release="2026-11-02", extensions=("auth-env-var",))


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param)


def is_v1(acp: Any) -> bool:
    return bool(acp.PROTOCOL_VERSION == 1)


def method(acp: Any, kind: str, name: str, **options: Any) -> Any:
    """A login method of the agent."""
    key = "id" if is_v1(acp) else "method_id"
    return getattr(acp, f"AuthMethod{kind}")(**{key: name, "name": name, **options})


def agent_of(acp: Any, methods: list[Any], *, refuses: int = 0, needs: int = 1) -> type[Any]:
    """An agent that wants `needs` logins, and refuses the first ones."""

    class Agent(acp.Agent):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.log: list[str] = []

        async def initialize(self, params: Any) -> Any:
            self.hello = params
            info = {} if is_v1(acp) else {"info": acp.Implementation(name="a", version="1")}
            found = acp.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION, auth_methods=methods, **info)
            return acp.advertise(self, found)

        async def session_new(self, params: Any) -> Any:
            self.log.append("new")
            await asyncio.sleep(0)
            if sum(each.startswith("login") for each in self.log) < needs:
                raise acp.AuthenticationRequiredError
            return acp.NewSessionResponse(session_id="s")

        async def log_in(self, method_id: str) -> None:
            if self.log.count("refused") < refuses:
                self.log.append("refused")
                raise acp.InvalidParamsError("wrong password")
            self.log.append(f"login {method_id}")

        async def v1(self, params: Any) -> Any:
            await self.log_in(params.method_id)
            return acp.AuthenticateResponse()

        async def v2(self, params: Any) -> Any:
            await self.log_in(params.method_id)
            return acp.LoginAuthResponse()

    if is_v1(acp):
        Agent.authenticate = Agent.v1
    else:
        Agent.auth_login = Agent.v2
    return Agent


def hello(acp: Any) -> Any:
    info = {} if is_v1(acp) else {"info": acp.Implementation(name="c", version="1")}
    return acp.InitializeRequest(protocol_version=acp.PROTOCOL_VERSION, **info)


def opened(
    acp: Any, agent: type[Any], client: Callable[[Any], Any] | None = None, *, times: int = 1, where: str = "process"
) -> tuple[list[Any], list[str]]:
    """What several calls of `session/new` at once end with, and what the agent has seen."""
    kind = client or helpers_of(acp).LoginClient

    async def main() -> tuple[list[Any], list[str]]:
        ends = acp.memory_transports()
        ends[1].peer_kind = where
        async with pair(acp, agent, kind, transports=ends) as both:  # type: ignore[arg-type]
            await both.agent.initialize(helpers_of(acp).offer_terminal_login(hello(acp)))
            chat = both.client_handler
            chat.agent.negotiated = both.agent.negotiated
            request = acp.NewSessionRequest(cwd="/", **({"mcp_servers": []} if is_v1(acp) else {}))
            calls = [chat.with_login(lambda: both.agent.session_new(request)) for _ in range(times)]
            ends = await asyncio.gather(*calls, return_exceptions=True)
            return [getattr(each, "session_id", each) for each in ends], both.agent_handler.log

    return run(main())


# --- The loop --------------------------------------------------------------------------------------------------------


def test_a_call_is_made_again_once_after_the_login(acp: Any) -> None:
    agent = agent_of(acp, [method(acp, "Agent", "keyring")])
    assert opened(acp, agent) == (["s"], ["new", "login keyring", "new"])


def test_without_the_error_there_is_no_login(acp: Any) -> None:
    agent = agent_of(acp, [method(acp, "Agent", "keyring")], needs=0)
    assert opened(acp, agent) == (["s"], ["new"])


def test_a_login_that_changes_nothing_is_not_repeated(acp: Any) -> None:
    ends, log = opened(acp, agent_of(acp, [method(acp, "Agent", "keyring")], needs=9))
    assert isinstance(ends[0], acp.AuthenticationRequiredError)
    assert log == ["new", "login keyring", "new"]


def test_a_login_that_is_refused_is_raised(acp: Any) -> None:
    ends, log = opened(acp, agent_of(acp, [method(acp, "Agent", "keyring")], refuses=9))
    assert isinstance(ends[0], acp.InvalidParamsError)
    assert log == ["new", "refused"]


def test_calls_at_once_share_a_login(acp: Any) -> None:
    ends, log = opened(acp, agent_of(acp, [method(acp, "Agent", "keyring")]), times=3)
    assert ends == 3 * ["s"]
    assert log == [*3 * ["new"], "login keyring", *3 * ["new"]]


def test_the_user_chooses_among_what_the_client_can_do(acp: Any) -> None:
    shown: list[list[str]] = []

    class Chat(helpers_of(acp).LoginClient):  # type: ignore[misc]
        async def choose_login(self, methods: Any) -> Any:
            shown.append([each.name for each in methods])
            return None if len(shown) == 1 else methods[1]

    others = [] if is_v1(acp) else [method(acp, "Other", "other", type="_other")]  # protocol 1 has none
    methods = [
        *others,
        method(acp, "Terminal", "terminal"),
        method(acp, "Agent", "one"),
        method(acp, "Agent", "two"),
    ]
    ends, _ = opened(acp, agent_of(acp, methods), Chat)
    assert isinstance(ends[0], helpers_of(acp).LoginError)
    assert opened(acp, agent_of(acp, methods), Chat) == (["s"], ["new", "login two", "new"])
    assert shown == [["one", "two"]] * 2


def test_without_a_method_there_is_an_error_that_says_so(acp: Any) -> None:
    ends, log = opened(acp, agent_of(acp, [method(acp, "Terminal", "terminal")]))
    assert isinstance(ends[0], helpers_of(acp).LoginError)
    assert log == ["new"]


# --- Terminals and variables -----------------------------------------------------------------------------------------


def test_a_client_says_that_it_has_a_terminal(acp: Any) -> None:
    raw = acp.Client.CODEC.encode(helpers_of(acp).offer_terminal_login(hello(acp)))
    capabilities = raw["clientCapabilities" if is_v1(acp) else "capabilities"]
    assert capabilities["auth"] == {"terminal": True if is_v1(acp) else {}}


def terminal_method(acp: Any) -> Any:
    env = {"A": "agent"} if is_v1(acp) else [acp.EnvVariable(name="A", value="agent")]
    return method(acp, "Terminal", "terminal", args=["--login"], env=env)


@pytest.mark.parametrize("status", [0, 1])
def test_a_login_in_a_terminal(acp: Any, status: int) -> None:
    """It never reaches `authenticate`; only status 0 is success."""
    ran: list[Any] = []

    class Chat(helpers_of(acp).LoginClient):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.login_command = ["agent", "--acp"]
            self.login_env = {"A": "client", "B": "client"}

        async def run_login(self, command: Any, env: Any) -> int:
            ran.append((list(command), dict(env)))
            return status

    ends, log = opened(acp, agent_of(acp, [terminal_method(acp)]), Chat)
    assert ran == [(["agent", "--acp", "--login"], {"A": "agent", "B": "client"})]
    assert log == (["new", "new"] if status == 0 else ["new"])
    kind = acp.AuthenticationRequiredError if status == 0 else helpers_of(acp).LoginError
    assert isinstance(ends[0], kind)


def test_an_agent_on_the_network_gets_no_terminal(acp: Any) -> None:
    """It would choose the arguments and the variables of a program on the machine of the client."""

    class Chat(helpers_of(acp).LoginClient):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.login_command = [sys.executable, "-c", "raise SystemExit('ran')"]

        async def run_login(self, command: Any, env: Any) -> int:
            raise AssertionError(command)

    ends, log = opened(acp, agent_of(acp, [terminal_method(acp)]), Chat, where="network")
    assert isinstance(ends[0], helpers_of(acp).LoginError)
    assert log == ["new"]


CHAT = """
import asyncio, sys
from acp.helpers import LoginClient, LoginError

async def main():
    chat = LoginClient(None)
    command = [sys.executable, "-c", "import sys; print('who?'); sys.exit(input() != 'me')"]
    try:
        print("status", await chat.run_login(command, {}))
    except LoginError as error:
        print(error)

asyncio.run(main())
"""


@pytest.mark.needs("posix")
@pytest.mark.parametrize(("said", "status"), [(b"me\n", b"status 0"), (b"you\n", b"status 1")])
def test_the_terminal_is_that_of_the_client(tmp_path: Path, said: bytes, status: bytes) -> None:
    import pty

    (tmp_path / "acp").symlink_to(package_folder(V1))
    main, other = pty.openpty()
    command = [sys.executable, "-c", CHAT]
    with subprocess.Popen(command, cwd=tmp_path, stdin=other, stdout=other, stderr=other) as chat:
        os.close(other)
        seen = b""
        while b"who?" not in seen:
            seen += os.read(main, 1000)
        os.write(main, said)
        while b"status" not in seen or not seen.rpartition(b"status")[2].strip():
            seen += os.read(main, 1000)
        chat.wait()
    os.close(main)
    assert status in seen


def test_without_a_terminal_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "acp").symlink_to(package_folder(V1))
    ran = subprocess.run(
        [sys.executable, "-c", CHAT], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert "needs a terminal" in ran.stdout


def test_variables_start_the_agent_again(packages: Packages) -> None:
    acp = packages(ENV_VAR)
    helpers = helpers_of(acp)
    key = method(acp, "EnvVar", "key", vars=[acp.AuthEnvVar(name="ACME_KEY")])

    class Chat(helpers.LoginClient):  # type: ignore[name-defined, misc]
        async def ask_variables(self, method: Any) -> Any:
            return {each.name: "typed" for each in method.vars} if method.name == "key" else None

    (end,), log = opened(acp, agent_of(acp, [key]), Chat)
    assert isinstance(end, helpers.LoginRestart)
    assert end.env == {"ACME_KEY": "typed"}
    assert "typed" not in str(end)
    (end,), _ = opened(acp, agent_of(acp, [method(acp, "EnvVar", "other", vars=[])]), Chat)
    assert isinstance(end, helpers.LoginError)
    (end,), _ = opened(acp, agent_of(acp, [key]))  # a client that cannot ask does not offer it
    assert isinstance(end, helpers.LoginError)
    assert log == ["new"]
